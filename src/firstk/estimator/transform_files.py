"""Codes of a store of vectors of any size: read, encoded and written in a stream, in bounded memory.

One file gives one file. A folder of shards gives a folder of shards, of which finished ones are not done again. What is
under the name that was asked for is always whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from firstk._base.concurrency import cores, ordered_map
from firstk.data.files.contract import Batch, code_layout, must_be_restored
from firstk.data.files.shards import ShardLog, shard_names
from firstk.data.files.vector_columns import missing_column
from firstk.data.files.vector_table import FORMATS, VectorTable, format_of, open_vectors
from firstk.data.files.write import creating, fitting_columns
from firstk.data.precision import read_precision
from firstk.data.remote import is_remote, place_of
from firstk.encoder.code_map import CodeMap
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.estimator.encoding import Encoding, Wish, codes_of, encoding_of
from firstk.exceptions import InvalidInputError

# Numbers of a batch. Batches that are read, encoded or written are some more than cores, so this bounds memory.
_BATCH_NUMBERS = 1_000_000
# Rows from which a precision takes its scale, and files that they come from.
_SAMPLE_ROWS, _SAMPLED_FILES = 65_536, 16


@dataclass(frozen=True)
class Outcome:
    """What was done.

    Attributes
    ----------
    path : str
        What was written.
    rows, dropped : int
        Rows written by this run, and rows left out for NaN.
    files, finished_before : int
        Files written by this run, and those that an earlier one had finished.
    width, k : int
        Numbers of a vector, and coordinates of a code once it is read.
    precision : str
    metric : str or None
        What products of queries with codes serve, for embedded bits.
    cut : bool
        Whether codes were read, and their first bytes written.
    bytes_per_vector : int
        Of the stored code.
    left_out : tuple of str
        Columns that the format has no room for.
    clipped : int
        Numbers written by this run that were larger than any of the sample that int8 took its scale from, and are
        stored as the largest of it.
    fitted_on : int
        Rows on which this run fitted scales and thresholds; 0 where there are none, or they were taken over.
    like : str or None
        The file from which they were taken over.
    seconds : float
    """

    path: str
    rows: int
    dropped: int
    files: int
    finished_before: int
    width: int
    k: int
    precision: str
    bytes_per_vector: int
    left_out: tuple[str, ...]
    clipped: int
    fitted_on: int
    like: str | None
    seconds: float
    metric: str | None = None
    cut: bool = False


def transform_files(
    encoder: FittedEncoder | CodeMap | None,
    source: str | Path,
    target: str | Path,
    *,
    k: int | None = None,
    side: str | None = None,
    precision: str | None = None,
    bytes_per_vector: int | None = None,
    metric: str | None = None,
    like: str | Path | None = None,
    vectors: str | None = None,
    columns: Sequence[str] | None = None,
    nan: str = "refuse",
    resume: bool = False,
    progress: Callable[[int], object] = lambda rows: None,
) -> Outcome:
    """Write the codes of a file, a folder of shards or a pattern of names.

    Parameters
    ----------
    encoder : FittedEncoder, PrefixEncoder or CodeMap, optional
        None keeps the vectors as they are: their first k numbers, in that precision.
    source : path
        As `firstk.data.files.open_vectors` takes it.
    target : path
        A file, whose ending is its format; or a folder, which gets a file for each file of `source`.
    k : int, optional
        Coordinates to keep; all if not given.
    side : {"document", "query"}, optional
        Whose mean is subtracted; it matters for encoders fitted on pairs. Documents if not given.
    precision : {"float32", "float16", "int8", "int4", "binary", "embedded"}, optional
        float32 if not given. Scales and thresholds come from a sample of the codes, the first 65,536 (of a folder, of
        files evenly chosen), and are stored in the file. Larger numbers that come later are clipped, and counted. The
        cells of embedded bits are the encoder's own.
    bytes_per_vector : int, optional
        Store embedded bits of so many bytes, of which every prefix is a code; ``firstk.bits.quantizer`` explains
        them. They have no k. Where the encoder is None and `source` holds embedded bits, these are cut.
    metric : {"cosine", "inner_product", "l2"}, optional
        What products of queries with embedded bits serve; cosine if not given.
    like : path, optional
        A file that this function wrote: k, the precision, its scales and thresholds are taken from it. Queries must be
        rounded like the documents that they are compared with; those of embedded bits are float32 codes, whose
        products with the decoded bits are scores.
    vectors : str, optional
        The vector column, where there are several. It keeps its name.
    columns : sequence of str, optional
        Other columns that travel along; all if not given.
    nan : {"refuse", "drop"}
    resume : bool
        Go on with a folder that an earlier run did not finish.
    progress : callable (rows) -> None
        Told how many rows have just been done.

    Returns
    -------
    outcome : Outcome

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from firstk import PrefixEncoder, transform_files
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> encoder = PrefixEncoder(4).fit(X).encoder_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/vectors.npy", X)
    ...     outcome = transform_files(encoder, f"{folder}/vectors.npy", f"{folder}/short.npy", k=2)
    ...     np.load(f"{folder}/short.npy").shape
    (100, 2)
    >>> outcome.rows, outcome.k, outcome.bytes_per_vector
    (100, 2, 8)
    """
    start = time.perf_counter()
    if encoder is not None and not isinstance(encoder, CodeMap):
        encoder = check_fitted(encoder, "transform_files")
    table = open_vectors(source, vectors, nan=nan)
    wish = Wish(k, side, precision, bytes_per_vector, metric, like)
    encoding = encoding_of(encoder, table, wish)
    cut = encoder is None and wish.embedded and codes_of(table) is not None
    if cut:
        table = table.as_stored()
    for name in columns or ():
        if name not in table.columns:
            raise missing_column(table.path, name, table.columns)
    work = _Work(encoding, table.columns if columns is None else tuple(columns), progress)
    place = place_of(target)
    # Codes go to a folder where several files come in, and the name asked for is not that of a file.
    named = any(place.name.lower().endswith(form.endings) for form in FORMATS)
    folder = not named and not place_of(source).is_file()
    if folder:
        job = encoding.facts() | {
            "precision": encoding.precision.name,
            "vectors": table.vectors,
            "columns": list(work.columns),
            "nan": table.nan,
        }
        if encoding.like is not None:
            job["like"] = encoding.precision.record()
        log = ShardLog.begin(place, job, resume=resume)
        if log.learned:
            work.encoding = replace(encoding, precision=read_precision(log.learned))
        else:
            work.learn(table)
            log.learned = work.encoding.precision.record()
            log.write()  # before the first shard: without it nobody knows what the folder is
        names = shard_names([shard.path for shard in table.shards])
        for name, (path, part) in zip(names, table.parts(), strict=True):
            stamp = part.shards[0].stamp
            assert stamp is not None
            if log.finished(name, stamp):
                work.progress(part.rows)
                continue
            if log.complete:
                raise InvalidInputError(
                    f"'{place}' is complete, and '{path}' is new or was changed since. Choose another name."
                )
            log.add(name, stamp, work.write(part, log.folder / name))
        log.finish()
    else:
        format_of(place)
        if any(place.exists() and place.samefile(shard.path) for shard in table.shards):
            raise InvalidInputError(f"'{place}' is the file that is read. Choose another name for the codes.")
        work.learn(table)
        work.write(table, place)
    encoding = work.encoding  # with the precision that was fitted
    return Outcome(
        path=str(place) if is_remote(target) else str(target),
        rows=work.rows,
        dropped=work.dropped,
        files=work.files,
        finished_before=len(table.shards) - work.files if folder else 0,
        width=table.width,
        k=encoding.k,
        precision=encoding.precision.name,
        bytes_per_vector=encoding.precision.bytes_per_vector(encoding.k),
        left_out=work.left_out,
        clipped=work.clipped,
        fitted_on=work.fitted_on,
        like=encoding.like,
        seconds=time.perf_counter() - start,
        metric=encoding.metric,
        cut=cut,
    )


@dataclass
class _Work:
    """What is to be done with every table, and what has been done."""

    encoding: Encoding
    columns: tuple[str, ...]
    progress: Callable[[int], object]
    rows: int = 0
    dropped: int = 0
    files: int = 0
    left_out: tuple[str, ...] = ()
    clipped: int = 0
    fitted_on: int = 0

    def learn(self, table: VectorTable) -> None:
        """Fit the precision on codes from the beginnings of files, evenly chosen."""
        if not self.encoding.to_fit:
            return
        parts = [part for _, part in table.parts()]
        chosen = parts[:: -(-len(parts) // _SAMPLED_FILES)]
        sample = []
        for part in chosen:
            left = _SAMPLE_ROWS // len(chosen)
            for batch in part.batches(max(1, min(left, _BATCH_NUMBERS // part.width))):
                sample += [self.encoding.encode(batch.vectors)] if len(batch) else []
                if (left := left - len(batch)) <= 0:
                    break
        codes = np.concatenate(sample)
        self.encoding, self.fitted_on = self.encoding.fitted(codes), len(codes)

    def write(self, table: VectorTable, target: Path) -> int:
        """Encode one table into one file; return the number of rows, without which there is no file."""
        size = max(1, _BATCH_NUMBERS // table.width)

        def encoded(batch: Batch) -> tuple[Batch, np.ndarray | None, int]:
            return (batch, *self.encoding(batch)) if len(batch) else (batch, None, 0)

        with closing(ordered_map(encoded, table.batches(size, self.columns), cores())) as batches:
            first = next(batches, None)
            if first is None:
                return 0
            form, precision = format_of(target), self.encoding.precision
            columns, rows = fitting_columns(form, self.columns, first[0].columns), 0
            self.left_out = tuple(name for name in self.columns if name not in columns)
            # Floats can do without a note, and formats without room for one are fine for them.
            if not form.notes and must_be_restored(precision) and not self.encoding.in_model:
                raise InvalidInputError(
                    f"{form.name} cannot store the {precision.name} scale; use parquet, arrow, npz or safetensors."
                )
            facts = self.encoding.facts() if form.notes else None
            with creating(target, code_layout(table.vectors, precision, self.encoding.k, columns, facts)) as writer:

                def write(part: tuple[Batch, np.ndarray | None, int]) -> tuple[Batch, int]:
                    batch, codes, clipped = part
                    if codes is not None:
                        writer.write(codes, batch.columns)
                    return batch, clipped

                with closing(ordered_map(write, chain([first], batches), 1)) as written:  # while the next are made
                    for batch, clipped in written:
                        rows, self.dropped = rows + len(batch), self.dropped + batch.dropped
                        self.clipped += clipped
                        self.progress(len(batch) + batch.dropped)
                if not rows:
                    raise InvalidInputError(
                        f"None of the vectors of '{table.path}' is free of NaN: there is nothing to write."
                    )
        self.rows, self.files = self.rows + rows, self.files + 1
        return rows
