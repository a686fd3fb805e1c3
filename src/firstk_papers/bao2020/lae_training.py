"""Training of the six linear autoencoders of Bao et al. 2020 section 7, with the decoder recorded on the way.

A recipe (JSON) names model, optimizer, learning rate, batches and length; what comes back is the two distances of
Bao et al. 2020 definitions 7.1 and 7.2 over time, and the decoder itself at chosen epochs. Runs on rows are fits of
`PrefixEncoder`. A full batch sees the second moment only, so those runs are a plain loop on it: the ordering's hooks
and the optimizer of torch, with a diagonal moment where the steps are the same in every rotation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from firstk import Gradient, NestedDropout, NonuniformL2, PrefixEncoder, Rotation, UniformL2, Variational
from firstk.exceptions import RankWarning
from firstk.metrics import axis_distance, subspace_distance
from firstk_papers.bao2020.lae_spectra import Spectrum, rows_of, spectrum_of
from firstk_papers.frame.instances import Diagonal, prefix_weights, step_view
from firstk_papers.frame.panels import rounded
from firstk_papers.frame.types import JsonObject

if TYPE_CHECKING:
    from torch import Tensor

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

    def __call__(self, B: np.ndarray | None, A: np.ndarray | Tensor | None) -> dict[str, float]:
        """Record the decoder A of shape (p, d) where this epoch is wanted; add nothing to the trace of a fit."""
        self.epoch += 1
        looking = self.until is not None and self.epoch % 10 == 0
        if self.epoch in self.epochs or self.epoch in self.keep or looking:
            assert A is not None
            self._look(np.asarray(A, dtype=np.float64).T)
        return {}

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
        (_on_moments if on_moments(recipe) else _on_rows)(recipe, spectrum, watch)
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


def _on_rows(recipe: JsonObject, spectrum: Spectrum, watch: Watch) -> None:
    """Fit in batches, or with prefixes drawn for every row: no whitening, one learning rate throughout."""
    solver = Gradient(
        optimizer=OPTIMIZERS[recipe["optimizer"]],
        learning_rate=rate_of(recipe, spectrum),
        epochs=recipe["epochs"],
        batch_size=recipe["batch"],
        momentum=0.9,
        weight_decay=0.0,
        schedule="constant",
        patience=None,
        whiten=False,
        precondition=False,
        dtype="float32",
        tolerance=-1.0,  # a loss at rest does not say that the axes are
        trace_every=1,
        watch=watch,
        canonical=False,
    )
    PrefixEncoder(
        recipe["k"], ordering=ordering_of(recipe, spectrum), solver=solver, init="small", device="cpu",
        random_state=recipe["seed"],
    ).fit(rows_of(recipe["data"]))  # fmt: skip


def _on_moments(recipe: JsonObject, spectrum: Spectrum, watch: Watch) -> None:
    """Descend the loss of the second moment: in its own axes, where it is diagonal, under momentum; in pixels by Adam.

    The loss is that of `FullPrefixReconstruction.from_moments`, written out because a diagonal moment is no tensor.
    """
    import torch

    ordering, d, p = ordering_of(recipe, spectrum), recipe["k"], len(spectrum.values)
    nesterov = recipe["optimizer"] == "nesterov"
    dtype = torch.float64 if nesterov and d <= 50 else torch.float32
    rng = np.random.default_rng(recipe["seed"])
    first = rng.normal(0, SMALL, (d, p))
    last = first.T if isinstance(ordering, Rotation) else rng.normal(0, SMALL, (p, d))
    B, A = (torch.nn.Parameter(torch.tensor(np.ascontiguousarray(part), dtype=dtype)) for part in (first, last))
    extras = {name: torch.nn.Parameter(torch.tensor(part, dtype=dtype)) for name, part in ordering.extras(d).items()}
    St = spectrum.values if nesterov else (spectrum.axes.T * spectrum.values) @ spectrum.axes
    moment = torch.tensor(St, dtype=dtype)
    gram, total = Diagonal(moment) if nesterov else moment, float(spectrum.values.sum())
    cum = torch.tensor(prefix_weights(ordering, d).cum, dtype=dtype)
    both = torch.minimum(cum[:, None], cum)
    view = step_view(B, A, gram, extras=extras)
    rate, parameters = rate_of(recipe, spectrum), [B, A, *extras.values()]
    optimizer = (
        torch.optim.SGD(parameters, lr=rate, momentum=0.9, nesterov=True)
        if nesterov
        else torch.optim.Adam(parameters, lr=rate)
    )
    for _ in range(recipe["epochs"]):
        optimizer.zero_grad()
        BS = B @ gram
        loss = total - 2 * (BS * A.t()).sum(1) @ cum + (both * (A.t() @ A) * (BS @ B.t())).sum()
        (loss + ordering.penalty(view)).backward()
        ordering.correct(view)
        optimizer.step()
        ordering.retract(view)
        watch(None, A.detach())


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
