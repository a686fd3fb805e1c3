"""Training of the six linear autoencoders of Bao et al. 2020 section 7 by firstk's own loop, watched as it goes.

A recipe (JSON) names model, optimizer, learning rate, batches and length; what comes back is the two distances of
Bao et al. 2020 definitions 7.1 and 7.2 over time, and the decoder itself at chosen epochs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from firstk import orderings
from firstk.estimator.problem import Problem, pose
from firstk.exceptions import RankWarning
from firstk.metrics import axis_distance, subspace_distance
from firstk.moments.statistics import Statistics
from firstk.solvers import Gradient
from firstk_papers.bao2020.lae_spectra import Diagonal, Spectrum, rows_of, spectrum_of
from firstk_papers.frame.panels import rounded

MODELS = {
    "uniform_l2": "uniform l2",
    "nonuniform_l2": "non-uniform l2",
    "rotation": "rotation (RAG)",
    "nested_dropout": "nested dropout",
    "deterministic_nd": "deterministic nested dropout",
    "linear_vae": "linear VAE",
}
OPTIMIZERS = {"nesterov": "sgd", "adam": "adam"}
REVISION = 1  # of what a recipe means
_POINTS = 160  # of a trace


@dataclass
class Watch:
    """What looks at the model after every epoch, in place of the distances of the trace.

    Attributes
    ----------
    axes : ndarray of shape (k, p)
        The principal axes.
    epochs : set of int
        When both distances are taken.
    keep : set of int
        When U^T W2 is kept, and with the last of them the decoder.
    until : float, optional
        Axis distance at which the run has shown what it was for; looked for every ten epochs, as Bao et al. 2020 does.
    """

    axes: np.ndarray
    epochs: set[int]
    keep: set[int] = field(default_factory=set)
    until: float | None = None
    epoch: int = 0
    trace: list[tuple[int, float, float]] = field(default_factory=list)
    kept: dict[int, np.ndarray] = field(default_factory=dict)
    decoder: np.ndarray | None = None

    def __call__(self, model: Any) -> dict[str, float]:
        """Look, and add nothing to the loop's own trace."""
        self.epoch += 1
        looking = self.until is not None and self.epoch % 10 == 0
        if self.epoch in self.epochs or self.epoch in self.keep or looking:
            self._look(model.decoder.detach().cpu().double().numpy().T)
        return {}

    def _look(self, W: np.ndarray) -> None:
        axis = axis_distance(W, self.axes)
        reached = self.until is not None and axis <= self.until
        if self.epoch in self.epochs or reached:
            self.trace.append((self.epoch, axis, subspace_distance(W, self.axes)))
        if self.epoch in self.keep:
            norms = np.linalg.norm(W, axis=1)
            self.kept[self.epoch] = self.axes @ W.T / np.where(norms > 0, norms, 1.0)
            self.decoder = W.copy()  # W is the model's own memory, which training goes on writing
        if reached:
            raise Reached


class Reached(Exception):
    """The watch has seen enough."""


def ordering_of(recipe: Mapping[str, Any], spectrum: Spectrum) -> Any:
    """Return the ordering of a model with the settings of Bao et al. 2020 appendix H."""
    model, k = recipe["model"], recipe["k"]
    if model == "uniform_l2":
        return orderings.UniformL2(recipe["lam"])
    if model == "nonuniform_l2":
        return orderings.NonuniformL2(recipe["lam"])
    if model == "rotation":
        return orderings.Rotation()
    if model == "linear_vae":
        return orderings.Variational(noise=spectrum.noise(k))
    return orderings.NestedDropout(rho=recipe["rho"], expected=model == "deterministic_nd")


