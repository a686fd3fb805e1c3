"""From statistics and rows to a trained encoder: what :mod:`firstk.estimator.problem` does when the solver trains.

It builds the torch half of the objective, the start, the coordinates of training and the task, hands the task to the
solver, and brings what comes back into canonical form.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
import torch

from firstk._base.checks import bad_parameter
from firstk._base.linalg import whitener
from firstk._base.prefix_weights import PrefixWeights
from firstk._base.rows import as_dense
from firstk.contracts import Objective, Pencil, Quadratic, Solution
from firstk.encoder.network import MLP
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.metrics import axis_distance, subspace_distance
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments
from firstk.moments.statistics import Statistics
from firstk.solvers.gradient import initial as starts
from firstk.solvers.gradient.losses import TRAINING_LOSSES
from firstk.solvers.gradient.losses.base import PrefixSum
from firstk.solvers.gradient.networks import LinearEncoder, Model, build_mlp, check_width, global_seed
from firstk.solvers.gradient.processes import SingleProcess
from firstk.solvers.gradient.task import Task
from firstk.solvers.gradient.validation import held_out

# Classes times coordinates up to which all prefixes at once cost no more than a few drawn ones.
_EXACT_LOGITS = 16384


@dataclass(frozen=True)
class Request:
    """What is to be trained, with everything settled but how."""

    objective: Objective
    ordering: Any
    solver: Any
    statistics: Statistics
    rows: dict[str, Any] | None
    mean: np.ndarray
    query_mean: np.ndarray
    network: Any
    init: Any
    device: str
    seed: int
    pencil: Pencil
    solution: Solution
    width: int | None = None
    ranks: Any = None

    @property
    def linear(self) -> bool:
        """Whether the encoder is a matrix."""
        return isinstance(self.network, str) and self.network == "linear"

    @property
    def form(self) -> str:
        """What is trained: the objective's form, and whether pairs come with scores that differ."""
        moments = self.statistics.moments
        scored = isinstance(moments, PairMoments) and moments.scored
        return "scored_pairs" if scored else self.objective.form

    @property
    def quadratic(self) -> Quadratic:
        """Moments of the squared error."""
        return self.statistics.once("quadratic", lambda: self.objective.quadratic(self.statistics))

    @property
    def metric(self) -> np.ndarray:
        """N: the matrix in which training is whitened and rows are measured."""
        if self.objective.form == "least_squares":
            return self.quadratic.gram
        assert self.pencil.N is not None
        return self.pencil.N

    @property
    def second_moment(self) -> np.ndarray:
        """E[x x^T] of what the encoder sees."""
        least_squares = self.objective.form == "least_squares"
        return self.quadratic.gram if least_squares else self.statistics.moments.St

    @property
    def M(self) -> np.ndarray:
        """M of the pencil, formed from its factor where need be."""
        pencil = self.pencil
        return pencil.factor @ pencil.factor.T if pencil.factor is not None else np.asarray(pencil.M)


def build(request: Request) -> Task:
    """Return the task that trains what is requested."""
    device = resolve_device(request.device)
    on_moments = _on_moments(request)
    dtype = _dtype(request, on_moments)

    def tensor(array: Any) -> torch.Tensor:
        return torch.tensor(np.asarray(array), dtype=dtype, device=device)

    R = _whitener(request)
    half = half_of(request, R, tensor)
    start = starts.choose(request, R)
    d = len(request.solution.components) if request.linear or request.width is None else request.width
    generator = torch.Generator().manual_seed(request.seed)
    rows = {} if request.rows is None else _tensors(request, R, tensor, on_moments)
    constant = _length(request, R) if half.offset and request.linear else None
    encoder = _encoder(request, start, R, tensor, constant, d)
    if not request.linear:
        d = check_width(encoder, rows["input" if "input" in rows else "left"], request.width)
        start = starts.of_network(request, d)
    weights = request.ordering.measure(d, request.objective.conventions.omega)
    model = Model(
        encoder,
        None if start.shared is None else tensor(start.shared),
        None if start.bias is None else tensor(start.bias),
        {name: tensor(part) for name, part in request.ordering.extras(d).items()},
        _own_heads(request, start, weights, tensor),
    ).to(device)
    ranks = request.ranks or SingleProcess()
    measure = PrefixSum(weights, _estimator(request, half, weights), generator, ranks, 1 / ranks.size)
    weight = None if request.rows is None or on_moments else request.rows.get("weight")
    if weight is not None:
        weight = torch.cat(ranks.all_gather(torch.as_tensor(np.asarray(weight))))
    split = held_out(request, rows, generator, weight, on_moments, ranks)
    return Task(
        model,
        half,
        request.ordering,
        measure,
        **split,
        gram=tensor(request.second_moment) if request.linear else None,
        moments=on_moments,
        data="" if request.ranks is None else str(request.statistics.fingerprint),
        watched=_watched(request),
        free_coordinates=request.ordering.residual in ("axes", "blocks"),
    )


