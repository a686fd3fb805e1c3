"""Effect of denoising on the order by variance: whether it can help any task, and whether it helps this one.

A linear denoising autoencoder in closed form (Balestriero and LeCun 2024 theorem 3) spans a subspace at each k. If it
is the span of the first k principal axes, denoising makes no difference for any task (Balestriero and LeCun 2024
section 4.2, corollary 3.1), which can be checked without labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from firstk_papers.balestriero2024.axes import Axes, Readout, mean_and_error, octaves

if TYPE_CHECKING:
    from firstk import GaussianNoise, Masking

    Noise = GaussianNoise | Masking

MOST_PREFIX = 32
# A noise that changes the R^2 of no unit-variance target by more than this at any k cannot help.
NOTHING = 1e-3
# If the relative gap between adjacent variances is below this, the principal subspace is not determined.
_GAP = 1e-6
# Relative ridge for the Cholesky factor of G when pixels are linearly dependent.
_RIDGE = 1e-10
# Subspace iteration stops when the relative change is below this; angles are then accurate to about its square root.
SETTLED, MOST_STEPS = 1e-8, 60


@dataclass(frozen=True)
class NoiseEffect:
    """Difference between denoising under one noise and plain reconstruction.

    Attributes
    ----------
    k : tuple of int
        Prefix lengths.
    could_move : tuple of float
        The largest possible difference in R^2 of any target (best linear readout) between the k-dimensional codes:
        the sine of the largest principal angle between them, as codes of the clean rows. Needs no labels.
    alignment_change : tuple of float or None
        Change of alignment(k), in the form of the proof; None without labels or targets.
    gain, error : float or None
        Mean change of held-out R^2 over `k`, paired by rows, with its standard error.
    """

    k: tuple[int, ...]
    could_move: tuple[float, ...]
    alignment_change: tuple[float, ...] | None = None
    gain: float | None = None
    error: float | None = None

    @property
    def can_help(self) -> bool:
        """Whether this code differs from the principal coordinates for some task."""
        return max(self.could_move) > NOTHING


def effect_of(
    noise: Noise, St: np.ndarray, axes: Axes, held: tuple[np.ndarray, np.ndarray] | None = None
) -> NoiseEffect:
    """Return the effect of denoising under `noise`.

    Parameters
    ----------
    noise : GaussianNoise or Masking
    St : ndarray of shape (p, p)
        Scatter of the rows in the coordinates in which the noise acts.
    axes : Axes
        Principal axes of `St`, with the target if there is one.
    held : tuple of ndarray, optional
        Whitened coordinates and targets of held-out rows.
    """
    noise.check()
    ks = _clear_lengths(axes.spectrum, min(MOST_PREFIX, axes.rank))
    Q = axes.basis(denoising_axes(noise, St, int(ks[-1]), start=axes.P))
    moved = tuple(float(np.linalg.norm(Q[k:, :k], 2)) if k < axes.rank else 0.0 for k in ks.tolist())
    found: dict[str, Any] = {"k": tuple(ks.tolist()), "could_move": moved}
    if axes.target is not None:
        plain, under = Readout(axes), Readout(axes, Q)
        total = float(np.sum(axes.gains**2))
        change = (under.explained()[ks - 1] - plain.explained()[ks - 1]) / (total or 1.0)
        found["alignment_change"] = tuple(change.tolist())
        if held is not None and len(held[0]):
            difference = under.scores(*held, ks, "r2") - plain.scores(*held, ks, "r2")
            found["gain"], found["error"] = mean_and_error(difference.mean(axis=1))
    return NoiseEffect(**found)


def denoising_axes(noise: Noise, St: np.ndarray, d: int, start: np.ndarray) -> np.ndarray:
    """Return the first `d` axes of the pencil (S S^T, G), as rows, by subspace iteration.

    Only a few axes of a wide pencil are needed. With G = L L^T they are L^-T times the leading left singular vectors of
    L^-1 S. A block of more than twice as many vectors is iterated until the values converge.

    Parameters
    ----------
    noise : GaussianNoise or Masking
    St : ndarray of shape (p, p)
    d : int
    start : ndarray of shape (p, r)
        Initial directions, as columns: the principal axes.
    """
    varies = np.flatnonzero(np.diag(St) > 0)  # without constant columns
    G, S = (part[np.ix_(varies, varies)] for part in noise.second_moments(St))
    scale = np.sqrt(np.diag(G))
    L = np.linalg.cholesky(G / scale[:, None] / scale + _RIDGE * np.eye(len(G)))
    F = S / scale[:, None]
    block = np.linalg.qr(L.T @ (scale[:, None] * start[varies, : 2 * d + 16]))[0]
    settled = np.zeros(0)
    for _ in range(MOST_STEPS):
        image = F.T @ scipy.linalg.solve_triangular(L, block, lower=True, trans="T", check_finite=False)
        values, turn = (part[..., ::-1] for part in np.linalg.eigh(image.T @ image))
        found = (block @ turn)[:, :d]
        if len(settled) and np.allclose(values[:d], settled, rtol=SETTLED, atol=0):
            break
        settled = values[:d]
        block = np.linalg.qr(scipy.linalg.solve_triangular(L, F @ image, lower=True, check_finite=False))[0]
    axes = np.zeros((d, len(St)))
    axes[:, varies] = (scipy.linalg.solve_triangular(L, found, lower=True, trans="T") / scale[:, None]).T
    return axes


def _clear_lengths(spectrum: np.ndarray, most: int) -> np.ndarray:
    """Return 1, 2, 4, ... up to `most`, without those at which the principal subspace is not determined."""
    ks = octaves(most)
    gaps = np.append(spectrum[:-1] - spectrum[1:], np.inf)[ks - 1]
    clear = ks[gaps > _GAP * spectrum[ks - 1]]
    return clear if len(clear) else ks[-1:]
