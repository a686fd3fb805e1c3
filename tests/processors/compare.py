"""What must agree between two runs of `outcomes.py`, and how closely."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np

# Neighboring eigenvalues pin their axes where they differ by more than this share of the larger of them ...
APART = 1e-4
# ... and by more than this share of the largest of all: products are good to 1e-16 and 1e-7 of that, and an axis moves
# by the rounding over the gap.
FLOOR = {"float64": 1e-9, "float32": 1e-4}
TOLERANCE = {"float64": 1e-6, "float32": 1e-3}


def differences(one: Mapping[str, np.ndarray], two: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Yield a line for every outcome that is not the same."""
    assert set(one) == set(two)
    for key in one:
        stem, _, what = key.rpartition("|")
        if what.startswith("decision:") and not np.array_equal(one[key], two[key]):
            yield f"{key}: {_shown(one[key], two[key])}"
        if what == "components":
            yield from _components(stem, one, two)


def _shown(a: np.ndarray, b: np.ndarray) -> str:
    if a.shape != b.shape or a.size < 10:
        return f"{a.tolist()} and {b.tolist()}"
    return f"{int((a != b).any(axis=-1).sum())} of {len(a)} rows differ"


def _components(stem: str, one: Mapping[str, np.ndarray], two: Mapping[str, np.ndarray]) -> Iterator[str]:
    A, B, spectrum = one[f"{stem}|components"], two[f"{stem}|components"], one[f"{stem}|spectrum"]
    if A.shape != B.shape:
        return  # the width is a decision, and was compared
    kind = "float32" if "float32" in stem else "float64"
    tolerance = TOLERANCE[kind]
    for first, last in blocks(spectrum, kind):
        a, b = A[first:last], B[first:last]
        # One axis: as it is, sign included. Several that no gap separates: the projector on their span.
        off = np.abs(a - b).max() / np.abs(a).max() if last - first == 1 else _projectors_apart(a, b)
        if off > tolerance:
            yield f"{stem}|components {first} to {last - 1}: off by {off:.2g}"


def blocks(spectrum: np.ndarray, kind: str) -> list[tuple[int, int]]:
    """Cut a descending spectrum where neighbors are apart."""
    apart = np.maximum(APART * np.abs(spectrum[:-1]), FLOOR[kind] * np.abs(spectrum).max())
    gaps = spectrum[:-1] - spectrum[1:] > apart
    edges = [0, *(np.flatnonzero(gaps) + 1).tolist(), len(spectrum)]
    return list(itertools.pairwise(edges))


def _projectors_apart(a: np.ndarray, b: np.ndarray) -> float:
    Q, R = np.linalg.qr(a.T)[0], np.linalg.qr(b.T)[0]
    return float(np.linalg.norm(Q - R @ (R.T @ Q), 2))
