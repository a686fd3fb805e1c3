"""Text that commands print: counts with their nouns, and of a curve its scores, smallest k and what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firstk.encoder.curve import PrefixCurve
    from firstk.evaluation.operating_points import OperatingPoint, PrecisionTable


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, which takes an s unless it is one.

    Examples
    --------
    >>> number_of(1, "claim"), number_of(0, "claim"), number_of(1200, "row")
    ('1 claim', '0 claims', '1,200 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def were(count: int) -> str:
    """Return the verb that goes with a count."""
    return "was" if count == 1 else "were"


def about_list(curve: PrefixCurve) -> Iterator[str]:
    """Say so where only some lengths are recommended."""
    if curve.supported is not None:
        lengths = ", ".join(map(str, curve.recommendable))
        yield f"Recommended are lengths of the ordering's list alone ({lengths}): the code is made for no others."


def smallest(curve: PrefixCurve) -> dict[str, dict[str, int | None]]:
    """Smallest k for each share, of the full code and of the raw vectors; None where no k reaches it."""
    of_full, of_input = curve.smallest_lengths(), curve.smallest_lengths("input")
    return {f"{share:g}": {"full": of_full[share], "input": of_input[share]} for share in of_full}


def score_table(curve: PrefixCurve, baselines: Sequence[PrefixCurve], ks: Sequence[int], p: int) -> Iterator[str]:
    """Scores at some k, with intervals, next to those of the baselines."""
    names = [baseline.label for baseline in baselines]
    interval = "" if curve.confidence is None else f"  {f'{100 * curve.confidence:g} % interval':<16}"
    yield f"{'k':>5}{curve.label or 'score':>16}{interval}" + "".join(f"{name:>{_wide(name)}}" for name in names)
    for k in ks:
        others = (f"{b.at(k):>{_wide(b.label)}.4f}" if k in b.k else " " * _wide(b.label) for b in baselines)
        yield f"{k:>5}{curve.at(k):>16.4f}{_interval(curve, k)}{''.join(others)}".rstrip()
    if curve.input_score is not None:
        yield f"{'raw':>5}{curve.input_score:>16.4f}  with all {p} numbers"


def _wide(name: str) -> int:
    return max(9, len(name) + 2)


def _interval(curve: PrefixCurve, k: int) -> str:
    if curve.low is None or curve.high is None:
        return ""
    i = curve.k.index(k)
    return f"  {f'{curve.low[i]:.4f} to {curve.high[i]:.4f}':<16}"


def smallest_lines(curve: PrefixCurve) -> Iterator[str]:
    """Smallest k that keeps shares of the score."""
    from firstk.encoder.curve import full_name

    found = smallest(curve)
    for of, name in {"full": full_name(curve), "input": "the raw vectors"}.items():
        if all(ks[of] is None for ks in found.values()):
            continue
        parts = (
            f"{100 * float(s):g} % {'out of reach' if ks[of] is None else f'k = {ks[of]}'}" for s, ks in found.items()
        )
        yield f"Smallest k that keeps a share of the score of {name}: {', '.join(parts)}."
    yield from about_list(curve)


def table_lines(table: PrecisionTable) -> Iterator[str]:
    """Scores and bytes of each k in each precision."""
    yield from str(table).splitlines()
    if table.n_searched is not None:
        times = {point.k: point.seconds for point in table if point.seconds is not None}
        shown = ", ".join(f"k = {k}: {1e3 * seconds:.3g}" for k, seconds in sorted(times.items()))
        yield f"Exact search, float32, one query, {table.n_searched:,} rows, milliseconds on this machine: {shown}."


def chosen_lines(chosen: OperatingPoint, curve: PrefixCurve, input_bytes: int, rows: int | None) -> Iterator[str]:
    """Say what was chosen, what it keeps and what it saves."""
    from firstk.evaluation.report.storage import bytes_text

    shares = [
        f"{100 * chosen.score / whole:.1f} % of {name}"
        for whole, name in ((curve.full, "all coordinates"), (curve.input_score, "the raw vectors"))
        if whole is not None and whole > 0
    ]
    kept = f" ({', '.join(shares)})" if shares else ""
    yield f"Chosen: k = {chosen.k} as {chosen.precision}. {curve.metric} {chosen.score:.4f}{kept}."
    times = input_bytes / chosen.bytes
    less = f"{times:.3g} times less" if times >= 1 else f"{1 / times:.3g} times as many"
    yield f"{chosen.bytes:,} bytes per vector instead of {input_bytes:,}: {less}."
    if rows is not None:
        before, after = rows * input_bytes, rows * chosen.bytes
        saved = bytes_text(max(0, before - after))
        yield f"{rows:,} rows: {bytes_text(after)} instead of {bytes_text(before)}; saved: {saved}."
    if chosen.seconds is not None:
        yield f"Exact search: {1e3 * chosen.seconds:.3g} ms a query."


def as_record(chosen: OperatingPoint | None, input_bytes: int, rows: int | None) -> dict[str, Any] | None:
    """Return what was chosen for JSON."""
    if chosen is None:
        return None
    from dataclasses import asdict

    saved = None if rows is None else rows * (input_bytes - chosen.bytes)
    return asdict(chosen) | {"input_bytes": input_bytes, "rows": rows, "bytes_saved": saved}
