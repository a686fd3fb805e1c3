"""Targets of a move: stores and files. What was written before an interruption is found again, and kept."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base.atomic_file import explained_os_errors
from firstk._base.input_file import Stamp
from firstk.data import read_precision, resolve_precision
from firstk.data.files import (
    FORMATS,
    RECORD,
    Batch,
    Carried,
    CodeRecord,
    Layout,
    ShardLog,
    VectorTable,
    check_columns,
    code_layout,
    creating,
    exactly,
    fitting_columns,
    format_of,
    must_be_restored,
    open_vectors,
)
from firstk.data.remote import RemotePath, place_of, shown_place
from firstk.exceptions import InvalidInputError
from firstk.search.moving.payload_columns import PayloadColumns
from firstk.search.moving.recoding import Recode, for_file, for_store
from firstk.search.moving.sources import AnySource, FileSource, SourceFacts, TableRows
from firstk.search.stores.contract import CodedRows, Engine, Id, StoredRows
from firstk.search.stores.prefix_store import check_same, create_empty

# Numbers of a part of a file: what is done again at most after a kill, and what waits in memory.
_PART_NUMBERS = 4_000_000
# Rows that rounding is fitted on, and rows that are read at once for it.
_SAMPLE_ROWS, _SAMPLE_BATCH = 65_536, 8192
# Formats whose cells are text.
_TEXT = ("csv", "csv.gz", "tsv", "tsv.gz")


class StoreTarget:
    """A store, which firstk creates; rows are written under their ids.

    Parameters
    ----------
    engine : Engine
    facts : SourceFacts
    recode : Recode
    owned : bool
        Whether `close` closes the engine.
    """

    compared, complete = ("rows", "ids", "payloads", "codes"), False
    left_out: tuple[str, ...] = ()

    def __init__(self, engine: Engine, facts: SourceFacts, recode: Recode, *, owned: bool = False):
        self._engine, self._owned, self.written = engine, owned, 0
        self.layout, self._cut = for_store(facts, recode)
        self.place, self.k, self.precision = engine.place, self.layout.width, engine.precision_of(self.layout)
        self.bytes_per_vector = resolve_precision(self.precision, "move").bytes_per_vector(self.k)
        self.unit = self.layout.compared == "cosine"
        self._resuming = False

    def begin(self, source: AnySource, *, resume: bool, force: bool) -> None:
        """Create the store, or go on with one of the same layout."""
        with self._engine.answering():
            there = self._engine.layout()
            rows = 0 if there is None else self._engine.count()
        if there is None or force:
            create_empty(self._engine, self.layout, replace=force)
            return
        check_same(self.place, there, self.layout)
        if rows and not resume:
            raise InvalidInputError(
                f"{self.place} is there already, with {rows:,} rows. Go on with an interrupted move by resume=True "
                "(--resume), replace it by force=True (--force), or choose another name."
            )
        self._resuming = rows > 0

    def rows_of(self, source: AnySource, size: int) -> Iterator[StoredRows]:
        """Yield rows of a source as `write` takes them."""
        return source.read(size)

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        """Return the longest codes."""
        short, full = self._cut(vectors)
        return short if full is None else full

    def write(self, rows: StoredRows) -> StoredRows:
        """Write rows whose ids are not there."""
        names = set().union(*rows.payloads) & self._engine.reserved
        if names:
            raise InvalidInputError(
                f"{self.place} cannot hold the name {min(names)!r} in a payload. Leave it out: columns=... (--columns)."
            )
        coded = CodedRows(rows.ids, *self._cut(rows.codes), rows.payloads)
        with self._engine.answering():
            new = coded.without(self._engine.present(rows.ids)) if self._resuming else coded
            if len(new):
                self._engine.upsert(new)
        self.written += len(new)
        kept = coded.longest
        if self.precision == "binary":
            kept = np.where(kept > 0, np.float32(1), np.float32(-1))
        return StoredRows(rows.ids, kept, rows.payloads)

    def finish(self) -> None:
        """Build what is built once."""
        with self._engine.answering():
            self._engine.finish()

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield all rows."""
        with self._engine.answering():
            yield from self._engine.read(size)

    def close(self) -> None:
        """Close what was opened here."""
        if self._owned:
            self._engine.close()


