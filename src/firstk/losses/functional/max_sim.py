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
from firstk.losses.functional._inputs import check_targets, described, full_precision, promoted, weights_of

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
    for part, name in ((queries, "queries"), (documents, "documents")):
        if not isinstance(part, Tensor) or not part.dtype.is_floating_point:
            raise bad_parameter(name, _OWNER, "a floating-point tensor (n, tokens, d)", described(part))
    shapes = tuple(queries.shape), tuple(documents.shape)
    if queries.ndim != 3 or documents.ndim != 3 or shapes[0][2] != shapes[1][2] or 0 in (*shapes[0], *shapes[1]):
        raise InvalidInputError(
            f"{_OWNER} takes token vectors (n, t, d) of queries and (m, s, d) of documents, none of them empty. Got "
            f"{shapes[0]} and {shapes[1]}; pad texts of different lengths and give masks."
        )
    for mask, given, name in ((query_mask, queries, "query_mask"), (document_mask, documents, "document_mask")):
        if mask is not None and (
            not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != given.shape[:2]
        ):
            raise bad_parameter(name, _OWNER, f"a bool tensor of shape {tuple(given.shape[:2])}", described(mask))
    if targets is None and len(queries) != len(documents):
        raise InvalidInputError(f"{_OWNER} needs a document for each query, or 'targets'. Got shapes {shapes}.")
    if not is_real(temperature) or temperature <= 0:
        raise bad_parameter("temperature", _OWNER, "a positive number", temperature)
    if targets is None:
        targets = torch.arange(len(queries), device=queries.device)
    else:
        check_targets(targets, queries, documents, _OWNER)
    weights = weights_of(omega, queries.shape[2], _OWNER).without_first()
    with full_precision(queries.device):
        q, p = promoted(queries, documents)
        total = q.new_zeros(())
        for k in weights.support.tolist():
            scores = _scores(q, p, document_mask, query_mask, k) / temperature
            total = total + float(weights.omega[k - 1]) * F.cross_entropy(scores, targets)
    return total
