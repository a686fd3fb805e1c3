"""Scores and costs of stored codes, measured: every prefix length in every precision.

Codes of k coordinates are rounded and read back, as a store would; queries are not rounded. The time of a search is
that of exact search on this machine, over a stated number of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_prefix, is_int
from firstk.data.precision import PRECISIONS, Precision, resolve_precision
from firstk.encoder.curve import supported_lengths
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.evaluation.operating_points import OperatingPoint, PrecisionTable
from firstk.metrics._sweep import largest
from firstk.metrics.curve import METRICS, EvaluationData, check_data, check_metric, prefix_scores, settled_metric
from firstk.metrics.scorers import n_rows
from firstk.metrics.subspace import unit_rows

# Codes that are searched when a search is timed: more than a cache holds, or short codes would look too quick. The time
# of more rows is taken in proportion.
SEARCHED_BYTES, MOST_SEARCHED = 1 << 26, 4_000_000
SEARCHES = 15


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
    """Return the prefix lengths of a table: those at which the code's order is fixed; a `ladder` where all are."""
    return supported_lengths(encoder.config, encoder.d) or ladder(encoder.d)


def precision_table(
    encoder: FittedEncoder,
    data: EvaluationData,
    metric: str = "auto",
    *,
    ks: Sequence[int] | None = None,
    precisions: Iterable[str] = tuple(PRECISIONS),
    latency: bool = False,
    rows: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> PrecisionTable:
    """Score prefix lengths times precisions.

    Parameters
    ----------
    encoder : FittedEncoder
    data : EvaluationData
        Stored rows (documents, right sides, references, else X) are rounded; queries are not.
    metric : str
        A name in `firstk.metrics.curve.METRICS`, or "auto" for the objective's own.
    ks : sequence of int, optional
        Prefix lengths; `default_lengths` if not given.
    precisions : iterable of str
        Names in `firstk.data.precision.PRECISIONS`.
    latency : bool
        Time an exact search, in float32, at each k.
    rows : int, optional
        How many rows the store will hold; the rows at hand if not given. Searches are timed over at most 64 MiB of
        codes, and the time of more is taken in proportion.
    progress : callable (str) -> None
        Told what is evaluated next.

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
    data = METRICS[name].prepare(encoder, data)
    seconds = dict(search_times(encoder, data.stored, lengths, searched)) if latency else {}
    points = []
    for k, precision in product(lengths, chosen):
        progress(f"k = {k} in {precision.name}")
        score = _score(encoder[:k], data, name, precision)
        points.append(OperatingPoint(k, precision.name, precision.bytes_per_vector(k), score, seconds.get(k)))
    return PrecisionTable(
        points=tuple(points),
        metric=name,
        input_score=METRICS[name].raw(encoder, data),
        input_bytes=encoder.p * np.dtype(getattr(data.stored, "dtype", np.float32)).itemsize,
        label=str(encoder.config.get("objective", "")),
        n_searched=searched if latency else None,
        n_evaluated=_asked(data),
    )


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
        queries = documents[:: max(1, n // SEARCHES)][:SEARCHES]
        times = [_timed(documents, query) for query in (queries[0], *queries)]
        yield k, float(np.median(times[1:])) * rows / n  # the first search warms up


def _timed(documents: np.ndarray, query: np.ndarray) -> float:
    start = time.perf_counter()
    largest((documents @ query)[None], min(10, len(documents)))
    return time.perf_counter() - start


def _score(encoder: FittedEncoder, data: EvaluationData, metric: str, precision: Precision) -> float:
    """Score of one prefix, the whole of `encoder`, stored in one precision."""

    def as_stored(Z: np.ndarray) -> np.ndarray:
        return unit_rows(Z).astype(Z.dtype) if encoder.normalized else Z

    fitted = precision.fit(as_stored(encoder.coordinates(data.stored, owner="precision_table")))
    rounded = replace(data, store=lambda Z: fitted.restore(fitted.quantise(as_stored(Z))))
    return float(prefix_scores(encoder, rounded, metric, np.array([encoder.d]))[0])


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
