"""Construction of a training task from a request: training coordinates, initial weights, model, loss and rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor, nn

from firstk._base.checks import bad_parameter, check_matrix
from firstk._base.linalg import whitener
from firstk._base.rows import as_dense, unit_rows
from firstk.contracts import FitRequest, Objective, Ordering
from firstk.encoder.network import MLP
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.metrics import axis_distance, subspace_distance
from firstk.moments.moments import Moments
from firstk.solvers.closed_form import pencil_axes
from firstk.solvers.gradient.losses import BaseTrainingLoss, Initial, PrefixSum, training_loss_of
from firstk.solvers.gradient.losses.base import ToTensor, optional
from firstk.solvers.gradient.networks import LinearEncoder, Model, build_mlp, check_width, global_seed
from firstk.solvers.gradient.processes import SingleProcess
from firstk.solvers.gradient.settings import Gradient
from firstk.solvers.gradient.task import TrainingTask
from firstk.solvers.gradient.validation import held_out

# Classes times coordinates up to which the exact loss of all prefixes is as cheap as a sampled one.
_EXACT_LOGITS = 16384
# Rows brought to training coordinates at a time.
_BLOCK = 4096


def with_axes(request: FitRequest) -> FitRequest:
    """Add the axes of the pencil to the request, as initial weights and as the reference for the result."""
    return replace(request, axes=pencil_axes(request))


def build(request: FitRequest, settings: Gradient) -> TrainingTask:
    """Return the training task for a request that holds the axes of its pencil."""
    device = resolve_device(request.device)
    kind = training_loss_of(request.objective).for_statistics(request.statistics)
    on_moments = _on_moments(request, settings, kind)
    double = on_moments if settings.dtype == "auto" else settings.dtype == "float64"
    dtype = torch.float64 if double else torch.float32

    def tensor(array: Any) -> Tensor:
        return torch.tensor(np.asarray(array), dtype=dtype, device=device)

    R = _whitener(request, settings, kind)
    loss = kind.from_request(request, R, tensor)
    initial = _initial(kind, request, R)
    asked = request.given_width
    d = len(request.start.components) if request.linear or asked is None else asked
    generator = torch.Generator().manual_seed(request.seed)
    rows = {} if request.rows is None else _tensors(request, kind, R, tensor, on_moments)
    constant = None
    if loss.offset and request.linear:  # the root mean square norm of the rows, in training coordinates
        St = kind.second_moment(request)
        constant = float(np.sqrt(np.trace(St if R is None else R.T @ St @ R)))
    encoder: nn.Module
    if request.linear:
        encoder = LinearEncoder(tensor(initial.encoder), None if R is None else tensor(R), constant)
    else:
        if isinstance(request.network, MLP):
            with global_seed(request.seed):
                encoder = build_mlp(request.network, request.statistics.n_features, d).to(dtype)
        else:
            assert isinstance(request.network, nn.Module)
            encoder = copy.deepcopy(request.network).to(dtype)  # the user's module is not modified
        d = check_width(encoder, rows["input" if "input" in rows else "left"], asked)
        initial = kind.network_initial(request, d)
    weights = request.ordering.prefix_weights(d, request.objective.conventions.omega)
    own = loss.own_heads(request, initial, weights)
    model = Model(
        encoder,
        None if initial.shared is None else tensor(initial.shared),
        None if initial.bias is None else tensor(initial.bias),
        {name: tensor(part) for name, part in request.ordering.extras(d).items()},
        None if own is None else (tensor(own[0]), tensor(own[1])),
    ).to(device)
    processes: Any = request.processes or SingleProcess()
    estimator = request.ordering.estimator
    if estimator == "auto":  # exact where it is cheap, sampled where the loss is a sum over rows and expensive
        moments = request.statistics.moments
        classes = len(moments.group_weight) if isinstance(moments, Moments) else 0
        large = d * classes > _EXACT_LOGITS
        estimator = "sampled" if kind.sampled_by_default and kind.row_sums and large else "exact"
    prefix_sum = PrefixSum(weights, estimator, generator, processes, 1 / processes.size)
    given = None if request.rows is None else request.rows.get("weight")
    weight = None if given is None else torch.cat(processes.all_gather(torch.as_tensor(np.asarray(given))))
    if on_moments and weight is not None:  # all rows in every step: weighted, not drawn
        if rows:
            rows["weight"] = tensor(given) / float(weight.double().mean())
        weight = None
    share = settings.validation
    if on_moments:
        share = 0.0
    elif share == "auto":  # 0.1 if `patience` is set
        stops = not request.linear if settings.patience == "auto" else settings.patience is not None
        share = 0.1 if stops else 0.0
    return TrainingTask(
        model,
        loss,
        request.ordering,
        prefix_sum,
        **held_out(float(share), rows, generator, weight, processes),
        gram=tensor(kind.second_moment(request)) if request.linear else None,
        moments=on_moments,
        data="" if request.processes is None else str(request.statistics.fingerprint),
        watched=_watched(request, settings, kind),
        free_coordinates=request.ordering.residual in ("axes", "blocks"),
    )


def _initial(kind: type[BaseTrainingLoss], request: FitRequest, R: np.ndarray | None) -> Initial:
    """Return the initial weights for the request's `init`; a network keeps its own initial weights."""
    if not request.linear:
        return Initial()
    init, axes = request.init, request.start.components
    if isinstance(init, str):
        if init in ("random", "small"):
            return kind.random_initial(request, R, np.random.default_rng(request.seed), init == "small")
        if init != "auto":
            raise bad_parameter("init", "PrefixEncoder", "'auto', 'random', 'small' or an array (d, p)", init)
        return kind.initial(request, R, axes)
    B = check_matrix(init, "PrefixEncoder", "init").astype(np.float64)
    basis = request.statistics.basis
    B = B if basis is None else B @ basis
    if B.shape != axes.shape:
        raise InvalidInputError(f"The 'init' of PrefixEncoder must have shape {axes.shape}. Got {B.shape}.")
    # Raise an error if rows are zero or linearly dependent: gradient steps may never separate them.
    rank = np.linalg.matrix_rank(unit_rows(B))
    if rank < len(B):
        zeros = int(np.sum(~B.any(axis=1)))
        which = f"{zeros} all zero" if zeros else "some are combinations of others"
        raise InvalidInputError(
            f"The {len(B)} rows of the 'init' of PrefixEncoder must be independent. Got rank {rank}: {which}. "
            "Use init='small' for a start near zero, or 'random'."
        )
    return kind.initial(request, R, B)


