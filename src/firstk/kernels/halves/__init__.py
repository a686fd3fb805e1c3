"""The torch halves of objectives: what training lowers, for codes of rows or from moments alone.

A half is found by the `form` its objective names. It knows no ordering and no optimiser: it is given weights of
prefixes, and returns a loss.
"""

from __future__ import annotations

from typing import Any

from firstk.kernels.halves.cross_entropy import CrossEntropy
from firstk.kernels.halves.least_squares import LeastSquares
from firstk.kernels.halves.pairs import Positives, ScoredPairs
from firstk.kernels.halves.ratio_trace import RatioTrace

HALVES: dict[str, Any] = {
    "least_squares": LeastSquares,
    "ratio_trace": RatioTrace,
    "cross_entropy": CrossEntropy,
    "pairs": Positives,
    "scored_pairs": ScoredPairs,
}
