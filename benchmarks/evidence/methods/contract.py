"""What a method is: a fit on a training part with one of its settings, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.evidence.data import Encode, Part

# Lengths that are asked for, and the longest.
LENGTHS = {"coordinates": (4, 8, 16, 32, 64, 128), "bytes": (8, 16, 32, 48, 64, 96)}
WIDTH = 128


@dataclass(frozen=True, eq=False)
class Method:
    """A way to shorten vectors.

    Attributes
    ----------
    name : str
    fit : callable
        ``fit(part, setting, seed) -> encode``, with ``encode(X, k, side)`` the codes of rows at a length.
    settings : tuple
        What is chosen among on validation data; each must have a readable `repr`.
    needs : str
        "rows", "labels" or "pairs".
    ours : bool
        Whether it is firstk: then one setting serves all lengths.
    draws : int
        Number of seeds, whose scores are averaged.
    trained : bool
        Whether a fit takes many seconds: left out of a run of closed forms.
    version : int
        Raised when the method changes, so that cached runs are not used.
    unit : str
        What the length of a code counts: "coordinates" or "bytes". Bytes are those of stored rows (documents); rows
        that ask stay floats, as in `benchmarks.bytes`.
    """

    name: str
    fit: Callable[[Part, Any, int], Encode]
    settings: tuple[Any, ...] = (None,)
    needs: str = "rows"
    ours: bool = False
    draws: int = 1
    trained: bool = False
    version: int = 1
    unit: str = "coordinates"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths at which it is evaluated."""
        return LENGTHS[self.unit]

    def applies(self, part: Part) -> bool:
        """Return whether a part has what the method needs."""
        return {"rows": True, "labels": part.y is not None, "pairs": part.pairs is not None}[self.needs]


def linear(axes: np.ndarray, mean: np.ndarray | float = 0.0) -> Encode:
    """Return the encoder with these axes as rows, whose prefixes are its codes."""
    axes, mean = np.asarray(axes, dtype=np.float32), np.asarray(mean, dtype=np.float32)
    return lambda X, k, side: (X - mean) @ axes[:k].T


def principal_axes(X: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues of the scatter about a point, largest first, and its eigenvectors as rows."""
    centred = X.astype(np.float64) - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
