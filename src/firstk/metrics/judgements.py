"""Judgements keyed by ids, turned into rows: which vectors are meant by the names that judgements use.

Ids are compared as text, because one file may hold "17" and another 17. A name that is not there raises: an id that is
read as a row number would give a score of nothing, and no error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from firstk.exceptions import InvalidInputError

# Judgements as BEIR and pytrec_eval have them: of each query, the grades of documents.
Qrels = Mapping[object, Mapping[object, int]]


def as_text(ids: ArrayLike) -> list[str]:
    """Return ids as text; whole numbers that were stored as floats lose their point.

    Examples
    --------
    >>> as_text([17.0, 4.0]), as_text(["a", 3])
    (['17', '4'], ['a', '3'])
    """
    values = np.asarray(ids)
    if values.dtype.kind == "f" and np.isfinite(values).all() and (values == np.rint(values)).all():
        values = values.astype(np.int64)
    return [one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in values.tolist()]


def rows_of_ids(wanted: ArrayLike, known: ArrayLike, what: str, judging: str, place: str) -> np.ndarray:
    """Return the row of each id.

    Parameters
    ----------
    wanted, known : array-like of shape (j,) and (n,)
        Ids to look up, and the id of each row.
    what : str
        "query" or "document", for error messages.
    judging, place : str
        What names the ids, and what holds them, for error messages.
    """
    names = as_text(known)
    rows = {name: i for i, name in enumerate(names)}
    if len(rows) < len(names):
        raise InvalidInputError(f"{place} has {len(names) - len(rows)} ids twice; judgements cannot tell them apart.")
    asked = as_text(wanted)
    missing = dict.fromkeys(name for name in asked if name not in rows)
    if missing:
        raise InvalidInputError(
            f"{judging} judges {what} {next(iter(missing))}, which is not in {place} ({len(names):,} rows); "
            f"{len(missing):,} are missing in all."
        )
    return np.array([rows[name] for name in asked], dtype=np.int64)


def judgement_rows(
    relevance: ArrayLike | Qrels, query_ids: ArrayLike | None = None, document_ids: ArrayLike | None = None
) -> np.ndarray:
    """Return judgements as ints of shape (j, 3): query row, document row, relevance.

    Parameters
    ----------
    relevance : array-like of shape (j, 3) or (j, 2), or mapping
        Query, document and grade, 1 where there is none; or of each query a mapping from documents to grades.
    query_ids, document_ids : array-like, optional
        The id of each query and each document. Without them, judgements name rows.

    Examples
    --------
    >>> judgement_rows({"q7": {"b": 1, "a": 2}}, ["q3", "q7"], ["a", "b"])
    array([[1, 1, 1],
           [1, 0, 2]])
    """
    queries, documents, grades = _columns(relevance)
    if query_ids is not None:
        queries = rows_of_ids(queries, query_ids, "query", "'relevance'", "'query_ids'")
    if document_ids is not None:
        documents = rows_of_ids(documents, document_ids, "document", "'relevance'", "'document_ids'")
    for column, name in zip((queries, documents, grades), ("queries", "documents", "grades"), strict=True):
        if column.dtype.kind not in "iu" or column.ndim != 1:
            ids = "" if name == "grades" else f", or ids that '{'query' if name == 'queries' else 'document'}_ids' has"
            raise InvalidInputError(
                f"The {name} of 'relevance' are whole numbers{ids}. Got {column.dtype}, such as {column.ravel()[:1]}."
            )
    return np.column_stack([queries, documents, grades]).astype(np.int64)


def _columns(relevance: ArrayLike | Qrels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries, documents and grades."""
    if isinstance(relevance, Mapping):
        rows: Sequence[tuple[object, ...]] = [(q, d, g) for q, of in relevance.items() for d, g in of.items()]
    else:
        table = np.asarray(relevance)
        if table.ndim == 2 and table.shape[1] == 3 and table.dtype.kind in "iu":
            return table[:, 0], table[:, 1], table[:, 2]
        rows = [tuple(row) for row in cast(Sequence[Sequence[object]], relevance)] if table.ndim == 2 else []
    if not rows or {len(row) for row in rows} - {2, 3} or len({len(row) for row in rows}) > 1:
        raise InvalidInputError(
            "Judgements are rows (query, document, relevance), or a mapping from queries to documents to relevance. "
            f"Got {type(relevance).__name__} of shape {np.shape(relevance)}."  # type: ignore[arg-type]
        )
    queries, documents = (np.array([row[side] for row in rows]) for side in (0, 1))
    return queries, documents, np.array([_grade(row[2]) if len(row) == 3 else 1 for row in rows])


def _grade(value: object) -> object:
    """Return a grade as an int where it is a whole number: an array that holds ids has made text of it."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return value
    return int(number) if number.is_integer() else number
