"""Ids and scores of the rows nearest to queries, from whatever holds them: a store, an index, or a short file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firstk._base.checks import check_count
from firstk._base.rows import unit_rows
from firstk.data.files import VectorTable, open_vectors
from firstk.encoder import FittedEncoder
from firstk.estimator import Wish, encoding_of
from firstk.exceptions import InvalidInputError
from firstk.search.codes.index import CodeIndex
from firstk.search.funnel.index import FunnelIndex
from firstk.search.index_file import BYTES_FORMAT, FORMAT, kind_of_index
from firstk.search.moving.sources import FileSource
from firstk.search.stores import check_store, connect, is_address
from firstk.search.stores.contract import Engine, Id, Request
from firstk.search.stores.prefix_store import PrefixStore

_OWNER = "search"
# Rows of a file that are compared at a time.
_BATCH = 16_384
# Scores that are held at a time: fewer rows where queries are many.
_SCORES = 1 << 22


class Found(NamedTuple):
    """Results of each query, best first.

    Attributes
    ----------
    ids : list of lists of int or str
    scores : list of lists of float
        Higher is better: Euclidean distances are negated.
    place : str
        What messages call what was asked.
    """

    ids: list[list[Id]]
    scores: list[list[float]]
    place: str


def ask(
    source: str | Path,
    queries: VectorTable,
    limit: int = 10,
    *,
    model: FittedEncoder | None = None,
    shortlist: int | None = None,
    ids: str | None = None,
    vectors: str | None = None,
) -> Found:
    """Find the rows of a store, an index or a file that are nearest to each query.

    Parameters
    ----------
    source : str or Path
        The address of a store as `firstk.search.stores.connect` takes it, a saved `CodeIndex` or `FunnelIndex`, or a
        file of vectors or codes.
    queries : VectorTable
        Vectors as they came.
    limit : int
        Results per query.
    model : FittedEncoder, optional
        The one that made the codes; not needed for raw vectors and for an index that holds it.
    shortlist : int, optional
        Rows of a store that the longer codes rescore.
    ids, vectors : str, optional
        Columns of a file.
    """
    limit = check_count(limit, "limit", _OWNER)
    if isinstance(source, str) and is_address(source):
        check_store(source)
        with closing(connect(source)) as engine:
            return _of_store(engine, queries, limit, model, shortlist)
    if shortlist is not None:
        raise InvalidInputError("A shortlist is rescored by a store that holds two lengths. Leave 'shortlist' out.")
    if (kind := kind_of_index(source)) is not None:
        index: CodeIndex | FunnelIndex = {BYTES_FORMAT: CodeIndex, FORMAT: FunnelIndex}[kind].load(source)  # type: ignore[attr-defined]
        width = index.codes.shape[1] if index.encoder is None else index.encoder.p
        _check_asked(queries, width, f"'{source}'", model, "has an encoder of its own")
        found = index.search(queries.read().vectors, limit)
        return Found(found.ids.tolist(), found.scores.tolist(), f"'{source}'")
    return _of_file(source, queries, limit, model, ids, vectors)


def _of_store(
    engine: Engine, queries: VectorTable, limit: int, model: FittedEncoder | None, shortlist: int | None
) -> Found:
    with engine.answering():
        layout = engine.layout()
    if layout is None:
        raise InvalidInputError(f"{engine.place} is not there. Check the name behind '#'.")
    if not layout.stamp.raw:
        if model is None:
            raise _needs_model(engine.place, layout.width)
        _check_asked(queries, model.p, engine.place)
        found = PrefixStore.open(engine, model).search(queries.read().vectors, limit, shortlist=shortlist)
        return _higher_is_better(found.ids, found.scores, layout.metric, engine.place)
    _check_asked(queries, layout.width, engine.place, model, "holds raw vectors")
    Q = np.asarray(queries.read().vectors, dtype=np.float32)
    short, full = Q[:, : layout.short], None if layout.full is None else Q
    wide = limit if full is None else max(limit, shortlist or max(100, 10 * limit))
    with engine.answering():
        found = engine.search(Request(short, full, limit, wide))
    return _higher_is_better(found.ids, found.scores, layout.compared, engine.place)


def _higher_is_better(ids: list[list[Id]], scores: list[list[float]], metric: str, place: str) -> Found:
    sign = -1.0 if metric == "l2" else 1.0
    return Found(ids, [[sign * score for score in one] for one in scores], place)


def _of_file(
    source: str | Path,
    queries: VectorTable,
    limit: int,
    model: FittedEncoder | None,
    ids: str | None,
    vectors: str | None,
) -> Found:
    opened = FileSource(open_vectors(source, vectors, beside=() if ids is None else (ids,)), ids, ())
    facts = opened.facts
    Q = queries.read().vectors
    if facts.coded:
        if model is None:
            raise _needs_model(facts.place, facts.width)
        _check_asked(queries, model.p, facts.place)
        wish = Wish(side="query", like=source) if facts.bits else Wish(side="query", k=facts.width)
        encoding = encoding_of(model, queries, wish)
        assert facts.stamp is not None
        facts.stamp.check(encoding.made_by, facts.place, "this model")
        Q = encoding.encode(Q)
    else:
        _check_asked(queries, facts.width, facts.place, model, "holds raw vectors")
    metric = facts.metric or "cosine"
    asked = np.asarray(unit_rows(Q) if metric == "cosine" else Q, dtype=np.float32)
    names: list[Id] = []
    best: np.ndarray = np.empty((len(asked), 0), dtype=np.int64)
    score: np.ndarray = np.empty((len(asked), 0), dtype=np.float32)
    for part in opened.read(max(1, min(_BATCH, _SCORES // len(asked)))):
        codes = np.asarray(unit_rows(part.codes) if metric == "cosine" else part.codes, dtype=np.float32)
        near = asked @ codes.T
        if metric == "l2":  # the norm of the query does not change the order
            near = 2 * near - np.einsum("ij,ij->i", codes, codes)
        rows = np.broadcast_to(len(names) + np.arange(len(part.ids)), near.shape)
        best, score = np.concatenate([best, rows], axis=1), np.concatenate([score, near], axis=1)
        kept = np.argsort(-score, axis=1, kind="stable")[:, :limit]
        best, score = (np.take_along_axis(table, kept, axis=1) for table in (best, score))
        names += part.ids
    if metric == "l2":
        score = -np.sqrt(np.maximum(np.einsum("ij,ij->i", asked, asked)[:, None] - score, 0))
    return Found([[names[i] for i in rows] for rows in best.tolist()], score.tolist(), facts.place)


def _needs_model(place: str, width: int) -> InvalidInputError:
    return InvalidInputError(
        f"{place} holds codes of {width} coordinates, and queries are vectors as they came: give the model that made "
        "the codes (--model)."
    )


def _check_asked(
    queries: VectorTable, width: int, place: str, unused: FittedEncoder | None = None, held: str = ""
) -> None:
    """Raise for queries of another width, and for an encoder that a place has no use for, as `held` says."""
    if unused is not None:
        raise InvalidInputError(f"{place} {held}, so the model would not be used. Leave it out (--model).")
    if queries.width != width:
        raise InvalidInputError(
            f"{place} takes queries of {width} numbers. Got {queries.width}: use vectors of the model that embedded "
            "its rows."
        )


# -- what results are worth ----------------------------------------------------------------------------------------


def ranking_scores(
    found: Sequence[Sequence[Id]], names: Sequence[Id], grades: dict[tuple[str, str], float], at: int
) -> dict[str, float]:
    """Return nDCG and recall of judged queries, as `firstk.metrics.ndcg` and `relevant_recall` define them."""
    by_query: dict[str, dict[str, float]] = {}
    for (query, document), grade in grades.items():
        by_query.setdefault(query, {})[document] = max(grade, 0.0)
    discounts = 1.0 / np.log2(np.arange(2, at + 2))
    gained, recalled = [], []
    for name, ids in zip(names, found, strict=True):
        judged = by_query.get(str(name))
        if judged is None:
            continue
        gains = np.array([judged.get(str(one), 0.0) for one in ids[:at]])
        ideal = np.sort(list(judged.values()))[::-1][:at]
        possible, relevant = float(ideal @ discounts[: len(ideal)]), sum(grade > 0 for grade in judged.values())
        gained.append(float(gains @ discounts[: len(gains)]) / possible if possible else 0.0)
        recalled.append(float((gains > 0).sum()) / relevant if relevant else 0.0)
    if not gained:
        raise InvalidInputError(
            f"None of the {len(names):,} queries is judged: ids of queries are {names[0]!r}, ..., and judgements name "
            f"{next(iter(by_query), 'none')!r}, ... Name the column of ids (--id)."
        )
    return {f"ndcg@{at}": float(np.mean(gained)), f"recall@{at}": float(np.mean(recalled)), "queries": len(gained)}