class FileTarget:
    """A file, or a folder of files: written in parts beside it, which become the file when all are there.

    After a kill, parts whose rows come again as they were are kept. The parts of a folder are its files.
    """

    unit, precision = False, "float32"  # as rows are compared: rounding has been done before

    def __init__(self, path: str | Path, facts: SourceFacts, recode: Recode):
        self.path, self._facts, self.written = place_of(path), facts, 0
        self.place = f"'{shown_place(path)}'"
        self.left_out: tuple[str, ...] = ()
        known = any(self.path.name.lower().endswith(form.endings) for form in FORMATS)
        self._folder = not known
        self._form = format_of(self.path if known else "part.parquet")
        self.encoding = for_file(facts, recode)
        self.k = self.encoding.k
        self.bytes_per_vector = self.encoding.precision.bytes_per_vector(self.k)
        self._part_rows = max(1, _PART_NUMBERS // max(facts.width, self.k))
        # Ids, codes and columns of a part, and how many rows these are.
        self._waiting: list[tuple[list[Id], np.ndarray, Mapping[str, np.ndarray]]] = []
        self._rows, self._sent = 0, 0
        self._parts: list[str] = []
        # Names of columns besides the vectors; where they are another file's, they are taken as they are.
        self._names: tuple[str, ...] = ()
        self._payloads: PayloadColumns | None = None

    def begin(self, source: AnySource, *, resume: bool, force: bool) -> None:
        """Learn the columns and the rounding from the source, and open the folder of parts."""
        target = self.path if self._folder else self.path.with_name(self.path.name + ".parts")
        first = next(self.rows_of(source, _SAMPLE_BATCH), None)
        if isinstance(first, TableRows):
            every = tuple(first.columns)
            names = every if self._form.holds == "nothing" else fitting_columns(self._form, every, first.columns)
            self._names = names
            self.left_out = tuple(name for name in every if name not in names)
            self._name = self._facts.vectors
        else:
            parts, typed = source.read(_SAMPLE_BATCH), self._form.name not in _TEXT
            self._payloads = PayloadColumns.of(parts, self._facts.place, self._facts.key, typed=typed)
            self._names = names = self._payloads.names
            self._name = self._facts.vectors if self._facts.vectors not in names else f"{self._facts.vectors}_"
        self._check_room()
        job = self.encoding.facts() | {
            "precision": self.encoding.precision.name,
            "vectors": self._name,
            "columns": list(self._names) if self._payloads is None else dict(self._payloads.kinds),
            "format": self._form.name,
            "source": self._facts.place,
        }
        self.complete = not self._folder and self.path.exists() and not force
        if self.complete:
            if not resume:
                raise InvalidInputError(
                    f"{self.place} is there already. Replace it by force=True (--force), or choose another name."
                )
            # A file appears when it is complete: what was killed after that has still to be compared.
            self._adopt(open_vectors(self.path, self._column_of(self.path)))
            return
        if force and not resume:
            if self._folder:
                _check_own(target)
                _remove(target)
            _remove(ShardLog(target, job).temporary)
        self._log = ShardLog.begin(target, job, resume=resume)
        self.complete = self._log.complete
        if self._log.learned:
            self.encoding = replace(self.encoding, precision=read_precision(self._log.learned))
        else:
            if self.encoding.to_fit:
                some = islice(source.read(_SAMPLE_BATCH), _SAMPLE_ROWS // _SAMPLE_BATCH)
                self.encoding = self.encoding.fitted(np.concatenate([self.encoding.encode(one.codes) for one in some]))
            self._log.learned = self.encoding.precision.record()
            self._log.write()

    def _adopt(self, there: VectorTable) -> None:
        """Take the rounding of a file that is there, as an earlier run fitted it."""
        why = None if there.width == self.k else f"its codes have {there.width} numbers in place of {self.k}"
        if why is None and self.encoding.to_fit:  # scales and thresholds are in the file
            if (record := CodeRecord.read(self.path, there.metadata)) is None:
                why = "it has no record of how its codes were rounded"
            else:
                self.encoding = replace(self.encoding, precision=record.precision)
        if why is not None:
            raise InvalidInputError(
                f"{self.place} does not hold what was moved to it: {why}. Move again with force=True (--force)."
            )

    def _layout(self) -> Layout:
        # Floats can do without a note, and formats without room for one are fine for them.
        facts = self.encoding.facts() if self._form.notes else None
        return code_layout(self._name, self.encoding.precision, self.k, self._names, facts)

    def _check_room(self) -> None:
        """Raise an error for a format that cannot hold ids and payloads, or how codes were rounded."""
        precision, names = self.encoding.precision, self._names
        if self._form.holds == "nothing" and names:
            raise InvalidInputError(
                f"A file of format {self._form.name} holds vectors only, and others would be lost: {', '.join(names)}. "
                "Move to parquet, arrow, jsonl or csv; columns of a file may be left out (columns=[], --columns '')."
            )
        if must_be_restored(precision) and not self._form.notes:
            raise InvalidInputError(
                f"{self._form.name} cannot store the {precision.name} scale; use parquet, arrow, npz or safetensors."
            )
        check_columns(self._form, self.path, Layout(self._name, self.k, np.dtype(np.float32), names))

    @property
    def compared(self) -> tuple[str, ...]:
        """What of it is compared with the source."""
        return ("rows", "codes") if self._payloads is None else StoreTarget.compared

    def rows_of(self, source: AnySource, size: int) -> Iterator[Any]:
        """Yield rows of a source as `write` takes them: of another file, columns as they are."""
        return source.tables(size) if isinstance(source, FileSource) else source.read(size)

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        """Return codes before they are rounded."""
        return self.encoding.encode(vectors)

    def write(self, rows: Any) -> StoredRows:
        """Encode rows and add them to the part that is being filled."""
        n = len(rows.ids)
        codes, _ = self.encoding(Batch(rows.codes, {}, np.arange(n)))
        columns = rows.columns if self._payloads is None else self._payloads.arrays(rows)
        start = 0
        while start < n:
            stop = min(n, start + self._part_rows - self._rows)
            some = np.arange(start, stop)
            part: Mapping[str, np.ndarray] = columns
            if isinstance(columns, Carried):
                part = columns.take(some)
            elif len(some) < n:
                part = {name: columns[name][some] for name in columns}
            self._waiting.append((rows.ids[start:stop], codes[start:stop], part))
            self._rows, start = self._rows + len(some), stop
            if self._rows == self._part_rows:
                self._flush()
        restored = self.encoding.precision.restore(codes) if must_be_restored(self.encoding.precision) else codes
        restored = restored.astype(np.float32)
        if self._payloads is None:
            self._sent += n
            return StoredRows(list(range(self._sent - n, self._sent)), restored, [{}] * n)
        return StoredRows(rows.ids, restored, [self._payloads.read_back(one) for one in rows.payloads])

    def _flush(self) -> None:
        """Write a part, unless it is there with the same rows."""
        name = f"part-{len(self._parts):06d}{self._form.endings[0]}"
        waiting, rows, self._waiting, self._rows = self._waiting, self._rows, [], 0
        ids = [key for keys, _, _ in waiting for key in keys]
        held = [[value for *_, one in waiting for value in exactly(one, column).tolist()] for column in self._names]
        digest = hashlib.blake2b(repr((ids, held)).encode("utf-8", "surrogatepass"), digest_size=7).digest()
        # The stamp of a source is its size and time; a part's is the number of its rows and a hash of them.
        stamp = Stamp(0, 0, rows, int.from_bytes(digest, "little"))
        self._parts.append(name)
        if (self.complete and not self._folder) or self._log.finished(name, stamp):
            return
        if self.complete:
            raise InvalidInputError(f"{self.place} is complete, and its source was changed since. Choose another name.")
        with creating(self._log.folder / name, self._layout()) as writer:
            for _, codes, columns in waiting:
                writer.write(codes, columns)
        self._log.add(name, stamp, rows)
        self.written += rows

    def finish(self) -> None:
        """Write the last part, and make the file of the parts."""
        if self._rows:
            self._flush()
        if self._folder:
            self._log.finish()
        elif not self.complete:
            with creating(self.path, self._layout()) as writer:
                for name in self._parts:
                    part = self._log.folder / name
                    table = open_vectors(part, self._column_of(part), beside=self._names).as_stored()
                    for batch in table.batches(columns=table.columns):
                        writer.write(batch.vectors.astype(self._layout().dtype, copy=False), batch.columns)
            _remove(self._log.folder)

    def _column_of(self, path: Path | RemotePath) -> str | None:
        """Return the name to open vectors by: text formats have a column a coordinate, called by it."""
        return None if self._form.notes else self._name

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield all rows of the file."""
        names = self._names
        table = open_vectors(self.path, self._column_of(self.path), beside=names)
        rows = 0
        for batch in table.batches(size, () if self._payloads is None else table.columns):
            codes, rows = batch.vectors.astype(np.float32), rows + len(batch)
            if self._payloads is None:
                yield StoredRows(list(range(rows - len(batch), rows)), codes, [{}] * len(batch))
                continue
            columns = {name: exactly(batch.columns, name) for name in table.columns}
            if self._form.name not in _TEXT:
                columns = {name: np.asarray(batch.columns[name]) for name in table.columns}
            ids = columns.pop(self._facts.key).tolist()
            if self._facts.ids == "int":
                ids = [int(key) for key in ids]
            yield StoredRows(ids, codes, self._payloads.payloads(columns, len(ids)))

    def close(self) -> None:
        """Nothing stays open."""


def _check_own(folder: Path | RemotePath) -> None:
    """Raise InvalidInputError for a folder that firstk did not write, which is not to be deleted with what is in it."""
    if folder.exists() and not (folder / RECORD).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InvalidInputError(
            f"'{folder}' is there already, and firstk did not make it: it has no {RECORD}. Choose another name, or "
            "remove it yourself."
        )


def _remove(folder: Path | RemotePath) -> None:
    if isinstance(folder, RemotePath):
        folder.remove_files()
        return
    if folder.is_symlink():
        raise InvalidInputError(
            f"'{folder}' is a link, and what it leads to is not deleted. Remove the link, or choose another name."
        )
    with explained_os_errors(folder), contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
