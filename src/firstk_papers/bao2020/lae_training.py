"""Training of the six linear autoencoders of Bao et al. 2020 section 7, with the decoder recorded on the way.

A recipe (JSON) names model, optimizer, learning rate, batches and length; what comes back is the two distances of
Bao et al. 2020 definitions 7.1 and 7.2 over time, and the decoder itself at chosen epochs. The loop is as plain as the
paper's: an optimizer of torch on the losses of firstk and the hooks of its orderings. A full batch sees the second
moment only, which is diagonal where the steps are the same in every rotation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from firstk import Moments, NestedDropout, NonuniformL2, Rotation, UniformL2, Variational
from firstk.exceptions import RankWarning
from firstk.metrics import axis_distance, subspace_distance
from firstk_papers.bao2020.lae_spectra import Spectrum, rows_of, spectrum_of
from firstk_papers.frame.hooks import Diagonal, prefix_weights, step_view
from firstk_papers.frame.panels import rounded
from firstk_papers.frame.types import JsonDict, JsonObject

if TYPE_CHECKING:
    from torch import Tensor

    from firstk.contracts import View

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
SMALL = 1e-2  # standard deviation of the first weights, N(0, 1e-4) in appendix H.1
Model = UniformL2 | NonuniformL2 | Rotation | NestedDropout | Variational
_POINTS = 160  # of a trace


@dataclass
class Watch:
    """What records the decoder after every epoch.

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

    def __call__(self, A: Tensor | np.ndarray) -> None:
        """Record the decoder A of shape (p, d) where this epoch is wanted."""
        self.epoch += 1
        looking = self.until is not None and self.epoch % 10 == 0
        if self.epoch in self.epochs or self.epoch in self.keep or looking:
            self._look(np.asarray(A, dtype=np.float64).T)

    def _look(self, W: np.ndarray) -> None:
        axis = axis_distance(W, self.axes)
        reached = self.until is not None and axis <= self.until
        if self.epoch in self.epochs or reached:
            self.trace.append((self.epoch, axis, subspace_distance(W, self.axes)))
        if self.epoch in self.keep:
            norms = np.linalg.norm(W, axis=1)
            self.kept[self.epoch] = self.axes @ W.T / np.where(norms > 0, norms, 1.0)
            self.decoder = W.copy()  # W may be the memory of the model, which training goes on writing
        if reached:
            raise Reached


class Reached(Exception):
    """The watch has seen enough."""


def ordering_of(recipe: JsonObject, spectrum: Spectrum) -> Model:
    """Return the ordering of a model with the settings of Bao et al. 2020 appendix H."""
    model, k = recipe["model"], recipe["k"]
    if model == "uniform_l2":
        return UniformL2(recipe["lam"])
    if model == "nonuniform_l2":
        return NonuniformL2(recipe["lam"])
    if model == "rotation":
        return Rotation()
    if model == "linear_vae":
        return Variational(noise=spectrum.noise(k))
    return NestedDropout(rho=recipe["rho"], expected=model == "deterministic_nd")


def rate_of(recipe: JsonObject, spectrum: Spectrum) -> float:
    """Return the learning rate of a recipe, for our losses."""
    rate = float(recipe["learning_rate"])
    if recipe["model"] == "linear_vae" and recipe["optimizer"] == "nesterov":
        # Ours is the evidence bound times 2 sigma^2, so that its squared error has no factor.
        rate /= 2 * spectrum.noise(recipe["k"])
    return rate


def on_moments(recipe: JsonObject) -> bool:
    """Tell whether the training sees the data through their second moment only."""
    return recipe["batch"] == "full" and recipe["model"] != "nested_dropout"


def trained(recipe: JsonObject, watch_at: Iterable[int], keep: Iterable[int] = ()) -> Watch:
    """Train a recipe and return what its watch has recorded."""
    spectrum = spectrum_of(recipe["data"])
    rotated = on_moments(recipe) and recipe["optimizer"] == "nesterov"
    axes = np.eye(len(spectrum.values)) if rotated else spectrum.axes
    watch = Watch(signed(axes[: recipe["k"]]), set(watch_at), set(keep), recipe.get("until"))
    with warnings.catch_warnings(), suppress(Reached):
        warnings.simplefilter("ignore", RankWarning)  # penalties above an eigenvalue are the paper's own, and reported
        _train(recipe, spectrum, watch)
    return watch


def signed(axes: np.ndarray) -> np.ndarray:
    """Return axes with the largest entry of each positive.

    Examples
    --------
    >>> signed(np.array([[1.0, -2.0]])).tolist()
    [[-1.0, 2.0]]
    """
    largest = np.abs(axes).argmax(axis=1)
    return axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]


