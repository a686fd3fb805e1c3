"""Fits on files and streams larger than memory, with a part held out.

Closed forms see each row once and keep moments only (:mod:`firstk.moments.stream`); training needs the rows and holds
them in memory. A batch is a mapping from names to arrays with one row each: "X" and maybe "y".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, is_real
from firstk._base.json_records import to_plain
from firstk._base.rows import half_as_single
from firstk.data.files.contract import Batch
from firstk.data.files.vector_table import VectorTable, open_vectors
from firstk.data.task import Rows
from firstk.encoder.record import FittedPart
from firstk.estimator.nested_parameters import saved_parameters
from firstk.estimator.prefix_encoder import PrefixEncoder
from firstk.estimator.problem import FEWEST_ROWS, Problem, too_few_rows
from firstk.exceptions import InvalidInputError
from firstk.moments.checkpoint import Checkpoint
from firstk.moments.stream import Accumulated, Chunk, Chunks, Columns, HoldOut, accumulate, chunk_rows, len_of, no_row

__all__ = ["Stream", "draw", "fit_files", "fit_stream"]

# Rows that are held out, and rows among which neighbors are looked for: enough to tell 98 % from 99 %, and few enough
# that every prefix length in every precision is evaluated in seconds.
MOST_HELD, MOST_REFERENCE = 2_000, 5_000


class Stream:
    """Rows of files, read in batches and in bounded memory; ``PrefixEncoder.fit`` takes it in place of rows.

    Parameters
    ----------
    batches : Chunks, or iterable of mappings
        Every row once, in the order by which `parts` counts them. To go on from a checkpoint without reading what came
        before: `chunks_of` a table.
    rows : int
        How many rows there are, those to be dropped included.
    width, itemsize : int
        Of a vector, and bytes of each of its numbers in the file.
    label : str, optional
        What labels or targets are called.
    vectors : str
        What the vectors are called.
    parts : HoldOut, optional
        Which rows are kept apart; none if not given.
    queries : array-like of shape (m, p), optional
        Queries without judgements that a fit takes along with the rows.

    Attributes
    ----------
    held, reference : Rows or None
        Rows that the fit has not seen, and rows that it has, once the stream has been read.
    """

    def __init__(
        self,
        batches: Chunks | Iterable[Columns],
        rows: int = 0,
        width: int = 0,
        itemsize: int = 4,
        label: str | None = None,
        vectors: str = "",
        parts: HoldOut | None = None,
        queries: ArrayLike | None = None,
    ):
        self.chunks = batches if isinstance(batches, Chunks) else Chunks.of(batches)
        self.rows, self.width, self.itemsize = rows, width, itemsize
        self.label, self.vectors, self.parts = label, vectors, HoldOut.nothing() if parts is None else parts
        self.queries = queries
        self.held: Rows | None = None
        self.reference: Rows | None = None
        self.seen = 0  # rows that were fitted on or held out: less than `rows` where some were dropped

    def batches(self) -> Iterator[Columns]:
        """Yield mappings from names to arrays: "X" and maybe "y"."""
        return (chunk.columns for chunk in self.chunks.after(0))

    def take(self, wanted: Sequence[np.ndarray]) -> list[Rows]:
        """Read the rows with the given numbers, ascending: memory for those and one batch."""
        found: list[dict[str, list[np.ndarray]]] = [{} for _ in wanted]
        start = 0
        for batch in self.batches():
            count = len_of(batch)
            for rows, parts in zip(wanted, found, strict=True):
                here = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + count)] - start
                for name, part in batch.items():
                    if len(here):
                        parts.setdefault(name, []).append(half_as_single(part[here]))
            start += count
        return [_as_rows({name: np.concatenate(batches) for name, batches in parts.items()}) for parts in found]

    @property
    def dropped(self) -> int:
        """How many rows a fit has left out because of NaN."""
        return self.rows - self.seen

    def keep(self, held: Columns, reference: Columns, seen: int) -> None:
        """Remember what a pass over the stream has kept apart."""
        self.held, self.reference, self.seen = _as_rows(held), _as_rows(reference), seen


def _as_rows(columns: Columns) -> Rows:
    return Rows(columns["X"], columns.get("y")) if columns else Rows(np.empty((0, 0)))


def draw(n: int, share: float, seed: int = 0) -> HoldOut:
    """Draw the held-out part of `n` rows, and others to look neighbors up among.

    Parameters
    ----------
    n : int
    share : float in [0, 1)
        Of the rows, to hold out; 0 holds out none.
    seed : int

    Examples
    --------
    >>> parts = draw(10, 0.2)
    >>> len(parts.held), len(parts.reference)
    (2, 8)
    """
    if not is_real(share) or not 0 <= share < 1:
        raise bad_parameter("held_out", "fit", "a share of the rows in [0, 1), or a file", share)
    held = min(round(share * n), MOST_HELD)
    if share and not held:
        raise InvalidInputError(
            f"A share of {share:g} of {n} rows is less than one row. Hold out more, or none at all (0)."
        )
    rows = np.random.default_rng(seed).choice(n, size=held + min(n - held, MOST_REFERENCE), replace=False)
    return HoldOut(np.sort(rows[:held]), np.sort(rows[held:]))


def draw_groups(groups: np.ndarray, share: float, seed: int = 0) -> HoldOut:
    """Draw as `draw` does, but whole groups of rows: pairs of one query are held out together.

    Parameters
    ----------
    groups : ndarray of int of shape (n,)
        The group of each row, from 0; where each row is a group of its own the draw is that of `draw`.
    share : float in [0, 1)
        Of the groups.
    seed : int

    Examples
    --------
    >>> draw_groups(np.array([0, 0, 1, 1, 2, 2]), 0.34).held
    array([4, 5])
    """
    parts = draw(int(groups.max()) + 1, share, seed)
    held, reference = (np.flatnonzero(np.isin(groups, part)) for part in (parts.held, parts.reference))
    return HoldOut(held, reference)


def fit_stream(
    encoder: PrefixEncoder,
    stream: Stream,
    *,
    workers: int | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int], object] = lambda rows: None,
    elsewhere: Callable[[Problem, Chunks, HoldOut], Accumulated[Any]] | None = None,
    queries: ArrayLike | None = None,
) -> PrefixEncoder:
    """Fit an encoder on a stream, but for the rows that are held out, which the stream keeps.

    Parameters
    ----------
    encoder : PrefixEncoder
        Not fitted yet, or one that holds its moments: then rows are added to those it has seen.
    stream : Stream
    workers : int, optional
        Batches that are measured at the same time; the number of cores if not given. The result does not depend on it.
    checkpoint : Checkpoint, optional
        Where the moments are kept while the stream is read. Training keeps one of its own: ``Gradient(checkpoint=)``.
    progress : callable (rows) -> None
        Told how many rows have just been taken in.
    elsewhere : callable, optional
        What gathers the stream in place of this process: :func:`firstk.integrations.dask.gather`.
    queries : array-like of shape (m, p), optional
        As in ``PrefixEncoder.fit``; those of the stream if not given.
    """
    queries = stream.queries if queries is None else queries
    chunks, parts, problem = stream.chunks, stream.parts, encoder.problem().seeded()
    done: Accumulated[Any]
    if problem.solver.trains:
        # All rows are held in memory; a training that was interrupted is no result.
        def waiting(rows: Columns) -> _Waiting:
            return _Waiting([{name: half_as_single(part) for name, part in rows.items()}])

        done = accumulate(waiting, chunks, parts, workers=1, progress=progress)
        if done.statistics is None:
            raise no_row()
        batches, done.statistics = done.statistics.batches, None
        whole = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
        batches.clear()
        _check_enough(len_of(whole))
        encoder.fit(whole["X"], whole.get("y"), queries=queries)
        raise_if_interrupted(encoder)
    else:
        # Whether a bar was shown changes nothing: what was stopped on a terminal may go on without one.
        asked = encoder.get_params(deep=False) | {"verbose": False}
        job = {"encoder": to_plain(saved_parameters(asked))}
        done = (
            accumulate(
                problem.statistics_of, chunks, parts, workers=workers, checkpoint=checkpoint, job=job, progress=progress
            )
            if elsewhere is None
            else elsewhere(problem, chunks, parts)
        )
        if done.statistics is None:
            raise no_row()
        before = encoder.encoder_.record.fits if encoder.learns_from else ()
        seed = encoder.random_state if isinstance(encoder.random_state, int) else None
        added = FittedPart(done.statistics.moments.rows, str(done.statistics.fingerprint), seed)
        encoder.learn(done.statistics, queries)
        _check_enough(encoder._statistics.moments.rows)
        solved = encoder.encoder_  # solved now, not when it is first asked for
        if before:
            encoder._encoder = replace(solved, record=replace(solved.record, parts=(*before, added)))
        if checkpoint is not None:
            checkpoint.remove()
    stream.keep(done.held, done.reference, done.rows + len_of(done.held))
    return encoder


@dataclass
class _Waiting:
    """Rows that wait for training, batch by batch."""

    batches: list[Columns]

    def merge(self, other: _Waiting) -> _Waiting:
        """Take in other rows."""
        self.batches += other.batches
        return self


def _check_enough(rows: int) -> None:
    """Raise an error for a file of so few rows that it must be the wrong one, or cut short."""
    if rows < FEWEST_ROWS:
        raise InvalidInputError(too_few_rows(rows))


def raise_if_interrupted(encoder: PrefixEncoder) -> None:
    """Raise after an interrupted training, which keeps its best state and returns: a command ends with Ctrl-C."""
    if encoder.encoder_.record.ended == "interrupted":
        raise KeyboardInterrupt


def chunks_of(
    table: VectorTable, target: Callable[[Batch], np.ndarray | None] | None = None, columns: Sequence[str] = ()
) -> Chunks:
    """Return the rows of a table as a stream that can be taken up again without reading what came before.

    Parameters
    ----------
    table : VectorTable
        As `firstk.data.files.open_vectors` gives it.
    target : callable (batch) -> ndarray, optional
        From a batch to its labels or targets.
    columns : sequence of str
        Columns that `target` looks at.
    """
    size = chunk_rows(table.width)

    def reading(part: VectorTable) -> Callable[[int], Iterator[Chunk]]:
        def after(end: int) -> Iterator[Chunk]:
            for batch in part.batches(size, columns, start=end):
                end += len(batch) + batch.dropped
                if len(batch):
                    y = None if target is None else target(batch)
                    yield Chunk({"X": batch.vectors} if y is None else {"X": batch.vectors, "y": y}, end)

        return after

    def apart() -> list[tuple[int, Chunks]]:
        parts = [part for _, part in table.parts()]
        firsts = np.cumsum([0, *(part.rows for part in parts[:-1])])
        return [(int(first), Chunks(reading(part))) for first, part in zip(firsts, parts, strict=True)]

    stamps = [(0, 0) if shard.stamp is None else (shard.stamp.size, shard.stamp.modified) for shard in table.shards]
    files = [[str(shard.path), *stamp] for shard, stamp in zip(table.shards, stamps, strict=True)]
    job = {"files": files, "vectors": table.vectors, "columns": list(columns), "nan": table.nan, "rows a chunk": size}
    return Chunks(reading(table), job=job, files=apart)


def fit_files(
    encoder: PrefixEncoder,
    path: str | Path,
    *,
    vectors: str | None = None,
    label: str | None = None,
    nan: str = "refuse",
    queries: ArrayLike | None = None,
    workers: int | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    every: float = 60.0,
    progress: Callable[[int], object] = lambda rows: None,
) -> PrefixEncoder:
    """Fit an encoder on files larger than memory, on all cores; closed forms only, others hold the rows in memory.

    Parameters
    ----------
    encoder : PrefixEncoder
    path, vectors, nan
        As :func:`firstk.data.files.open_vectors` takes them.
    label : str, optional
        Column of labels or targets.
    queries : array-like of shape (m, p), optional
        As in ``PrefixEncoder.fit``.
    workers, progress
        As in :func:`fit_stream`.
    checkpoint : path, optional
        File for the moments gathered so far, written every so often and when the work is interrupted.
    resume : bool
        Go on from it: the result has the bytes of a run that was never stopped.
    every : float
        Seconds between writes.

    Returns
    -------
    encoder : PrefixEncoder
        The one given, fitted.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from firstk import PrefixEncoder, fit_files
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/vectors.npy", X)
    ...     encoder = fit_files(PrefixEncoder(3), f"{folder}/vectors.npy")
    >>> bool(np.allclose(encoder.components_, PrefixEncoder(3).fit(X).components_))
    True
    """
    if not isinstance(encoder, PrefixEncoder):
        raise bad_parameter("encoder", "fit_files", "a PrefixEncoder, such as PrefixEncoder(64)", encoder)
    if encoder.__sklearn_is_fitted__():
        raise InvalidInputError(
            "fit_files takes an encoder that has not been fitted, and this one has. Pass sklearn.base.clone(encoder); "
            "to add rows to a fitted one, use partial_fit."
        )
    names = () if label is None else (label,)
    table = open_vectors(path, vectors, beside=names, nan=nan)
    target = None if label is None else (lambda batch: np.asarray(batch.columns[label]))
    kept = None if checkpoint is None else Checkpoint(checkpoint, resume=resume, every=every)
    return fit_stream(
        encoder,
        Stream(chunks_of(table, target, names), queries=queries),
        workers=workers,
        checkpoint=kept,
        progress=progress,
    )
