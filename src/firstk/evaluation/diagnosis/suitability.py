"""Comparison of objectives for the labels or targets: closed-form fits evaluated on held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from firstk._base.rows import unit_rows
from firstk.contracts import Objective
from firstk.encoder.curve import PrefixCurve
from firstk.estimator.problem import pose
from firstk.evaluation.diagnosis.axes import Axes, Readout, mean_and_error, octaves
from firstk.evaluation.diagnosis.gathering import HeldOut
from firstk.evaluation.diagnosis.subspaces import nearest_in
from firstk.exceptions import FirstkError
from firstk.moments.moments import Moments
from firstk.moments.statistics import RowSample, Statistics
from firstk.objectives import Fisher, Mixture, Reconstruction, Regression

# Maximum number of principal coordinates used for fits; the variance beyond them is negligible.
MOST_COORDINATES = 1024
MOST_PREFIX = 64
# Number of standard errors for a clear difference.
CLEAR = 2.0


@dataclass(frozen=True)
class Margin:
    """Difference of an objective to the best one: mean over prefixes, paired by rows, with its standard error."""

    objective: str
    behind: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether the difference exceeds its noise."""
        return self.behind > CLEAR * self.error


@dataclass(frozen=True)
class Suitability:
    """Held-out curves of closed-form objectives, and the best of them.

    Attributes
    ----------
    curves : tuple of PrefixCurve
        One per objective, k = 1, 2, 4, ..., best mean first.
    leader : str
    margins : tuple of Margin
        Margins of the others, smallest first.
    """

    curves: tuple[PrefixCurve, ...]
    leader: str
    margins: tuple[Margin, ...]

    def sentences(self) -> list[str]:
        """Return the recommended objective, or that there is no difference."""
        equal = [margin for margin in self.margins if not margin.clear]
        behind = [margin for margin in self.margins if margin.clear]
        scope = f"mean held-out {self.curves[0].metric} over k = {self.curves[0].k[0]} to {self.curves[0].k[-1]}"
        if not behind:
            return [f"No difference between objectives beyond noise ({scope}): take 'reconstruction', it is simplest."]
        rest = ", ".join(f"{margin.objective} by {margin.behind:.3f} +- {margin.error:.3f}" for margin in behind)
        start = f"Objective {self.leader} suits these {'targets' if self.curves[0].metric == 'r2' else 'labels'} best"
        if equal:
            start += " (no difference to " + ", ".join(margin.objective for margin in equal) + ")"
        return [f"{start}; it leads {rest} ({scope})."]

    def table(self) -> list[tuple[str, str]]:
        """Return the curves as lines of a table."""
        first = self.curves[0]
        head = (f"{first.metric} at k", "  ".join(f"{k:>6}" for k in first.k))
        return [head, *((curve.label, "  ".join(f"{score:6.3f}" for score in curve.score)) for curve in self.curves)]


def compare_objectives(axes: Axes, evidence: HeldOut, moments: Moments) -> Suitability:
    """Fit every closed-form objective on the moments and evaluate its prefixes on the held-out rows.

    Labels are scored by 1-NN accuracy (cosine) among the reference rows, targets by R^2 of the best linear readout.
    """
    width = min(axes.rank, MOST_COORDINATES)
    turn = axes.P[:, :width]
    statistics = Statistics(moments.from_basis(turn.T), RowSample(0), len(turn))
    # The cosine of one coordinate is -1 or 1, so labels are scored from k = 2 on.
    ks = octaves(min(MOST_PREFIX, width), least=min(2 if evidence.kind == "labels" else 1, width))
    rows: dict[str, np.ndarray] = {}
    for name, objective in _candidates(axes).items():
        components = _fitted(objective, statistics, int(ks[-1]))
        if components is not None:
            rows[name] = _scores(components, axes, evidence, ks)
    return _ranked(rows, ks, "1nn_accuracy" if evidence.kind == "labels" else "r2", len(evidence.U))


def _candidates(axes: Axes) -> dict[str, Objective]:
    """Return the objectives by their public names."""
    assert axes.target is not None
    # This weight makes both terms of the mixture equal at their first axis.
    lam = float(np.linalg.norm(axes.gains, 2) ** 2 / axes.spectrum[0])
    mixture = {f"Mixture(lam={lam:.3g})": Mixture(lam=lam)}
    if axes.target.classes is None:
        return {
            "'reconstruction'": Reconstruction(),
            "'regression'": Regression(),
            "Regression(shrinkage=0.5)": Regression(shrinkage=0.5),
            **mixture,
        }
    return {
        "'reconstruction'": Reconstruction(),
        "'fisher'": Fisher(),
        "Fisher(shrinkage=0.5)": Fisher(shrinkage=0.5),
        **mixture,
    }


def _fitted(objective: Objective, statistics: Statistics, d: int) -> np.ndarray | None:
    """Return the axes of an objective; None if it is not defined for these data, such as classes of one row each."""
    problem = pose(objective, "full_prefix", "closed_form", d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer axes than requested are expected here
        try:
            return problem.solve(statistics).components
        except FirstkError:
            return None


def _scores(components: np.ndarray, axes: Axes, evidence: HeldOut, ks: np.ndarray) -> np.ndarray:
    """Return scores of held-out rows at each k, (n, len(ks)); a code shorter than k is scored at its full width.

    `components` act on the first principal coordinates.
    """
    d, width = components.shape
    if evidence.kind == "targets":
        readout = Readout(axes, axes.basis(components @ axes.P[:, :width].T))
        return readout.scores(evidence.U, evidence.y, np.minimum(ks, d), "r2")
    T = evidence.U[:, :width] * np.sqrt(axes.spectrum[:width])
    Z_ref, Z = (part.astype(np.float32) for part in (evidence.T_ref[:, :width] @ components.T, T @ components.T))
    scores = np.empty((len(Z), len(ks)))
    for i, k in enumerate(np.minimum(ks, d).tolist()):
        nearest = nearest_in(unit_rows(Z_ref[:, :k]), unit_rows(Z[:, :k]))
        scores[:, i] = evidence.y_ref[nearest] == evidence.y
    return scores


def _ranked(rows: dict[str, np.ndarray], ks: np.ndarray, metric: str, n: int) -> Suitability:
    order = sorted(rows, key=lambda name: -float(rows[name].mean()))
    leader = rows[order[0]].mean(axis=1)
    margins = tuple(Margin(name, *mean_and_error(leader - rows[name].mean(axis=1))) for name in order[1:])
    curves = tuple(
        PrefixCurve(tuple(ks.tolist()), tuple(rows[name].mean(axis=0).tolist()), metric, label=name, n_evaluated=n)
        for name in order
    )
    return Suitability(curves, order[0], margins)