def _train(recipe: JsonObject, spectrum: Spectrum, watch: Watch) -> None:
    """Train by plain steps: the loss of the moments or of batches, the ordering's hooks, one learning rate throughout.

    On moments the loss is that of `FullPrefixReconstruction.from_moments`, written out because a diagonal moment is no
    tensor: under momentum training runs in the principal axes, where the moment is diagonal, by Adam in pixels.
    """
    import torch

    ordering, d, p = ordering_of(recipe, spectrum), recipe["k"], len(spectrum.values)
    momentum = recipe["optimizer"] == "nesterov"
    dtype = torch.float64 if on_moments(recipe) and momentum and d <= 50 else torch.float32

    def parameter(part: np.ndarray) -> torch.nn.Parameter:
        return torch.nn.Parameter(torch.tensor(np.ascontiguousarray(part), dtype=dtype))

    rng = np.random.default_rng(recipe["seed"])
    start = rng.normal(0, SMALL, (d, p))
    B, A = parameter(start), parameter(start.T if recipe["model"] == "rotation" else rng.normal(0, SMALL, (p, d)))
    extras = {name: parameter(part) for name, part in ordering.extras(d).items()}
    rate, parameters = rate_of(recipe, spectrum), [B, A, *extras.values()]
    optimizer: torch.optim.Optimizer = torch.optim.Adam(parameters, lr=rate)
    if momentum:
        optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9, nesterov=True)
    if on_moments(recipe):
        steps = _moment_steps(spectrum, momentum, prefix_weights(ordering, d).cum, B, A, extras)
    else:
        steps = _row_steps(recipe, ordering, B, A, extras)
    for _ in range(recipe["epochs"]):
        for loss, view in steps():
            optimizer.zero_grad()
            (loss + ordering.penalty(view)).backward()
            ordering.correct(view)
            optimizer.step()
            ordering.retract(view)
        watch(A.detach())


def _moment_steps(
    spectrum: Spectrum, diagonal: bool, cum: np.ndarray, B: Tensor, A: Tensor, extras: Mapping[str, Tensor]
) -> Callable[[], Iterator[tuple[Tensor, View]]]:
    """Return what gives the one step of an epoch on the second moment: its loss, and what the hooks see."""
    import torch

    St = spectrum.values if diagonal else spectrum.second_moment()
    moment, weights = (torch.tensor(part, dtype=B.dtype) for part in (St, cum))
    gram, total = Diagonal(moment) if diagonal else moment, float(spectrum.values.sum())
    both, view = torch.minimum(weights[:, None], weights), step_view(B, A, gram, extras=extras)

    def steps() -> Iterator[tuple[Tensor, View]]:
        BS = B @ gram
        yield total - 2 * (BS * A.t()).sum(1) @ weights + (both * (A.t() @ A) * (BS @ B.t())).sum(), view

    return steps


def _row_steps(
    recipe: JsonObject, ordering: Model, B: Tensor, A: Tensor, extras: Mapping[str, Tensor]
) -> Callable[[], Iterator[tuple[Tensor, View]]]:
    """Return what gives the steps of an epoch on rows, in batches drawn without replacement or all at once."""
    import torch

    from firstk.losses import FullPrefixReconstruction

    rows = rows_of(recipe["data"])
    moments = Moments().update(rows)
    X, gram = (torch.tensor(part, dtype=B.dtype) for part in (rows - moments.mean, moments.St))
    generator = torch.Generator().manual_seed(recipe["seed"])
    omega = prefix_weights(ordering, len(B)).omega
    loss = FullPrefixReconstruction(omega, ordering.estimator, generator=generator)
    memory: JsonDict = {}  # what a hook computes once

    def batches() -> Iterator[Tensor]:
        if recipe["batch"] == "full":
            yield X
            return
        order = torch.randperm(len(X), generator=generator)
        for i in range(0, len(X) - recipe["batch"] + 1, recipe["batch"]):
            yield X[order[i : i + recipe["batch"]]]

    def steps() -> Iterator[tuple[Tensor, View]]:
        for x in batches():
            z = x @ B.t()
            view = step_view(B, A, gram, code=z, extras=extras)
            view.memory = memory
            yield loss(x, z, A), view

    return steps


def looks(epochs: int) -> list[int]:
    """Return epochs at which to look, from the first to the last, evenly on a logarithmic scale."""
    return sorted({round(epoch) for epoch in np.geomspace(1, epochs, _POINTS)})


def plain_trace(watch: Watch) -> dict[str, list[float | None]]:
    """Return epochs and distances as lists."""
    epochs, axis, subspace = zip(*watch.trace, strict=True)
    return {"epoch": [float(e) for e in epochs], "axis": list(rounded(axis)), "subspace": list(rounded(subspace))}


def first_below(trace: JsonObject, name: str, level: float) -> float | None:
    """Return the first epoch looked at with a distance of at most `level`, or None."""
    return next((e for e, value in zip(trace["epoch"], trace[name], strict=True) if value <= level), None)
