"""From files to a task: what an encoder learns from, and what it is scored on.

Rows stream from their files. Pairs and judgements are read as a whole and divided by query, so that no query is on both
sides; a search is evaluated among all documents, because that is where its codes will be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstk.advice.inputs import File, VectorSource, open_stream, read_rows
from firstk.advice.judgements import Judged, as_search, read_judged, read_side
from firstk.data.remote import place_of, shown_place
from firstk.data.task import Data, Pairs, Rows, Search, Task
from firstk.estimator.fit_files import MOST_HELD, Stream, draw, draw_groups
from firstk.exceptions import InvalidInputError
from firstk.moments.fingerprint import query_hashes

__all__ = ["open_task", "read"]

# Scores of no more values than this may be grades of relevance.
MOST_GRADES = 5
# Share and seed of the held-out part where nothing else is said.
HELD_OUT, SEED = 0.2, 0


@dataclass(eq=False)
class TaskFiles:
    """Where a task was read from: `Task.files`.

    Attributes
    ----------
    place : VectorSource
    rows, width, itemsize : int
        How many vectors the file that would be stored holds, their width, and bytes of each number in it.
    store : path or None
        The file whose vectors would be stored, where there is one.
    said : str
        Which units are evaluated, against which; "of FILE" where `evaluated_on` counts them.
    notes : list of str
        What makes scores look better than they are, and options that were of no use.
    label, vectors : str
        What labels or targets, and the vectors, are called.
    """

    place: VectorSource
    rows: int
    width: int
    itemsize: int
    store: File | None
    said: str
    notes: list[str]
    label: str | None = None
    vectors: str = ""


def task_of(
    place: VectorSource,
    source: Stream | Judged,
    train: Stream | Data | None,
    held_out: Data | None,
    said: str,
    *,
    label: str | None = None,
    vectors: str = "",
    store: File | None = None,
    notes: Sequence[str] = (),
) -> Task:
    """Return the task of a stream or of judgements that were read; the other parameters are those of `TaskFiles`."""
    shape = (source.rows, source.width) if isinstance(source, Stream) else np.shape(source.data.stored)
    own = place.source if isinstance(source, Stream) else source.store
    files = TaskFiles(place, *shape, source.itemsize, store or own, said, list(notes), label, vectors)
    if not isinstance(train, Stream):
        return Task(train, held_out, files)

    def held() -> Data | None:
        """Return what the pass of the fit has kept apart; read now, where nothing was fitted yet."""
        if train.reference is None and (held_out is not None or len(train.parts.held)):
            train.held, train.reference = train.take([train.parts.held, train.parts.reference])
        found = train.held if held_out is None else held_out
        if isinstance(found, Search):
            assert train.reference is not None
            return replace(found, documents=train.reference.X)
        assert not isinstance(found, Pairs)
        return None if found is None or not found.n else replace(found, reference=train.reference)

    return Task(train, held, files)


def evaluated_on(task: Task) -> str:
    """Say which units are evaluated, against which."""
    data, files = task.held_out, task.files
    if data is None or not files.said.startswith("of "):
        return str(files.said)
    what = data.unit.removesuffix("s") if data.n == 1 else data.unit
    text = f"Evaluated on {data.n:,} held-out {what} {files.said}."
    if isinstance(data, Search):
        text += f" They look among {len(np.asarray(data.documents)):,} rows of {file_name(files.place.source)}."
    reference = data.reference if isinstance(data, Rows) else None
    if isinstance(task.train, Stream) and reference is not None and reference.n + data.n < task.train.seen:
        text += f" Neighbors are looked for, and probes fitted, among {reference.n:,} training rows."
    return text


def read(
    source: File,
    *,
    vectors: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    pairs: str | None = None,
    queries: File | None = None,
    relevance: str | None = None,
    ids: str | None = None,
    by_row: bool = False,
    filter: str | None = None,
    query_weight: str | None = None,
    held_out: float | str = HELD_OUT,
    seed: int = SEED,
    nan: str = "refuse",
) -> Task:
    """Read a task from files: what to learn from, and a part that is held out.

    Parameters
    ----------
    source : path
        A file of vectors, a folder of shards or a pattern of names.
    vectors : str, optional
        The vector column, where there are several.
    label, labels : str, optional
        Column of labels or targets; or FILE[:COLUMN], the labels in a file of their own.
    pairs : str, optional
        [FILE:]LEFT,RIGHT[,SCORE] or FILE: pairs of rows of `source` (with `queries`, of a row of that file and one of
        `source`), or pairs of vectors.
    queries : path, optional
        The queries, where `source` is the store that they search. Without `relevance` they are those of a log.
    relevance : str, optional
        FILE[:QUERY,DOCUMENT[,GRADE]]: judgements of documents, which are rows of `source`.
    ids, by_row, filter, query_weight
        As in :class:`firstk.advice.inputs.VectorSource`.
    held_out : float or str
        A share of the rows or queries (at most 2,000), 0 for none, 1 for all queries; or a file of rows, pairs or
        judgements.
    seed : int
        Of the held-out split.
    nan : {"refuse", "drop"}

    Returns
    -------
    task : Task
        ``PrefixEncoder.fit(task.train)``, then ``firstk.evaluate(encoder, task.held_out)``.

    Examples
    --------
    >>> import tempfile
    >>> from firstk import PrefixEncoder, evaluate, read
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/digits.npz", pixels=digits.X, label=digits.y)
    ...     task = read(f"{folder}/digits.npz", label="label")
    ...     encoder = PrefixEncoder(objective="fisher").fit(task.train)
    >>> evaluate(encoder, task.held_out, precisions=["int8"]).choose(keep=0.95).point.precision
    'int8'
    """
    place = VectorSource(
        source, vectors, label, labels, pairs, nan, queries, relevance, ids, by_row, filter, query_weight
    )
    return open_task(place, held_out, seed)


def open_task(place: VectorSource, held_out: float | str = HELD_OUT, seed: int = SEED) -> Task:
    """Open what `read` describes; `held_out` may be a number as text."""
    place.check()
    try:
        share: float | None = float(held_out)
    except ValueError:
        share = None
    if not place.judged:
        return (_of_rows if place.queries is None else _of_log)(place, str(held_out), share, seed)
    judged = read_judged(place)
    if isinstance(judged.data, Pairs):
        return _of_pairs(place, judged, judged.data, str(held_out), share, seed)
    train, held, said = _divided_search(place, judged, judged.data, str(held_out), share, seed)
    said = "" if held is None else f"{judged.described(held)} {said}"
    return task_of(place, judged, train, held, said)


def _of_rows(place: VectorSource, held_out: str, share: float | None, seed: int) -> Task:
    stream, own = open_stream(place), None
    if share is None:
        if place.labels is not None:
            raise InvalidInputError(
                "A held-out file has its labels in a column of its own: name the column with label=, or hold out a "
                "share of the rows."
            )
        rows = read_rows(held_out, vectors=place.vectors, label=place.label, nan=place.nan)
        own = Rows(rows.X, rows.y)
        _check_width(rows.X.shape[1], stream.width, held_out, place)
    stream.parts = draw(stream.rows, share or 0.0, seed)
    said = f"of {held_out if share is None else f'{file_name(place.source)} (drawn at random, seed {seed})'}"
    return task_of(place, stream, stream, own, said, label=stream.label, vectors=stream.vectors)


def _of_log(place: VectorSource, held_out: str, share: float | None, seed: int) -> Task:
    """Hold out a share of the queries of a log, or those of a file; all rows of the store are fitted on."""
    assert place.queries is not None
    stream, log = open_stream(place), read_side(place.queries, place).X
    _check_width(log.shape[1], stream.width, str(place.queries), place)
    name = f"{file_name(place.queries)} (drawn at random, seed {seed})"
    if share is None:
        held, name = read_side(held_out, place).X, file_name(held_out)
        _check_width(held.shape[1], stream.width, held_out, place)
    elif share == 1:
        held, log, name = log[:MOST_HELD], log[:0], file_name(place.queries)
    else:
        drawn = draw(len(log), share, seed).held
        held, log = log[drawn], np.delete(log, drawn, axis=0)
    stream.parts, stream.queries = draw(stream.rows, 0.0, seed), log if len(log) else None
    search = Search(held, np.empty((0, stream.width))) if len(held) else None
    return task_of(place, stream, stream, search, f"of {name}", vectors=stream.vectors)


def _of_pairs(place: VectorSource, judged: Judged, pairs: Pairs, held_out: str, share: float | None, seed: int) -> Task:
    """Divide scored pairs by their left sides."""
    parts = draw_groups(judged.lefts, share or 0.0, seed)
    rest = np.setdiff1d(np.arange(pairs.n), parts.held)
    train, held = pairs.subset(rest), pairs.subset(parts.held) if len(parts.held) else None
    said = f"of {judged.names[1]} (drawn at random by left side, seed {seed})"
    if share is None:
        own = read_judged(replace(place, pairs=held_out)).data
        if not isinstance(own, Pairs):
            raise InvalidInputError(f"'{held_out}' holds pairs without scores, and those to learn from have scores.")
        _check_width(np.shape(own.right)[1], np.shape(pairs.right)[1], held_out, place)
        train, held, said = pairs, own, f"of {held_out}"
    if judged.store is not None and len(np.unique(np.asarray(pairs.scores))) <= MOST_GRADES:
        said += "; if scores are grades of relevance, relevance= evaluates by search among all rows"
    known = {row.tobytes() for row in np.asarray(train.right)}
    seen = 0 if held is None else sum(row.tobytes() in known for row in np.asarray(held.right))
    note = (
        f"{seen} of {0 if held is None else held.n} held-out pairs have a right side that is in the training pairs as "
        "well: on those a fit can score by remembering it."
    )
    return task_of(place, judged, train, held, said, notes=(note,) if seen else ())


def _divided_search(
    place: VectorSource, judged: Judged, search: Search, held_out: str, share: float | None, seed: int
) -> tuple[Search, Search | None, str]:
    """Hold out a share of the queries, or the judgements of a file of one's own."""
    asked = np.unique(np.asarray(search.relevance)[:, 0])
    if share == 1:
        held = asked if len(asked) <= MOST_HELD else np.sort(
            np.random.default_rng(SEED).choice(asked, size=MOST_HELD, replace=False)
        )  # fmt: skip
        nothing = replace(search, relevance=np.empty((0, 3), dtype=np.int64))
        return nothing, search.subset(held), "No judgement was learned from."
    if share is not None:
        held = asked[draw(len(asked), share, seed).held]
        train = search.only(~np.isin(np.arange(search.n), held))
        _check_positives(train, judged)
        told = (
            f"They were held out at random, seed {seed}: none of their judgements was learned from, but other queries "
            "may have taught the same documents."
        )
        return train, search.subset(held) if len(held) else None, told
    other = read_judged(
        replace(place, pairs=held_out) if place.relevance is None else replace(place, relevance=held_out)
    ).data
    if not isinstance(other, Search):
        raise InvalidInputError(f"'{held_out}' holds scored pairs, and what is to be learned from are searches.")
    _check_width(np.shape(other.documents)[1], np.shape(search.documents)[1], held_out, place)
    asked_vectors = np.asarray(other.queries)[np.unique(np.asarray(other.relevance)[:, 0])]
    # Queries of both files that are the same vector are the same query: they are not learned from.
    taught = np.isin(query_hashes(np.asarray(search.queries)), query_hashes(asked_vectors))
    train = search.only(~taught)
    _check_positives(train, judged)
    count = len(np.intersect1d(asked, np.flatnonzero(taught)))
    also = f" {count:,} queries of it are in the training judgements too, and were not learned from." if count else ""
    name = file_name(held_out.rpartition(":")[0] or held_out)
    held_search = other.subset(np.unique(np.asarray(other.relevance)[:, 0]))
    if judged.store is None:  # no store is given, so all right sides that are known are candidates
        left, right, store = map(np.asarray, (*held_search.positives.arrays, search.documents))
        held_search = as_search(left, right, store)
    return train, held_search, f"Judgements of {name} were held out.{also}"


def _check_positives(train: Search, judged: Judged) -> None:
    if not (np.asarray(train.relevance)[:, 2] > 0).any():
        raise InvalidInputError(
            f"No judgement of {judged.names[0]} calls a document relevant, so there is nothing to learn from. "
            "Relevant documents have a grade above 0."
        )


def _check_width(found: int, width: int, file: str, place: VectorSource) -> None:
    if found != width:
        raise InvalidInputError(
            f"'{shown_place(file)}' has vectors of {found} numbers, and '{shown_place(place.source)}' of {width}. Give "
            "vectors of the same model, or name their column with vectors=."
        )


def file_name(path: File | None) -> str:
    """Return what a sentence calls a file."""
    return place_of(str(path)).name or str(path)
