r"""Scores of codes as vector stores hold and compare them: a few documented formulas, which serve every product.

- float16, and integers with one scale for all coordinates ("int8"): rounded to the nearest, on both sides.
- "scalar": 256 equal steps between the least and the largest number; queries stay floats.
- "binary": signs, compared by Hamming distance, which ranks as the cosine of signs does.
- "rotated bits" (Gao and Long, RaBitQ, SIGMOD 2024): with c the mean, R a random rotation and u = R(o - c) a row o is
  stored as the signs s of u and two numbers; rows are ranked by :math:`2 \langle q - c, r \rangle - |o - c|^2`, where
  :math:`r = R^\top s |u|^2 / |u|_1` estimates :math:`o - c` without bias.
- Rescoring: the cosines of float32 codes rank the first of a shortlist again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from firstk._base.rows import unit_rows
from firstk.data.precision import PRECISIONS
from firstk.data.stores import Form
from firstk.data.task import Data, Rows, Search, n_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics._sweep import nearest
from firstk.metrics.bootstrap import MeanScore
from firstk.metrics.curve import AS_IT_IS, Storage, full_width_neighbors
from firstk.metrics.search import MEASURES, judged_of
from firstk.quality.paired import TOLERANCE

# Results that users ask for, and lengths of shortlists as multiples of it.
LIMIT, FACTORS = 10, (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50)
# Metrics of one ranking a query, which rescoring changes.
RANKED = ("recall@10", "1nn_accuracy", "ndcg@10", "mrr@10")
# Shortlisted codes that are compared at a time.
_BLOCK = 1 << 24


def columns_compared(precision: str, k: int) -> int:
    """Return how many columns the arrays of `as_compared` have for codes of k coordinates."""
    return k + 2 if precision == "rotated bits" else k


def as_compared(precision: str, Z: np.ndarray, *, unit: bool = False, seed: int = 0) -> Storage:
    """Return what a store does to codes and queries in a precision of `firstk.data.stores.FORMULAS`.

    Parameters
    ----------
    precision : str
    Z : ndarray of shape (n, k)
        Codes to fit scales and centers on.
    unit : bool
        Codes are brought to unit norm before they are stored.
    seed : int
        Of the rotation.
    """
    if precision == "float32":
        return AS_IT_IS
    if precision == "binary":
        return Storage(_signs, _signs)
    if precision in ("float16", "int8"):
        stored = unit_rows if unit else np.asarray
        fitted = PRECISIONS[precision].fit(stored(Z))

        def rounded(codes: np.ndarray) -> np.ndarray:
            return fitted.restore(fitted.quantise(stored(codes)))

        return Storage(rounded, rounded if precision == "int8" else AS_IT_IS.ask)
    whole = unit_rows(Z).astype(np.float32)
    if precision == "scalar":
        least, step = float(whole.min()), float(np.ptp(whole)) / 255 or 1.0

        def steps(codes: np.ndarray) -> np.ndarray:
            places = np.clip(np.rint((unit_rows(codes) - least) / step), 0, 255)
            return (places * step + least).astype(np.float32)

        return Storage(steps)
    center = whole.mean(axis=0)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(Z.shape[1],) * 2))[0].astype(np.float32)

    def asked(queries: np.ndarray) -> np.ndarray:
        ends = np.tile(np.array([1, 0], dtype=np.float32), (len(queries), 1))
        return np.column_stack([unit_rows(queries), ends]).astype(np.float32)

    return Storage(lambda codes: _rotated_bits(unit_rows(codes).astype(np.float32), center, rotation), asked)


def _signs(codes: np.ndarray) -> np.ndarray:
    return np.where(codes > 0, np.float32(1), np.float32(-1))


def _rotated_bits(codes: np.ndarray, center: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Return rows of one norm whose products with queries, 1 and 0 rank as the estimated distances do."""
    apart = codes - center
    rotated = apart @ rotation
    squares = np.einsum("ij,ij->i", rotated, rotated)
    scale = squares / np.maximum(np.abs(rotated).sum(axis=1), 1e-30)
    estimate = (_signs(rotated) * scale[:, None]) @ rotation.T
    rows = np.column_stack([2 * estimate, -2 * estimate @ center - squares])
    norms = np.einsum("ij,ij->i", rows, rows)
    # The last column makes all rows as long. After a rotation |u|_1 is about 0.8 sqrt(k) |u|, and rows are
    # about 2.5 |u| long: those beyond 8 are next to impossible.
    longest = np.float32(64)
    return np.column_stack([rows, np.sqrt(np.maximum(longest - norms, 0))]).astype(np.float32)