def _own_heads(request: Request, start: Any, weights: PrefixWeights, tensor: Any) -> tuple[Any, Any] | None:
    """Return where the heads of short prefixes start: at the shared one; None where no short prefix has weight.

    The longest that has weight reads with the shared head, alone if it must, so that there always is one.
    """
    if request.objective.form != "cross_entropy":
        return None
    K = request.objective.own_heads_of(int(weights.support[-1]) - 1, len(start.shared))  # type: ignore[attr-defined]
    if not weights.omega[:K].any():
        return None
    weight = np.tril(np.broadcast_to(start.shared[:, None, :K], (len(start.shared), K, K))).swapaxes(0, 1)
    return tensor(weight), tensor(np.tile(start.bias, (K, 1)))


def _watched(request: Request) -> list[Any]:
    """Return what measures a model for the trace: distances to the closed form, and what the user watches."""
    return [part for part in (_distances(request), _watch(request)) if part is not None]


def _watch(request: Request) -> Any:
    watch = request.solver.watch
    if watch is not None and not request.linear:
        raise IllegalCombinationError(
            "Gradient(watch=...) with a nonlinear network",
            "what is watched are the matrices of encoder and decoder",
            "network='linear', or the entries that every trace has",
        )

    def measured(model: Any) -> dict[str, float]:
        weights = (model.encoder.weight, model.decoder)
        found = watch(*(None if w is None else w.detach().cpu().double().numpy().copy() for w in weights))
        if not isinstance(found, Mapping) or not all(isinstance(value, SupportsFloat) for value in found.values()):
            raise InvalidInputError(
                f"The function given as Gradient(watch=...) must return {{name: number}}. Got {found!r}: "
                'return {"loss": value}, say.'
            )
        return {str(name): float(value) for name, value in found.items()}

    return None if watch is None else measured


def _distances(request: Request) -> Any:
    """Return what measures a model against the closed form, for the trace (Bao et al. 2020 definitions 7.1, 7.2)."""
    if not request.linear or not request.objective.exact or request.objective.form == "pairs":
        return None
    axes = request.solution.components

    def measured(model: Any) -> dict[str, float]:
        decodes = model.decoder is not None and len(model.decoder) == axes.shape[1]
        Q = (model.decoder.t() if decodes else model.encoder.weight).detach().cpu().double().numpy()
        return {"axis_distance": axis_distance(Q, axes), "subspace_distance": subspace_distance(Q, axes)}

    return measured


