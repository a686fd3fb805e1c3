"""From files to a task: what an encoder learns from, and what it is scored on.

Rows stream from their files. Pairs and judgements are read as a whole and divided by query, so that no query is on both
sides; a search is evaluated among all documents, because that is where its codes will be used. Of a saved encoder,
`read_for` leaves out what it has learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstk._base.rows import half_as_single
from firstk.advice.evaluate import OWN_METRICS, UNSUPERVISED, lead_metric
from firstk.advice.inputs import File, VectorSource, open_stream, read_rows
from firstk.advice.judgements import Judged, as_search, read_judged, read_side
from firstk.data.files.column_files import load_columns
from firstk.data.files.vector_columns import missing_column
from firstk.data.remote import place_of, shown_place
from firstk.data.task import Data, Pairs, Rows, Search, Task
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import MOST_HELD, Stream, draw, draw_groups
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS, SEARCH
from firstk.moments.fingerprint import MOST_TAUGHT, Fingerprint, query_hashes, taught_rows
from firstk.moments.stream import HoldOut, len_of

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
    files = TaskFiles(place, shape[0], shape[1], source.itemsize, store or own, said, list(notes), label, vectors)
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


# Rows of a file that an evaluation uses at most.
MOST = 5_000
# Metrics whose readout or neighbors need rows of their own: without a reference, the file is split.
SPLIT = ("1nn_accuracy", "probe_accuracy", "r2", "readback_variance")
# Metrics that look at no other rows but to fit baselines on.
ALONE = (*OWN_METRICS, "explained_variance")


def read_for(
    encoder: FittedEncoder,
    place: VectorSource,
    *,
    reference: str | None = None,
    reference_labels: str | None = None,
    most: int = MOST,
    metric: str = "auto",
) -> Task:
    """Read data that a saved encoder has not learned from.

    Parameters
    ----------
    encoder : FittedEncoder
    place : VectorSource
        Rows, pairs, or queries with judged documents.
    reference, reference_labels : str, optional
        Rows to look among, and to fit readouts and baselines on; and FILE[:COLUMN] of their labels.
    most : int
        Rows of each file that are used at most, drawn at random.
    metric : str
        A name in `firstk.metrics.METRICS`, or "auto".
    """
    place.check()
    if place.judged:
        return _judged_for(encoder, place, reference, most, metric)
    if place.queries is not None:
        return _log_for(encoder, place, most, metric)
    labeled = place.label is not None or place.labels is not None
    name = lead_metric(encoder) if metric == "auto" else metric
    if metric == "auto" and name in UNSUPERVISED and labeled:
        name = "1nn_accuracy"  # settled when the labels have been read: of numbers it is r2
    known = METRICS[name]
    if not issubclass(Rows, known.takes):
        way = "pairs: pairs=" if known.takes is Pairs else "judged documents: relevance= and queries="
        raise InvalidInputError(f"The metric '{name}' needs {way}.")
    if "y" in known.needs and not labeled:
        raise InvalidInputError(
            f"The metric '{name}' needs labels or targets: name their column or their file with label=. "
            "Without any, metric='recall@10' or 'readback_variance' will do."
        )
    task = _rows_for(encoder, place, reference, reference_labels, most, name)
    data = task.held_out
    assert isinstance(data, Rows)
    task.files.notes += _about_labels(data, lead_metric(encoder, data) if metric == "auto" else name)
    return task


def _rows_for(
    encoder: FittedEncoder, place: VectorSource, given: str | None, labels: str | None, most: int, metric: str
) -> Task:
    notes, seen, store = list[str](), list[str](), place.source if given is None else given
    stream, file = _opened(place, encoder), file_name(place.source)
    curve = encoder.record.curve_up_to(encoder.d)
    if curve is not None and curve.metric in SEARCH:
        notes.append(
            f"The fit was evaluated by {curve.metric} on judged documents, and this is another question, so what to "
            "store differs: give queries= and relevance= to ask the same."
        )
    overlap = training_parts(encoder, stream, place.nan)
    if overlap is not None:
        held = len(overlap.held)
        way = f"Without reference= the {held:,} others are used." if held else "Evaluate on other rows."
        seen.append(
            f"The model was fitted on {stream.rows - held:,} rows of {file}, so these scores are better than those of "
            f"new rows. {way}"
        )
    known = overlap is not None and len(overlap.held) > 0
    if given is not None and metric in OWN_METRICS:
        notes.append(f"reference= is not used: {metric} looks at no other rows. metric='probe_accuracy' does.")
        given = None
    if given is not None:
        own, other = (place_of(str(name)) for name in (place.source, given))
        if str(place.source) == given or (own.exists() and other.exists() and own.samefile(other)):
            told = f"it is {file} itself, and no row is its own reference. Give other rows."
            notes.append(f"reference= is not used: {told}")
            given = None
    reference: Rows | None = None
    others: Rows | None = None  # to fit baselines on, where the model was not fitted on the reference
    if given is not None:
        found, count = _sample(stream, most, place.source)
        reference, among = _sample(_opened(_reference_place(place, given, labels), encoder), most, given)
        notes += seen
        said = f"Evaluated on {count} of {file}, against {among} of {file_name(given)}."
        if metric in ALONE:
            said = f"Evaluated on {count} of {file}; baselines are fitted on {among} of {file_name(given)}."
        else:
            # Number for number, in the coarser of both precisions, as one file may be a copy of the other in fewer
            # digits; and -0.0 is 0.0.
            kind = min((np.asarray(part.X).dtype for part in (found, reference)), key=lambda dtype: dtype.itemsize)
            rows, there = (
                [row.tobytes() for row in np.ascontiguousarray(part.X, dtype=kind) + 0.0] for part in (found, reference)
            )
            if shared := sum(map(set(there).__contains__, rows)):
                notes.append(
                    f"{shared:,} of the rows evaluated are in {file_name(given)} too and find themselves there, so "
                    "these scores are better than those of new rows. Take such rows out of one of the files."
                )
    elif metric in SPLIT or known:
        # Where nothing is known of these rows, or all were seen, the usual draw gives rows to look among all the same.
        parts = overlap if known and overlap is not None else draw(stream.rows, HELD_OUT, SEED)
        searched, spare = parts.reference, None
        if not known:  # rows to look among, and others to fit baselines on, which would remember what they fit
            drawn = np.random.default_rng(SEED).permutation(parts.reference)
            size = min(most, (len(drawn) + 1) // 2)
            searched, spare = np.sort(drawn[:size]), np.sort(drawn[size : 2 * size])
        found, reference = stream.take([_at_most(part, most) for part in (parts.held, searched)])
        others = None if spare is None else stream.take([spare])[0]
        _check_some(found, place.source)
        seed = SEED if not known or encoder.record.random_state is None else encoder.record.random_state
        said = (
            f"Evaluated on {found.n:,} rows of {file} that are held out (drawn at random, seed {seed}, as 'firstk fit' "
            "does)"
        )
        if metric not in ALONE:
            said += f", against {reference.n:,} others of it. Give rows of their own with reference="
        said += f". The model was fitted on the other {stream.rows - len(parts.held):,}." if known else "."
        notes += [] if known else seen
    else:
        found, count = _sample(stream, most, place.source)
        said = f"Evaluated on {count} of {file}."
        notes += seen
    if reference is not None and not reference.n:
        reference = None
    if overlap is None and encoder.learned is not None and encoder.record.unit == "row":
        taught, share = taught_rows(found.X, encoder.learned)
        fitted_on = f"The model was fitted on {'all' if share == 1 else f'about {share:.0%}'} of these rows"
        better = ", so these scores are better than those of new rows. Evaluate on other rows."
        if len(encoder.learned) >= MOST_TAUGHT or taught.all():  # which rows they are is not known, or all are
            notes += [fitted_on + better] if share > 0 else []
        elif taught.any():
            found = found.subset(np.flatnonzero(~taught))
            said += f" The {taught.sum():,} others of them that the model was fitted on are left out."
    data = replace(found, reference=None if metric in ALONE else reference)
    return task_of(place, stream, others or reference, data, said, store=store, notes=notes)


def _about_labels(rows: Rows, metric: str) -> list[str]:
    """Say so where labels are such that an accuracy says nothing."""
    if rows.y is None or metric not in ("1nn_accuracy", "probe_accuracy"):
        return []
    y = np.asarray(rows.y)
    values = len(np.unique(y)) if y.ndim == 1 else 2
    if values == 1:
        return ["All rows have one label, so every code finds it: these scores say nothing."]
    numeric = " If they are numbers to predict, use metric='r2'." if y.dtype.kind in "fiu" else ""
    told = f"The labels have {values:,} values in {len(y):,} rows: too many distinct values to be classes.{numeric}"
    return [told] if 2 * values > len(y) else []


def _log_for(encoder: FittedEncoder, place: VectorSource, most: int, metric: str) -> Task:
    """Read queries of a log, and some rows of the store to look among."""
    stream = _opened(place, encoder)
    assert place.queries is not None
    if metric not in ("auto", "recall@10"):
        raise InvalidInputError(
            f"Queries without judgements are scored by recall@10. Got '{metric}': give relevance= as well."
        )
    queries = read_side(place.queries, place).X
    _check_encoder_width(queries.shape[1], encoder, place.queries)
    found, count = _sample(stream, most, place.source)
    data = Search(queries[_at_most(np.arange(len(queries)), most)], found.X)
    said = f"Evaluated on {data.n:,} queries of {file_name(place.queries)}, which look among {count} of "
    return task_of(place, stream, None, data, f"{said}{file_name(place.source)}.")


def _reference_place(place: VectorSource, file: str, labels: str | None) -> VectorSource:
    if place.labels is not None and labels is None:
        raise InvalidInputError(
            "label= is the file of the labels of the vectors; give the labels of the reference as reference_labels=."
        )
    label = None if labels is not None else place.label
    held = load_columns(file) if label is not None else {}
    for name in [] if label is None or label in held else label.split(","):
        if name.strip() not in held:
            raise InvalidInputError(
                f"{missing_column(file, name.strip(), tuple(held))} If its labels have another name, give them as "
                f"reference={file}:COLUMN."
            )
    return VectorSource(file, place.vectors, label, labels, nan=place.nan)


def _judged_for(encoder: FittedEncoder, place: VectorSource, reference: str | None, most: int, metric: str) -> Task:
    """Read pairs, or searches, without the queries that the model has learned from."""
    judged = read_judged(place)
    data = judged.data
    _check_encoder_width(np.shape(data.stored)[1], encoder, place.source)
    if metric != "auto" and not isinstance(data, METRICS[metric].takes):
        if place.relevance is not None:
            raise InvalidInputError(f"relevance= goes with metric= {', '.join(SEARCH)}. Got '{metric}'.")
        if metric in SEARCH:
            raise InvalidInputError(
                f"The metric '{metric}' is one of relevant documents, and these pairs have scores that differ: use "
                "spearman, or give grades of relevance as relevance=FILE:QUERY,DOCUMENT,GRADE."
            )
        of = "scored pairs: use spearman" if isinstance(data, Pairs) else "searches"
        raise InvalidInputError(f"The metric '{metric}' is not one of {of}.")
    what = "queries" if isinstance(data, Search) else "left sides"
    lefts = np.asarray(data.queries if isinstance(data, Search) else data.left)
    taught = (
        np.zeros(len(lefts), dtype=bool) if encoder.learned is None else np.isin(query_hashes(lefts), encoder.learned)
    )
    if isinstance(data, Search):
        asked = np.unique(np.asarray(data.relevance)[:, 0])
        counted = int(taught[asked].sum())
        new = asked[~taught[asked]]
    else:
        counted, new = len(np.unique(judged.lefts[taught])), np.flatnonzero(~taught)
    notes, left_out = [], ""
    if counted and not len(new):
        notes.append(f"The model was fitted on all of these {what}, so scores are better than those of new ones.")
        new = asked if isinstance(data, Search) else np.arange(data.n)
    elif counted:
        left_out = f" The {counted:,} {what} that the model was fitted on are left out."
    held = data.subset(_at_most(new, most))
    if isinstance(held, Search):
        said = judged.described(held) + left_out
        if encoder.learned is None and encoder.record.unit == "pair":
            notes.append(
                "This model was saved without the hashes of the documents that it has learned from, so searches for "
                "new documents cannot be told from others, and may fare worse than these. Fit it again to have them."
            )
    else:
        drawn = f" of {len(new):,} pairs (drawn at random, seed {SEED})" if held.n < len(new) else " pairs"
        said = f"Evaluated on {held.n:,}{drawn} of {file_name(place.pairs)}.{left_out}"
    train = np.asarray(data.documents) if isinstance(data, Search) else None
    if reference is not None:
        other = VectorSource(reference, place.vectors, nan=place.nan)
        train = np.asarray(_sample(_opened(other, encoder), most, reference)[0].X)
    return task_of(place, judged, None if train is None else Rows(train), held, said, notes=notes)


def _opened(place: VectorSource, encoder: FittedEncoder) -> Stream:
    stream = open_stream(place)
    _check_encoder_width(stream.width, encoder, place.source)
    return stream


def _check_encoder_width(width: int, encoder: FittedEncoder, source: File) -> None:
    if width != encoder.p:
        raise InvalidInputError(
            f"'{shown_place(source)}' has vectors of {width} numbers, and this model takes {encoder.p}. Give the file "
            "that goes with it, or name the vector column with vectors=."
        )


def _sample(stream: Stream, most: int, source: File) -> tuple[Rows, str]:
    """Take all rows of a stream, or as many as are wanted at most; and say how many of how many."""
    (found,) = stream.take([_at_most(np.arange(stream.rows), most)])
    _check_some(found, source)
    if stream.rows > most:
        return found, f"{found.n:,} of {stream.rows:,} rows (drawn at random, seed {SEED})"
    return found, f"{found.n:,} rows"


def _at_most(rows: np.ndarray, most: int) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(np.random.default_rng(SEED).choice(rows, size=most, replace=False))


def _check_some(found: Rows, source: File) -> None:
    if not found.n:
        raise InvalidInputError(
            f"There are no rows to evaluate on in '{shown_place(source)}'. Give a file that holds some."
        )


# -- rows that taught ----------------------------------------------------------------------------------------------


def training_parts(encoder: FittedEncoder, stream: Stream, nan: str = "refuse") -> HoldOut | None:
    """Return how a file was divided when the model was fitted on it, or when its rows were added; None for others.

    The model holds the fingerprint of its rows, their number and the seed. So the draw is made again, and it was this
    file if what is left over has that fingerprint. Labels that the fit looked at must be read along.
    """
    for one in encoder.record.fits:
        recorded, rows, seed = one.data_fingerprint, one.rows, one.random_state
        if recorded is None or rows is None:
            continue
        counts = {stream.rows - rows}
        if nan == "drop":  # rows that were dropped are in neither part, so the usual share is tried as well
            counts.add(min(round(HELD_OUT * stream.rows), MOST_HELD))
        for count in sorted(counts):
            if 0 <= count <= min(MOST_HELD, stream.rows - 1):
                parts = draw(stream.rows, count / stream.rows, SEED if seed is None else seed)
                both, alone, start = Fingerprint(), Fingerprint(), 0  # with labels, and of the vectors alone
                for batch in stream.batches():
                    rest = dict(parts.split(batch, start)[0])
                    start += len_of(batch)
                    if not len_of(rest):
                        continue
                    rest["X"] = half_as_single(rest["X"])
                    alone += Fingerprint.of({"X": rest["X"]})
                    if "y" in rest:
                        both += Fingerprint.of(rest)
                if recorded in (str(both), str(alone)):
                    return parts
    return None
