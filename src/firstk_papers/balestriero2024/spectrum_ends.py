"""Held-out scores of the top and the bottom of the spectrum for the task.

Balestriero and LeCun 2024 section 3.2, figures 1 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk_papers.balestriero2024.axes import HeldOut, Readout, mean_and_error

SHARES = (0.25, 0.5, 0.75, 0.9)
# Rows of a neighbor search: a few thousand are enough to rank subspaces.
MOST_SEARCHED, MOST_ASKED = 4096, 1024


@dataclass(frozen=True)
class Side:
    """One end of the spectrum: number of directions, and held-out scores with standard errors.

    `probe` is accuracy, or R^2 of numeric targets, of the best linear readout; `neighbor` is 1-NN accuracy by
    Euclidean distance in the subspace, None for numeric targets.
    """

    directions: int
    variance: float
    probe: float
    probe_error: float
    neighbor: float | None


@dataclass(frozen=True)
class Subspaces:
    """Held-out scores of the top and the bottom of the spectrum at several shares of variance.

    Attributes
    ----------
    metric : str
    shares : tuple of float
    top, bottom : tuple of Side
        The smallest number of leading directions that explain each share of the variance, and all the others.
    whole : Side
        All directions.
    rows : int
        Number of held-out rows.
    """

    metric: str
    shares: tuple[float, ...]
    top: tuple[Side, ...]
    bottom: tuple[Side, ...]
    whole: Side
    rows: int


def compare_ends(evidence: HeldOut) -> Subspaces:
    """Evaluate both ends of the spectrum on held-out rows.

    Principal coordinates are uncorrelated, so the best readout of any subset is known from the moments of the training
    rows, without another fit.
    """
    axes, r = evidence.axes, evidence.axes.rank
    if r < 2:
        raise InvalidInputError("compare_ends needs vectors that vary along two directions or more. Got one.")
    sizes = [min(axes.reaching(share), r - 1) for share in SHARES]
    top = _sides(evidence, [*sizes, r])
    back = np.arange(r)[::-1]
    turned = replace(evidence, axes=axes.taken(back), U=evidence.U[:, back], T_ref=evidence.T_ref[:, back])
    bottom = _sides(turned, [r - k for k in sizes])
    metric = "accuracy" if evidence.labels else "R^2"
    return Subspaces(metric, SHARES, top[:-1], bottom, top[-1], len(evidence.U))


def _sides(evidence: HeldOut, sizes: list[int]) -> tuple[Side, ...]:
    """Evaluate the first axes, for each number in `sizes`."""
    axes, ks = evidence.axes, np.unique(sizes)
    U, y, variance = evidence.U, evidence.y, axes.variance_shares()
    scores = Readout(axes).scores(U, y, ks, "accuracy" if evidence.labels else "r2")
    probes = {int(k): mean_and_error(scores[:, i]) for i, k in enumerate(ks)}
    near: dict[int, float | None] = dict.fromkeys(probes)
    if evidence.labels and len(evidence.T_ref):
        T_ref, T = evidence.T_ref[:MOST_SEARCHED], (U[:MOST_ASKED] * np.sqrt(axes.spectrum)).astype(np.float32)
        for k in near:
            nearest = nearest_in(T_ref[:, :k], T[:, :k])
            near[k] = float(np.mean(evidence.y_ref[nearest] == y[:MOST_ASKED]))
    return tuple(Side(k, float(variance[k - 1]), *probes[k], near[k]) for k in sizes)


def nearest_in(Z_ref: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return the nearest reference of each row by Euclidean distance, from one product of centered coordinates."""
    with_norm = np.column_stack([Z_ref, -0.5 * np.sum(Z_ref**2, axis=1)])
    return np.argmax(np.column_stack([Z, np.ones(len(Z), Z.dtype)]) @ with_norm.T, axis=1)