def can_rescore(data: Data, metric: str) -> TypeGuard[Rows | Search]:
    """Tell whether a score of a rescored ranking can be computed: one ranking for each query, without filters."""
    return metric in RANKED and not (isinstance(data, Search) and data.document_field is not None)


def rescored(encoder: Any, data: Rows | Search, metric: str, form: Form, k: int) -> tuple[int, MeanScore]:
    """Return the oversampling that a form needs, and the scores by row with it.

    The least factor is taken at which the score is within half the tolerance of that with the longest shortlist.

    Parameters
    ----------
    encoder : FittedEncoder
        Of the codes that rescore, cut to k coordinates.
    data : Rows or Search
    metric : str
        One of `RANKED`.
    form : Form
    k : int
    """
    documents = encoder.coordinates(data.stored, owner="evaluate", exact=True)
    side = "query" if isinstance(data, Search) else "document"
    asked = data.queries if isinstance(data, Search) else data.X
    queries = encoder.coordinates(asked, side=side, owner="evaluate", exact=True)
    s, n = form.searched(k), n_rows(data.stored)
    storage = as_compared(form.precision, documents[:, :s], unit=encoder.normalized)
    own = None
    if isinstance(data, Search):
        own = None if data.query_rows is None else np.asarray(data.query_rows)
    elif data.reference is None:
        own = np.arange(n)
    longest = min(form.widest * LIMIT, n - (own is not None))
    stored, asking = storage.store(documents[:, :s]), storage.ask(queries[:, :s])
    found = np.empty((len(queries), longest), dtype=np.int64)
    ks = np.array([columns_compared(form.precision, s)])
    for rows, _, block in nearest(stored, asking, ks, longest, exclude=own):
        found[rows] = block[:, 0]
    fine, unit = np.empty(found.shape, dtype=np.float32), unit_rows(documents)
    step = max(1, _BLOCK // (longest * k))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        fine[part] = np.einsum("qld,qd->ql", unit[found[part]], unit_rows(queries[part]))
    score = _of_rows(encoder, data, metric)

    def at(factor: int) -> MeanScore:
        width = min(factor * LIMIT, longest)
        order = np.argsort(-fine[:, :width], axis=1, kind="stable")[:, :LIMIT]
        return score(np.take_along_axis(found[:, :width], order, axis=1))

    least = float((best := at(form.widest)).score()[0]) - TOLERANCE / 2
    for factor in (one for one in FACTORS if one < form.widest):
        if float((scores := at(factor)).score()[0]) >= least:
            return factor, scores
    return form.widest, best


def _of_rows(encoder: Any, data: Rows | Search, metric: str) -> Callable[[np.ndarray], MeanScore]:
    """Return what scores rows of documents, shape (m, LIMIT), found for each query."""
    if isinstance(data, Search) and metric != "recall@10":
        judged = judged_of(np.asarray(data.relevance), n_rows(data.documents))
        kind = MEASURES[metric.partition("@")[0]]
        possible = kind.possible(judged, LIMIT)
        weights = None if data.weight is None else np.asarray(data.weight, dtype=np.float64)[judged.queries]
        counts = np.ones(len(judged.queries), dtype=bool) if weights is None else weights > 0

        def earned(found: np.ndarray) -> MeanScore:
            values = kind.earned(judged.gains_of(judged.queries, found[judged.queries]))
            values = np.divide(values, possible, out=np.zeros_like(values), where=possible > 0)
            kept = None if weights is None else weights[counts]
            return MeanScore(values[counts][:, None], weights=kept, rows=judged.queries[counts])

        return earned
    if metric == "1nn_accuracy" and isinstance(data, Rows):
        if data.reference is None:
            raise InvalidInputError("The metric '1nn_accuracy' needs a reference with labels.")
        y, labels = np.asarray(data.reference.y), np.asarray(data.y)
        return lambda found: MeanScore((y[found[:, 0]] == labels)[:, None])
    truth = full_width_neighbors(getattr(encoder, "whole", encoder), data)
    return lambda found: MeanScore(
        (found[:, :, None] == truth[:, None]).any(axis=2).sum(axis=1)[:, None], out_of=truth.shape[1]
    )
