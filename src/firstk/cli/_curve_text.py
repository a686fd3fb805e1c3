"""What ``firstk curve`` prints: a table of scores, the smallest k, precisions, and what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.encoder.curve import PrefixCurve
    from firstk.evaluation.operating_points import OperatingPoint, PrecisionTable

SHARES = (0.95, 0.99, 0.999)


def recommendable(curve: PrefixCurve, config: Mapping[str, Any]) -> PrefixCurve:
    """Return the curve at the lengths that a code is made for: those of the list where there is one, else all.

    Between the lengths of a list coordinates may mix, and past the last of them nothing is trained; so the longest of
    the list takes the place of the full width.
    """
    if config.get("ordering") != "sparse_prefix":
        return curve
    listed = {int(k) for k in config.get("ordering_settings", {}).get("prefixes", ())}
    places = [i for i, k in enumerate(curve.k) if k in listed]
    if not places:  # a code that was cut before the first of them
        return curve
    parts = {"k": curve.k, "score": curve.score, "low": curve.low, "high": curve.high}
    kept: dict[str, Any] = {name: [part[i] for i in places] for name, part in parts.items() if part is not None}
    return replace(curve, **kept)


def about_list(curve: PrefixCurve, config: Mapping[str, Any]) -> Iterator[str]:
    """Say so where only the lengths of a list are recommended."""
    own = recommendable(curve, config)
    if own is not curve:
        lengths = ", ".join(map(str, own.k))
        yield f"Recommended are lengths of the ordering's list alone ({lengths}): the code is made for no others."


def whole_name(curve: PrefixCurve, d: int) -> str:
    """Name the code whose score is shared out: all of it, or what a list covers."""
    longest = curve.k[-1]
    return f"all {d} coordinates" if longest == d else f"the first {longest} of {d} coordinates"


def smallest(curve: PrefixCurve) -> dict[str, dict[str, int | None]]:
    """Smallest k for each share, of the full width and of the raw vectors; None where no k reaches it."""
    return {f"{share:g}": {of: _smallest(curve, share, of) for of in ("full", "input")} for share in SHARES}


def _smallest(curve: PrefixCurve, share: float, relative_to: str) -> int | None:
    try:
        return curve.smallest(share, relative_to)
    except InvalidInputError:  # out of reach, or a share of nothing
        return None


def score_table(curve: PrefixCurve, baselines: Sequence[PrefixCurve], ks: Sequence[int], p: int) -> Iterator[str]:
    """Scores at some k, with intervals, beside those of the baselines."""
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


def smallest_lines(curve: PrefixCurve, config: Mapping[str, Any]) -> Iterator[str]:
    """Smallest k that keeps shares of the score."""
    own = recommendable(curve, config)
    found = smallest(own)
    whole = {"full": whole_name(own, curve.k[-1]), "input": "the raw vectors"}
    for of, name in whole.items():
        if all(ks[of] is None for ks in found.values()):
            continue
        parts = (
            f"{100 * float(s):g} % {'out of reach' if ks[of] is None else f'k = {ks[of]}'}" for s, ks in found.items()
        )
        yield f"Smallest k that keeps a share of the score of {name}: {', '.join(parts)}."
    yield from about_list(curve, config)


def table_lines(table: PrecisionTable) -> Iterator[str]:
    """Scores and bytes of each k in each precision."""
    yield from str(table).splitlines()
    if table.n_searched is not None:
        times = {offer.k: offer.seconds for offer in table if offer.seconds is not None}
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
