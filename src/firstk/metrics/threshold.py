"""What cosines of short codes say of those of the raw vectors: a cut-off with what it gets wrong, and estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from firstk._base.checks import bad_parameter, check_prefix, is_real
from firstk._base.rows import unit_rows
from firstk.data.precision import PRECISIONS
from firstk.data.task import Rows, Search
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import Point
from firstk.quality.paired import DRAWS, interval
from firstk.words.text import EMBEDDED

# Steps of a cut-off between -1 and 1, and pairs that are compared at a time.
STEPS, _BLOCK = 20_000, 1 << 22
# Rows whose pairs are looked at; results of each that estimates learn from, and groups that these are averaged in.
MOST_ROWS, RESULTS, GROUPS = 1000, 10, 64


@dataclass(frozen=True)
class Threshold:
    """A cut-off on short codes for one on raw vectors.

    Attributes
    ----------
    cosine : float
        Of the raw vectors.
    codes : str
        What is compared, in words.
    cut : float
        Their cosine from which on as many pairs match.
    false_matches : float
        Share of the pairs at or above `cut` whose raw cosine is below `cosine`.
    misses : float
        Share of the pairs at or above `cosine` whose codes are below `cut`.
    false_ends, miss_ends : (float, float)
        Ends of their 95 % intervals, over rows.
    matches : int
        Pairs at or above `cosine` that the rates are of.
    """

    cosine: float
    codes: str
    cut: float
    false_matches: float
    misses: float
    false_ends: tuple[float, float]
    miss_ends: tuple[float, float]
    matches: int

    def __str__(self) -> str:
        from firstk.words.choice import threshold_line

        return threshold_line(self)


def matched_threshold(encoder: Any, data: Rows | Search, cosine: float, k: int | Point) -> Threshold:
    """Return the cut-off on codes that matches a cosine of the raw vectors.

    On every other row (query) the cut-off is set so that as many pairs reach it as reach `cosine`; the rates are those
    of the remaining ones.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
    data : Rows or Search
        Held-out rows, among each other or among a reference; or queries among documents.
    cosine : float in [-1, 1]
        The cut-off in use on raw vectors.
    k : int or Point
        So many coordinates in float32; or what is stored, as `Choice.point` has it, asked by queries in its own way.

    Examples
    --------
    >>> from firstk import PrefixEncoder, Rows
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> encoder = PrefixEncoder(32).fit(digits.X_train)
    >>> found = matched_threshold(encoder, Rows(digits.X_test, reference=Rows(digits.X_train)), 0.95, k=16)
    >>> 0.5 < found.cut < 1, found.misses < 0.6
    (True, True)
    """
    if not is_real(cosine) or not -1 <= cosine <= 1:
        raise bad_parameter("cosine", "matched_threshold", "a number in [-1, 1]", cosine)
    codes, picked, cosines = _compared(encoder, data, k, "matched_threshold")

    def pairs(rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield whether pairs match by their raw cosines, and the steps of their codes' cosines."""
        for raw, short in cosines(rows):
            yield raw >= cosine, np.clip((short + 1) / 2 * STEPS, 0, STEPS).astype(np.int64)

    counts, matches = np.zeros(STEPS + 1, dtype=np.int64), 0
    for matched, step in pairs(picked[::2]):
        counts += np.bincount(step.ravel(), minlength=STEPS + 1)
        matches += int(matched.sum())
    reached = counts[::-1].cumsum()[::-1]
    level = np.flatnonzero(np.abs(reached - matches) == np.abs(reached - matches).min())
    cut = int(level[len(level) // 2])  # in the middle of those that are reached by equally many pairs
    table = np.concatenate(
        [
            np.stack([(m & (s >= cut)).sum(axis=1), (s >= cut).sum(axis=1), m.sum(axis=1)], axis=1)
            for m, s in pairs(picked[1::2])
        ]
        or [np.zeros((0, 3), dtype=np.int64)]
    )  # (rows, both | codes | raw vectors)
    if not matches or not table[:, 2].sum() or not table[:, 1].sum():
        raise InvalidInputError(
            f"No {len(picked):,} rows have pairs with a raw cosine of {cosine:g} on both halves: there is nothing to "
            "match. Ask for a lower cosine, or give more rows."
        )
    drawn = np.random.default_rng(0).multinomial(len(table), np.full(len(table), 1 / len(table)), size=DRAWS) @ table

    def rate(of: int, sums: np.ndarray) -> np.ndarray:
        return 1 - sums[..., 0] / np.maximum(sums[..., of], 1)

    ends = [tuple(float(end) for end in interval(rate(of, drawn))) for of in (1, 2)]
    whole = table.sum(axis=0)
    return Threshold(
        float(cosine), codes, 2 * cut / STEPS - 1, float(rate(1, whole)), float(rate(2, whole)), ends[0], ends[1],  # type: ignore[arg-type]
        int(whole[2]),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Calibration:
    """Estimates of raw cosines from scores of results; `calibration` and an index's `calibrate` learn them.

    Results have high scores because they were chosen by them: raw cosines of the same pairs are lower.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Ascending.
    raw : ndarray of shape (m,)
        Mean raw cosines of results with these scores; never descending.
    """

    scores: np.ndarray
    raw: np.ndarray

    @classmethod
    def fit(cls, scores: np.ndarray, raw: np.ndarray) -> Calibration:
        """Average results in groups of about equal scores, made ascending (isotonic regression)."""
        order = np.argsort(scores, kind="stable")
        groups = [np.array_split(part[order], min(GROUPS, len(order))) for part in (scores, raw)]
        means = [np.array([group.mean(dtype=np.float64) for group in side]) for side in groups]
        # Groups of equal scores are one.
        at, group, count = np.unique(means[0].round(6), return_inverse=True, return_counts=True)
        return cls(at, isotonic_regression(np.bincount(group, means[1]) / count, weights=count).x)

    def __call__(self, scores: ArrayLike) -> np.ndarray:
        """Return the mean raw cosine of results with such scores; beyond those that were seen, the nearest."""
        return np.interp(np.asarray(scores, dtype=np.float64), self.scores, self.raw)


def calibration(encoder: Any, data: Rows | Search, k: int | Point) -> Calibration:
    """Return what estimates the raw cosine of a search result from the cosine of its codes.

    It learns from the results of held-out rows (queries).

    Parameters
    ----------
    encoder, data, k
        As in `matched_threshold`.

    Examples
    --------
    >>> from firstk import PrefixEncoder, Rows
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> encoder = PrefixEncoder(32).fit(digits.X_train)
    >>> raw_cosine = calibration(encoder, Rows(digits.X_test, reference=Rows(digits.X_train)), k=8)
    >>> raw_cosine([0.95, 0.99]).round(2)
    array([0.94, 0.96])
    """
    _, picked, cosines = _compared(encoder, data, k, "calibration")
    found = []
    for raw, short in cosines(picked):
        best = np.argpartition(-short, min(RESULTS, short.shape[1]) - 1, axis=1)[:, :RESULTS]
        found.append(np.stack([np.take_along_axis(side, best, axis=1).ravel() for side in (short, raw)]))
    results = np.concatenate(found, axis=1)
    results = results[:, np.isfinite(results[0])]  # a row is no result of itself
    if not results.size:
        raise InvalidInputError("calibration compares rows with others, and there are none. Give more rows.")
    return Calibration.fit(*results)


def _compared(
    encoder: Any, data: Rows | Search, k: int | Point, owner: str
) -> tuple[str, np.ndarray, Callable[[np.ndarray], Iterator[tuple[np.ndarray, np.ndarray]]]]:
    """Return what is compared, rows to ask with, and what yields the cosines of pairs of some: raw, and of codes."""
    fitted = check_fitted(encoder, owner)
    point = k if isinstance(k, Point) else Point(length := check_prefix(k, fitted.d, owner), "float32", 4 * length, 0.0)
    if not isinstance(data, (Rows, Search)):
        raise bad_parameter("data", owner, "Rows or a Search, whose rows can be compared", type(data).__name__)
    if isinstance(data, Rows) and data.weight is not None:
        raise InvalidInputError(f"{owner} counts pairs of rows, and takes no weights. Give Rows without 'weight'.")
    search = isinstance(data, Search)
    asked: Any = data.queries if isinstance(data, Search) else data.X
    raw_asked, raw_stored = (unit_rows(fitted.vectors(X, owner=owner)) for X in (asked, data.stored))
    code_asked, code_stored = map(unit_rows, _codes(fitted, point, asked, data.stored, search, owner))
    own_rows = np.asarray(data.query_rows) if isinstance(data, Search) and data.query_rows is not None else None
    alone = not search and data.reference is None  # type: ignore[union-attr]
    picked = np.unique(np.linspace(0, len(raw_asked) - 1, min(len(raw_asked), MOST_ROWS)).round().astype(int))

    def cosines(rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        size = max(1, _BLOCK // len(raw_stored))
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            both = raw_asked[part] @ raw_stored.T, code_asked[part] @ code_stored.T
            own = part if alone else np.full(len(part), -1) if own_rows is None else own_rows[part]
            for side in both:  # a row is not paired with itself
                side[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
            yield both

    return f"{point} in {point.bytes:,} bytes" if not point.is_prefix else str(point), picked, cosines


def _codes(
    fitted: FittedEncoder, point: Point, asked: Any, stored: Any, search: bool, owner: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of queries and of rows as a search of what `point` stores compares them."""
    if point.code or (point.precision not in PRECISIONS and point.oversampling is None):
        raise InvalidInputError(
            f"{owner} knows no cosines of {point}: it takes codes of the encoder in {', '.join(PRECISIONS)}. Give k."
        )
    side = "query" if search else "document"
    if point.precision == EMBEDDED:
        quantizer = fitted.quantizer(point.bytes)
        queries = quantizer.coded_only(quantizer.query_encoder.coordinates(asked, side=side, owner=owner))
        return queries, quantizer.decode(quantizer.encode(stored))
    queries = fitted.coordinates(asked, point.k, side=side, owner=owner)
    rows = fitted.coordinates(stored, point.k, owner=owner)
    if point.precision == "float32" or point.oversampling is not None:  # what rescores a shortlist is in float32
        return queries, rows
    if fitted.normalized:
        queries, rows = unit_rows(queries), unit_rows(rows)
    precision = PRECISIONS[point.precision].fit(rows)

    def rounded(codes: np.ndarray) -> np.ndarray:
        if point.queries != "binary":
            return precision.restore(precision.quantise(codes))
        # Hamming distances rank as the cosines of signs do; stores take those of the numbers as they are.
        bits = codes > 0 if point.form else np.unpackbits(precision.quantise(codes), axis=1, count=point.k)
        return 2 * bits.astype(np.float32) - 1

    return queries if point.queries == "float32" else rounded(queries), rounded(rows)
