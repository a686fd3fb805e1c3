"""Tables of an evaluation, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from firstk.words.commands import FITTED_BASELINES
from firstk.words.text import score_text

if TYPE_CHECKING:
    from firstk.metrics.same_axes import SameAxes
    from firstk.quality.curve import PrefixCurve
    from firstk.quality.evaluation import Evaluation
    from firstk.quality.point import Point

RAW, PRODUCT_QUANTIZER = "raw vectors", "product quantizer"
# Prefix lengths in the short table.
MOST_LENGTHS = 8


def axes_line(found: SameAxes, other: str) -> str:
    """Return what two encoders share, with the mean correlations behind it and their intervals."""
    levels = "; ".join(
        f"{name} {level.value:.3f} ({level.low:.3f} to {level.high:.3f})" for name, level in found.levels.items()
    )
    return f"Shared with {other}: {found.verdict}. Mean correlation by {levels}."


def lengths_table(evaluation: Evaluation, p: int) -> list[str]:
    """Return scores as float32 at some k, a line for each code: the powers of two, and the full width."""
    lead, others = evaluation.curve(), evaluation.baselines
    shown = [k for k in lead.k if k & (k - 1) == 0 or k == lead.k[-1]][-MOST_LENGTHS:]
    wide = max(len(name) for name in (RAW, lead.label, *(curve.label for curve in others))) + 2
    lines = [f"{lead.metric} at k".ljust(wide + 2) + "".join(f"{k:>8}" for k in shown)]
    for curve in (lead, *others):
        scores = "".join(f"{score_text(curve.at(k)):>8}" if k in curve.k else " " * 8 for k in shown)
        lines.append(f"  {curve.label:<{wide}}{scores}".rstrip())
    if lead.input_score is not None:
        lines.append(f"  {RAW:<{wide}}{score_text(lead.input_score):>8} with all {p} numbers")
    return lines


def score_table(evaluation: Evaluation, ks: Sequence[int], p: int) -> Iterator[str]:
    """Yield scores at some k, with intervals, next to those of the baselines."""
    curve, baselines = evaluation.curve(), evaluation.baselines
    interval = "" if curve.confidence is None else f"  {f'{100 * curve.confidence:g} % interval':<16}"
    wide = max(16, len(curve.label) + 2)
    heads = "".join(f"{one.label:>{_wide(one.label)}}" for one in baselines)
    yield f"{'k':>5}{curve.label or 'score':>{wide}}{interval}{heads}"
    for k in ks:
        others = (
            f"{score_text(b.at(k), 4):>{_wide(b.label)}}" if k in b.k else " " * _wide(b.label) for b in baselines
        )
        yield f"{k:>5}{score_text(curve.at(k), 4):>{wide}}{_interval(curve, k)}{''.join(others)}".rstrip()
    if curve.input_score is not None:
        yield f"{'raw':>5}{curve.input_score:>{wide}.4f}  with all {p} numbers"
    told = [f"{b.label} is {' '.join(FITTED_BASELINES[b.label])}" for b in baselines if b.label in FITTED_BASELINES]
    if told:
        yield f"({'; '.join(told)})"


def _wide(name: str) -> int:
    return max(9, len(name) + 2)


def _interval(curve: PrefixCurve, k: int) -> str:
    if curve.low is None or curve.high is None:
        return ""
    i = curve.k.index(k)
    return f"  {f'{curve.low[i]:.4f} to {curve.high[i]:.4f}':<16}"


def precision_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield scores and bytes of each k in each precision, then those of others, a size on each line."""
    lines = str(evaluation).splitlines()
    yield from lines[: next(i for i, line in enumerate(lines) if line.startswith("* ")) + 1]
    yield from _others(evaluation)
    if evaluation.n_searched is not None:
        times = {point.k: point.seconds for point in evaluation if point.seconds is not None}
        shown = ", ".join(f"k = {k}: {1e3 * seconds:.3g}" for k, seconds in sorted(times.items()))
        yield f"Exact search, float32, one query, {evaluation.n_searched:,} rows, milliseconds here: {shown}."


def _others(evaluation: Evaluation) -> Iterator[str]:
    """Tabulate the raw vectors and baselines: bytes in each row, and the best of each code in as many."""
    points = {(point.bytes, code): point for code in evaluation.codes for point in evaluation.front_of(code)}
    # The raw vectors in every precision, as they are what shares are of.
    points |= {(o.bytes, RAW): o for o in evaluation.points if o.code == RAW and o.queries == "float32"}
    if not points:
        return
    cells = {key: f"{score_text(one.score, 4)} ({_how(one)})" for key, one in points.items()}
    codes = evaluation.codes
    wide = {code: max(len(code), *(len(text) for (_, c), text in cells.items() if c == code)) for code in codes}
    yield ""
    yield "Others, the best score of each in as many bytes"
    yield f"{'bytes':>5}" + "".join(f"  {code:>{wide[code]}}" for code in codes)
    for size in sorted({size for size, _ in points}):
        row = "".join(f"  {cells.get((size, code), ''):>{wide[code]}}" for code in codes)
        yield f"{size:>5}{row}".rstrip()


def _how(point: Point) -> str:
    if point.precision == PRODUCT_QUANTIZER:
        return "PQ"
    return point.stored_as if point.code == RAW or not point.is_prefix else f"{point.k} {point.stored_as}"


def further_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield what other metrics say, at a few prefix lengths."""
    for one in evaluations:
        curve = one.curve()
        shown = [k for k in curve.k if k & (k - 1) == 0 or k == curve.k[-1]][-4:]
        scores = ", ".join(score_text(curve.at(k)) for k in shown)
        raw = "" if one.input_score is None else f" (raw {score_text(one.input_score)})"
        where = " on new documents" if one.over_all is not None else ""
        yield f"By {one.metric} at k = {', '.join(map(str, shown))}{where}: {scores}{raw}."
