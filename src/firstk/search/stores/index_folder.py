"""A folder with rows in SQLite and an index of their short codes, for libraries that are an index and nothing else.

The file of rows is what counts: it holds ids, codes and payloads, and is written in transactions. The index is made
from it, and says which write it has seen. If a process is killed between the two, the next one adds what is missing, or
builds the index again where rows were replaced or deleted since. A checksum lies beside the file of the index: the
libraries believe a damaged one, or crash. An index without it is built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from firstk._base.atomic_file import atomic_file
from firstk._base.rows import unit_rows
from firstk.data.remote import shown_place
from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import (
    CodedRows,
    Id,
    NamedRows,
    Request,
    StoredRows,
    StoreLayout,
    foreign,
)
from firstk.search.stores.filters import where_of
from firstk.search.stores.named_columns import stored
from firstk.search.stores.sqlite_rows import RowsTable, SqliteEngine, condition

_ROWS, _TABLE = "rows.sqlite", "documents"
_BLOCK = 10_000


@dataclass(frozen=True, eq=False)
class IndexFolder(SqliteEngine):
    """A folder of rows and an index; a library defines how the index is made, saved and searched.

    Attributes
    ----------
    folder : path
    """

    folder: str | Path
    _state: dict[str, Any] = field(default_factory=dict, repr=False)

    name: ClassVar[str]
    ending: ClassVar[str]
    raises = (*SqliteEngine.raises, RuntimeError, TypeError, AssertionError)

    # -- what a library defines ------------------------------------------------------------------------------------

    @abstractmethod
    def _new(self, layout: StoreLayout) -> Any:
        """Return an empty index of short codes."""

    @abstractmethod
    def _load(self, path: Path, layout: StoreLayout) -> Any:
        """Read an index from a file."""

    @abstractmethod
    def _save(self, index: Any, path: Path) -> None:
        """Write an index to a file."""

    @abstractmethod
    def _add(self, index: Any, keys: np.ndarray, codes: np.ndarray, layout: StoreLayout) -> Any:
        """Add short codes under keys that are new; return the index."""

    @abstractmethod
    def _nearest(self, index: Any, query: np.ndarray, count: int, allowed: np.ndarray | None) -> np.ndarray:
        """Return the keys of the nearest short codes, among those allowed."""

    @abstractmethod
    def _opened_file(self) -> tuple[Sequence[int], Callable[[int, Any], np.ndarray], int, str | None]:
        """Return the keys of an index that another program saved, vectors by place and key, their width, the metric."""

    # -- what is the same for all ------------------------------------------------------------------------------------

    @classmethod
    def connect(cls, address: str, *_: str, **settings: Any) -> IndexFolder:
        """Open a folder."""
        return cls(address, **settings)

    @property
    def place(self) -> str:
        """What error messages call it."""
        return f"The {self.name} store '{shown_place(self.folder)}'"

    @cached_property
    def connection(self) -> sqlite3.Connection:
        """The file of rows."""
        with self.answering():
            Path(self.folder).mkdir(parents=True, exist_ok=True)
            found = sqlite3.connect(Path(self.folder) / _ROWS, isolation_level=None, check_same_thread=False)
            found.execute("PRAGMA busy_timeout = 10000")
        return found

    @property
    def _rows(self) -> RowsTable:
        return RowsTable(self.connection, _TABLE)

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is in the file of rows."""
        if Path(self.folder).is_file():  # an index that another program saved
            raise foreign(self.place)
        if "connection" not in self.__dict__ and not (Path(self.folder) / _ROWS).exists():
            return None
        return self._rows.layout(self.place)

    def create(self, layout: StoreLayout) -> None:
        """Create the file of rows."""
        self._forget_index()
        with self._rows.transaction():
            self._rows.create(layout)

    def drop(self) -> None:
        """Delete index and rows, in this order: an index that outlives its rows would be taken for that of others."""
        self._forget_index()
        if self.layout() is not None:
            with self._rows.transaction():
                self._rows.drop()

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open the file of an index that another program saved; there are no payloads."""
        if not Path(self.folder).is_file():
            raise InvalidInputError(
                f"There is no {self.name} store and no {self.name} file '{shown_place(self.folder)}'. Check the name."
            )
        keys, codes_at, width, metric = self._opened_file()

        def read(size: int) -> Iterator[StoredRows]:
            for start in range(0, len(keys), size):
                part = keys[start : start + size]
                yield stored(np.asarray(part).tolist(), codes_at(start, part), [{}] * len(part))

        return NamedRows(len(keys), width, "vectors", read, metric)

    def _forget_index(self) -> None:
        self._state.pop("index", None)
        for path in Path(self.folder).glob(f"index-*{self.ending}*"):
            path.unlink(missing_ok=True)

    def upsert(self, rows: CodedRows) -> None:
        """Write rows in one transaction; the index follows when it is needed."""
        with self._rows.transaction():
            self._rows.upsert(rows)

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows in one transaction."""
        with self._rows.transaction():
            self._rows.delete(ids)

    def finish(self) -> None:
        """Bring the index up to date, and save it under the number of the last write."""
        layout = self.layout()
        if layout is None:
            return
        index, last, version = self._index(layout)
        path = Path(self.folder) / f"index-{version}-{last}{self.ending}"
        if not _is_whole(path):
            with atomic_file(path, f"An index of {self.name}") as temporary:
                self._save(index, temporary)
                digest = _sha256(temporary)
            with atomic_file(_seal(path), "A checksum") as temporary:
                temporary.write_text(digest)
        for old in Path(self.folder).glob(f"index-*{self.ending}*"):
            if old not in (path, _seal(path)):
                old.unlink(missing_ok=True)

    def _index(self, layout: StoreLayout) -> tuple[Any, int, int]:
        """Return the index of all rows, the last key in it, and the number of the last write."""
        version, rewritten = self._rows.versions()
        if "index" not in self._state:
            self._state["index"] = self._saved(layout)
        index, last, seen = self._state["index"]
        if seen < rewritten or index is None:
            index, last = self._new(layout), -1
        if seen != version or last < 0:
            for keys, rows in self._rows.read(_BLOCK, last):
                index = self._add(index, np.array(keys, np.int64), self._short(rows.codes, layout), layout)
                last = keys[-1]
        self._state["index"] = index, last, version
        return index, last, version

    def _saved(self, layout: StoreLayout) -> tuple[Any, int, int]:
        """Return the newest index on disk that is what was written; without one it is made again."""
        found = []
        for path in Path(self.folder).glob(f"index-*{self.ending}"):
            with contextlib.suppress(ValueError):
                version, last = map(int, path.name.removesuffix(self.ending).split("-", 2)[1:])
                found.append((version, last, path))
        for version, last, path in sorted(found, reverse=True):
            with contextlib.suppress(RuntimeError, OSError, ValueError, TypeError, AssertionError):
                if not _is_whole(path):
                    continue
                return self._load(path, layout), last, version
        return None, -1, -1

    @staticmethod
    def _short(codes: np.ndarray, layout: StoreLayout) -> np.ndarray:
        short = np.ascontiguousarray(codes[:, : layout.short], dtype=np.float32)
        return unit_rows(short) if layout.compared == "cosine" else short

    def shortlists(self, request: Request, layout: StoreLayout) -> Iterator[StoredRows]:
        """Find by the index."""
        where, values = where_of(request.where, request.native, condition)
        allowed = self._rows.matching(where, values) if where else None
        count = self._rows.count() if allowed is None else len(allowed)
        index = self._index(layout)[0] if count else None
        for short in request.short:
            keys = self._nearest(index, short, min(request.shortlist, count), allowed).tolist() if count else []
            rows = self._rows.fetch(keys)
            yield rows if request.full is not None else rows._replace(codes=rows.codes[:, : layout.short])

    def close(self) -> None:
        """Close the file of rows."""
        self._state.pop("index", None)
        super().close()


def _seal(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(path: Path) -> bool:
    """Tell whether a file is the one whose checksum lies beside it."""
    try:
        return _seal(path).read_text() == _sha256(path)
    except (OSError, ValueError):
        return False
