"""What a curve says at one k, as text: the score, and the share of the whole that is kept.

Tables, chart and script show the same text, because it is made here once.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from firstk.quality.curve import PrefixCurve

NOTHING = "–"


@dataclass(frozen=True)
class Reading:
    """A curve at the longest evaluated prefix that fits into k coordinates.

    Attributes
    ----------
    k : int
        That prefix: k itself, unless the curve was not evaluated there or ends before.
    score : float
    cells : tuple of str
        The score, its share of the full-width score, and its share of the score of the raw vectors.
    interval : str
        Ends of the score's interval; a dash where the curve has none.
    """

    k: int
    score: float
    cells: tuple[str, str, str]
    interval: str = NOTHING


def read(curve: PrefixCurve, k: int) -> Reading | None:
    """Read a curve at `k`; None if every evaluated prefix is longer."""
    position = bisect_right(curve.k, k) - 1
    return None if position < 0 else _reading(curve, position, size_of(curve))


def read_all(curve: PrefixCurve) -> list[Reading]:
    """Read a curve at each of its own points."""
    size = size_of(curve)
    return [_reading(curve, position, size) for position in range(len(curve))]


def size_of(curve: PrefixCurve) -> float:
    """Return the largest magnitude on the curve, which decides how all its scores are written."""
    return max(map(abs, curve.score))


def _reading(curve: PrefixCurve, position: int, size: float) -> Reading:
    score = curve.score[position]
    of_full, of_raw = (share_text(share_kept(curve, score, whole)) for whole in (curve.full, curve.input_score))
    interval = NOTHING
    if curve.low is not None and curve.high is not None:
        interval = f"{score_text(curve.low[position], size)} to {score_text(curve.high[position], size)}"
    return Reading(curve.k[position], score, (score_text(score, size), of_full, of_raw), interval)


def share_kept(curve: PrefixCurve, score: float, whole: float | None) -> float | None:
    """Share of `whole` that `score` keeps, as in `PrefixCurve.smallest`; None where a share means nothing."""
    if whole is None or whole <= 0:
        return None
    if curve.higher_is_better:
        return score / whole
    return whole / score if score > 0 else None


def score_text(score: float, size: float | None = None) -> str:
    """Write four decimals, or four digits where decimals would hide small scores or flood large ones.

    `size` is that of the numbers around it, so that a column reads alike; that of the score if not given.
    """
    size = abs(score) if size is None else size
    if score == 0 or 1e-2 <= size < 1e4:
        return f"{score:.4f}"
    return f"{score:.4g}"


def share_text(share: float | None) -> str:
    """Percent with one decimal."""
    if share is None:
        return NOTHING
    return f"{100 * share:.1f} %" if abs(share) < 100 else f"{100 * share:.3g} %"


def value_text(value: str | int | float) -> str:
    """Write a fact as text: thousands of an int are set apart."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
