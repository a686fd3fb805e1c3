"""Scores and costs of stored codes, measured: every prefix length in every precision, and peers in the same bytes.

Codes of k coordinates are rounded and read back, as a store would; queries are not rounded, but in the rows that say
so. All points are scored on the same rows, and on the same draws of them. The time of a search is that of exact search
on this machine, over a stated number of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_prefix, is_int
from firstk._base.concurrency import cores, ordered_map
from firstk.data.precision import PRECISIONS, Precision, resolve_precision
from firstk.encoder.curve import supported_lengths
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.encoder.naming import objective_name
from firstk.encoder.recommendation import EMBEDDED, PRODUCT_QUANTIZER, RAW, OperatingPoint
from firstk.evaluation.baselines import plain_truncation
from firstk.evaluation.embedded_points import BitStrings, bit_strings
from firstk.evaluation.encoded_once import encoded_once
from firstk.evaluation.new_documents import Population, population_of, with_seen
from firstk.evaluation.operating_points import PrecisionTable, in_order
from firstk.evaluation.packed import Packed
from firstk.evaluation.product_quantizer import faiss_is_there, quantizers
from firstk.evaluation.shared_rounding import shared_roundings
from firstk.exceptions import InvalidInputError
from firstk.metrics._sweep import largest
from firstk.metrics.bootstrap import MeanScore, PerRowScores, resampled_scores
from firstk.metrics.curve import (
    METRICS,
    SEARCH,
    EvaluationData,
    check_data,
    check_metric,
    per_row_scores,
    settled_metric,
)
from firstk.metrics.scorers import n_rows
from firstk.metrics.subspace import unit_rows

# Metrics of an encoder's own head or decoder: the raw vectors and baselines have none.
OWN_METRICS = ("head_accuracy", "mixture")
# Metrics that compare queries with stored codes, whose queries may be rounded as well.
SEARCHES = ("1nn_accuracy", "recall@10", "mined_ndcg@10", "spearman", "positive_recall@10", *SEARCH)
# Metrics of the best linear readout of the codes, which any other scale and origin leaves as they are.
READOUTS = ("readback_variance", "r2", "probe_accuracy")
# The baseline of columns as they are.
PLAIN = "plain truncation"
# Draws of the rows: enough for a standard deviation to 5 %.
RESAMPLES = 200
# Codes that are searched when a search is timed: more than a cache holds, or short codes would look too quick. The time
# of more rows is taken in proportion.
SEARCHED_BYTES, MOST_SEARCHED = 1 << 26, 4_000_000
TIMED_SEARCHES = 15
# Jobs that may wait for an earlier one: all of them.
MANY = 1_000_000
# Bytes that points scored at the same time may take together: each has a few copies of the stored codes.
AT_ONCE, COPIES = 1 << 30, 4


def ladder(d: int) -> tuple[int, ...]:
    """Prefix lengths worth a row in a table: 1, 2, 3, 4, 6, 8, 12, ... up to d, and d itself.

    Examples
    --------
    >>> ladder(20)
    (1, 2, 3, 4, 6, 8, 12, 16, 20)
    """
    steps = {m << e for e in range(d.bit_length()) for m in (2, 3)}
    return tuple(sorted({1, d} | {k for k in steps if k < d}))


def default_lengths(encoder: FittedEncoder) -> tuple[int, ...]:
    """Return the prefix lengths of a table: those at which the code's order is fixed; `finer_ladder` where all are."""
    return supported_lengths(encoder.config, encoder.d) or finer_ladder(encoder.d)


def default_bytes(encoder: FittedEncoder, also: float | None = None) -> tuple[int, ...]:
    """Return the numbers of bytes at which embedded bits are scored, those of the raw vectors and baselines as well.

    None where the encoder has no cells for bits. Bits can be cut after any byte: after those of a limit, `also`, too. A
    byte a column is the most: in as many, the columns as they are keep all there is to tell.
    """
    try:
        most = encoder.quantizer(None).bytes
    except InvalidInputError:
        return ()
    ladders = {*byte_ladder(min(most, encoder.p)), *byte_ladder(encoder.p)}
    return tuple(sorted(ladders | (set() if also is None else {int(also)})))


