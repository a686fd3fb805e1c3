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

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_real
from firstk._base.prefix_weights import OmegaLike, PrefixWeights
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.losses.functional._inputs import (
    check_codes,
    check_estimator,
    check_rows,
    check_targets,
    few_lengths,
    full_precision,
    omega_like,
    path_of,
    promoted,
    untraced,
    weights_of,
    working_dtype,
)
from firstk.losses.functional.cosine import (
    bounded,
    inverse_norms_at,
    inverse_prefix_norms,
    inverse_roots,
    prefix_cosines,
)
from firstk.losses.functional.cross_entropy import cross_entropy, cross_entropy_per_prefix, sweep_of
from firstk.losses.functional.once import weighted
from firstk.losses.functional.sampling import cut, draw_prefixes
from firstk.losses.functional.sweep_torch import LEFT_OUT, Norms

SIMILARITIES = ("cosine", "dot")
_OWNER = "info_nce"


def _sweep(
    q: Tensor, p: Tensor, *rest: Tensor, lengths: list[int], path: str, mask: Tensor | None, grad: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sweep with the norms of every prefix; `rest` is scale, targets, row_weight, omega."""
    norms, (scale, targets, row_weight, omega) = (inverse_prefix_norms(q), inverse_prefix_norms(p)), rest
    if path == "compiled" and mask is None and not lengths:
        from firstk.losses.functional import contrastive_cpu

        return contrastive_cpu.sweep(q, p, *norms, scale, targets, row_weight, omega, grad)
    sweep = sweep_of(lengths, "torch" if path == "compiled" else path)
    return sweep(q, p, None, targets, row_weight, omega, grad, Norms(*norms, scale), mask)


class _Sides(NamedTuple):
    """Queries, all documents, the document of each query, the inverse temperature, and the documents left out."""

    queries: Tensor
    documents: Tensor
    targets: Tensor
    scale: Tensor
    mask: Tensor | None


def _sides(
    queries: Tensor,
    positives: Tensor,
    negatives: Tensor | None,
    temperature: float | Tensor,
    targets: Tensor | None,
    symmetric: bool,
    all_queries: Tensor | None,
    mask: Tensor | None,
    cosine: bool,
    owner: str,
) -> list[_Sides]:
    """Check the arguments and convert them to the working dtype; return one or both directions."""
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
    elif symmetric and (all_queries is None or all_queries.shape != positives.shape):
        raise IllegalCombinationError(
            f"{owner} with symmetric=True and 'targets'",
            "the reverse direction needs the query of every positive, and 'queries' holds those of a chunk",
            "all_queries=, one row for each of 'positives'",
        )
    else:
        check_targets(targets, queries, positives, owner)
    m = sum(map(len, documents))
    if mask is not None and (not cosine or mask.dtype != torch.bool or mask.shape != (len(queries), m)):
        raise InvalidInputError(
            f"{owner} takes 'mask' for cosines, as bool of shape {(len(queries), m)}: one row per query, one column "
            f"per document. Got {'cosines' if cosine else 'dot products'}, {mask.dtype} of shape {tuple(mask.shape)}."
        )
    others = queries if all_queries is None else all_queries
    queries, others, *documents = promoted(queries, others, *documents)
    scale, n = _inverse(temperature, queries, owner), len(positives)
    if mask is not None:  # the positive stays, whatever the mask says of it
        mask = mask.scatter(1, targets[:, None], torch.zeros_like(mask[:, :1]))
    sides = [_Sides(queries, torch.cat(documents), targets, scale, mask)]
    if symmetric:
        if mask is not None and len(others) != len(queries):
            raise IllegalCombinationError(
                f"{owner} with 'mask', 'targets' and symmetric=True",
                "the mask says nothing of queries outside this chunk",
                "the whole batch, or one direction",
            )
        back = None if mask is None else mask[:, :n].t()
        own = documents[0] if all_queries is None else documents[0][targets]
        sides.append(_Sides(own, others, targets, scale, back))
    return sides


def _checked_smoothing(smoothing: float, mask: Tensor | None, owner: str) -> float:
    if smoothing and mask is not None:
        raise IllegalCombinationError(
            f"{owner} with label_smoothing={smoothing} and 'mask'",
            "smoothing asks for some probability of every document, and a mask leaves some out",
            "one of the two",
        )
    return check_fraction(smoothing, "label_smoothing", owner)


def _inverse(temperature: float | Tensor, like: Tensor, owner: str) -> Tensor:
    if isinstance(temperature, Tensor):
        return 1.0 / temperature.to(like).reshape(())
    if not is_real(temperature) or temperature <= 0:
        raise bad_parameter("temperature", owner, "a positive number or a tensor of one", temperature)
    return like.new_full((), 1.0 / temperature)  # no copy from the host


def _smoothing(q: Tensor, p: Tensor, targets: Tensor, scale: Tensor) -> Tensor:
    """Return what all smoothing adds to each prefix loss, (d,): the mean of t_ik,target less the mean over documents.

    The mean of scaled documents at prefix k is a row of a d x d matrix, so no cosine with a document is formed again.
    """
    d = q.shape[1]
    documents = inverse_prefix_norms(p).t() @ p / len(p)  # (d, d): prefix, coordinate
    every = inverse_prefix_norms(q) * (q @ (documents * documents.new_ones(d, d).tril()).t())
    return scale * (prefix_cosines(q, p[targets]) - every).mean(0)


def _exact(sides: _Sides, weights: PrefixWeights, cosine: bool, smoothing: float, backend: str) -> Tensor:
    q, p, targets, scale, mask = sides
    if not cosine:
        # A dot product is linear in the query: this is a cross-entropy with the documents as the head's weights.
        return cross_entropy(q * scale, p, targets, omega=weights, label_smoothing=smoothing, backend=backend)
    row_weight = q.new_full((len(q),), 1 / len(q))
    path = path_of(backend, q, _OWNER)
    sweep = partial(_sweep, lengths=few_lengths(weights, path), path=path, mask=mask)
    q, p, omega = bounded(q), bounded(p), omega_like(weights, q)
    loss = weighted(sweep, q, p, scale, targets, row_weight, omega)
    return loss + smoothing * (_smoothing(q, p, targets, scale) @ omega) if smoothing else loss


def _sampled(
    sides: _Sides, weights: PrefixWeights, cosine: bool, smoothing: float, generator: torch.Generator | None
) -> Tensor:
    """Truncate each query to its drawn prefix: one matrix product gives all dot products on that prefix."""
    q, p, targets, scale, mask = sides
    k = draw_prefixes(weights, len(q), q.device, generator)
    if not cosine:
        return F.cross_entropy(cut(q * scale, k) @ p.t(), targets, label_smoothing=smoothing)
    q, p = bounded(q), bounded(p)
    # A truncated query has the norm of its prefix; documents need their norm at every drawn k.
    short = cut(q, k)
    rq = inverse_roots(short.square().sum(1, keepdim=True))  # (n, 1)
    logits = (short @ p.t()) * (rq * scale) * inverse_norms_at(p, k).t()
    logits = logits if mask is None else logits.masked_fill(mask, LEFT_OUT)
    return F.cross_entropy(logits, targets, label_smoothing=smoothing)


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
    all_queries: Tensor | None = None,
    mask: Tensor | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
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
    all_queries : Tensor of the shape of `positives`, optional
        The queries of the larger batch, which `symmetric` needs beside `targets`; `gathered` returns them.
    mask : Tensor of shape (n, documents), bool, optional
        Documents that are no negatives of a query although they are not its positive, as `false_negatives` finds them.
        For cosines; the exact sum then takes the torch path.
    label_smoothing : float
        As in `torch.nn.functional.cross_entropy`, over all documents; not with a mask.
    reduction : "mean" or "sum"
        Over queries.
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
    check_choice(reduction, ("mean", "sum"), "reduction", _OWNER)
    smoothing = _checked_smoothing(label_smoothing, mask, _OWNER)
    given = (queries, positives, negatives, temperature, targets, symmetric, all_queries, mask)
    directions = _sides(*given, cosine, _OWNER)
    weights = weights_of(omega, queries.shape[1], _OWNER)
    weights = weights.without_first() if cosine else weights
    with full_precision(queries.device):
        if check_estimator(estimator, _OWNER):
            losses = [_sampled(side, weights, cosine, smoothing, generator) for side in directions]
        else:
            losses = [_exact(side, weights, cosine, smoothing, backend) for side in directions]
    return torch.stack(losses).mean() * (1 if reduction == "mean" else len(queries))


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
    all_queries: Tensor | None = None,
    mask: Tensor | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    backend: str = "auto",
) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `info_nce`."""
    owner = "info_nce_per_prefix"
    cosine = check_choice(similarity, SIMILARITIES, "similarity", owner) == "cosine"
    check_choice(reduction, ("mean", "sum"), "reduction", owner)
    smoothing = _checked_smoothing(label_smoothing, mask, owner)
    given = (queries, positives, negatives, temperature, targets, symmetric, all_queries, mask)
    with full_precision(queries.device):
        losses = [_per_prefix(side, cosine, smoothing, backend) for side in _sides(*given, cosine, owner)]
    return torch.stack(losses).mean(0) * (1 if reduction == "mean" else len(queries))


def _per_prefix(sides: _Sides, cosine: bool, smoothing: float, backend: str) -> Tensor:
    q, p, targets, scale, mask = sides
    if not cosine:
        return cross_entropy_per_prefix(q * scale, p, targets, label_smoothing=smoothing, backend=backend)
    q, p = bounded(q), bounded(p)
    row_weight, nothing = q.new_full((len(q),), 1 / len(q)), q.new_zeros(q.shape[1])
    options: dict[str, Any] = {"lengths": [], "path": path_of(backend, q, _OWNER), "mask": mask, "grad": False}
    losses = _sweep(q, p, scale, targets, row_weight, nothing, **options)[0]
    return losses + smoothing * _smoothing(q, p, targets, scale) if smoothing else losses


@torch.no_grad()
def false_negatives(
    queries: Tensor,
    documents: Tensor,
    targets: Tensor | None = None,
    *,
    ids: tuple[Tensor, Tensor] | None = None,
    margin: float | None = None,
) -> Tensor:
    """Return which documents are no negatives of a query, for the `mask` of `info_nce`, (n, m) bool.

    Parameters
    ----------
    queries, documents : Tensors of shape (n, d), (m, d)
        Documents are the positives, then the extra negatives.
    targets : as in `info_nce`
    ids : Tensors of shape (n,) and (m,), optional
        Whatever query and document have in common, such as a class or the text of the positive: equal ids are masked.
    margin : float, optional
        Documents whose cosine with the query is above that of its positive plus this number are masked; a negative
        margin masks more. By the whole code: it knows more than its prefixes.

    Examples
    --------
    >>> q = torch.eye(3)
    >>> false_negatives(q, q, ids=(torch.tensor([7, 7, 8]), torch.tensor([7, 7, 8]))).int().tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    n, m = len(queries), len(documents)
    targets = torch.arange(n, device=queries.device) if targets is None else targets
    mask = torch.zeros(n, m, dtype=torch.bool, device=queries.device)
    if ids is not None:
        mask |= ids[0][:, None] == ids[1]
    if margin is not None:
        q, p = (F.normalize(part.to(working_dtype(part)), dim=1) for part in (queries, documents))
        mask |= q @ p.t() > (q * p[targets]).sum(1, keepdim=True) + margin
    return mask.scatter_(1, targets[:, None], False)


class _Gathered(torch.autograd.Function):
    """The rows of all processes; the gradient of a row is the sum over the losses of all processes."""

    @staticmethod
    def forward(rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.rows = len(inputs[0])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        total = upstream.clone()
        torch.distributed.all_reduce(total)
        return total.narrow(0, torch.distributed.get_rank() * ctx.rows, ctx.rows)


def gathered(queries: Tensor, positives: Tensor, negatives: Tensor | None = None) -> dict[str, Tensor | None]:
    """Return the arguments of `info_nce` with the documents of all processes of torch.distributed as negatives.

    Gradients flow back to the process that a row came from. Every process needs as many rows. Without processes it
    returns what it was given.

    Examples
    --------
    >>> q = torch.eye(3)
    >>> bool(info_nce(**gathered(q, q)) == info_nce(q, q))
    True
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return {"queries": queries, "positives": positives, "negatives": negatives}
    parts = (positives, queries) if negatives is None else (positives, queries, negatives.flatten(0, -2))
    all_positives, all_queries, *rest = (_Gathered.apply(part) for part in parts)
    first = torch.distributed.get_rank() * len(queries)
    targets = torch.arange(first, first + len(queries), device=queries.device)
    return {
        "queries": queries,
        "positives": all_positives,
        "negatives": rest[0] if rest else None,
        "targets": targets,
        "all_queries": all_queries,
    }