Watched = Callable[[Model], dict[str, float]]


def _watched(request: FitRequest, settings: Gradient, kind: type[BaseTrainingLoss]) -> list[Watched]:
    """Return what adds numbers to the trace: distances to the closed form, and what the user's `watch` returns."""
    watch, axes = settings.watch, request.start.components
    found: list[Watched] = []

    def distances(model: Model) -> dict[str, float]:
        """Compare a model with the closed form (Bao et al. 2020 definitions 7.1, 7.2)."""
        A = model.decoder
        Q = optional(model.encoder.weight if A is None or len(A) != axes.shape[1] else A.t())
        assert Q is not None
        return {"axis_distance": axis_distance(Q, axes), "subspace_distance": subspace_distance(Q, axes)}

    def entry(model: Model) -> dict[str, float]:
        weights = [optional(w) for w in (model.encoder.weight, model.decoder)]
        assert watch is not None
        found = watch(*(None if w is None else w.copy() for w in weights))
        if not isinstance(found, Mapping) or not all(isinstance(value, SupportsFloat) for value in found.values()):
            raise InvalidInputError(
                f"The function given as Gradient(watch=...) must return {{name: number}}. Got {found!r}: "
                'return {"loss": value}, for example.'
            )
        return {str(name): float(value) for name, value in found.items()}

    if request.linear and request.objective.exact and kind.solves_pencil:
        found.append(distances)
    if watch is not None:
        if not request.linear:
            raise IllegalCombinationError(
                "Gradient(watch=...) with a nonlinear network",
                "the function takes the matrices of encoder and decoder",
                "network='linear', or watch=None",
            )
        found.append(entry)
    return found


