"""The torch halves of objectives: what training lowers, for codes of rows or from moments alone.

A half is found by the `form` its objective names. It knows no ordering and no optimizer: it is given weights of
prefixes, and returns a loss.
"""

from __future__ import annotations

from typing import Any

from firstk.solvers.gradient.losses.cross_entropy import CrossEntropy
from firstk.solvers.gradient.losses.least_squares import LeastSquares
from firstk.solvers.gradient.losses.pairs import Positives, ScoredPairs
from firstk.solvers.gradient.losses.ratio_trace import RatioTrace

TRAINING_LOSSES: dict[str, Any] = {
    "least_squares": LeastSquares,
    "ratio_trace": RatioTrace,
    "cross_entropy": CrossEntropy,
    "pairs": Positives,
    "scored_pairs": ScoredPairs,
}
