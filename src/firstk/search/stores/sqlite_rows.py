"""Rows in a table of SQLite: ids, codes and payloads, for engines that keep or index codes on the local disk.

A row has a key, a whole number that stays when the row is replaced, by which an index knows it. `version` counts
writes, so that an index on disk can tell which rows it lacks.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstk.search.stores.contract import CodedRows, Engine, Id, StoredRows, StoreLayout, check_ascending, foreign
from firstk.search.stores.filters import COMPARED, Condition, quoted

_JSON_KINDS = {"bool": ("true", "false"), "number": ("integer", "real"), "text": ("text",)}
# SQLite takes 32,766 parameters a statement, older ones 999.
_AT_ONCE = 900


@dataclass(frozen=True, eq=False)
class RowsTable:
    """A table of rows.

    Attributes
    ----------
    connection : sqlite3.Connection
        Or one of the same interface.
    table : str
    """

    connection: Any
    table: str

    @property
    def place(self) -> str:
        """The name of the table in SQL."""
        return quoted(self.table)

    @property
    def _notes(self) -> str:
        return quoted("firstk_stores")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that the block writes, or nothing of it."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def layout(self, called: str) -> StoreLayout | None:
        """Return the layout of the table; None where there is no table."""
        there = self.connection.execute(
            "SELECT name FROM sqlite_master WHERE name IN (?, 'firstk_stores')", (self.table,)
        ).fetchall()
        names = {row[0] for row in there}
        if self.table not in names:
            return None
        if "firstk_stores" not in names:
            raise foreign(called)
        found = self.connection.execute(f"SELECT record FROM {self._notes} WHERE name = ?", (self.table,)).fetchone()
        return StoreLayout.read(None if found is None else found[0], called)

    def create(self, layout: StoreLayout) -> None:
        """Create the table, in a transaction of the caller's."""
        kind = "INTEGER" if layout.ids == "int" else "TEXT"
        self.connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._notes} (name TEXT PRIMARY KEY, record TEXT NOT NULL, "
            "version INTEGER NOT NULL, rewritten INTEGER NOT NULL)"
        )
        self.connection.execute(
            f"CREATE TABLE {self.place} (key INTEGER PRIMARY KEY AUTOINCREMENT, id {kind} NOT NULL UNIQUE, "
            "code BLOB NOT NULL, payload TEXT NOT NULL)"
        )
        self.connection.execute(f"INSERT INTO {self._notes} VALUES (?, ?, 0, 0)", (self.table, layout.record()))

    def drop(self) -> None:
        """Delete the table, if it is there, in a transaction of the caller's."""
        self.connection.execute(f"DROP TABLE IF EXISTS {self.place}")
        if self.connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'firstk_stores'").fetchone():
            self.connection.execute(f"DELETE FROM {self._notes} WHERE name = ?", (self.table,))

    def upsert(self, rows: CodedRows) -> list[int]:
        """Write rows in a transaction of the caller's; return the keys of rows that were there before."""
        replaced = list(self.keys(rows.ids))
        codes = np.ascontiguousarray(rows.longest, dtype="<f4")
        self.connection.executemany(
            f"INSERT INTO {self.place} (id, code, payload) VALUES (?, ?, ?) ON CONFLICT (id) "
            "DO UPDATE SET code = excluded.code, payload = excluded.payload",
            [
                (key, code.tobytes(), json.dumps(payload, ensure_ascii=False))
                for key, code, payload in zip(rows.ids, codes, rows.payloads, strict=True)
            ],
        )
        self._note_write(bool(replaced))
        return replaced

    def delete(self, ids: Sequence[Id]) -> list[int]:
        """Delete rows in a transaction of the caller's; return their keys."""
        keys = list(self.keys(ids))
        self.connection.executemany(f"DELETE FROM {self.place} WHERE key = ?", [(key,) for key in keys])
        if keys:
            self._note_write(True)
        return keys

    def _note_write(self, rewritten: bool) -> None:
        self.connection.execute(
            f"UPDATE {self._notes} SET version = version + 1"
            + (", rewritten = version + 1" if rewritten else "")
            + " WHERE name = ?",
            (self.table,),
        )

    def versions(self) -> tuple[int, int]:
        """Return the number of the last write, and of the last one that replaced or deleted rows."""
        found = self.connection.execute(
            f"SELECT version, rewritten FROM {self._notes} WHERE name = ?", (self.table,)
        ).fetchone()
        return int(found[0]), int(found[1])

    def _some(self, wanted: str, ids: Sequence[Id], by: str = "id") -> Iterator[Any]:
        for start in range(0, len(ids), _AT_ONCE):
            part = list(ids[start : start + _AT_ONCE])
            marks = ", ".join("?" * len(part))
            yield from self.connection.execute(f"SELECT {wanted} FROM {self.place} WHERE {by} IN ({marks})", part)

    def keys(self, ids: Sequence[Id]) -> Iterator[int]:
        """Yield the keys of ids that are there."""
        return (row[0] for row in self._some("key", ids))

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        return {row[0] for row in self._some("id", ids)}

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.connection.execute(f"SELECT count(*) FROM {self.place}").fetchone()[0])

    def read(self, size: int, after: int = -1) -> Iterator[tuple[list[int], StoredRows]]:
        """Yield keys and rows in the order of keys, those greater than `after`."""
        page = f"SELECT key, id, code, payload FROM {self.place} WHERE key > ? ORDER BY key LIMIT ?"
        while found := self.connection.execute(page, (after, size)).fetchall():
            keys, ids, codes, payloads = zip(*found, strict=True)
            check_ascending(keys, after)
            yield list(keys), StoredRows(list(ids), _stacked(codes), [json.loads(one) for one in payloads])
            after = keys[-1]

    def fetch(self, keys: Sequence[int]) -> StoredRows:
        """Return rows by key, in the order of `keys`."""
        found = {key: row for key, *row in self._some("key, id, code, payload", keys, "key")}
        rows = [found[key] for key in keys if key in found]
        if not rows:
            return StoredRows([], np.zeros((0, 1), np.float32), [])
        ids, codes, payloads = zip(*rows, strict=True)
        return StoredRows(list(ids), _stacked(codes), [json.loads(one) for one in payloads])

    def matching(self, where: str, values: Mapping[str, Any]) -> np.ndarray:
        """Return the keys of rows that meet a condition in SQL, in order."""
        found = self.connection.execute(f"SELECT key FROM {self.place} WHERE {where} ORDER BY key", values)
        return np.array([row[0] for row in found], dtype=np.int64)


