"""The data of an upgrade from files: a store, new vectors of some of its rows, queries of both models, judgements."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base.atomic_file import atomic_file
from firstk.advice.inputs import File, RowsOfFile, VectorSource
from firstk.advice.judgements import Judged, read_judged, read_side
from firstk.advice.row_names import RowNames, column_of
from firstk.advice.upgrade.pairing import check_correspond, id_columns, paired
from firstk.advice.upgrade.searches import BY_LABEL, UpgradeData
from firstk.data.files import open_vectors
from firstk.data.remote import place_of, shown_place
from firstk.data.task import Search
from firstk.exceptions import InvalidInputError
from firstk.moments.targets import check_none_missing


@dataclass(frozen=True)
class UpgradeFiles:
    """Where the data of an upgrade are.

    Attributes
    ----------
    old, new : path
        The store as the old model embedded it, and rows of it by the new model.
    queries_old, queries_new : path, optional
        The same queries by both models.
    relevance : str, optional
        FILE[:QUERY,DOCUMENT[,GRADE]].
    ids : str, optional
        Column of ids, or QUERYCOLUMN,DOCUMENTCOLUMN.
    by_row : bool
        Judgements name rows by number, from 0.
    filter, query_weight : str, optional
        As in `VectorSource`, columns of the old files.
    vectors, vectors_new : str, optional
        Vector columns of the old model's files, and of the new one's.
    nan : {"refuse", "drop"}
    metric : str, optional
        As in `UpgradeData`.
    label : str, optional
        In place of `relevance`: a column of the store, and of the queries if there are any. A query is answered by a
        row of its own label; without queries, some pairs become the queries.
    """

    old: File
    new: File
    queries_old: File | None = None
    queries_new: File | None = None
    relevance: str | None = None
    ids: str | None = None
    by_row: bool = False
    filter: str | None = None
    query_weight: str | None = None
    vectors: str | None = None
    vectors_new: str | None = None
    nan: str = "refuse"
    metric: str | None = None
    label: str | None = None

    def check(self) -> None:
        """Raise for options that do not go together, before anything is read."""
        if self.queries_old is not None and self.queries_new is None:
            raise InvalidInputError("--queries-old needs --queries-new: the same queries, embedded by the new model.")
        if self.relevance is not None and self.queries_new is None:
            raise InvalidInputError(
                "--relevance judges documents for queries: give them as --queries-new, and as --queries-old to score "
                "staying."
            )
        if self.relevance is not None and self.label is not None:
            raise InvalidInputError("Labels take the place of judgements: give --label or --relevance, not both.")
        if self.label is not None and self.metric not in (None, BY_LABEL):
            raise InvalidInputError(f"--label is scored by {BY_LABEL}: leave --metric {self.metric} out.")
        belong = {
            "--filter": self.filter, "--query-weight": self.query_weight, "--by-row": self.by_row or None,
        }  # fmt: skip
        useless = [option for option, value in belong.items() if value is not None]
        if useless and self.relevance is None:
            raise InvalidInputError(f"{' and '.join(useless)} belong to --relevance, which is missing.")


def read_upgrade(files: UpgradeFiles) -> tuple[UpgradeData, tuple[str, ...]]:
    """Read the data of an upgrade, and return how rows were paired.

    Rows that do not embed the same texts raise an error.
    """
    files.check()
    columns = RowNames(files.ids).columns()
    query_id, document_id = columns or (None, None)
    places = [VectorSource(file, column, nan=files.nan) for file, column in _sides(files)]
    new = read_side(files.new, places[1], document_id)
    judged = None
    if files.relevance is not None:
        judged = _judged(files)
        old = _as_rows(files.old, places[0], np.asarray(judged.data.stored), judged, 1, document_id)
    else:
        old = read_side(files.old, places[0], document_id, files.label)
    pairs = paired(old, new, document_id)
    check_correspond(old.X[pairs.old], new.X[pairs.new], (_name(files.old), _name(files.new)))
    paired_by = f"{pairs.said[0].upper()}{pairs.said[1:]}."
    labels = None if files.label is None else _labels(old, files.label)
    if labels is not None and files.queries_new is None:
        data = UpgradeData.from_labels(old.X, new.X[pairs.new], labels, pairs.old)
        asked = f"{len(data.queries_new):,} of them are the queries, and no alignment is fitted on these"  # type: ignore[arg-type]
        return data, (paired_by, f"{asked}: a query is answered where the nearest row has its {files.label!r}.")
    queries, said = _queries(files, judged, query_id)
    data = UpgradeData(
        old.X,
        new.X[pairs.new],
        pairs.old,
        **queries,
        **_judgements(judged),
        metric=files.metric,
        document_label=labels,
    )
    return data, (paired_by, *said)


def _labels(side: RowsOfFile, label: str) -> np.ndarray:
    """Return the labels of rows that were read; missing ones raise."""
    column = column_of(side.table, label)[side.rows]
    check_none_missing(column, f"Column '{label}' of '{side.table.path}'", side.rows)
    return column


def write_order(path: Path, files: UpgradeFiles, worth: np.ndarray, row_numbers: np.ndarray | None = None) -> int:
    """Write the rows of the store, those of the highest worth first, by an atomic write; return how many.

    `row_numbers` are places among the rows that were read, where not all of them are in the store.
    """
    name, names = _row_names(files)
    names = names if row_numbers is None else names[row_numbers]
    order = np.argsort(-worth, kind="stable")
    with atomic_file(path, "An order of rows", kinds=(".csv",)) as temporary, temporary.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow((name, "worth"))
        table.writerows((names[row], f"{worth[row]:.6g}") for row in order)
    return len(order)


def _row_names(files: UpgradeFiles) -> tuple[str, np.ndarray]:
    """Return the name and the values of what names the rows of the store: its column of ids, or row numbers."""
    columns = RowNames(files.ids).columns()
    old = read_side(files.old, VectorSource(files.old, files.vectors, nan=files.nan), columns and columns[1])
    if columns is not None:
        return columns[1], column_of(old.table, columns[1])[old.rows]
    found = id_columns(old)
    return (found[0], column_of(old.table, found[0])[old.rows]) if found else ("row", old.rows)


def _sides(files: UpgradeFiles) -> tuple[tuple[File, str | None], tuple[File, str | None]]:
    return (files.old, files.vectors), (files.new, files.vectors_new or files.vectors)


def _judged(files: UpgradeFiles) -> Judged:
    """Read the store, the judgements, and the queries that they name: the old model's, or else the new one's."""
    gone = files.queries_old is None
    place = VectorSource(
        files.old,
        files.vectors,
        nan=files.nan,
        queries=files.queries_new if gone else files.queries_old,
        relevance=files.relevance,
        ids=files.ids,
        by_row=files.by_row,
        filter=files.filter,
        query_weight=files.query_weight,
    )
    return read_judged(place, same_width=not gone)


def _as_rows(path: File, place: VectorSource, X: np.ndarray, judged: Judged, side: int, ids: str | None) -> RowsOfFile:
    """Return rows that were read with judgements."""
    assert judged.file_rows is not None
    table = open_vectors(path, place.vectors, beside=[] if ids is None else [ids], nan=place.nan)
    return RowsOfFile(X, None, table, judged.file_rows[side])


def _queries(
    files: UpgradeFiles, judged: Judged | None, ids: str | None
) -> tuple[dict[str, np.ndarray | None], tuple[str, ...]]:
    """Return the queries of both models, row by row the same ones, in the order of the judged ones if there are any."""
    if files.queries_new is None:
        return {}, ()
    newer = VectorSource(files.queries_new, files.vectors_new or files.vectors, nan=files.nan)
    if files.queries_old is None:
        if judged is not None:
            return {"queries_new": _asked(judged)}, ()
        alone = read_side(files.queries_new, newer, ids, files.label)
        return {"queries_new": alone.X, "query_label": None if files.label is None else _labels(alone, files.label)}, ()
    older = VectorSource(files.queries_old, files.vectors, nan=files.nan)
    old = (
        read_side(files.queries_old, older, ids, files.label)
        if judged is None
        else _as_rows(files.queries_old, older, _asked(judged), judged, 0, ids)
    )
    new = read_side(files.queries_new, newer, ids)
    pairs = paired(old, new, ids, "queries")
    if len(pairs.old) < len(old.X) and judged is not None and isinstance(judged.data, Search):
        missing = np.setdiff1d(np.asarray(judged.data.relevance)[:, 0], pairs.old)
        if len(missing):
            raise InvalidInputError(
                f"'{shown_place(files.queries_new)}' lacks {len(missing):,} of the queries that '{files.relevance}' "
                "judges: embed all of them with the new model."
            )
    queries_new = np.zeros((len(old.X), new.X.shape[1]), dtype=new.X.dtype)
    queries_new[pairs.old] = new.X[pairs.new]
    kept = np.arange(len(old.X)) if judged is not None else pairs.old
    said = f"{pairs.said[0].upper()}{pairs.said[1:]}."
    labels = None if files.label is None else _labels(old, files.label)[kept]
    return {"queries_old": old.X[kept], "queries_new": queries_new[kept], "query_label": labels}, (said,)


def _asked(judged: Judged) -> np.ndarray:
    assert isinstance(judged.data, Search)  # judgements of relevance are searches
    return np.asarray(judged.data.queries)


def _judgements(judged: Judged | None) -> dict[str, Any]:
    """Return judgements as `UpgradeData` takes them."""
    search = None if judged is None else judged.data
    if not isinstance(search, Search):
        return {}
    return {
        "relevance": search.relevance,
        "query_weight": search.weight,
        "query_field": search.query_field,
        "document_field": search.document_field,
    }


def _name(path: File) -> str:
    return place_of(str(path)).name or str(path)
