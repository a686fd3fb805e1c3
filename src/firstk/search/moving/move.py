"""Rows read from one place, encoded, written to another, and compared: the loop of a move."""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from firstk._base.checks import check_count
from firstk._base.concurrency import prefetch
from firstk.data.remote import place_of, shown
from firstk.exceptions import InvalidInputError
from firstk.search.moving.checksum import Checksum
from firstk.search.moving.recoding import Recode, stays_stored
from firstk.search.moving.sources import AnySource, FileSource, SourceSample, open_source
from firstk.search.moving.targets import FileTarget, StoreTarget
from firstk.search.stores import connect, engine_class, is_address, place_and_name
from firstk.search.stores.contract import Engine

_OWNER = "move"
Progress = Callable[[int], object]
# Rows from which a plan estimates time.
_SAMPLE = 2000


@dataclass(frozen=True)
class Moved:
    """What was done.

    Attributes
    ----------
    source, target : str
        Without credentials.
    rows : int
        In the target, each once.
    written, there_before : int
        By this run, and by earlier ones.
    dropped : int
        Rows left out for NaN.
    width, k : int
        Numbers of a vector in the source, and coordinates of the longest code in the target.
    bytes_per_vector : int
        Of the longest code.
    source_bytes_per_vector : int
        Of a vector or code in the source; of vectors as float32.
    decoded_from : str or None
        The precision of codes that were decoded on the way; None where none were.
    checksum : str
        Of ids and payloads, the same on both sides; empty from file to file, where columns are copied as they are.
    verified : bool
        Whether the target was read back and compared.
    compared : tuple of str
        What of it was compared: "rows", "codes" and, unless both are files, "ids" and "payloads".
    left_out : tuple of str
        Columns that the target's format has no room for.
    seconds : float
    """

    source: str
    target: str
    rows: int
    written: int
    there_before: int
    dropped: int
    width: int
    k: int
    bytes_per_vector: int
    source_bytes_per_vector: int
    decoded_from: str | None
    checksum: str
    verified: bool
    compared: tuple[str, ...]
    left_out: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class MovePlan:
    """What a move would do, from the facts of the source and a sample of its rows; nothing was written.

    Attributes
    ----------
    source, target : str
    rows, width, k : int
    source_bytes, target_bytes : int
        Of vectors and codes, without ids, payloads and indexes.
    sampled : int
        Rows that were read, encoded and, where `writing` is known, written to a scratch place.
    reading, writing : float or None
        Estimated seconds of reading and encoding, and of writing and reading back; None where it was not tried,
        because the target is a server.
    """

    source: str
    target: str
    rows: int
    width: int
    k: int
    source_bytes: int
    target_bytes: int
    sampled: int
    reading: float
    writing: float | None