def resolve_device(device: Any) -> str:
    """Return the device that "auto" stands for: a GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise bad_parameter("device", "PrefixEncoder", "'auto' or a device of torch, such as 'cpu'", device) from None
    try:
        torch.zeros(1, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InvalidInputError(f"device={str(found)!r} cannot be used here: {why}. Use 'auto' or 'cpu'.") from None
    return str(found)


def _on_moments(request: Request) -> bool:
    """Tell whether losses come from moments, refusing a fit that needs rows and has none."""
    if request.rows is None:
        check_streamable(request)
    half, name = TRAINING_LOSSES[request.form], request.objective.name
    batched, sampled = _in_batches(request.solver), request.ordering.estimator == "sampled"
    if sampled and not half.row_sums:
        raise IllegalCombinationError(
            f"objective '{name}' with prefixes drawn row by row (ordering '{request.ordering.name}')",
            "its loss is no sum over rows, so a prefix per row estimates something else",
            "an exact ordering: FullPrefix(estimator='exact') or NestedDropout(expected=True)",
        )
    if half.from_moments and not half.row_sums and request.linear and batched:
        raise IllegalCombinationError(
            f"objective '{name}' in batches of {request.solver.batch_size}",
            "scatters of a batch are not those of the data, and moments give the exact loss at a cost that does not "
            "depend on the number of rows",
            "batch_size='auto'",
        )
    return _moments_suffice(request)


def check_streamable(problem: Any, what: str = "partial_fit") -> None:
    """Refuse to train without rows what needs them; `problem` names objective, ordering, solver and network."""
    if _moments_suffice(problem) and "codes" not in problem.ordering.traits:
        return
    raise IllegalCombinationError(
        f"{what} with objective '{problem.objective.name}', ordering '{problem.ordering.name}' and solver 'gradient'",
        "this training needs the rows themselves, and a stream keeps moments only",
        "fit(X, y) on all rows, or on a part of them that fits into memory; or training on several machines, each with "
        "its own rows (firstk.integrations.distributed)",
    )


def _moments_suffice(problem: Any) -> bool:
    """Tell whether the loss can be had from moments alone."""
    linear = isinstance(problem.network, str) and problem.network == "linear"
    sampled = problem.ordering.estimator == "sampled"
    return (
        TRAINING_LOSSES[problem.objective.form].from_moments
        and linear
        and not sampled
        and not _in_batches(problem.solver)
    )


def _in_batches(solver: Any) -> bool:
    return solver.batch_size not in ("auto", "full")


def _dtype(request: Request, on_moments: bool) -> torch.dtype:
    wanted = request.solver.dtype
    if wanted == "auto":
        wanted = "float64" if on_moments else "float32"
    return getattr(torch, wanted)


def _whitener(request: Request) -> np.ndarray | None:
    """Return R with R^T N R = I where training is to run in those coordinates, turned at random where that helps.

    Adam divides the gradient of every coordinate by its size. In principal axes, which the whitener gives, that makes
    steps along quiet directions as long as along loud ones, and what few rows say there is mostly noise. Coordinates
    that mix all directions have no such preference (figures in docs/decisions.md, "Coordinates turned").
    """
    fixed = "weights" in request.ordering.traits
    if not request.linear or request.solver.whiten is False:
        return None
    if fixed:
        if request.solver.whiten is True:
            raise IllegalCombinationError(
                f"whiten=True with ordering '{request.ordering.name}'",
                "it looks at the encoder's weights, which whitening replaces by others",
                "whiten='auto'",
            )
        return None
    R = whitener(request.metric, request.statistics.moments.eps)
    return R @ _turn(R.shape[1], request.seed) if TRAINING_LOSSES[request.form].turned else R


def _turn(r: int, seed: int) -> np.ndarray:
    """Return a random orthogonal matrix, by draws that no start uses."""
    return np.linalg.qr(np.random.default_rng([seed, r]).normal(size=(r, r)))[0]


def half_of(request: Request, R: np.ndarray | None, tensor: Any) -> Any:
    """Return the torch half of the objective, with the moments it needs in the coordinates of training."""
    form, objective = request.objective.form, request.objective
    if form == "least_squares":
        q = request.quadratic
        cross = tensor(q.cross)
        # One matrix where there is one: a step then takes one product with it instead of two.
        settings = {"total": q.total, "cross": cross, "gram": cross if q.gram is q.cross else tensor(q.gram)}
        if R is not None:
            settings["white_cross"] = tensor(R.T @ q.cross)
    elif form == "ratio_trace":
        settings = {"code_eps": getattr(objective, "code_eps", 0.0)}
        if request.linear:
            settings |= {"N": tensor(request.metric), "M": tensor(request.M)}
        if R is not None:
            settings |= {"white_N": tensor(np.eye(R.shape[1])), "white_M": tensor(R.T @ request.M @ R)}
    elif form == "cross_entropy":
        settings = {"label_smoothing": getattr(objective, "label_smoothing", 0.0)}
    else:
        settings = {"temperature": objective.temperature}  # type: ignore[attr-defined]
    return TRAINING_LOSSES[request.form](settings)


def _length(request: Request, R: np.ndarray | None) -> float:
    """Return the root mean square norm of the rows, in the coordinates of training."""
    St = request.second_moment
    return float(np.sqrt(np.trace(St if R is None else R.T @ St @ R)))


def _encoder(request: Request, start: Any, R: np.ndarray | None, tensor: Any, constant: float | None, d: int) -> Any:
    if request.linear:
        return LinearEncoder(tensor(start.encoder), None if R is None else tensor(R), constant)
    if isinstance(request.network, MLP):
        with global_seed(request.seed):
            return build_mlp(request.network, request.statistics.n_features, d).to(tensor(0.0).dtype)
    return copy.deepcopy(request.network).to(tensor(0.0).dtype)  # the user's own stays as it was given


def _estimator(request: Request, half: Any, weights: PrefixWeights) -> str:
    """Settle "auto": exact where it is cheap, sampled where the loss is a sum over rows and costs much."""
    wanted = request.ordering.estimator
    if wanted != "auto":
        return str(wanted)
    moments = request.statistics.moments
    classes = len(moments.group_weight) if isinstance(moments, Moments) else 0
    large = weights.d * classes > _EXACT_LOGITS
    return "sampled" if half.sampled_by_default and half.row_sums and large else "exact"


def _tensors(request: Request, R: np.ndarray | None, tensor: Any, on_moments: bool) -> dict[str, torch.Tensor]:
    """Return rows as tensors: inputs centred and in the coordinates of training, and what stands beside them."""
    rows, objective = request.rows, request.objective
    assert rows is not None
    if on_moments and "codes" not in request.ordering.traits:
        return {}
    if objective.supervision == "pairs":
        left, right = (
            _inputs(rows[side], mean, R) for side, mean in (("left", request.query_mean), ("right", request.mean))
        )
        sides = {"left": tensor(left), "right": tensor(right)}
        if request.form != "scored_pairs":
            return sides
        scores = objective.mixed_scores(rows, _over_ranks(request))  # type: ignore[attr-defined]
        return sides | {"scores": tensor(scores)}
    found = {"input": tensor(_inputs(rows["X"], request.mean, R))}
    if on_moments:
        return found
    if objective.form == "least_squares":
        try:
            found["target"] = tensor(objective.targets(rows, request.statistics))
        except NotImplementedError:
            raise IllegalCombinationError(
                f"objective '{objective.name}' on rows (a nonlinear network, or batches)",
                "its noise is known through its moments only",
                "network='linear' with batch_size='auto'",
            ) from None
    elif objective.supervision == "labels":
        assert isinstance(request.statistics.moments, Moments)
        labels = np.searchsorted(request.statistics.moments.group_labels, rows["y"])
        found["label"] = torch.as_tensor(labels, device=found["input"].device)
    else:
        raise IllegalCombinationError(
            f"objective '{objective.name}' with a nonlinear network",
            "it is defined by a pencil of the vectors themselves",
            "network='linear', or fit_pairs with objective='similarity'",
        )
    return found


def _over_ranks(request: Request) -> Callable[[np.ndarray], np.ndarray]:
    """Return what puts a column of all ranks together."""
    ranks = request.ranks or SingleProcess()
    return lambda column: torch.cat(ranks.all_gather(torch.as_tensor(column))).numpy()


def _inputs(X: Any, mean: np.ndarray, R: np.ndarray | None) -> np.ndarray:
    X = as_dense(X) - mean
    return X if R is None else X @ R
