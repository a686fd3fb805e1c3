"""Which rows the entries of a file of judgements or pairs mean: ids of a column, or row numbers if those are asked for.

An id that is read as a row number gives a score of nothing and no error. So ids are taken where they fit, row numbers
only if asked for, and where both fit and differ nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from firstk.data.files import VectorTable
from firstk.data.files.column_files import load_columns
from firstk.data.files.vector_columns import ID_NAMES, missing_column
from firstk.exceptions import InvalidInputError
from firstk.metrics.judgements import rows_of_ids

SIDES = ("query", "document")


@dataclass(frozen=True)
class RowNames:
    """How judgements or pairs name rows.

    Attributes
    ----------
    ids : str, optional
        The column of ids, or QUERYCOLUMN,DOCUMENTCOLUMN; looked for if not given.
    by_row : bool
        They are row numbers, from 0.
    """

    ids: str | None = None
    by_row: bool = False

    def columns(self) -> tuple[str, str] | None:
        """Return the id columns of queries and of documents, where they were named."""
        if self.ids is None:
            return None
        names = [name.strip() for name in self.ids.split(",") if name.strip()]
        if len(names) not in (1, 2):
            raise InvalidInputError(f"--id is COLUMN, or QUERYCOLUMN,DOCUMENTCOLUMN. Got '{self.ids}'.")
        return names[0], names[-1]

    def rows(self, columns: Sequence[np.ndarray], tables: Sequence[VectorTable], source: object) -> list[np.ndarray]:
        """Return the file rows that both columns of `source` name, each in its own table."""
        if self.by_row:
            if self.ids is not None:
                raise InvalidInputError("Rows are named by ids (--id COLUMN) or by numbers (--id :row), not by both.")
            return [_numbers(*side, source) for side in zip(columns, tables, SIDES, strict=True)]
        named = self.columns()
        if named is None:
            return _settled(columns, tables, source)
        _check_one_name(named, tables)
        return [
            _ids(column, table, name, what, source)
            for column, table, name, what in zip(columns, tables, named, SIDES, strict=True)
        ]


def _settled(columns: Sequence[np.ndarray], tables: Sequence[VectorTable], source: object) -> list[np.ndarray]:
    """Try both readings; take the ids where they alone fit, or where both mean the same."""
    sides = list(zip(columns, tables, SIDES, strict=True))
    ids = [_found_ids(column, table, what, source) for column, table, what in sides]
    rows = [one.rows for one in ids if one.rows is not None]
    wrong = ""
    try:
        numbers = [_numbers(*side, source) for side in sides]
    except InvalidInputError as error:
        numbers, wrong = [], str(error)
    if len(rows) == 2 and (not numbers or all(map(np.array_equal, rows, numbers))):
        return rows
    if len(rows) == 2:
        raise _two_readings(columns, tables, [str(one.column) for one in ids], rows, numbers, source)
    if not rows and tables[0] is not tables[1] and _are_swapped(columns, tables, source):
        raise InvalidInputError(
            f"The queries of '{source}' are in '{tables[1].path}', and its documents in '{tables[0].path}'. Swap the "
            f"two files, or the two columns of '{source}'."
        )
    if numbers:
        held = "; ".join(dict.fromkeys(one.why for one in ids if one.rows is None))
        raise InvalidInputError(
            f"'{source}' names rows by numbers such as {_shown(columns, 0)}: ids or row numbers? {held}. Say --id "
            ":row if they are row numbers (from 0), or name the column that holds such ids with --id."
        )
    why = next(one.why for one in ids if one.rows is None)
    read_as_numbers = f" As row numbers: {wrong}" if all(column.dtype.kind in "iu" for column in columns) else ""
    elsewhere = " Queries of another file: --queries." if tables[0] is tables[1] and ids[0].rows is None else ""
    raise InvalidInputError(
        f"{why[0].upper()}{why[1:]}. Name the column that holds such ids with --id.{elsewhere}{read_as_numbers}"
    )


def _check_one_name(named: tuple[str, str], tables: Sequence[VectorTable]) -> None:
    """Raise an error, with the way out, where a column of ids is in one of two files alone."""
    there = [name in load_columns(table.path) for name, table in zip(named, tables, strict=True)]
    if named[0] == named[1] and there[0] != there[1]:
        having, lacking = (tables[there.index(held)].path for held in (True, False))
        raise InvalidInputError(
            f"'{having}' has a column {named[0]!r}, and '{lacking}' has none. If the two files call their ids "
            "differently: --id QUERYCOLUMN,DOCUMENTCOLUMN."
        )


def _are_swapped(columns: Sequence[np.ndarray], tables: Sequence[VectorTable], source: object) -> bool:
    """Tell whether each column names ids of the other file."""
    others = zip(columns, reversed(tables), SIDES, strict=True)
    return all(_found_ids(column, table, what, source).rows is not None for column, table, what in others)


@dataclass(frozen=True, eq=False)
class _Ids:
    """The rows that ids name, by the column that has them; or why none has."""

    column: str | None = None
    rows: np.ndarray | None = None
    why: str = ""


def _found_ids(column: np.ndarray, table: VectorTable, what: str, source: object) -> _Ids:
    """Look for the id column by the usual names."""
    held = load_columns(table.path)
    found: list[_Ids] = []
    why = f"'{source}' names a {what} by {str(column[:1].tolist()[0])!r}, and '{table.path}' has no column of ids"
    for name in (name for name in held if usual(name) in ID_NAMES and name not in table.members):
        try:
            found.append(_Ids(name, _ids(column, table, name, what, source, held)))
        except InvalidInputError as error:
            why = f"by its column {name!r}, {str(error).rstrip('.')}"
    if len(found) > 1 and not all(np.array_equal(found[0].rows, other.rows) for other in found[1:]):  # type: ignore[arg-type]
        names = " and ".join(repr(one.column) for one in found)
        raise InvalidInputError(
            f"The {what}s of '{source}' are in {names} of '{table.path}', in other rows. Name the one that is meant "
            f"with --id: --id {found[0].column}"
        )
    return found[0] if found else _Ids(why=why)


def usual(name: str) -> str:
    """Return a column's name as it is compared with usual ones.

    Examples
    --------
    >>> usual("Corpus-ID")
    'corpus_id'
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def column_of(table: VectorTable, name: str, held: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
    """Return a column with an entry for every row of a table's file, those included that have no vector."""
    held = load_columns(table.path) if held is None else held
    if name not in held:
        raise missing_column(table.path, name, list(held))
    column = np.asarray(held[name])
    if column.ndim != 1 or len(column) != table.rows:
        raise InvalidInputError(
            f"Column {name!r} of '{table.path}' has shape {column.shape}, and there are {table.rows} vectors: give one "
            "entry for each."
        )
    return column


def _ids(
    column: np.ndarray,
    table: VectorTable,
    name: str,
    what: str,
    source: object,
    held: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
    return rows_of_ids(column, column_of(table, name, held), what, f"'{source}'", f"'{table.path}'")


def _numbers(column: np.ndarray, table: VectorTable, what: str, source: object) -> np.ndarray:
    """Return row numbers, checked."""
    numbers = column
    if column.dtype.kind == "f" and np.isfinite(column).all() and (column == np.rint(column)).all():
        numbers = column.astype(np.int64)
    if numbers.dtype.kind not in "iu":
        raise InvalidInputError(
            f"'{source}' names a {what} by {str(column[0])!r}, which is no row number. Say which column of "
            f"'{table.path}' holds such ids with --id."
        )
    outside = np.flatnonzero((numbers < 0) | (numbers >= table.rows))
    if len(outside):
        raise InvalidInputError(
            f"'{source}' names {what} row {numbers[outside[0]]} (entry {outside[0]}), and '{table.path}' has rows 0 to "
            f"{table.rows - 1}; {len(np.unique(numbers[outside])):,} are missing in all."
        )
    return numbers.astype(np.int64)


def _two_readings(
    columns: Sequence[np.ndarray],
    tables: Sequence[VectorTable],
    names: Sequence[str],
    ids: Sequence[np.ndarray],
    numbers: Sequence[np.ndarray],
    source: object,
) -> InvalidInputError:
    """Build the error for entries that fit as ids and as row numbers, and mean other rows."""
    at = int(np.flatnonzero((ids[0] != numbers[0]) | (ids[1] != numbers[1]))[0])
    where = " and ".join(
        dict.fromkeys(f"{name!r} of '{table.path}'" for name, table in zip(names, tables, strict=True))
    )
    option = names[0] if names[0] == names[1] else ",".join(names)
    return InvalidInputError(
        f"'{source}' can be read in two ways. Its entry {at} names {_shown(columns, at)}: as ids in {where}, rows "
        f"{ids[0][at]} and {ids[1][at]}; as row numbers, rows {numbers[0][at]} and {numbers[1][at]}. Say --id {option} "
        "or --id :row."
    )


def _shown(columns: Sequence[np.ndarray], at: int) -> str:
    return " and ".join(str(column[at]) for column in columns)