def byte_ladder(most: int) -> tuple[int, ...]:
    """Numbers of bytes to choose among: from 8, four an octave from 16 to 64, else a `ladder`; all of a short code.

    Examples
    --------
    >>> byte_ladder(300)
    (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96, 128, 192, 256, 300)
    """
    steps = {*ladder(most), *(size for size in (20, 28, 40, 56) if size < most)}
    return tuple(sorted(size for size in steps if size >= 8 or most < 64))


def finer_ladder(d: int) -> tuple[int, ...]:
    """Prefix lengths to choose among: four an octave from 16 on, a `ladder` below, from one 64th of the width.

    A step too far costs at most a quarter of the bytes then. Shorter prefixes of a long code keep too little to be
    stored.

    Examples
    --------
    >>> finer_ladder(20), finer_ladder(600)[:12]
    ((1, 2, 3, 4, 6, 8, 12, 16, 20), (12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96))
    """
    between = {m << e for e in range(2, d.bit_length()) for m in (5, 7)}
    return tuple(sorted(k for k in {*ladder(d), *(k for k in between if k < d)} if k >= d // 64))


def precision_table(
    encoder: FittedEncoder,
    data: EvaluationData,
    metric: str = "auto",
    *,
    ks: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    precisions: Iterable[str] = tuple(PRECISIONS),
    others: Mapping[str, FittedEncoder] | None = None,
    product_quantizer: bool = False,
    latency: bool = False,
    rows: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> PrecisionTable:
    """Score prefix lengths times precisions, next to the raw vectors and baselines in the same precisions.

    Of searches, where the encoder has learned from judgements: the table is of queries for new documents, of which it
    has learned from none, if there are 30 of them. Those of all queries, and of the others, are in its fields
    `everything` and `known`.

    Parameters
    ----------
    encoder : FittedEncoder
    data : EvaluationData
        Stored rows (documents, right sides, references, else X) are rounded; queries are not, but for a row of binary
        codes that says so.
    metric : str
        A name in `firstk.metrics.curve.METRICS`, or "auto" for the objective's own.
    ks : sequence of int, optional
        Prefix lengths; if not given, of `default_lengths` those that take fewer bytes than the next: 12 bits take as
        many as 16.
    sizes : sequence of int, optional
        Numbers of bytes of embedded bits, which have no prefix length; more than a code has are left out.
        `default_bytes` if not given.
    precisions : iterable of str
        Names in `firstk.data.precision.PRECISIONS`.
    others : mapping from names to FittedEncoder, optional
        Baselines to tabulate too, at half as many lengths and bytes as the encoder: one that is advised is well ahead.
    product_quantizer : bool
        Score product quantizers of the raw vectors too, where faiss is installed.
    latency : bool
        Time an exact search, in float32, at each k.
    rows : int, optional
        How many rows the store will hold; the rows at hand if not given. Searches are timed over at most 64 MiB of
        codes, and the time of more is taken in proportion.
    progress : callable (str) -> None
        Told what has been evaluated.

    Returns
    -------
    table : PrecisionTable

    Examples
    --------
    >>> from firstk import PrefixEncoder, precision_table
    >>> from firstk.data import load_digits
    >>> from firstk.metrics import EvaluationData
    >>> digits = load_digits()
    >>> encoder = PrefixEncoder(16).fit(digits.X_train).encoder_
    >>> data = EvaluationData(X=digits.X_test, y=digits.y_test, X_ref=digits.X_train, y_ref=digits.y_train)
    >>> table = precision_table(encoder, data, "1nn_accuracy", ks=[8, 16], precisions=["float32", "int8"])
    >>> chosen = table.choose(keep=0.99)
    >>> chosen.k, chosen.precision, chosen.bytes
    (16, 'int8', 16)
    """
    encoder = check_fitted(encoder, "precision_table")
    check_data(data, "precision_table")
    name = settled_metric(encoder, data) if metric == "auto" else check_metric(metric, data)
    lengths = sorted(
        {check_prefix(k, encoder.d, "precision_table") for k in (default_lengths(encoder) if ks is None else ks)}
    )
    chosen = [resolve_precision(each, "precision_table") for each in dict.fromkeys(precisions)]
    searched = _rows_to_search(rows, data)
    people = population_of(with_seen(METRICS[name].prepare(encoder, data), encoder.learned))
    data = people.whole
    seconds = dict(search_times(encoder, data.stored, lengths, searched)) if latency else {}
    scored = list(
        scored_points(
            encoder, data, name, lengths, chosen, sizes=sizes, every=ks is not None,
            others=others, product_quantizer=product_quantizer, seconds=seconds, progress=progress,
        )
    )  # fmt: skip
    facts: dict[str, Any] = {
        "metric": name,
        "input_bytes": encoder.p * np.dtype(getattr(data.stored, "dtype", np.float32)).itemsize,
        "label": objective_name(encoder.config),
        "n_searched": searched if latency else None,
        "unit": "queries" if data.relevance is not None else "pairs" if data.left is not None else "rows",
        "supported": supported_lengths(encoder.config, encoder.d),
    }
    if people.on_new:
        return _of_new(scored, people, facts)
    return tabulated(
        scored,
        input_score=METRICS[name].raw(encoder, data),
        n_evaluated=next((rows.n for _, rows in scored if rows is not None), _asked(data)),
        chance=METRICS[name].chance(data),
        n_known=people.n_known or None,
        **facts,
    )


def _of_new(scored: Sequence[Scored], people: Population, facts: dict[str, Any]) -> PrecisionTable:
    """Return the table of searches for new documents, with those of all and of the others beside it, without draws."""
    seen = np.asarray(people.whole.query_seen)
    parts = {"everything": np.ones(len(seen), dtype=bool), "known": seen, "new": ~seen}

    def of(name: str, **more: Any) -> PrecisionTable:
        own = [_with_score(point, rows.part(parts[name])) for point, rows in scored if isinstance(rows, MeanScore)]
        raw = next(point.score for point, _ in own if point.code == RAW and point.precision == "float32")
        n = next(rows.n for _, rows in own if rows is not None)
        return tabulated(own, input_score=raw, n_evaluated=n, **facts, **more)

    beside = {name: replace(of(name), resampled=None) for name in ("everything", "known")}
    chance = METRICS[facts["metric"]].chance(people.data)
    return of("new", chance=chance, n_known=beside["known"].n_evaluated, **beside)


# A point, and its scores by row; None where the score is a constant.
Scored = tuple[OperatingPoint, PerRowScores | None]
Item = TypeVar("Item")
Result = TypeVar("Result")
# What scores some points, by name.
Job = tuple[str, Callable[[], list[Scored]]]


def scored_points(
    encoder: FittedEncoder,
    data: EvaluationData,
    metric: str,
    ks: Sequence[int],
    precisions: Sequence[Precision],
    *,
    sizes: Sequence[int] | None = None,
    every: bool = False,
    others: Mapping[str, FittedEncoder] | None = None,
    product_quantizer: bool = False,
    seconds: Mapping[int, float] | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Iterator[Scored]:
    """Score the points of a table on all cores, rows apart; arguments as in `precision_table`.

    With `every`, lengths that take as many bytes as the next are scored as well.
    """
    sizes = default_bytes(encoder) if sizes is None else sizes
    grid = _Grid(data, metric, sizes, every)

    def jobs() -> Iterator[Job]:
        beside = replace(grid, sizes=_coarser_bytes(sizes, encoder))
        rivals = {} if metric in OWN_METRICS else dict(others or {})
        if any(precision.name == EMBEDDED for precision in precisions):  # first, as these take longest
            yield from (beside.all_bits(baseline, other) for other, baseline in rivals.items())
        yield from grid.of(encoder, "", ks, precisions, seconds or {})
        if metric in OWN_METRICS:
            return
        yield from beside.raw(encoder, precisions)
        rounded = [precision for precision in precisions if precision.name != EMBEDDED]
        for other, baseline in rivals.items():
            lengths = [k for k in _coarser_lengths(ks, encoder) if k <= baseline.d]
            yield from beside.of(baseline, other, lengths, rounded, {})

    # Jobs differ in size, and hold no more than their scores when they are done.
    for name, found in beside_one_another(lambda job: (job[0], job[1]()), jobs(), encoder, data):
        progress(name)
        yield from found
    if product_quantizer and metric not in OWN_METRICS and faiss_is_there():
        for name, job in grid.product_quantizers(encoder):
            yield from job()
            progress(name)


def beside_one_another(
    work: Callable[[Item], Result], items: Iterable[Item], encoder: FittedEncoder, data: EvaluationData
) -> Iterator[Result]:
    """Yield ``work(item)``, which scores codes of the data, in the order of the items."""
    workers = at_once(encoder, data)
    return ordered_map(work, items, workers, ahead=MANY) if workers > 1 else map(work, items)


def at_once(encoder: FittedEncoder, data: EvaluationData) -> int:
    """Return how many codes of the data are scored at the same time: one on each core, if memory allows for so many.

    Else one after the other, each on all cores: workers that leave cores idle would be slower than that.
    """
    most = AT_ONCE // (COPIES * 4 * encoder.p * max(1, n_rows(data.stored)))
    return cores() if most >= cores() else 1


def _coarser_lengths(ks: Sequence[int], encoder: FittedEncoder) -> list[int]:
    """Return prefix lengths of baselines: half as many as those to choose among, and all that were asked for beside."""
    return [k for k in ks if k in ladder(encoder.d) or k not in finer_ladder(encoder.d)]


def _coarser_bytes(sizes: Sequence[int], encoder: FittedEncoder) -> list[int]:
    """Return bytes of bits of baselines: from 8 on, octaves up to half a byte a column, and all that were asked for.

    Beyond, the columns as they are take four bits each.
    """
    usual, most = default_bytes(encoder), encoder.p // 2
    return [size for size in sizes if size not in usual or size < 8 or (size & (size - 1) == 0 and size <= most)]


def _apart(ks: Sequence[int], precision: Precision) -> list[int]:
    """Return the prefix lengths that take fewer bytes than the next."""
    sizes = [precision.bytes_per_vector(k) for k in ks]
    return [k for k, size, after in zip(ks, sizes, [*sizes[1:], None], strict=True) if size != after]


def tabulated(scored: Sequence[Scored], metric: str, **facts: Any) -> PrecisionTable:
    """Return the table of points that were scored, with the scores of resampled rows; `facts` are its other fields."""
    ordered = sorted(scored, key=lambda pair: in_order(pair[0]))
    draws = [
        np.full(RESAMPLES, point.score) if rows is None else resampled_scores(rows, resamples=RESAMPLES)[:, 0]
        for point, rows in ordered
    ]
    return PrecisionTable(
        points=tuple(point for point, _ in ordered), metric=metric, resampled=Packed.of(draws), **facts
    )


@dataclass(frozen=True)
class _Grid:
    """What scores points on one set of rows, as jobs that do not depend on each other."""

    data: EvaluationData
    metric: str
    sizes: Sequence[int] = ()
    every: bool = False

    def of(
        self,
        encoder: FittedEncoder,
        code: str,
        ks: Sequence[int],
        precisions: Sequence[Precision],
        seconds: Mapping[int, float],
    ) -> Iterator[Job]:
        """Score every prefix length of an encoder in every precision."""
        whole, encoder, lead = encoder, encoded_once(encoder, self.data), f"{code}, " if code else ""
        for precision in precisions:
            if precision.name == EMBEDDED:
                made = _once(partial(self._strings, whole, code))
                for size in self.sizes:
                    yield f"{lead}{size} bytes of embedded bits", partial(self._bits, made, code, [size])
            elif precision.name == "float32":  # nothing is rounded: one sweep scores every k
                yield f"{lead}every k in float32", partial(self._unrounded, encoder, code, ks, seconds)
            else:
                lengths = ks if self.every else _apart(ks, precision)
                work = partial(self._rounded, encoder, code, precision, lengths, seconds)
                yield f"{lead}{precision.name}", work

    def _unrounded(
        self, encoder: FittedEncoder, code: str, ks: Sequence[int], seconds: Mapping[int, float]
    ) -> list[Scored]:
        scores = per_row_scores(encoder, self.data, self.metric, np.array(ks))
        return [
            (OperatingPoint(k, "float32", 4 * k, score, seconds.get(k), code), scores.column(i))
            for i, (k, score) in enumerate(zip(ks, scores.score().tolist(), strict=True))
        ]

    def _rounded(
        self,
        encoder: FittedEncoder,
        code: str,
        precision: Precision,
        ks: Sequence[int],
        seconds: Mapping[int, float],
    ) -> list[Scored]:
        """Score prefixes stored in one precision; bits with queries as they are, then with bits of queries."""
        Z = encoder.coordinates(self.data.stored, owner="precision_table")
        asked = ("float32", "binary") if precision.name == "binary" and self.metric in SEARCHES else ("float32",)
        found: list[Scored] = []
        for queries in asked:
            # By Hamming distance, as an index of bits compares: the cosine of signs. Readouts find means and scales.
            signs = precision.name == "binary" and (queries == "binary" or self.metric in READOUTS)
            for lengths, fitted in _roundings(encoder, precision, Z, ks, signs):
                store = _signs(encoder, fitted) if signs else _restored(encoder, fitted)
                data = replace(self.data, store=store)
                data = replace(data, ask=store) if queries == "binary" else data
                scores = per_row_scores(encoder[: lengths[-1]], data, self.metric, np.array(lengths))
                for i, (k, score) in enumerate(zip(lengths, scores.score().tolist(), strict=True)):
                    size = precision.bytes_per_vector(k)
                    point = OperatingPoint(k, precision.name, size, score, seconds.get(k), code, queries)
                    found.append((point, scores.column(i)))
        return found

    def all_bits(self, encoder: FittedEncoder, code: str) -> Job:
        """Score embedded bits of a baseline, whose cells are fitted first, at every size."""
        return f"{code}, embedded bits", partial(self._bits, partial(self._strings, encoder, code), code, self.sizes)

    def _strings(self, encoder: FittedEncoder, code: str) -> BitStrings | None:
        if code == PLAIN:  # bits of columns as they are keep less than those of PCA
            return None
        # A fitted encoder brings its cells along; a baseline gets cells of the rows that are stored.
        rows = None if not code or self.data.stored is None else self.data.stored
        return bit_strings(encoder, self.data, compares=self.metric in SEARCHES, rows=rows)

    def _bits(self, made: Callable[[], BitStrings | None], code: str, sizes: Sequence[int]) -> list[Scored]:
        """Score embedded bits at some sizes, those that the code has."""
        found = made()
        if found is None:
            return []
        scored = []
        for size in found.sizes(sizes):
            point = OperatingPoint(found.coordinates(size), EMBEDDED, size, 0.0, code=code)
            data = replace(self.data, store=found.store(size), ask=found.ask(size))
            scored.append(self._point(found.asking, data, point))
        return scored

    def _point(self, encoder: FittedEncoder, data: EvaluationData, point: OperatingPoint) -> Scored:
        scores = per_row_scores(encoder, data, self.metric, np.array([encoder.d]))
        return _with_score(point, scores)

    def _alone(self, encoder: FittedEncoder, data: EvaluationData, point: OperatingPoint) -> list[Scored]:
        return [self._point(encoder, data, point)]

    def raw(self, encoder: FittedEncoder, precisions: Sequence[Precision]) -> Iterator[Job]:
        """Score the vectors as they came, and rounded."""
        plain, p = encoded_once(_all_columns(encoder, self.metric), self.data), encoder.p
        yield RAW, partial(self._as_they_came, encoder)
        for precision in precisions:
            if precision.name not in ("float32", EMBEDDED):
                yield f"{RAW} in {precision.name}", partial(self._rounded, plain, RAW, precision, [p], {})

    def _as_they_came(self, encoder: FittedEncoder) -> list[Scored]:
        rows, whole = METRICS[self.metric].raw_rows(encoder, self.data), METRICS[self.metric].raw_constant
        point = OperatingPoint(encoder.p, "float32", 4 * encoder.p, whole or 0.0, code=RAW)
        return [(point, None) if rows is None else _with_score(point, rows)]

    def product_quantizers(self, encoder: FittedEncoder) -> Iterator[Job]:
        """Score product quantizers of the raw vectors, which faiss trains on all cores."""
        plain, p = encoded_once(_all_columns(encoder, self.metric), self.data), encoder.p
        for size, stored in quantizers(plain.coordinates(self.data.stored, owner="precision_table")):
            point = OperatingPoint(p, PRODUCT_QUANTIZER, size, 0.0, code="faiss")
            data = replace(self.data, store=stored)
            yield f"a product quantizer of {size} bytes", partial(self._alone, plain, data, point)


def _once(make: Callable[[], BitStrings | None]) -> Callable[[], BitStrings | None]:
    """Return what makes something the first time it is asked, while other threads that ask wait for it."""
    made, lock = cache(make), Lock()

    def ask() -> BitStrings | None:
        with lock:
            return made()

    return ask


def _all_columns(encoder: FittedEncoder, metric: str) -> FittedEncoder:
    """Return the encoder that keeps all columns as they are."""
    plain = plain_truncation(np.zeros((1, encoder.p)))
    # Variance is that about the mean; a cosine is that of the vectors as they came.
    return replace(plain, mean=encoder.mean, query_mean=encoder.mean) if metric == "explained_variance" else plain


def _as_stored(encoder: FittedEncoder, Z: np.ndarray) -> np.ndarray:
    """Return codes as they are stored before they are rounded."""
    return unit_rows(Z).astype(Z.dtype) if encoder.normalized else Z


def _roundings(
    encoder: FittedEncoder, precision: Precision, Z: np.ndarray, ks: Sequence[int], signs: bool
) -> Iterator[tuple[Sequence[int], Precision]]:
    """Yield prefix lengths that are rounded alike, with the rounding of the longest."""
    if encoder.normalized:  # after each cut, so that no two lengths are rounded alike
        yield from (([k], precision.fit(_as_stored(encoder, Z[:, :k]))) for k in ks)
    elif signs:  # a sign depends on the mean of its own coordinate alone
        yield ks, precision.fit(Z[:, : ks[-1]])
    else:
        yield from shared_roundings(precision, Z, ks)


def _restored(encoder: FittedEncoder, fitted: Precision) -> Callable[[np.ndarray], np.ndarray]:
    """Return what rounds codes and reads them back."""
    return lambda Z: fitted.restore(fitted.quantise(_as_stored(encoder, Z)))


def _signs(encoder: FittedEncoder, fitted: Precision) -> Callable[[np.ndarray], np.ndarray]:
    """Return what turns codes into their signs about the means, 1 or -1."""

    def signs(Z: np.ndarray) -> np.ndarray:
        bits = np.unpackbits(fitted.quantise(_as_stored(encoder, Z)), axis=1, count=Z.shape[1])
        return 2.0 * bits.astype(np.float32) - 1.0

    return signs


def _with_score(point: OperatingPoint, scores: PerRowScores) -> Scored:
    return replace(point, score=float(scores.score()[0])), scores


def search_times(
    encoder: FittedEncoder, stored: ArrayLike | None, ks: Sequence[int], rows: int
) -> Iterator[tuple[int, float]]:
    """Yield each k with the median time, in seconds, of one exact search for the ten nearest among `rows` codes.

    One query at a time, by cosine, in float32: a matrix-vector product and a selection. At most 64 MiB of codes are
    searched, and the time of more is taken in proportion: exact search reads every row once.
    """
    Z = encoder.coordinates(stored, owner="search_times").astype(np.float32)
    for k in ks:
        n = min(rows, MOST_SEARCHED, SEARCHED_BYTES // (4 * k))
        # Which vectors are stored does not matter to the clock: those at hand are repeated until there are enough.
        documents = np.resize(Z[:, :k], (n, k))
        queries = documents[:: max(1, n // TIMED_SEARCHES)][:TIMED_SEARCHES]
        times = [_timed(documents, query) for query in (queries[0], *queries)]
        yield k, float(np.median(times[1:])) * rows / n  # the first search warms up


def _timed(documents: np.ndarray, query: np.ndarray) -> float:
    start = time.perf_counter()
    largest((documents @ query)[None], min(10, len(documents)))
    return time.perf_counter() - start


def _rows_to_search(rows: int | None, data: EvaluationData) -> int:
    if rows is None:
        return n_rows(data.stored)
    if not is_int(rows) or rows < 1:
        raise bad_parameter("rows", "precision_table", "an int of at least 1, or None for the rows at hand", rows)
    return int(rows)


def _asked(data: EvaluationData) -> int:
    """Return how many rows, pairs or queries there are."""
    if data.relevance is not None:
        return len(np.unique(np.asarray(data.relevance)[:, 0]))
    return n_rows(data.left if data.X is None else data.X)
