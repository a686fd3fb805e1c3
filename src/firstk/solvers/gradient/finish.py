"""Construction of the fitted encoder from a trained model: canonical form, spectrum, readouts, optimality gap."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from firstk.contracts import FitRequest
from firstk.encoder.fitted import FittedEncoder, Head
from firstk.encoder.record import FitRecord
from firstk.exceptions import RankWarning
from firstk.solvers.gradient.canonical import Code, with_signs
from firstk.solvers.gradient.losses.base import GAIN_ROWS, PrefixSum, numbers, optional
from firstk.solvers.gradient.networks import LinearEncoder, Model, exported
from firstk.solvers.gradient.settings import Gradient
from firstk.solvers.gradient.task import TrainingTask

# An axis with less than this share of the largest weight counts as vanished.
_VANISHED = 1e-3


def fitted(request: FitRequest, settings: Gradient, task: TrainingTask, record: FitRecord) -> FittedEncoder:
    """Return the fitted encoder of a trained task."""
    finish = _linear if request.linear else _of_network
    return finish(request, settings, task, record)


def _linear(request: FitRequest, settings: Gradient, task: TrainingTask, record: FitRecord) -> FittedEncoder:
    loss, model = task.training_loss, task.model
    code = loss.learned(request, model)
    # Axes that a penalty has reduced to zero, because the canonical form would scale them up again. For reconstruction
    # these axes are known before training, and the ordering has already warned.
    shared = code.shared
    if shared is not None and len(shared) != code.components.shape[1] and request.ordering.acts_on_weights:
        carried = np.linalg.norm(code.components, axis=1) * np.linalg.norm(shared, axis=0)
        gone = np.flatnonzero(carried <= _VANISHED * carried.max()) + 1
        if len(gone):
            warnings.warn(
                f"Axes {gone.tolist()[:10]} have nearly zero weights after training: the penalties of ordering "
                f"'{request.ordering.name}' outweigh their contribution to objective '{request.objective.name}'. "
                "Use smaller penalties (lam), or fewer components.",
                RankWarning,
                stacklevel=2,
            )
    if settings.canonical:
        code = loss.canonical(request, code, loss.second_moment(request))
    code = with_signs(code)
    decoder, head = _readouts(request, settings, task, code)
    # The share of the possible decrease of the loss that is missing: 0 is the optimum, 1 no better than an empty code.
    # The loss is that of the objective, without the ordering's penalty.
    gap = None
    if request.objective.exact and loss.solves_pencil:
        best, empty = loss.optimum(request)
        reached, least = (_loss(request, task, each) for each in (code, best))
        gap = max(0.0, reached - least) / max(abs(empty - least), np.finfo(float).tiny)
    return FittedEncoder(
        components=code.components,
        spectrum=loss.spectrum(request, task, code),
        mean=request.mean + model.encoder.centre(),
        query_mean=request.query_mean + model.encoder.centre(),
        decoder=decoder,
        head=head,
        normalized=request.objective.conventions.normalized,
        pinned=min(request.start.pinned, len(code.components)),
        record=replace(record, optimality_gap=gap),
    )


def _readouts(
    request: FitRequest, settings: Gradient, task: TrainingTask, code: Code
) -> tuple[np.ndarray | None, Head | None]:
    objective, statistics, bias = request.objective, request.statistics, optional(task.model.bias)
    if code.shared is None and not settings.canonical:
        return None, None  # trained readouts belong to the canonical form
    if code.shared is None:
        return objective.decoder(statistics, code.components), objective.head(statistics, code.components)
    decoder, head = objective.readouts(statistics, code.shared, np.zeros(len(code.shared)) if bias is None else bias)
    if head is None or code.own is None:
        return decoder, head
    assert task.model.own_offset is not None
    # The heads of short prefixes; a length without a trained head gets that of the next longer trained one.
    weight, offset, trained = code.own, numbers(task.model.own_offset), task.prefix_sum.weights.support
    K = len(weight)
    weight, offset = weight - weight.mean(axis=1, keepdims=True), offset - offset.mean(axis=1, keepdims=True)
    own = [(head.weight[:, :K], head.offset)]
    for k in range(K, 0, -1):
        own.append((weight[k - 1], offset[k - 1]) if k in trained else own[-1])
    weights, offsets = (np.stack(part[:0:-1]) for part in zip(*own, strict=True))
    weights = np.tril(weights.swapaxes(0, 1)).swapaxes(0, 1)
    return decoder, replace(head, own_weight=weights, own_offset=offsets)


@torch.no_grad()
def _loss(request: FitRequest, task: TrainingTask, code: Code) -> float:
    def tensor(array: Any) -> torch.Tensor:
        return torch.tensor(np.asarray(array), dtype=torch.float64)

    loss = type(task.training_loss).from_request(request, None, tensor)
    shared = None if code.shared is None else tensor(code.shared)
    model = Model(LinearEncoder(tensor(code.components)), shared, None, {})
    return float(loss.moment_loss(model, PrefixSum(task.prefix_sum.weights)))


# -- nonlinear networks --------------------------------------------------------------------------------------------


def _of_network(request: FitRequest, settings: Gradient, task: TrainingTask, record: FitRecord) -> FittedEncoder:
    """Append a d x d matrix that brings the network's codes into canonical form."""
    loss, model = task.training_loss, task.model
    with torch.no_grad():
        model.eval()
        batch = task.first(GAIN_ROWS)
        encoded = task.encode(batch)
        z = numbers(encoded[1] if isinstance(encoded, tuple) else encoded)
    gram = z.T @ z / len(z)
    decoder: np.ndarray | None = None
    head: Head | None = None
    form = loss.network_form(request, z, batch) if settings.canonical else None
    if form is not None:
        code, head, spectrum = form
    else:
        metric = loss.network_metric(z, batch, gram)
        code = Code(np.eye(len(gram)), optional(model.decoder), metric, own=optional(model.own_weight))
        if settings.canonical:
            code = loss.canonical(request, code, gram)
        with torch.no_grad():
            spectrum = loss.network_spectrum(task, z, batch)
        if code.shared is not None and model.bias is not None:
            decoder, head = _readouts(request, settings, task, code)
    origin = None
    if decoder is not None and model.bias is not None:
        origin = request.mean + numbers(model.bias)[-len(request.mean) :]
    return FittedEncoder(
        components=code.components,
        spectrum=spectrum,
        mean=request.mean,
        query_mean=request.query_mean,
        decoder=decoder,
        head=head,
        normalized=request.objective.conventions.normalized,
        pinned=len(code.components),
        record=record,
        network=exported(model.encoder, request.statistics.n_features),
        origin=origin,
    )