def move(
    source: str | Path | Engine,
    target: str | Path | Engine,
    recode: Recode | None = None,
    *,
    vectors: str | None = None,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    nan: str = "refuse",
    batch: int = 1000,
    resume: bool = False,
    force: bool = False,
    verify: bool = True,
    begin: Progress = lambda rows: None,
    progress: Progress = lambda rows: None,
) -> Moved:
    """Move vectors with ids and payloads from one place to another, encoded on the way.

    The source is only read. Rows go in batches, in bounded memory, and each is in the target once: after an
    interruption, the same call with ``resume=True`` goes on. At the end the target is read back, and the number of
    rows and checksums of ids, payloads and codes are compared with those of what was read. From file to file, columns
    are copied as they are, and rows and codes are compared.

    Parameters
    ----------
    source, target : str, path or Engine
        The address of a store (``postgresql://me@host/search#documents``, ``qdrant:folder#documents``, ...; see
        `firstk.search.stores.connect`), an engine, or a file, folder or URL as `open_vectors` takes it. A source
        may be a table that firstk did not make; a target is created.
    recode : Recode, optional
        What vectors become; without one they stay as they are.
    vectors, ids : str, optional
        Columns of vectors and of ids in the source, where it does not say. Rows of a file without ids are numbered.
    columns : sequence of str, optional
        Names that travel along as the payload; all if not given.
    nan : {"refuse", "drop"}
        What happens to vectors of a file with NaN.
    batch : int
        Rows that are encoded and written at a time.
    resume : bool
        Go on with an interrupted move to the same target: rows that are there are kept.
    force : bool
        Replace the target. What firstk did not make stays, and raises an error.
    verify : bool
        Read the target back and compare.
    begin, progress : callable (rows) -> None
        Told how many rows there are, and how many have just been done.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from firstk import PrefixEncoder
    >>> from firstk.data.files import write_vectors
    >>> X = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    >>> encoder = PrefixEncoder(4).fit(X)
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_vectors(f"{folder}/rows.npz", X, {"id": np.arange(100)})
    >>> moved = move(f"{folder}/rows.npz", f"faiss:{folder}/store", Recode(encoder, k=2))  # doctest: +SKIP
    >>> moved.rows, moved.k, moved.verified  # doctest: +SKIP
    (100, 2, True)
    """
    start, recode = time.perf_counter(), recode or Recode()
    batch = check_count(batch, "batch", _OWNER)
    here, there = _located(source), _located(target)
    if here == there or (isinstance(here, Path) and isinstance(there, Path) and there in here.parents):
        raise InvalidInputError(  # to replace the target would delete the source
            "The target is the same place as the source, or a folder around it. Choose another name for the target."
        )
    with _both_sides(source, target, recode, vectors=vectors, ids=ids, columns=columns, nan=nan) as (opened, into):
        facts = opened.facts
        begin(facts.rows)
        sent = _copied(opened, into, batch, resume, force, verify, progress)
        stored = isinstance(into, FileTarget) and stays_stored(facts, recode)
        return Moved(
            source=facts.place,
            target=into.place,
            rows=sent.rows,
            written=into.written,
            there_before=sent.rows - into.written,
            dropped=facts.rows - sent.rows,
            width=facts.width,
            k=into.k,
            bytes_per_vector=into.bytes_per_vector,
            source_bytes_per_vector=facts.bytes_per_vector,
            decoded_from=facts.precision if facts.rounded and not stored else None,
            checksum=sent.text if "ids" in into.compared else "",
            verified=verify,
            compared=into.compared if verify else (),
            left_out=into.left_out,
            seconds=time.perf_counter() - start,
        )


def _copied(
    source: AnySource,
    into: StoreTarget | FileTarget,
    batch: int,
    resume: bool,
    force: bool,
    verify: bool,
    progress: Progress = lambda rows: None,
) -> Checksum:
    """Copy all rows, encoded on the way, read them back and compare; return the checksum of what was sent."""
    into.begin(source, resume=resume, force=force)
    sent, found = (Checksum(into.k, unit=into.unit, precision=into.precision) for _ in range(2))
    with closing(prefetch(into.rows_of(source, batch))) as parts:
        for rows in parts:
            if len(rows.ids):
                sent.add(*into.write(rows))
            progress(len(rows.ids))
    into.finish()
    if verify or into.complete:  # a file of that name may be another's
        for rows in into.read(batch):
            found.add(*rows)
        if (why := sent.difference(found)) is not None:
            raise InvalidInputError(
                f"{into.place} does not hold what was moved to it: {why}. If the source or the target was changed, "
                "move again with force=True (--force), which replaces the target."
            )
    return sent


