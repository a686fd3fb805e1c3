"""Sources of a move: tables of files, stores that firstk filled, and tables of other programs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from firstk.bits import Embedded
from firstk.data import CodeStamp
from firstk.data.files import CodeRecord, VectorTable, is_bit_string, must_be_restored, open_vectors
from firstk.exceptions import InvalidInputError
from firstk.integrations import ID_COLUMN, Documents
from firstk.search.stores import check_store, connect, is_address
from firstk.search.stores.contract import Engine, ForeignStoreError, Id, StoredRows
from firstk.search.stores.incoming import Incoming, plain_id, plain_payload

_OWNER = "move"


@dataclass(frozen=True)
class SourceFacts:
    """What is known of a source before its rows are read.

    Attributes
    ----------
    place : str
        What messages call it, without credentials.
    rows : int
        Those without a usable vector included.
    width : int
        Numbers of a vector.
    ids : str
        "int" or "text".
    vectors : str
        Name of the vectors.
    key : str
        Name of the ids, for a file.
    stamp : CodeStamp or None
        Who made the codes; None for vectors that no encoder of firstk made.
    metric : str or None
        By which the source compares them, where it knows.
    unit : bool
        Whether they are codes that were brought to unit norm.
    held : CodeRecord or None
        What a file says about how its codes are stored.
    short : int or None
        Length of the indexed prefix, in a store that has a longer code for reranking.
    """

    place: str
    rows: int
    width: int
    ids: str
    vectors: str = "vectors"
    key: str = "id"
    stamp: CodeStamp | None = None
    metric: str | None = None
    unit: bool = False
    held: CodeRecord | None = None
    short: int | None = None

    @property
    def coded(self) -> bool:
        """Whether an encoder made them."""
        return self.stamp is not None and not self.stamp.raw

    @property
    def bits(self) -> bool:
        """Whether they are embedded bits of an encoder, which stand for coordinates of their own."""
        return self.coded and self.held is not None and is_bit_string(self.held.precision)

    @property
    def rounded(self) -> bool:
        """Whether what is stored has to be decoded to be codes."""
        return self.held is not None and must_be_restored(self.held.precision)

    @property
    def precision(self) -> str:
        """Name of the precision in which the source keeps them."""
        return "float32" if self.held is None else self.held.precision.name

    @property
    def bytes_per_vector(self) -> int:
        """Bytes of a vector or code in the source; of vectors as float32."""
        return 4 * self.width if self.held is None else self.held.precision.bytes_per_vector(self.width)


def open_source(
    place: str | Path | Engine,
    *,
    vectors: str | None = None,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    nan: str = "refuse",
) -> StoreSource | FileSource:
    """Open an address of a store, an engine, or whatever `open_vectors` opens."""
    if not isinstance(place, (str, Path)):
        return StoreSource(place, vectors, ids, columns)
    if isinstance(place, str) and is_address(place):
        check_store(place)
        engine = connect(place)
        try:
            return StoreSource(engine, vectors, ids, columns, owned=True)
        except BaseException:
            engine.close()
            raise
    return FileSource(open_vectors(place, vectors, beside=() if ids is None else (ids,), nan=nan), ids, columns)


class StoreSource:
    """Rows of a store: codes that firstk wrote, or vectors that others did.

    Parameters
    ----------
    engine : Engine
    vectors, ids : str, optional
        Columns, in a table that firstk did not make.
    columns : sequence of str, optional
        Names of the payload that travel along; all if not given.
    owned : bool
        Whether `close` closes the engine.
    """

    def __init__(
        self, engine: Engine, vectors: str | None, ids: str | None, columns: Sequence[str] | None, owned: bool = False
    ):
        self._engine, self._columns, self._owned = engine, columns, owned
        try:
            with engine.answering():
                layout = engine.layout()
        except ForeignStoreError:
            with engine.answering():
                layout, found = None, engine.read_columns(vectors, ids)
            self._read = found.read
            facts = SourceFacts(engine.place, found.rows, found.width, "int", found.vectors, metric=found.metric)
        else:
            if layout is None:
                raise InvalidInputError(f"{engine.place} is not there. Check the name behind '#'.")
            if vectors is not None or ids is not None:
                raise InvalidInputError(
                    f"{engine.place} was filled by firstk, and has its ids and codes where they belong. Leave out the "
                    "names of columns: vectors= and ids=."
                )
            self._read = engine.read
            with engine.answering():
                rows = engine.count()
            facts = SourceFacts(
                engine.place,
                rows,
                layout.width,
                layout.ids,
                "code",
                stamp=layout.stamp,
                metric=layout.metric,
                unit=layout.unit,
                short=None if layout.full is None else layout.short,
            )
        if not facts.rows:
            raise InvalidInputError(f"{engine.place} has no rows: there is nothing to move.")
        if layout is None:
            first = next(iter(self.read_checked(1))).ids[0]
            facts = SourceFacts(**vars(facts) | {"ids": "int" if isinstance(first, int) else "text"})
        self.facts = facts

    def read_checked(self, size: int) -> Iterator[StoredRows]:
        """Yield rows whose ids and payloads any store can take."""
        for part in self._read(size):
            if not np.isfinite(part.codes).all():
                bad = part.ids[int(np.flatnonzero(~np.isfinite(part.codes).all(axis=1))[0])]
                raise InvalidInputError(f"{self._engine.place} has NaN or infinity in the vector of id {bad!r}.")
            ids = [plain_id(key, _OWNER) for key in part.ids]
            kept = [
                one if self._columns is None else {name: one[name] for name in one if name in self._columns}
                for one in part.payloads
            ]
            yield StoredRows(ids, part.codes, [plain_payload(one, key) for one, key in zip(kept, ids, strict=True)])

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield all rows."""
        kind = int if self.facts.ids == "int" else str
        with self._engine.answering():
            for part in self.read_checked(size):
                if odd := [key for key in part.ids if not isinstance(key, kind)]:
                    raise InvalidInputError(
                        f"{self._engine.place} mixes ids that are whole numbers and text, such as {odd[0]!r}. A store "
                        "has ids of one kind: move a table that has them, or name another column (--id)."
                    )
                yield part

    def close(self) -> None:
        """Close what was opened here."""
        if self._owned:
            self._engine.close()