def resolve_device(device: object) -> str:
    """Return the device to use; "auto" is a GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)  # type: ignore[call-overload]
    except (RuntimeError, TypeError):
        raise bad_parameter("device", "PrefixEncoder", "'auto' or a device of torch, such as 'cpu'", device) from None
    try:
        torch.zeros(1, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InvalidInputError(f"device={str(found)!r} cannot be used here: {why}. Use 'auto' or 'cpu'.") from None
    return str(found)


def _on_moments(request: FitRequest, settings: Gradient, kind: type[BaseTrainingLoss]) -> bool:
    """Return whether losses are computed from moments; raise an error if rows are needed and missing."""
    name, ordering = request.objective.name, request.ordering
    if request.rows is None:
        check_streamable(settings, request.objective, ordering, request.network, "partial_fit")
    if ordering.estimator == "sampled" and not kind.row_sums:
        raise IllegalCombinationError(
            f"objective '{name}' with prefixes drawn row by row (ordering '{ordering.name}')",
            "its loss is not a sum over rows, so drawing a prefix per row would be biased",
            "an exact ordering: FullPrefix(estimator='exact') or NestedDropout(expected=True)",
        )
    if kind.from_moments and not kind.row_sums and request.linear and _in_batches(settings):
        raise IllegalCombinationError(
            f"objective '{name}' in batches of {settings.batch_size}",
            "scatters of a batch are not those of the data, and moments give the exact loss at a cost that does not "
            "depend on the number of rows",
            "batch_size='auto'",
        )
    return _moments_suffice(settings, request.objective, ordering, request.network)


def check_streamable(settings: Gradient, objective: Objective, ordering: Ordering, network: object, what: str) -> None:
    """Raise an error if training needs the rows, because `what` keeps moments only."""
    if _moments_suffice(settings, objective, ordering, network) and not ordering.acts_on_codes:
        return
    raise IllegalCombinationError(
        f"{what} with objective '{objective.name}', ordering '{ordering.name}' and solver 'gradient'",
        "this training needs the rows themselves, and a stream keeps moments only",
        "fit(X, y) on all rows, or on a part of them that fits into memory; or training on several machines, each with "
        "its own rows (firstk.integrations.distributed)",
    )


def _moments_suffice(settings: Gradient, objective: Objective, ordering: Ordering, network: object) -> bool:
    """Return whether the loss can be computed from moments alone."""
    linear = isinstance(network, str) and network == "linear"
    exact = ordering.estimator != "sampled" and not _in_batches(settings)
    return training_loss_of(objective).from_moments and linear and exact


def _in_batches(settings: Gradient) -> bool:
    return settings.batch_size not in ("auto", "full")


def _whitener(request: FitRequest, settings: Gradient, kind: type[BaseTrainingLoss]) -> np.ndarray | None:
    """Return R with R^T N R = I for training in whitened coordinates, with a random rotation where it helps.

    Adam divides the gradient of every coordinate by its size. In principal axes, which the whitener gives, steps along
    low-variance directions, which are mostly noise when rows are few, become as long as along high-variance ones.
    Randomly rotated coordinates avoid this (figures in docs/decisions/solvers.md, "Randomly rotated coordinates").
    """
    if not request.linear or settings.whiten is False:
        return None
    if request.ordering.acts_on_weights:
        if settings.whiten is True:
            raise IllegalCombinationError(
                f"whiten=True with ordering '{request.ordering.name}'",
                "it acts on the encoder's weights in the coordinates of the data, which whitening changes",
                "whiten='auto'",
            )
        return None
    R = whitener(kind.metric(request), request.statistics.moments.eps)
    if not kind.turned:
        return R
    r = R.shape[1]  # from a random stream separate from that of the initial weights
    return R @ np.linalg.qr(np.random.default_rng([request.seed, r]).normal(size=(r, r)))[0]


def _tensors(
    request: FitRequest, kind: type[BaseTrainingLoss], R: np.ndarray | None, tensor: ToTensor, on_moments: bool
) -> dict[str, Tensor]:
    """Return rows as tensors: centered inputs in training coordinates, with the targets of the loss."""
    rows = request.rows
    assert rows is not None
    if on_moments and not request.ordering.acts_on_codes:
        return {}
    sides = {"left": request.query_mean, "right": request.mean} if "left" in rows else {"X": request.mean}
    like = tensor(0.0)
    dtype = like.numpy(force=True).dtype
    found = {}
    for side, mean in sides.items():
        # Rows are centered in float64 and multiplied in the precision of training, in blocks: the product takes a whole
        # pass over the rows, and differences of two large float32 numbers would not be accurate.
        X, W = rows[side], None if R is None else R.astype(dtype)
        inputs = np.empty((X.shape[0], X.shape[1] if W is None else W.shape[1]), dtype)
        for start in range(0, len(inputs), _BLOCK):
            block = slice(start, start + _BLOCK)
            centered = (as_dense(X[block]) - mean).astype(dtype, copy=False)
            if W is None:
                inputs[block] = centered
            else:
                np.matmul(centered, W, out=inputs[block])
        found["input" if side == "X" else side] = torch.from_numpy(inputs).to(like.device)
    return found if on_moments else found | kind.targets(request, tensor)
