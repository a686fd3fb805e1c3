"""InfoNCE of every prefix: each query against its positive, the other positives, and hard negatives.

With t_ikc the scaled similarity of query i and document c on the first k coordinates, the loss is
sum_k omega_k mean_i (logsumexp_c t_ikc - t_ik,i). Cosines are taken per prefix (normalized after truncation).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from firstk._base.checks import bad_parameter, check_choice, is_real
from firstk._base.prefix_weights import OmegaLike, PrefixWeights
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.losses.functional import contrastive_torch
from firstk.losses.functional._inputs import (
    check_codes,
    check_estimator,
    check_rows,
    few_lengths,
    full_precision,
    host_reads,
    omega_like,
    promoted,
    untraced,
    use_compiled,
    weights_of,
)
from firstk.losses.functional.cosine import bounded, inverse_norms_at, inverse_prefix_norms, inverse_roots
from firstk.losses.functional.cross_entropy import cross_entropy, cross_entropy_per_prefix
from firstk.losses.functional.once import weighted
from firstk.losses.functional.sampling import cut, draw_prefixes

SIMILARITIES = ("cosine", "dot")
_OWNER = "info_nce"


def _sweep(
    q: Tensor,
    p: Tensor,
    rq: Tensor,
    rp: Tensor,
    scale: Tensor,
    targets: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    *,
    lengths: list[int],
    compiled: bool,
    grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    args = (q, p, rq, rp, scale, targets, row_weight, omega, grad)
    if lengths:
        return contrastive_torch.sparse_sweep(lengths, *args)
    if compiled:
        from firstk.losses.functional import contrastive_cpu

        return contrastive_cpu.sweep(*args)
    return contrastive_torch.sweep(*args)


def _normed_sweep(q: Tensor, p: Tensor, *rest: Tensor, **options: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _sweep(q, p, inverse_prefix_norms(q), inverse_prefix_norms(p), *rest, **options)


class _Sides(NamedTuple):
    """Queries, all documents, the document of each query, and the inverse temperature."""

    queries: Tensor
    documents: Tensor
    targets: Tensor
    scale: Tensor

    def reversed(self, n: int) -> _Sides:
        """Return the direction from the n positives to the queries, without the extra negatives."""
        return _Sides(self.documents[:n], self.queries, self.targets, self.scale)


def _sides(
    queries: Tensor,
    positives: Tensor,
    negatives: Tensor | None,
    temperature: float | Tensor,
    targets: Tensor | None,
    symmetric: bool,
    owner: str,
) -> _Sides:
    """Check the arguments and convert them to the working dtype."""
    check_codes(queries, owner, "queries")
    d = queries.shape[1]
    check_codes(positives, owner, "positives", width=d)
    documents = [positives]
    if negatives is not None:
        negatives = negatives.flatten(0, -2) if negatives.ndim > 2 else negatives
        documents.append(check_codes(negatives, owner, "negatives", width=d))
    if len(queries) == 0:
        raise InvalidInputError(f"{owner} needs at least one query. Got shape {tuple(queries.shape)}.")
    if targets is None:
        check_rows(queries, positives, "queries", "positives", owner)
        targets = torch.arange(len(queries), device=queries.device)
    elif symmetric:
        raise IllegalCombinationError(
            f"{owner} with symmetric=True and 'targets'",
            "the reverse direction needs a query for every document, and 'targets' may omit some documents",
            "call it once per direction",
        )
    else:
        check_rows(queries, targets, "queries", "targets", owner)
        if host_reads(targets) and (int(targets.min()) < 0 or int(targets.max()) >= len(positives)):
            raise bad_parameter(
                "targets", owner, f"in [0, {len(positives) - 1}] (rows of 'positives')", targets.tolist()[:5]
            )
    queries, *documents = promoted(queries, *documents)
    return _Sides(queries, torch.cat(documents), targets, _inverse(temperature, queries, owner))


def _inverse(temperature: float | Tensor, like: Tensor, owner: str) -> Tensor:
    if isinstance(temperature, Tensor):
        return 1.0 / temperature.to(like).reshape(())
    if not is_real(temperature) or temperature <= 0:
        raise bad_parameter("temperature", owner, "a positive number or a tensor of one", temperature)
    return like.new_full((), 1.0 / temperature)  # no copy from the host


def _exact(sides: _Sides, weights: PrefixWeights, cosine: bool, backend: str) -> Tensor:
    q, p, targets, scale = sides
    if not cosine:
        # A dot product is linear in the query: this is a cross-entropy with the documents as the head's weights.
        return cross_entropy(q * scale, p, targets, omega=weights, backend=backend)
    row_weight = q.new_full((len(q),), 1 / len(q))
    compiled = use_compiled(backend, q, _OWNER)
    sweep = partial(_normed_sweep, lengths=few_lengths(weights, compiled), compiled=compiled)
    return weighted(sweep, bounded(q), bounded(p), scale, targets, row_weight, omega_like(weights, q))


def _sampled(sides: _Sides, weights: PrefixWeights, cosine: bool, generator: torch.Generator | None) -> Tensor:
    """Truncate each query to its drawn prefix: one matrix product gives all dot products on that prefix."""
    q, p, targets, scale = sides
    k = draw_prefixes(weights, len(q), q.device, generator)
    if not cosine:
        return F.cross_entropy(cut(q * scale, k) @ p.t(), targets)
    q, p = bounded(q), bounded(p)
    # A truncated query has the norm of its prefix; documents need their norm at every drawn k.
    short = cut(q, k)
    rq = inverse_roots(short.square().sum(1, keepdim=True))  # (n, 1)
    return F.cross_entropy((short @ p.t()) * (rq * scale) * inverse_norms_at(p, k).t(), targets)


@untraced
def info_nce(
    queries: Tensor,
    positives: Tensor,
    negatives: Tensor | None = None,
    *,
    temperature: float | Tensor = 0.05,
    similarity: str = "cosine",
    symmetric: bool = False,
    targets: Tensor | None = None,
    omega: OmegaLike | Tensor = "harmonic",
    estimator: str = "exact",
    generator: torch.Generator | None = None,
    backend: str = "auto",
) -> Tensor:
    """Return sum_k omega_k InfoNCE_k, all d prefixes in one sweep.

    Parameters
    ----------
    queries, positives : Tensors of shape (n, d)
        Row i of `positives` belongs to row i of `queries`; the other rows are its negatives.
    negatives : Tensor of shape (m, d) or (n, h, d), optional
        Extra documents, negatives of every query.
    temperature : float or Tensor
        If a tensor, gradients flow through it.
    similarity : "cosine" or "dot"
        "cosine" normalizes every prefix by its own norm and sets the weight of prefix 1 to zero, because the cosine
        of one coordinate is +1 or -1. A prefix with norm below 1e-18 of its row's largest entry has cosine 0.
    symmetric : bool
        Average with the loss from positives to queries.
    targets : Tensor of shape (n,), int64, optional
        The row of `positives` that belongs to each query, when `queries` is a chunk of a larger batch.
    omega, estimator, generator, backend
        As in `cross_entropy`.

    Returns
    -------
    Tensor
        A scalar, float32 at least. Not differentiable twice.

    Examples
    --------
    >>> q = torch.eye(4)
    >>> bool(info_nce(q, q) < info_nce(q, q.roll(1, 0)))
    True
    """
    cosine = check_choice(similarity, SIMILARITIES, "similarity", _OWNER) == "cosine"
    sides = _sides(queries, positives, negatives, temperature, targets, symmetric, _OWNER)
    weights = weights_of(omega, queries.shape[1], _OWNER)
    weights = weights.without_first() if cosine else weights
    directions = [sides, sides.reversed(len(queries))] if symmetric else [sides]
    with full_precision(queries.device):
        if check_estimator(estimator, _OWNER):
            losses = [_sampled(side, weights, cosine, generator) for side in directions]
        else:
            losses = [_exact(side, weights, cosine, backend) for side in directions]
    return losses[0] if not symmetric else (losses[0] + losses[1]) / 2


@untraced
@torch.no_grad()
def info_nce_per_prefix(
    queries: Tensor,
    positives: Tensor,
    negatives: Tensor | None = None,
    *,
    temperature: float | Tensor = 0.05,
    similarity: str = "cosine",
    symmetric: bool = False,
    targets: Tensor | None = None,
    backend: str = "auto",
) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `info_nce`."""
    owner = "info_nce_per_prefix"
    cosine = check_choice(similarity, SIMILARITIES, "similarity", owner) == "cosine"
    sides = _sides(queries, positives, negatives, temperature, targets, symmetric, owner)
    directions = [sides, sides.reversed(len(queries))] if symmetric else [sides]
    with full_precision(queries.device):
        return torch.stack([_per_prefix(side, cosine, backend) for side in directions]).mean(0)


def _per_prefix(sides: _Sides, cosine: bool, backend: str) -> Tensor:
    q, p, targets, scale = sides
    if not cosine:
        return cross_entropy_per_prefix(q * scale, p, targets, backend=backend)
    q, p = bounded(q), bounded(p)
    norms = inverse_prefix_norms(q), inverse_prefix_norms(p)
    row_weight, nothing = q.new_full((len(q),), 1 / len(q)), q.new_zeros(q.shape[1])
    compiled = use_compiled(backend, q, _OWNER)
    return _sweep(q, p, *norms, scale, targets, row_weight, nothing, lengths=[], compiled=compiled, grad=False)[0]
