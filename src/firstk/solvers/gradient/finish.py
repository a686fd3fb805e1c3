"""From a trained model to a fitted encoder: canonical form, spectrum, readouts, and how far from the optimum it is."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.head import Head
from firstk.exceptions import RankWarning
from firstk.losses.functional.reconstruction import reconstruction_per_prefix
from firstk.moments.moments import Moments
from firstk.solvers.gradient.build import Request, half_of
from firstk.solvers.gradient.canonical import Code, flag_form, head_form, shared_form, sorted_form, with_signs
from firstk.solvers.gradient.losses.base import PrefixSum
from firstk.solvers.gradient.networks import LinearEncoder, Model, exported
from firstk.solvers.gradient.task import Task

# Share of the largest weight below which an axis has none to speak of.
_VANISHED = 1e-3
# Rows on which prefix gains are read off after training.
_ROWS = 8192


def fitted(request: Request, task: Task, config: dict[str, Any]) -> FittedEncoder:
    """Return the encoder that a trained task holds."""
    if request.linear:
        return _linear(request, task, config)
    return _of_network(request, task, config)


def _linear(request: Request, task: Task, config: dict[str, Any]) -> FittedEncoder:
    objective, model = request.objective, task.model
    shared, bias = _array(model.decoder), _array(model.bias)
    form = objective.form
    M = request.M if form == "ratio_trace" else None
    code = Code(_required(model.encoder.weight), shared, request.metric, M, _array(model.own_weight))
    _warn_of_vanished(request, code)
    code = with_signs(canonical(request, code, request.second_moment))
    decoder, head = _readouts(request, task, code, bias)
    gap = _optimality_gap(request, task.measure, code)
    return FittedEncoder(
        components=code.components,
        spectrum=_spectrum(request, task, code),
        mean=request.mean + model.encoder.centre(),
        query_mean=request.query_mean + model.encoder.centre(),
        decoder=decoder,
        head=head,
        normalized=objective.conventions.normalized,
        pinned=min(request.solution.pinned, len(code.components)),
        config=config | {"optimality_gap": gap},
    )


def _warn_of_vanished(request: Request, code: Code) -> None:
    """Name the axes that a penalty on weights has left without any; a canonical form would scale them up again.

    Where the code rebuilds what was encoded, it is known beforehand which these are, and the ordering has said so.
    """
    rebuilds = code.shared is None or len(code.shared) == code.components.shape[1]
    if rebuilds or "weights" not in request.ordering.traits:
        return
    carried = np.linalg.norm(code.components, axis=1) * np.linalg.norm(code.shared, axis=0)  # type: ignore[arg-type]
    gone = np.flatnonzero(carried <= _VANISHED * carried.max()) + 1
    if len(gone):
        warnings.warn(
            f"Axes {gone.tolist()[:10]} came out with no weight to speak of: the penalties of ordering "
            f"'{request.ordering.name}' outweigh what they are worth to objective '{request.objective.name}'. "
            "Use smaller penalties (lam), or fewer components.",
            RankWarning,
            stacklevel=2,
        )


def canonical(request: Request, code: Code, second_moment: np.ndarray) -> Code:
    """Return the canonical form for this pair of objective and ordering (docs/theory.md, section 2).

    `second_moment` is that of what the code's matrix is applied to. A solver may ask for the code as it was learned.
    """
    if not request.solver.canonical:
        return code
    ordering, form = request.ordering, request.objective.form
    blocks = ordering.blocks(len(code.components))
    if form == "ratio_trace":
        return flag_form(code, ordering.residual, blocks)
    if ordering.residual == "permutation":
        return sorted_form(code)
    if code.shared is None:  # cosines: signs and one scale
        size = np.sqrt(np.trace(code.gram) / len(code.components))
        return code.scaled(np.full(len(code.components), 1 / size))
    if form == "cross_entropy":
        return head_form(code, request.objective.scale_of(request.linear), second_moment)  # type: ignore[attr-defined]
    return shared_form(code, ordering.residual, blocks, request.objective.conventions.scaling)


def _readouts(
    request: Request, task: Task, code: Code, bias: np.ndarray | None
) -> tuple[np.ndarray | None, Head | None]:
    objective, statistics = request.objective, request.statistics
    if code.shared is None and not request.solver.canonical:
        return None, None  # readouts that come with the axes are those of the canonical form
    if code.shared is None:
        return objective.decoder(statistics, code.components), objective.head(statistics, code.components)
    decoder, head = objective.readouts(statistics, code.shared, np.zeros(len(code.shared)) if bias is None else bias)
    if head is None or code.own is None:
        return decoder, head
    return decoder, _with_own(head, code.own, _required(task.model.own_offset), task.measure.weights.support)


def _with_own(head: Head, weight: np.ndarray, offset: np.ndarray, trained: np.ndarray) -> Head:
    """Add heads of short prefixes. A length that was not trained reads with the head of the next longer that was."""
    K = len(weight)
    weight, offset = weight - weight.mean(axis=1, keepdims=True), offset - offset.mean(axis=1, keepdims=True)
    own = [(head.weight[:, :K], head.offset)]
    for k in range(K, 0, -1):
        own.append((weight[k - 1], offset[k - 1]) if k in trained else own[-1])
    weights, offsets = (np.stack(part[:0:-1]) for part in zip(*own, strict=True))
    return replace(head, own_weight=np.tril(weights.swapaxes(0, 1)).swapaxes(0, 1), own_offset=offsets)


def _spectrum(request: Request, task: Task, code: Code) -> np.ndarray:
    """Return the pencil's quotient of each axis, or what each coordinate takes off the cross-entropy."""
    if request.objective.form == "cross_entropy":
        return _gains(task)
    B, N = code.components, request.pencil.N
    size = np.square(B).sum(axis=1) if N is None else ((B @ N) * B).sum(axis=1)
    value = ((B @ request.M) * B).sum(axis=1)
    return np.divide(value, size, out=np.zeros_like(value), where=size > 0)


