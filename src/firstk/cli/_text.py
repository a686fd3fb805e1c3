"""Text that commands print: counts with their nouns, scores of a curve, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from firstk.encoder.curve import PrefixCurve
    from firstk.encoder.recommendation import OperatingPoint, Recommendation
    from firstk.evaluation.inputs import VectorSource
    from firstk.evaluation.operating_points import PrecisionTable


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


def smallest(curve: PrefixCurve) -> dict[str, dict[str, int | None]]:
    """Smallest k as float32 for each share, of the best prefix and of the raw vectors; None where no k reaches it."""
    of_best, of_input = curve.smallest_lengths("best"), curve.smallest_lengths("input")
    return {f"{share:g}": {"best": of_best[share], "input": of_input[share]} for share in of_best}


def score_text(score: float, decimals: int) -> str:
    """Return a score with so many decimals; a small one with two digits, which decimals would hide.

    Examples
    --------
    >>> score_text(0.12345, 3), score_text(0.00081, 3), score_text(0.0, 3)
    ('0.123', '0.00081', '0.000')
    """
    return f"{score:.{decimals}f}" if score == 0 or abs(score) >= 10 ** (1 - decimals) else f"{score:#.2g}"


def baseline_glosses(baselines: Sequence[PrefixCurve]) -> list[str]:
    """Say by which options baselines are fitted, in one line."""
    told = [f"{b.label} is {' '.join(FITTED_BASELINES[b.label])}" for b in baselines if b.label in FITTED_BASELINES]
    return [f"({'; '.join(told)})"] if told else []


def score_table(curve: PrefixCurve, baselines: Sequence[PrefixCurve], ks: Sequence[int], p: int) -> Iterator[str]:
    """Scores at some k, with intervals, next to those of the baselines."""
    names = [baseline.label for baseline in baselines]
    interval = "" if curve.confidence is None else f"  {f'{100 * curve.confidence:g} % interval':<16}"
    wide = max(16, len(curve.label) + 2)
    yield f"{'k':>5}{curve.label or 'score':>{wide}}{interval}" + "".join(f"{name:>{_wide(name)}}" for name in names)
    for k in ks:
        others = (
            f"{score_text(b.at(k), 4):>{_wide(b.label)}}" if k in b.k else " " * _wide(b.label) for b in baselines
        )
        yield f"{k:>5}{score_text(curve.at(k), 4):>{wide}}{_interval(curve, k)}{''.join(others)}".rstrip()
    if curve.input_score is not None:
        yield f"{'raw':>5}{curve.input_score:>{wide}.4f}  with all {p} numbers"
    yield from baseline_glosses(baselines)


def _wide(name: str) -> int:
    return max(9, len(name) + 2)


def _interval(curve: PrefixCurve, k: int) -> str:
    if curve.low is None or curve.high is None:
        return ""
    i = curve.k.index(k)
    return f"  {f'{curve.low[i]:.4f} to {curve.high[i]:.4f}':<16}"


def table_lines(table: PrecisionTable) -> Iterator[str]:
    """Scores and bytes of each k in each precision, then those of others, a size on each line."""
    lines = str(table).splitlines()
    yield from lines[: next(i for i, line in enumerate(lines) if line.startswith("* ")) + 1]
    yield from _others(table)
    if table.n_searched is not None:
        times = {point.k: point.seconds for point in table if point.seconds is not None}
        shown = ", ".join(f"k = {k}: {1e3 * seconds:.3g}" for k, seconds in sorted(times.items()))
        yield f"Exact search, float32, one query, {table.n_searched:,} rows, milliseconds on this machine: {shown}."


def _others(table: PrecisionTable) -> Iterator[str]:
    """Tabulate the raw vectors and baselines: bytes in each row, and the best of each code in as many."""
    from firstk.encoder.recommendation import RAW

    points = {(point.bytes, code): point for code in table.codes for point in table.front_of(code)}
    # The raw vectors in every precision, as they are what shares are of.
    points |= {(point.bytes, RAW): point for point in table.points if point.code == RAW and point.queries == "float32"}
    if not points:
        return
    cells = {key: f"{score_text(one.score, 4)} ({_how(one)})" for key, one in points.items()}
    wide = {code: max(len(code), *(len(text) for (_, c), text in cells.items() if c == code)) for code in table.codes}
    yield ""
    yield "Others, the best score of each in as many bytes"
    yield f"{'bytes':>5}" + "".join(f"  {code:>{wide[code]}}" for code in table.codes)
    for size in sorted({size for size, _ in points}):
        row = "".join(f"  {cells.get((size, code), ''):>{wide[code]}}" for code in table.codes)
        yield f"{size:>5}{row}".rstrip()


def _how(point: OperatingPoint) -> str:
    from firstk.encoder.recommendation import PRODUCT_QUANTIZER, RAW

    if point.precision == PRODUCT_QUANTIZER:
        return "PQ"
    return point.stored_as if point.code == RAW or not point.is_prefix else f"{point.k} {point.stored_as}"


def advice_lines(
    advice: Recommendation | None,
    model: str | Path,
    store: str | Path | None,
    rows: int | None = None,
    options: Mapping[str, str | None] | None = None,
    judged: Mapping[str, str | None] | None = None,
) -> list[str]:
    """Say what to store and, where a file of vectors is known, the command that does it.

    Parameters
    ----------
    advice : Recommendation or None
    model : path
        The model that was evaluated.
    store : path or None
        The file whose vectors are to be stored.
    rows : int, optional
        How many vectors that will be.
    options, judged : mapping
        Options by which the vectors of `store` are found, and by which a fit is evaluated on judgements.
    """
    if advice is None:
        return []
    lines = advice.lines(rows)
    if store is None:
        return lines
    for point, remark in advice.to_store():
        commands = commands_for(point, model, store, options or {}, judged or {}, advice.bytes_per_vector)
        lines += [f"  {command}{f'  # {remark}' if remark else ''}" for command in commands]
    return lines


def commands_for(
    point: OperatingPoint,
    model: str | Path,
    store: str | Path,
    options: Mapping[str, str | None],
    judged: Mapping[str, str | None] | None = None,
    most_bytes: int | None = None,
) -> Iterator[str]:
    """Return the commands that store vectors as an operating point says; `point.code` is "" for the model's own.

    A baseline is fitted first, for as many bytes as were asked for (`most_bytes`). The queries of `judged` come last:
    they are encoded as they were when the point was evaluated.
    """
    from firstk.encoder.recommendation import PRODUCT_QUANTIZER, RAW

    if point.precision == PRODUCT_QUANTIZER:
        # L2norm, because cosines are what was evaluated.
        yield f'In Python: faiss.index_factory({point.k}, "L2norm,PQ{point.bytes}", faiss.METRIC_INNER_PRODUCT)'
        return
    source = [str(store), *words_of(options)]
    by = str(model)
    if point.code in (RAW, "plain truncation"):
        by = "raw"
    elif point.code in FITTED_BASELINES:
        by = FITTED_AS[point.code]
        # Baselines learn from no pairs; judgements evaluate them all the same.
        evaluated = words_of(judged) if judged and judged.get("--relevance") else []
        limit = [] if most_bytes is None else ["--bytes-per-vector", str(most_bytes)]
        yield shlex.join(["firstk", "fit", *source, *FITTED_BASELINES[point.code], *evaluated, *limit, "-o", by])
    elif point.code:
        yield f"No command makes {point.code}: choose a code that is made for these vectors instead."
        return
    length = [] if point.code == RAW else ["-k", str(point.k)]
    how = [*length, "--precision", point.precision] if point.is_prefix else ["--bytes-per-vector", str(point.bytes)]
    out = f"short{_ending(store, point.precision)}"
    yield shlex.join(["firstk", "transform", by, *source, *how, "-o", out])
    queries, rounded = (judged or {}).get("--queries"), not point.is_prefix or point.queries == "binary"
    if queries is None or (point.code == RAW and not rounded):  # raw queries stay as they are
        return
    alike = ["--like", out] if rounded else ["-k", str(point.k)]
    target = "short_queries.npz" if not str(queries).endswith("short_queries.npz") else "shorter_queries.npz"
    yield shlex.join(["firstk", "transform", by, queries, *words_of(options), "--side", "query", *alike, "-o", target])


def vector_options(place: VectorSource) -> dict[str, str | None]:
    """Return the options by which vectors are found in their file."""
    return {"--vectors": place.vectors, "--nan": None if place.nan == "refuse" else place.nan}


def recorded_options(place: VectorSource, *, shared: bool) -> dict[str, str]:
    """Return the options for a record, the file of vectors among them.

    In a `shared` record, as that of a model is, paths are as they were given if they are relative: commands on a page
    then work where the fit did. Absolute ones and addresses lose their folders, which are those of one machine.
    """
    given = {VECTORS: str(place.source), **vector_options(place), **judged_options(place)}
    named = {name: _recorded_file(value, shared) if name in FILES and value else value for name, value in given.items()}
    return {name: value for name, value in named.items() if value is not None}


def _recorded_file(spec: str, shared: bool) -> str | None:
    """Return FILE or FILE:COLUMNS as a record names it, without credentials; None for what has no name of its own."""
    from pathlib import PurePath

    from firstk._base.remote import is_remote, shown_place

    if not shared or not (is_remote(spec) or PurePath(spec).is_absolute()):
        return shown_place(spec)
    if any(sign in spec for sign in "*["):  # without its folder, a pattern would match other files
        return None
    return PurePath(spec.partition("?")[0]).name or None


# The argument that names the file of vectors.
VECTORS = "VECTORS"
# Options that name queries and judgements; what of all this is files.
JUDGED_BY = ("--queries", "--pairs", "--relevance", "--id", "--filter", "--query-weight", "--by-row")
FILES = (VECTORS, "--queries", "--pairs", "--relevance")


def judged_options(place: VectorSource) -> dict[str, str | None]:
    """Return the options that name queries and judgements; none where there are none. A flag has the value ""."""
    if not place.judged:
        return {}
    queries = None if place.queries is None else str(place.queries)
    by_row = "" if place.by_row else None
    given = (queries, place.pairs, place.relevance, place.ids, place.filter, place.query_weight, by_row)
    return dict(zip(JUDGED_BY, given, strict=True))


def words_of(options: Mapping[str, str | None]) -> list[str]:
    """Return options as the words of a command, without those that are None; a flag is its name alone."""
    return [
        word
        for name, value in options.items()
        if value is not None
        for word in ((name, str(value)) if value else (name,))
    ]


# Options that fit a baseline.
FITTED_BASELINES = {
    "PCA": ("--objective", "reconstruction"),
    "uncentred SVD": ("--objective", "similarity", "--preserve", "dot_products"),
}
# The folder that each is fitted into.
FITTED_AS = {"PCA": "pca", "uncentred SVD": "svd"}
# Endings of formats that have no place for a scale; the last is the one to take instead.
_WITHOUT_SCALE, _WITH_SCALE = (".npy", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".gz", ""), ".npz"


def _ending(store: str | Path, precision: str) -> str:
    """Return the ending of a file of codes: that of the vectors, where such a file can hold the precision."""
    from pathlib import Path

    ending = Path(str(store)).suffix
    plain = precision in ("float32", "float16")
    return ending if ending and (plain or ending not in _WITHOUT_SCALE) else _WITH_SCALE


def as_record(advice: Recommendation | None, input_bytes: int, rows: int | None) -> dict[str, Any] | None:
    """Return the point that was chosen for JSON."""
    if advice is None or advice.chosen is None:
        return None
    from dataclasses import asdict

    chosen = advice.chosen.point
    saved = None if rows is None else rows * (input_bytes - chosen.bytes)
    return asdict(chosen) | {"input_bytes": input_bytes, "rows": rows, "bytes_saved": saved}
