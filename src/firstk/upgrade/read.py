"""The data of an upgrade from files: a store, new vectors of some of its rows, queries of both models, judgements.

Rows of two files embed the same text by an id that both have, or row by row. Vectors of two models have no coordinate
in common, so rows that do not belong together raise no error by themselves. Cosines do: pairs of texts that are alike
to one model are alike to the other. Rows are refused whose cosines agree no better than those of shuffled rows (the
test of Mantel 1967).
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firstk import Rows, Search
from firstk._base.atomic_file import atomic_file
from firstk._base.rows import unit_rows
from firstk.advice import File, Judged, RowNames, RowsOfFile, VectorSource, column_of, read_judged, read_side, usual
from firstk.data.files import ID_NAMES, VectorTable, load_columns, open_vectors
from firstk.data.remote import place_of, shown_place
from firstk.exceptions import InvalidInputError
from firstk.metrics import as_text
from firstk.moments import check_none_missing
from firstk.upgrade.data import UpgradeData

# Rows whose cosines are compared, and shuffles that they are compared with.
_SAMPLE, _SHUFFLES = 400, 99


@dataclass(frozen=True)
class UpgradeFiles:
    """Where the data of an upgrade are.

    Attributes
    ----------
    old : VectorSource
        The store as the old model embedded it, with its queries and their judgements. In place of judgements, a label:
        a column of the store, and of the queries if there are any. A query is answered by a row of its own label;
        without queries, some pairs become the queries.
    new : path
        Rows of the store by the new model.
    queries_new : path, optional
        The same queries by the new model.
    vectors_new : str, optional
        Vector column of the new model's files; that of the old ones if not given.
    """

    old: VectorSource
    new: File
    queries_new: File | None = None
    vectors_new: str | None = None

    def newer(self, file: File) -> VectorSource:
        """Return where vectors of the new model are."""
        return VectorSource(file, self.vectors_new or self.old.vectors, nan=self.old.nan)

    def check(self) -> None:
        """Raise for options that do not go together, before anything is read."""
        old, asked = self.old, self.queries_new is not None
        if old.queries is not None and not asked:
            raise InvalidInputError("--queries-old needs --queries-new: the same queries, embedded by the new model.")
        if old.relevance is not None and not asked:
            raise InvalidInputError(
                "--relevance judges documents for queries: give them as --queries-new, and as --queries-old to score "
                "staying."
            )
        if old.labels is not None:
            raise InvalidInputError(f"--label is a column of OLD. Got the file '{old.labels}'.")
        if old.relevance is not None and old.label is not None:
            raise InvalidInputError("Labels take the place of judgements: give --label or --relevance, not both.")
        weight, by_row = old.query_weight, old.by_row or None
        given = {"--filter": old.filter, "--queries-old FILE:WEIGHT": weight, "--id :row": by_row}
        useless = [option for option, value in given.items() if value is not None]
        if useless and old.relevance is None:
            raise InvalidInputError(f"{' and '.join(useless)} belong to --relevance, which is missing.")


def read_upgrade(files: UpgradeFiles) -> tuple[UpgradeData, tuple[str, ...]]:
    """Read the data of an upgrade, and return how rows were paired.

    Rows that do not embed the same texts raise an error.
    """
    files.check()
    place, asking = files.old, files.queries_new
    query_id, document_id = RowNames(place.ids).columns() or (None, None)
    newer = read_side(files.new, files.newer(files.new), document_id)
    search: Search | None = None
    if place.relevance is None:
        old = read_side(place.source, place, document_id, place.label)
    else:  # judgements name queries of the old model, or else of the new one
        gone = place.queries is None
        judged = read_judged(replace(place, queries=asking) if gone else place, same_width=not gone)
        assert isinstance(judged.data, Search)
        search = judged.data
        old = _as_rows(place.source, place, np.asarray(search.documents), judged, 1, document_id)
    pairs = paired(old, newer, document_id)
    new, told = newer.X[pairs.new], [pairs.said]
    check_correspond(old.X[pairs.old], new, (_name(place.source), _name(files.new)))
    labels = None if place.label is None else _labels(old, place.label)
    if asking is None:
        if labels is None:
            return UpgradeData(old.X, new, pairs.old, row_numbers=old.rows), tuple(told)
        data = UpgradeData.from_labels(old.X, new, labels, pairs.old)
        assert data.asked is not None
        assert data.row_numbers is not None
        drawn = f"{data.asked.n:,} of them are the queries, and no alignment is fitted on these"
        return replace(data, row_numbers=old.rows[data.row_numbers]), (
            *told,
            f"{drawn}: a query is answered where the nearest row has its {place.label!r}.",
        )
    # The queries of both models, row by row the same ones, in the order of the judged ones if there are any.
    queries_old = label_of_query = None
    if place.queries is not None:
        answered = read_side(asking, files.newer(asking), query_id)
        if search is None:
            own = read_side(place.queries, replace(place, source=place.queries), query_id, place.label)
        else:
            own = _as_rows(place.queries, place, np.asarray(search.queries), judged, 0, query_id)
        both = paired(own, answered, query_id, "queries")
        told.append(both.said)
        if search is not None and len(missing := np.setdiff1d(np.asarray(search.relevance)[:, 0], both.old)):
            raise InvalidInputError(
                f"'{shown_place(asking)}' lacks {len(missing):,} of the queries that '{place.relevance}' judges: embed "
                "all of them with the new model."
            )
        queries = np.zeros((len(own.X), answered.X.shape[1]), dtype=answered.X.dtype)
        queries[both.old] = answered.X[both.new]
        kept = both.old if search is None else np.arange(len(own.X))
        queries, queries_old = queries[kept], own.X[kept]
        label_of_query = None if place.label is None else _labels(own, place.label)[kept]
    elif search is None:
        own = read_side(asking, files.newer(asking), query_id, place.label)
        queries, label_of_query = own.X, None if place.label is None else _labels(own, place.label)
    else:
        queries = np.asarray(search.queries)
    asked: Search | Rows = Search(queries, old.X) if search is None else replace(search, queries=queries)
    if labels is not None:
        asked = Rows(queries, label_of_query, reference=Rows(old.X, labels))
    return UpgradeData(old.X, new, pairs.old, asked, queries_old, old.rows), tuple(told)


def _labels(side: RowsOfFile, label: str) -> np.ndarray:
    """Return the labels of rows that were read; missing ones raise."""
    column = column_of(side.table, label)[side.rows]
    check_none_missing(column, f"Column '{label}' of '{side.table.path}'", side.rows)
    return column


def _as_rows(path: File, place: VectorSource, X: np.ndarray, judged: Judged, side: int, ids: str | None) -> RowsOfFile:
    """Return rows that were read with judgements."""
    assert judged.file_rows is not None
    table = open_vectors(path, place.vectors, beside=[] if ids is None else [ids], nan=place.nan)
    return RowsOfFile(X, None, table, judged.file_rows[side])


def write_order(path: Path, files: UpgradeFiles, worth: np.ndarray, row_numbers: np.ndarray) -> int:
    """Write the rows of the store, those of the highest worth first, by an atomic write; return how many.

    Rows are named by the column of ids, or by their numbers in the file where there is none.
    """
    named, old = RowNames(files.old.ids).columns(), files.old
    table = open_vectors(old.source, old.vectors, beside=[named[1]] if named else [], nan=old.nan)
    name = named[1] if named else next(iter(_id_columns(table)), None)
    names = row_numbers if name is None else column_of(table, name)[row_numbers]
    order = np.argsort(-worth, kind="stable")
    with atomic_file(path, "An order of rows", kinds=(".csv",)) as temporary, temporary.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow((name or "row", "worth"))
        rows.writerows((names[row], f"{worth[row]:.6g}") for row in order)
    return len(order)


def _name(path: File) -> str:
    return place_of(str(path)).name or str(path)


# -- which rows belong together ---------------------------------------------------------------------------------------


class Pairing(NamedTuple):
    """Places of rows that belong together among those that were read, old ones ascending; and how they were found."""

    old: np.ndarray
    new: np.ndarray
    said: str


def paired(old: RowsOfFile, new: RowsOfFile, ids: str | None, what: str = "rows") -> Pairing:
    """Return the rows of two files that embed the same text.

    Parameters
    ----------
    old, new : RowsOfFile
    ids : str, optional
        Column of ids of both files. Without it, a column by a usual name that both have; else rows are paired in
        their order.
    what : str
        What an error message calls the rows.
    """
    column = ids
    if column is None:
        column = next((name for name in _id_columns(old.table) if name in _id_columns(new.table)), None)
    if column is not None:
        known, asked = (as_text(column_of(side.table, column)[side.rows]) for side in (old, new))
        for side, names in ((old, known), (new, asked)):
            if len(set(names)) < len(names):
                twice = next(name for name, count in Counter(names).items() if count > 1)
                raise InvalidInputError(
                    f"Column {column!r} of '{side.table.path}' has {len(names) - len(set(names)):,} ids twice, such as "
                    f"{twice!r}: keep one row of each."
                )
        place = {name: i for i, name in enumerate(known)}
        rows = np.array([place.get(name, -1) for name in asked], dtype=np.int64)
        there = np.flatnonzero(rows >= 0)
        if not len(there):
            raise InvalidInputError(
                f"No id of '{new.table.path}' is in '{old.table.path}' (column {column!r}: {asked[0]!r}, ... and "
                f"{known[0]!r}, ...). Give files of the same {what}, or name another column with --id."
            )
        there = there[np.argsort(rows[there])]
        strangers = len(rows) - len(there)
        said = f"{len(there):,} {what} are paired by their {column!r}"
        said += f"; {strangers:,} of the new model are not in '{old.table.path}' and were left out" if strangers else ""
        return Pairing(rows[there], there, f"{said}.")
    counts = old.table.rows, new.table.rows
    if counts[0] != counts[1]:
        raise InvalidInputError(
            f"'{old.table.path}' has {counts[0]:,} {what} and '{new.table.path}' {counts[1]:,}, and they share no "
            "column of ids: which belong together? Give both files a column of ids, and name it with --id."
        )
    both, at_old, at_new = np.intersect1d(old.rows, new.rows, assume_unique=True, return_indices=True)
    return Pairing(at_old, at_new, f"{len(both):,} {what} are paired in the order of the files.")


def check_correspond(old: np.ndarray, new: np.ndarray, names: tuple[str, str], random_state: int = 0) -> float:
    """Return the correlation of cosines among old rows with those among new ones; unrelated rows raise.

    Parameters
    ----------
    old, new : ndarray of shape (n, p) and (n, q)
    names : (str, str)
        What the files are called.
    random_state : int
    """
    rng = np.random.default_rng(random_state)
    some = rng.permutation(len(old))[:_SAMPLE]
    A, B = (unit_rows(side[some].astype(np.float64)) for side in (old, new))
    upper = np.triu_indices(len(some), 1)
    wanted, cosines = _standard((A @ A.T)[upper]), B @ B.T
    found = float(wanted @ _standard(cosines[upper]))
    shuffles = (rng.permutation(len(some)) for _ in range(_SHUFFLES))
    chance = max(float(wanted @ _standard(cosines[np.ix_(order, order)][upper])) for order in shuffles)
    if found <= chance:
        raise InvalidInputError(
            f"The rows of '{names[0]}' and '{names[1]}' do not seem to embed the same texts: cosines among "
            f"{len(some):,} of them correlate by {found:.3f}, and after shuffling by up to {chance:.3f}. Bring them "
            "into the same order, or give both a column of ids and name it with --id."
        )
    return found


def _standard(values: np.ndarray) -> np.ndarray:
    """Return values with mean 0 and norm 1, so that products are correlations; constant ones become 0."""
    values = values - values.mean()
    size = np.linalg.norm(values)
    return values / size if size > 1e-9 * np.sqrt(len(values)) else np.zeros_like(values)


def _id_columns(table: VectorTable) -> list[str]:
    """Return the columns of a file that name rows, by their usual names."""
    return [name for name in load_columns(table.path) if usual(name) in ID_NAMES and name not in table.members]