@torch.no_grad()
def _gains(task: Task) -> np.ndarray:
    batch = task.first(_ROWS)
    task.model.eval()
    z = task.encode(batch)
    losses = task.half.per_prefix(task.model, z, batch)
    shares = torch.bincount(batch["label"]) / len(z)
    empty = torch.special.entr(shares).sum()  # of the best constant
    return -np.diff(_required(losses), prepend=float(empty))


def _optimality_gap(request: Request, measure: PrefixSum, code: Code) -> float | None:
    """Return how much of the possible decrease of the loss is missing, against the closed form; None without one.

    0 is the optimum, 1 no better than no code at all; the loss is the objective's, without an ordering's penalty.
    """
    form, objective = request.objective.form, request.objective
    if not objective.exact or form not in ("least_squares", "ratio_trace"):
        return None
    B = request.solution.components
    best = Code(B, None, code.N, code.M)
    empty = 0.0
    if form == "least_squares":
        q = request.quadratic
        best = replace(best, shared=np.linalg.lstsq(B @ q.gram @ B.T, B @ q.cross, rcond=None)[0].T)
        empty = q.total
    found, least = (_loss(request, PrefixSum(measure.weights), each) for each in (code, best))
    return max(0.0, found - least) / max(abs(empty - least), np.finfo(float).tiny)


@torch.no_grad()
def _loss(request: Request, measure: PrefixSum, code: Code) -> float:
    def tensor(array: Any) -> torch.Tensor:
        return torch.tensor(np.asarray(array), dtype=torch.float64)

    half = half_of(request, None, tensor)
    shared = None if code.shared is None else tensor(code.shared)
    model = Model(LinearEncoder(tensor(code.components)), shared, None, {})
    return float(half.moment_loss(model, measure))


# -- networks that are not linear ----------------------------------------------------------------------------------


def _of_network(request: Request, task: Task, config: dict[str, Any]) -> FittedEncoder:
    """Put the network in front of a d x d matrix that holds the canonical form."""
    model, objective = task.model, request.objective
    shared, bias = _array(model.decoder), _array(model.bias)
    z, batch = _codes(task)
    gram = z.T @ z / len(z)
    code = Code(np.eye(len(gram)), shared, gram, own=_array(model.own_weight))
    decoder: np.ndarray | None = None
    head: Head | None = None
    if objective.form == "ratio_trace" and request.solver.canonical:
        code, head, spectrum = _discriminant(z, _required(batch["label"]).astype(int), request)
    else:
        if objective.form == "cross_entropy":
            code = replace(code, N=Moments().update(z, _required(batch["label"]).astype(int)).Sw)
        code = canonical(request, code, gram)
        spectrum = _network_gains(task, request, z, batch)
        if code.shared is not None and bias is not None:
            decoder, head = _readouts(request, task, code, bias)
    origin = None if decoder is None or bias is None else request.mean + bias[-len(request.mean) :]
    return FittedEncoder(
        components=code.components,
        spectrum=spectrum,
        mean=request.mean,
        query_mean=request.query_mean,
        decoder=decoder,
        head=head,
        normalized=objective.conventions.normalized,
        pinned=len(code.components),
        config=config | {"optimality_gap": None},
        network=exported(model.encoder, request.statistics.n_features),
        origin=origin,
    )


@torch.no_grad()
def _codes(task: Task) -> tuple[np.ndarray, dict[str, Any]]:
    task.model.eval()
    batch = task.first(_ROWS)
    code = task.encode(batch)
    return _required(code[1] if isinstance(code, tuple) else code), batch


def _discriminant(z: np.ndarray, labels: np.ndarray, request: Request) -> tuple[Code, Head, np.ndarray]:
    """Return the flag form of codes in their own within-class scatter, Fisher's rule on them, and its quotients."""
    moments = Moments().update(z, labels)
    eps = getattr(request.objective, "code_eps", 0.0)
    code = flag_form(Code(np.eye(z.shape[1]), None, moments.Sw + eps * np.eye(z.shape[1]), moments.Sb), "axes", ())
    means = moments.class_means @ code.components.T
    classes = request.statistics.moments.classes  # type: ignore[union-attr]
    head = Head(means, np.log(moments.class_shares), means**2 / 2, classes)
    return code, head, np.diag(code.components @ moments.Sb @ code.components.T).copy()


@torch.no_grad()
def _network_gains(task: Task, request: Request, z: np.ndarray, batch: dict[str, Any]) -> np.ndarray:
    if request.objective.form == "cross_entropy":
        return _gains(task)
    if request.objective.form == "least_squares":
        code = task.encode(batch)
        losses = reconstruction_per_prefix(batch["target"], code, task.model.decoder, task.model.bias)
        empty = (batch["target"] - task.model.bias).square().sum(1).mean()
        return -np.diff(_required(losses), prepend=float(empty))
    return np.diag(z.T @ z) / len(z)


def _array(tensor: Any) -> np.ndarray | None:
    return None if tensor is None else _required(tensor)


def _required(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
