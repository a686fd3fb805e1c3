"""Data of the linear-autoencoder experiments, as rows or as spectra and axes.

A full batch of a linear autoencoder sees nothing of the data but their second moment; plain gradient steps, with
momentum or not, are the same in every rotation of the inputs, so that the moment may be diagonal. Adam's steps are not,
and run in the coordinates of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from firstk import Moments
from firstk_papers.datasets.images import images
from firstk_papers.datasets.tasks import pooled
from firstk_papers.frame.types import JsonDict, JsonObject


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of the second moment, descending, and its axes as rows, in the coordinates of the data."""

    values: np.ndarray
    axes: np.ndarray

    def second_moment(self) -> np.ndarray:
        """Return the second moment in the coordinates of the data."""
        return (self.axes.T * self.values) @ self.axes

    def noise(self, k: int) -> float:
        """Return the best noise variance of a linear model of k factors: the mean of the eigenvalues past k."""
        return float(self.values[k:].mean())


@lru_cache(maxsize=2)
def _mnist(rows: int, pool: int) -> Spectrum:
    return _of(pixels(rows, pool))


@lru_cache(maxsize=2)
def _synthetic(rows: int, p: int, low: float, high: float, seed: int) -> Spectrum:
    return _of(synthetic(rows, p, low, high, seed))


def _of(X: np.ndarray) -> Spectrum:
    values, axes = np.linalg.eigh(Moments().update(X).St)
    return Spectrum(np.maximum(values[::-1], 0.0), np.ascontiguousarray(axes[:, ::-1].T))


def pixels(rows: int, pool: int = 1) -> np.ndarray:
    """Return the first training images of MNIST as rows of pixels in [0, 1]; training subtracts their mean.

    With `pool` above 1 squares of so many pixels become one, their sum over `pool`: the coordinates of the images
    projected on pictures that are constant in each square, so that the first eigenvalues hardly change.
    """
    found = images("mnist")
    return pool * pooled(found.X_train[:rows], found.image_shape, pool)[0] if pool > 1 else found.X_train[:rows]


def synthetic(rows: int, p: int, low: float, high: float, seed: int) -> np.ndarray:
    """Draw normal rows whose population has axes at random and eigenvalues evenly spaced from `high` to `low`."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return (rng.standard_normal((rows, p)) * np.sqrt(np.linspace(high, low, p))) @ axes


def mnist_of(settings: JsonObject) -> JsonDict:
    """Return how a cell names the images that settings ask for."""
    return {"name": "mnist", "rows": settings["rows"]} | {
        name: settings[name] for name in ("pool",) if name in settings
    }


def spectrum_of(data: JsonObject) -> Spectrum:
    """Return the spectrum of what a cell names: MNIST, or the synthetic set of Bao et al. 2020 H.2."""
    return _mnist(data["rows"], data.get("pool", 1)) if data["name"] == "mnist" else _synthetic(*_drawn(data))


def rows_of(data: JsonObject) -> np.ndarray:
    """Return the rows themselves, for training that draws from them."""
    return pixels(data["rows"], data.get("pool", 1)) if data["name"] == "mnist" else synthetic(*_drawn(data))


def _drawn(data: JsonObject) -> tuple[int, int, float, float, int]:
    return data["rows"], data["p"], data["low"], data["high"], data["seed"]
