"""InfoNCE of every prefix of token vectors, compared by MaxSim (Khattab and Zaharia 2020).

s_k(q, D) = sum_t max_s cos_k(q_t, D_s): each token of a query finds its most similar token of a document. Maxima move
from token to token as k grows, so there is no sum over prefixes in one pass: one product for each length with weight.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from firstk._base.checks import bad_parameter, is_real
from firstk._base.prefix_weights import OmegaLike
from firstk.exceptions import InvalidInputError
from firstk.losses.functional._inputs import full_precision, promoted, weights_of

_OWNER = "max_sim"


def _scores(queries: Tensor, documents: Tensor, kept: Tensor | None, of_query: Tensor | None, k: int) -> Tensor:
    """Return the MaxSim of each query and document on the first k coordinates, (n, m)."""
    q, p = (F.normalize(part[..., :k], dim=-1) for part in (queries, documents))
    cosines = torch.einsum("ntk,msk->nmts", q, p)
    if kept is not None:
        cosines = cosines.masked_fill(~kept[:, None], -torch.inf)  # (n, m, t, s) and (m, 1, s)
    best = cosines.amax(3)  # (n, m, t)
    # A document without tokens is no match; a token that is padding has no part.
    best = best.where(best > -torch.inf, -1.0)
    return best.sum(2) if of_query is None else (best * of_query[:, None]).sum(2)


def max_sim(
    queries: Tensor,
    documents: Tensor,
    query_mask: Tensor | None = None,
    document_mask: Tensor | None = None,
    *,
    targets: Tensor | None = None,
    temperature: float = 1.0,
    omega: OmegaLike = "harmonic",
) -> Tensor:
    """Return sum_k omega_k InfoNCE_k of the MaxSim scores over temperature, with a product for each k with weight.

    Parameters
    ----------
    queries, documents : Tensors of shape (n, t, d), (m, s, d)
        Token vectors. Document i belongs to query i, unless `targets` names others.
    query_mask, document_mask : Tensors of shape (n, t), (m, s), bool, optional
        Tokens that are no padding.
    targets : Tensor of shape (n,), int64, optional
    temperature : float
    omega : as in `cross_entropy`
        The weight of prefix 1 is set to zero, as for all cosines.

    Examples
    --------
    >>> q = torch.eye(4).view(2, 2, 4)
    >>> bool(max_sim(q, q) < max_sim(q, q.flip(0)))
    True
    """
    shapes = tuple(queries.shape), tuple(documents.shape)
    if queries.ndim != 3 or documents.ndim != 3 or shapes[0][2] != shapes[1][2] or not len(queries):
        raise InvalidInputError(
            f"{_OWNER} takes token vectors (n, t, d) of queries and (m, s, d) of documents. Got {shapes[0]} and "
            f"{shapes[1]}."
        )
    for mask, given, name in ((query_mask, queries, "query_mask"), (document_mask, documents, "document_mask")):
        if mask is not None and (mask.dtype != torch.bool or mask.shape != given.shape[:2]):
            raise bad_parameter(name, _OWNER, f"bool of shape {tuple(given.shape[:2])}", f"{mask.dtype}, {mask.shape}")
    if targets is None and len(queries) != len(documents):
        raise InvalidInputError(f"{_OWNER} needs a document for each query, or 'targets'. Got shapes {shapes}.")
    if not is_real(temperature) or temperature <= 0:
        raise bad_parameter("temperature", _OWNER, "a positive number", temperature)
    targets = torch.arange(len(queries), device=queries.device) if targets is None else targets
    weights = weights_of(omega, queries.shape[2], _OWNER).without_first()
    with full_precision(queries.device):
        q, p = promoted(queries, documents)
        total = q.new_zeros(())
        for k in weights.support.tolist():
            scores = _scores(q, p, document_mask, query_mask, k) / temperature
            total = total + float(weights.omega[k - 1]) * F.cross_entropy(scores, targets)
    return total