class TableRows(NamedTuple):
    """Rows of a file that another file takes: their columns keep their types, which payloads need not have."""

    ids: list[Id]
    codes: np.ndarray
    columns: Mapping[str, np.ndarray]


class FileSource:
    """Rows of a table of files: a column is the id, or the number of the row; the others are the payload."""

    def __init__(self, table: VectorTable, ids: str | None, columns: Sequence[str] | None):
        self.table, self._rows = table, Incoming.of(Documents(table), ids, columns, _OWNER)
        record = CodeRecord.read(table.path, table.metadata)
        stamp = None if record is None else record.stamp
        metric = None if record is None else record.metric
        if record is not None and isinstance(record.precision, Embedded):
            # Embedded bits may have been cut since they were written: the record is of codes as long as they are.
            record = replace(record, precision=record.precision.at(table.facts.width))
        self.facts = SourceFacts(
            f"'{table.path}'",
            table.rows,
            table.width,
            self._rows.kind,
            table.vectors,
            self._rows.column or ID_COLUMN,
            stamp,
            metric,
            held=record,
        )

    def as_stored(self) -> FileSource:
        """Return a source that yields the bytes of codes, not what they stand for."""
        part = copy.copy(self)
        part.table = self.table.as_stored()
        part._rows = replace(self._rows, documents=Documents(part.table))
        return part

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield all rows that have a vector."""
        return self._rows.read(size)

    def tables(self, size: int) -> Iterator[TableRows]:
        """Yield the same rows under their numbers, with columns as the file has them, the ids among these."""
        kept = (*self._rows.columns, self._rows.column)
        wanted = tuple(name for name in self.table.columns if name in kept)
        for batch in self.table.batches(size, wanted):
            yield TableRows(batch.rows.tolist(), batch.vectors, batch.columns)

    def close(self) -> None:
        """Nothing stays open."""


@dataclass(frozen=True)
class SourceSample:
    """Some rows of a source, as a source."""

    facts: SourceFacts
    parts: Sequence[Any]

    def read(self, size: int) -> Iterator[Any]:
        """Yield them as they were read."""
        return iter(self.parts)

    def close(self) -> None:
        """Nothing stays open."""


AnySource: TypeAlias = StoreSource | FileSource | SourceSample