class SqliteEngine(Engine):
    """A store whose rows are in SQLite."""

    raises: ClassVar[tuple[type[BaseException] | str, ...]] = (sqlite3.Error, OSError, ValueError)

    @property
    @abstractmethod
    def _rows(self) -> RowsTable:
        """The table of rows."""

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        return self._rows.present(ids)

    def count(self) -> int:
        """Return the number of rows."""
        return self._rows.count()

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield rows in the order in which they were first written."""
        return (rows for _, rows in self._rows.read(size))


def _stacked(codes: Sequence[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(codes), dtype="<f4").reshape(len(codes), -1).astype(np.float32)


def condition(one: Condition, i: int) -> tuple[str, dict[str, Any]]:
    """Compare JSON values of one type only: SQLite would order numbers below text.

    Names are compared as they are: paths of SQLite have no way to quote those with double quotes or backslashes.
    """
    kinds = ", ".join(f"'{kind}'" for kind in _JSON_KINDS[one.kind])
    values = {f"v{i}_{j}": value for j, value in enumerate(one.values)}
    marks = ", ".join(f":{name}" for name in values)
    compared = f"IN ({marks})" if one.operator == "in" else f"{COMPARED[one.operator]} {marks}"
    named = f"SELECT 1 FROM json_each(payload) AS one WHERE one.key = :n{i} AND one.type IN ({kinds})"
    return f"EXISTS ({named} AND one.value {compared})", {f"n{i}": one.name} | values