def solver_of(recipe: Mapping[str, Any], spectrum: Spectrum, double: bool) -> Gradient:
    """Return the plain optimizer of the paper: no whitening, no preconditioning, one learning rate throughout."""
    rate = recipe["learning_rate"]
    if recipe["model"] == "linear_vae" and recipe["optimizer"] == "nesterov":
        # Ours is the evidence bound times 2 sigma^2, so that its squared error has no factor.
        rate /= 2 * spectrum.noise(recipe["k"])
    return Gradient(
        optimizer=OPTIMIZERS[recipe["optimizer"]],
        learning_rate=rate,
        epochs=recipe["epochs"],
        batch_size=recipe["batch"],
        momentum=0.9,
        weight_decay=0.0,
        schedule="constant",
        patience=None,
        whiten=False,
        precondition=False,
        dtype="float64" if double else "float32",
        tolerance=-1.0,  # a loss at rest does not say that the axes are
        trace_every=1,
    )


def on_moments(recipe: Mapping[str, Any]) -> bool:
    """Tell whether the training sees the data through their second moment only."""
    return recipe["batch"] == "full" and recipe["model"] != "nested_dropout"


def trained(recipe: Mapping[str, Any], watch_at: Iterable[int], keep: Iterable[int] = ()) -> Watch:
    """Train a recipe and return what its watch has seen."""
    spectrum = spectrum_of(recipe["data"])
    moments = on_moments(recipe)
    rotated = moments and recipe["optimizer"] == "nesterov"
    solver = solver_of(recipe, spectrum, double=rotated and recipe["k"] <= 50)
    problem = pose("reconstruction", ordering_of(recipe, spectrum), solver, recipe["k"])
    problem = replace(problem, init="small", device="cpu", seed=recipe["seed"])
    task, axes = _task(problem, recipe["data"], moments, rotated)
    watch = Watch(axes, set(watch_at), set(keep), recipe.get("until"))
    task.watched = [watch]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # penalties above an eigenvalue are the paper's own, and reported
        with suppress(Reached):
            assert isinstance(problem.solver, Gradient)
            problem.solver.train(task, problem.seed)
    return watch


def _task(problem: Problem, data: Mapping[str, Any], moments: bool, rotated: bool) -> tuple[Any, np.ndarray]:
    """Return what the loop trains, and the principal axes."""
    from firstk.solvers.gradient.build import build, with_axes

    rows = {"X": spectrum_of(data).rows(own_coordinates=not rotated) if moments else rows_of(data)}
    statistics = _measured(json.dumps(data, sort_keys=True), moments, rotated)
    request = with_axes(problem.request(problem.objective, statistics, rows))
    assert isinstance(problem.solver, Gradient)
    task = build(request, problem.solver)
    if rotated:
        assert task.gram is not None
        gram = Diagonal(task.gram.diagonal().clone())
        settings = task.training_loss.settings
        task.gram = settings["gram"] = settings["cross"] = gram  # type: ignore[assignment]
    return task, request.start.components


@lru_cache(maxsize=3)
def _measured(data: str, moments: bool, rotated: bool) -> Statistics:
    """Return the statistics of all rows, or of the few that stand for them: the runs on one set share them."""
    named = json.loads(data)
    X = spectrum_of(named).rows(own_coordinates=not rotated) if moments else rows_of(named)
    return pose("reconstruction", "full_prefix", "gradient", None).accumulate({"X": X})


def looks(epochs: int) -> list[int]:
    """Return epochs at which to look, from the first to the last, evenly on a logarithmic scale."""
    return sorted({round(epoch) for epoch in np.geomspace(1, epochs, _POINTS)})


def plain_trace(watch: Watch) -> dict[str, list[float | None]]:
    """Return epochs and distances as lists."""
    epochs, axis, subspace = zip(*watch.trace, strict=True)
    return {"epoch": [float(e) for e in epochs], "axis": list(rounded(axis)), "subspace": list(rounded(subspace))}


def first_below(trace: Mapping[str, Any], name: str, level: float) -> float | None:
    """Return the first epoch looked at with a distance of at most `level`, or None."""
    return next((e for e, value in zip(trace["epoch"], trace[name], strict=True) if value <= level), None)