def plan(
    source: str | Path | Engine,
    target: str | Path | Engine,
    recode: Recode | None = None,
    *,
    vectors: str | None = None,
    ids: str | None = None,
    columns: Sequence[str] | None = None,
    nan: str = "refuse",
    batch: int = 1000,
) -> MovePlan:
    """Return what `move` would do with the same arguments, without writing to the target.

    Time is estimated from the first 2,000 rows: they are read and encoded and, where the target is a file or a store
    on this machine, written to a scratch place of the same kind and read back.
    """
    recode = recode or Recode()
    batch = check_count(batch, "batch", _OWNER)
    size = min(batch, _SAMPLE)
    with _both_sides(source, target, recode, vectors=vectors, ids=ids, columns=columns, nan=nan) as (opened, into):
        facts, start = opened.facts, time.perf_counter()
        sample = [rows for rows in islice(into.rows_of(opened, size), -(-_SAMPLE // size)) if len(rows.ids)]
        if not sample:
            raise InvalidInputError(f"{facts.place} has no usable row among the first.")
        for one in sample:
            into.encode(one.codes)
        reading, writing = time.perf_counter() - start, None
        if isinstance(target, (str, Path)) and "://" not in str(target):  # servers are not touched
            with tempfile.TemporaryDirectory() as folder:
                place = f"{folder}/{Path(target).name or 'scratch'}"
                if is_address(str(target)):
                    place = f"{str(target).partition(':')[0]}:{folder}/scratch.db#scratch"
                part = SourceSample(facts, sample)
                with closing(_target(place, part, recode)) as scratch:
                    start = time.perf_counter()
                    _copied(part, scratch, _SAMPLE, resume=False, force=False, verify=True)
                    writing = time.perf_counter() - start
        rows = sum(len(one.ids) for one in sample)
        return MovePlan(
            source=facts.place,
            target=into.place,
            rows=facts.rows,
            width=facts.width,
            k=into.k,
            source_bytes=facts.rows * facts.bytes_per_vector,
            target_bytes=facts.rows * into.bytes_per_vector,
            sampled=rows,
            reading=reading / rows * facts.rows,
            writing=None if writing is None else writing / rows * facts.rows,
        )


# -- the two sides -----------------------------------------------------------------------------------------------------


@contextmanager
def _both_sides(
    source: str | Path | Engine, target: str | Path | Engine, recode: Recode, **named: Any
) -> Iterator[tuple[AnySource, StoreTarget | FileTarget]]:
    """Open a source, which yields stored bytes where these go from file to file, and a target."""
    with closing(open_source(source, **named)) as opened:
        to_file = isinstance(target, (str, Path)) and not is_address(str(target))
        if isinstance(opened, FileSource) and to_file and stays_stored(opened.facts, recode):
            opened = opened.as_stored()
        with closing(_target(target, opened, recode)) as into:
            yield opened, into


def _target(target: str | Path | Engine, source: AnySource, recode: Recode) -> StoreTarget | FileTarget:
    if not isinstance(target, (str, Path)):
        if recode.precision is not None:
            raise InvalidInputError("The precision of an engine is set where it is made. Leave it out of 'recode'.")
        return StoreTarget(target, source.facts, recode)
    if not is_address(str(target)):
        return FileTarget(target, source.facts, recode)
    kind, settings = engine_class(str(target)), {}
    if recode.precision is not None:
        if recode.precision not in kind.precisions:
            *some, last = kind.precisions
            taken = f"{', '.join(some)} or {last}" if some else f"{last} only"
            raise InvalidInputError(
                f"'precision' (--precision) is {recode.precision!r}, and {kind.__name__} indexes codes as {taken}. "
                "Leave it out for float32, or move to a file, which can hold codes in any precision."
            )
        settings = {"precision": recode.precision} if len(kind.precisions) > 1 else {}
    engine = connect(str(target), **settings)
    try:
        return StoreTarget(engine, source.facts, recode, owned=True)
    except BaseException:
        engine.close()
        raise


def _located(place: object) -> object:
    """Return where a place is, equal for two ways to write it: paths are resolved, and users of servers left out."""
    if not isinstance(place, (str, Path)):
        return place
    if not is_address(str(place)):
        return place_of(place).resolve()
    kind = engine_class(str(place))
    where, name = place_and_name(str(place).partition(":")[2])
    named = list(inspect.signature(kind.connect).parameters.values())[1]
    name = name or named.default if named.kind is named.POSITIONAL_OR_KEYWORD else ""  # a folder may be one store
    return kind, shown(f"of:{where}").lower() if where.startswith("//") else Path(where).resolve(), name
