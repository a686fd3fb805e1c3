"""From files to a task: what an encoder learns from, and what it is scored on.

Rows stream from their files. Pairs and judgements are read as a whole and divided by query, so that no query is on both
sides; a search is evaluated among all documents, because that is where its codes will be used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstk._base.rows import half_as_single
from firstk.advice.evaluate import OWN_METRICS, UNSUPERVISED, lead_metric
from firstk.advice.inputs import File, VectorSource, open_stream, read_held_out
from firstk.advice.judgements import Judged, as_search, read_judged
from firstk.data.files.column_files import load_columns
from firstk.data.files.vector_columns import missing_column
from firstk.data.remote import place_of, shown_place
from firstk.data.task import Data, Pairs, Rows, Search
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.record import FitRecord
from firstk.estimator.fit_files import MOST_HELD, Stream, draw, draw_groups
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS, SEARCH
from firstk.moments.fingerprint import Fingerprint, query_hashes
from firstk.moments.stream import HoldOut, len_of

# Scores of no more values than this may be grades of relevance.
MOST_GRADES = 5
# Share and seed of the held-out part where nothing else is said; rows of a file that an evaluation uses at most.
HELD_OUT, SEED, MOST = 0.2, 0, 5_000
# Metrics whose readout or neighbors need rows of their own: without a reference, the file is split.
SPLIT = ("1nn_accuracy", "probe_accuracy", "r2", "readback_variance")
# Metrics that look at no other rows but to fit baselines on.
ALONE = (*OWN_METRICS, "explained_variance")


class FileTask:
    """A task that was read from files.

    Attributes
    ----------
    train : Stream, Pairs, Search, Rows or None
        What ``PrefixEncoder.fit`` takes; of an evaluation alone, rows that baselines may be fitted on.
    place : VectorSource
    rows, width, itemsize : int
        How many vectors the file that would be stored holds, their width, and bytes of each number in it.
    label, vectors : str
        What labels or targets, and the vectors, are called.
    store : path or None
        The file whose vectors would be stored, where there is one.
    notes : list of str
        What makes scores look better than they are, and options that were of no use.
    """

    def __init__(
        self,
        place: VectorSource,
        train: Stream | Data | None,
        held_out: Data | None,
        said: str,
        *,
        rows: int,
        width: int,
        itemsize: int,
        label: str | None = None,
        vectors: str = "",
        store: File | None = None,
        notes: tuple[str, ...] = (),
    ):
        self.place, self.train, self.rows, self.width, self.itemsize = place, train, rows, width, itemsize
        self.label, self.vectors, self.store = label, vectors, store
        self.notes = list(notes)
        self._held_out, self._said = held_out, said

    def __repr__(self) -> str:
        return f"FileTask({self.place.source}, {self.rows:,} x {self.width}: .train to fit on, .held_out to evaluate)"

    @property
    def held_out(self) -> Data | None:
        """What the fit does not see; None where nothing is held out. Rows of a stream come with a fit, or are read."""
        if self._held_out is not None and not isinstance(self._held_out, Rows):
            return self._held_out
        stream = self.train
        if not isinstance(stream, Stream):
            return self._held_out
        if stream.reference is None and (self._held_out is not None or len(stream.parts.held)):
            stream.held, stream.reference = stream.take([stream.parts.held, stream.parts.reference])
        held = stream.held if self._held_out is None else self._held_out
        return None if held is None or not held.n else replace(held, reference=stream.reference)

    @property
    def dropped(self) -> int:
        """How many rows were left out of a fit because of NaN."""
        return self.train.rows - self.train.seen if isinstance(self.train, Stream) else 0

    @property
    def said(self) -> str:
        """Which units are evaluated, against which."""
        data = self.held_out
        if not self._said.startswith("of ") or data is None:
            return self._said
        what = data.unit.removesuffix("s") if data.n == 1 else data.unit
        text = f"Evaluated on {data.n:,} held-out {what} {self._said}."
        reference = data.reference if isinstance(data, Rows) else None
        if isinstance(self.train, Stream) and reference is not None and reference.n + data.n < self.train.seen:
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
) -> FileTask:
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
        The queries, where `source` is the store that they search.
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
    task : FileTask
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


def open_task(place: VectorSource, held_out: float | str = HELD_OUT, seed: int = SEED) -> FileTask:
    """Open what `read` describes; `held_out` may be a number as text."""
    place.check()
    try:
        share: float | None = float(held_out)
    except ValueError:
        share = None
    if not place.judged:
        return _of_rows(place, str(held_out), share, seed)
    judged = read_judged(place)
    facts: dict[str, Any] = {
        "width": np.shape(judged.data.stored)[1],
        "itemsize": judged.itemsize,
        "store": judged.store,
    }
    if isinstance(judged.data, Pairs):
        return _of_pairs(place, judged, judged.data, str(held_out), share, seed, facts)
    facts["rows"] = len(np.asarray(judged.data.documents))
    train, held, said = _divided_search(place, judged, judged.data, str(held_out), share, seed)
    said = "" if held is None else f"{judged.described(held)} {said}"
    return FileTask(place, train, held, said, **facts)


def _of_rows(place: VectorSource, held_out: str, share: float | None, seed: int) -> FileTask:
    stream, own = open_stream(place), None
    if share is None:
        own = read_held_out(place, held_out)
        _check_width(np.shape(own.X)[1], stream.width, held_out, place)
    stream.parts = draw(stream.rows, share or 0.0, seed)
    said = f"of {held_out if share is None else f'{_name(place.source)} (drawn at random, seed {seed})'}"
    return FileTask(
        place, stream, own, said, rows=stream.rows, width=stream.width, itemsize=stream.itemsize,
        label=stream.label, vectors=stream.vectors, store=place.source,
    )  # fmt: skip


def _of_pairs(
    place: VectorSource,
    judged: Judged,
    pairs: Pairs,
    held_out: str,
    share: float | None,
    seed: int,
    facts: dict[str, Any],
) -> FileTask:
    """Divide scored pairs by their left sides."""
    parts = draw_groups(judged.lefts, share or 0.0, seed)
    rest = np.setdiff1d(np.arange(pairs.n), parts.held)
    train, held = pairs.subset(rest), pairs.subset(parts.held) if len(parts.held) else None
    said = f"of {judged.names[1]} (drawn at random by left side, seed {seed})"
    if share is None:
        own = read_judged(replace(place, pairs=held_out)).data
        if not isinstance(own, Pairs):
            raise InvalidInputError(f"'{held_out}' holds pairs without scores, and those to learn from have scores.")
        _check_width(np.shape(own.right)[1], facts["width"], held_out, place)
        train, held, said = pairs, own, f"of {held_out}"
    if judged.store is not None and len(np.unique(np.asarray(pairs.scores))) <= MOST_GRADES:
        said += "; if scores are grades of relevance, --relevance evaluates by search among all rows"
    if held is not None:
        known = {row.tobytes() for row in np.asarray(train.right)}
        seen = sum(row.tobytes() in known for row in np.asarray(held.right))
        note = (
            f"{seen} of {held.n} held-out pairs have a right side that is in the training pairs as well: on those a "
            "fit can score by remembering it."
        )
        return FileTask(place, train, held, said, rows=pairs.n, notes=(note,) if seen else (), **facts)
    return FileTask(place, train, held, said, rows=pairs.n, **facts)


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
    # Queries of both files that are the same vector are the same query: they are not learned from.
    taught = np.isin(query_hashes(np.asarray(search.queries)), query_hashes(_asked_vectors(other)))
    train = search.only(~taught)
    _check_positives(train, judged)
    count = len(np.intersect1d(asked, np.flatnonzero(taught)))
    also = f" {count:,} queries of it are in the training judgements too, and were not learned from." if count else ""
    name = _name(held_out.rpartition(":")[0] or held_out)
    held_search = other.subset(np.unique(np.asarray(other.relevance)[:, 0]))
    if judged.store is None:  # no store is given, so all right sides that are known are candidates
        left, right, store = map(np.asarray, (*held_search.positives.arrays, search.documents))
        held_search = as_search(left, right, store)
    return train, held_search, f"Judgements of {name} were held out.{also}"


def _asked_vectors(search: Search) -> np.ndarray:
    return np.asarray(search.queries)[np.unique(np.asarray(search.relevance)[:, 0])]


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
            "vectors of the same model, or name their column with --vectors."
        )


# -- data for a saved encoder --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """Files to evaluate a saved encoder on.

    Attributes
    ----------
    place : VectorSource
        Rows, pairs, or queries with judged documents.
    reference, reference_labels : str, optional
        Rows to look among, and to fit readouts and baselines on; and FILE[:COLUMN] of their labels.
    most : int
        Rows of each file that are used at most, drawn at random.
    metric : str
        A name in `firstk.metrics.METRICS`, or "auto".
    """

    place: VectorSource
    reference: str | None = None
    reference_labels: str | None = None
    most: int = MOST
    metric: str = "auto"


def read_for(encoder: FittedEncoder, request: Request) -> FileTask:
    """Read data that a saved encoder has not learned from: rows, pairs, or queries with judged documents."""
    request.place.check()
    if request.place.judged:
        return _judged_for(encoder, request)
    return _rows_for(encoder, request, _metric_of_rows(encoder, request))


def _metric_of_rows(encoder: FittedEncoder, request: Request) -> str:
    labeled = request.place.label is not None or request.place.labels is not None
    name = lead_metric(encoder) if request.metric == "auto" else request.metric
    if request.metric == "auto" and name in UNSUPERVISED and labeled:
        name = "1nn_accuracy"  # settled when the labels have been read: of numbers it is r2
    known = METRICS[name]
    if not issubclass(Rows, known.takes):
        way = "pairs: --pairs" if known.takes is Pairs else "judged documents: --relevance and --queries"
        raise InvalidInputError(f"The metric '{name}' needs {way}.")
    if "y" in known.needs and not labeled:
        raise InvalidInputError(
            f"The metric '{name}' needs labels or targets: name their column or their file with --label. "
            "Without any, --metric recall@10 or readback_variance will do."
        )
    return name


def _rows_for(encoder: FittedEncoder, request: Request, metric: str) -> FileTask:
    place = request.place
    stream = _opened(place, encoder)
    overlap = training_parts(encoder, stream, place.nan)
    useless = _useless_reference(request, metric)
    file, notes = _name(place.source), [] if useless is None else [useless]
    seen = None
    if overlap is not None:
        held = len(overlap.held)
        way = f"Without --reference the {held:,} others are used." if held else "Evaluate on other rows."
        seen = (
            f"The model was fitted on {stream.rows - held:,} rows of {file}, so these scores are better than those of "
            f"new rows. {way}"
        )
    reference: Rows | None = None
    others: Rows | None = None  # to fit baselines on, where the model was not fitted on the reference
    if request.reference is not None and useless is None:
        found, count = _sample(stream, request.most, place.source)
        reference, among = _sample(_opened(_reference_place(request), encoder), request.most, request.reference)
        other = _name(request.reference)
        notes += [] if seen is None else [seen]
        said = f"Evaluated on {count} of {file}, against {among} of {other}."
        if metric in ALONE:
            said = f"Evaluated on {count} of {file}; baselines are fitted on {among} of {other}."
        elif shared := shared_rows(np.asarray(found.X), np.asarray(reference.X)):
            notes.append(
                f"{shared:,} of the rows evaluated are in {other} too and find themselves there, so these scores are "
                "better than those of new rows. Take such rows out of one of the files."
            )
    elif metric in SPLIT or (overlap is not None and len(overlap.held)):
        # Where nothing is known of these rows, or all were seen, the usual draw gives rows to look among all the same.
        known = overlap is not None and len(overlap.held) > 0
        parts = overlap if known and overlap is not None else draw(stream.rows, HELD_OUT, SEED)
        searched, spare = (parts.reference, None) if known else _halves(parts.reference, request.most)
        found, reference = stream.take([_at_most(part, request.most) for part in (parts.held, searched)])
        others = None if spare is None else stream.take([spare])[0]
        _check_some(found, place.source)
        said = (
            f"Evaluated on {found.n:,} rows of {file} that are held out (drawn at random, seed "
            f"{seed_of(encoder.record) if known else SEED}, as 'firstk fit' does)"
        )
        if metric not in ALONE:
            said += f", against {reference.n:,} others of it. Give rows of their own with --reference"
        said += f". The model was fitted on the other {stream.rows - len(parts.held):,}." if known else "."
        notes += [] if seen is None or known else [seen]
    else:
        found, count = _sample(stream, request.most, place.source)
        said = f"Evaluated on {count} of {file}."
        notes += [] if seen is None else [seen]
    if reference is not None and not reference.n:
        reference = None
    notes += _about_labels(found, lead_metric(encoder, found) if request.metric == "auto" else metric)
    data = replace(found, reference=None if metric in ALONE else reference)
    return FileTask(
        place, others or reference, data, said, rows=stream.rows, width=stream.width, itemsize=stream.itemsize,
        store=place.source if request.reference is None else request.reference,
        notes=(*_other_question(encoder), *notes),
    )  # fmt: skip


def _about_labels(rows: Rows, metric: str) -> list[str]:
    """Say so where labels are such that an accuracy says nothing."""
    if rows.y is None or metric not in ("1nn_accuracy", "probe_accuracy"):
        return []
    y = np.asarray(rows.y)
    values = len(np.unique(y)) if y.ndim == 1 else 2
    if values == 1:
        return ["All rows have one label, so every code finds it: these scores say nothing."]
    if 2 * values > len(y):
        numeric = " If they are numbers to predict, use --metric r2." if y.dtype.kind in "fiu" else ""
        return [
            f"The labels have {values:,} values in {len(y):,} rows: too many distinct values to be classes.{numeric}"
        ]
    return []


def _other_question(encoder: FittedEncoder) -> list[str]:
    """Say so where a fit was evaluated by judgements, and rows without any are to follow."""
    known = encoder.record.curve_up_to(encoder.d)
    if known is None or known.metric not in SEARCH:
        return []
    return [
        f"The fit was evaluated by {known.metric} on judged documents, and this is another question, so what to store "
        "differs: give --queries and --relevance to ask the same."
    ]


def _useless_reference(request: Request, metric: str) -> str | None:
    """Say why a reference is not used, where it is of no use."""
    if request.reference is None:
        return None
    if metric in OWN_METRICS:
        return f"--reference is not used: {metric} looks at no other rows. --metric probe_accuracy does."
    if same_file(request.place.source, request.reference):
        return (
            f"--reference is not used: it is {_name(request.place.source)} itself, and no row is its own reference. "
            "Give other rows."
        )
    return None


def _reference_place(request: Request) -> VectorSource:
    place, file = request.place, request.reference
    assert file is not None
    if place.labels is not None and request.reference_labels is None:
        raise InvalidInputError(
            "--label is the file of the labels of VECTORS; give the labels of the reference as --reference FILE:LABEL."
        )
    label = None if request.reference_labels is not None else place.label
    held = load_columns(file) if label is not None else {}
    for name in [] if label is None or label in held else label.split(","):
        if name.strip() not in held:
            raise InvalidInputError(
                f"{missing_column(file, name.strip(), tuple(held))} If its labels have another name, give them as "
                f"--reference {file}:COLUMN."
            )
    return VectorSource(file, place.vectors, label, request.reference_labels, nan=place.nan)


def _judged_for(encoder: FittedEncoder, request: Request) -> FileTask:
    """Read pairs, or searches, without the queries that the model has learned from."""
    judged, place = read_judged(request.place), request.place
    data = judged.data
    _check_encoder_width(np.shape(data.stored)[1], encoder, place.source)
    _check_metric_of_judged(data, place, request.metric)
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
    held = data.subset(_at_most(new, request.most))
    if isinstance(held, Search):
        said = judged.described(held) + left_out
        if encoder.learned is None and encoder.record.unit == "pair":
            notes.append(
                "This model was saved without the hashes of the documents that it has learned from, so searches for "
                "new documents cannot be told from others, and may fare worse than these. Fit it again to have them."
            )
    else:
        drawn = f" of {len(new):,} pairs (drawn at random, seed {SEED})" if held.n < len(new) else " pairs"
        said = f"Evaluated on {held.n:,}{drawn} of {_name(place.pairs)}.{left_out}"
    train = np.asarray(data.documents) if isinstance(data, Search) else None
    if request.reference is not None:
        other = VectorSource(request.reference, place.vectors, nan=place.nan)
        train = np.asarray(_sample(_opened(other, encoder), request.most, request.reference)[0].X)
    return FileTask(
        place, None if train is None else Rows(train), held, said, rows=len(np.asarray(data.stored)),
        width=encoder.p, itemsize=judged.itemsize, store=judged.store, notes=tuple(notes),
    )  # fmt: skip


def _check_metric_of_judged(data: Search | Pairs, place: VectorSource, metric: str) -> None:
    """Raise for a metric that does not go with judgements or pairs."""
    if metric == "auto" or isinstance(data, METRICS[metric].takes):
        return
    if place.relevance is not None:
        raise InvalidInputError(f"--relevance goes with --metric {', '.join((*SEARCH, 'recall@10'))}. Got '{metric}'.")
    if metric in SEARCH:
        raise InvalidInputError(
            f"The metric '{metric}' is one of relevant documents, and these pairs have scores that differ: use "
            "spearman, or give grades of relevance as --relevance FILE:QUERY,DOCUMENT,GRADE."
        )
    raise InvalidInputError(
        f"The metric '{metric}' is not one of "
        f"{'scored pairs: use spearman' if isinstance(data, Pairs) else 'searches'}."
    )


def _opened(place: VectorSource, encoder: FittedEncoder) -> Stream:
    stream = open_stream(place)
    _check_encoder_width(stream.width, encoder, place.source)
    return stream


def _check_encoder_width(width: int, encoder: FittedEncoder, source: File) -> None:
    if width != encoder.p:
        raise InvalidInputError(
            f"'{shown_place(source)}' has vectors of {width} numbers, and this model takes {encoder.p}. Give the file "
            "that goes with it, or name the vector column with --vectors."
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


def _halves(rows: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows to look among, and others to fit baselines on, which would remember what they are fitted on."""
    drawn = np.random.default_rng(SEED).permutation(rows)
    size = min(most, (len(rows) + 1) // 2)
    return np.sort(drawn[:size]), np.sort(drawn[size : 2 * size])


def _check_some(found: Rows, source: File) -> None:
    if not found.n:
        raise InvalidInputError(
            f"There are no rows to evaluate on in '{shown_place(source)}'. Give a file that holds some."
        )


def _name(path: File | None) -> str:
    return place_of(str(path)).name or str(path)


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
                if recorded in _fingerprints(stream, parts):
                    return parts
    return None


def seed_of(record: FitRecord) -> int:
    """Return the seed by which ``firstk fit`` drew."""
    return SEED if record.random_state is None else record.random_state


def _fingerprints(stream: Stream, parts: HoldOut) -> set[str]:
    """Return the fingerprints of the rows that are not held out: with labels, and of the vectors alone."""
    both, alone, start = Fingerprint(), Fingerprint(), 0
    for batch in stream.batches():
        rest = dict(parts.split(batch, start).rest)
        start += len_of(batch)
        if not len_of(rest):
            continue
        rest["X"] = half_as_single(rest["X"])
        alone += Fingerprint.of({"X": rest["X"]})
        if "y" in rest:
            both += Fingerprint.of(rest)
    return {str(both), str(alone)}


def same_file(first: File, second: File) -> bool:
    """Tell whether two names are of one file or folder."""
    paths = [place_of(str(name)) for name in (first, second)]
    return str(first) == str(second) or (all(path.exists() for path in paths) and paths[0].samefile(paths[1]))


def shared_rows(X: np.ndarray, reference: np.ndarray) -> int:
    """Count the rows of X that are in the reference too, number for number."""
    # In the coarser of both precisions, as one file may be a copy of the other in fewer digits; and -0.0 is 0.0.
    kind = min(X.dtype, reference.dtype, key=lambda dtype: dtype.itemsize)
    there = {row.tobytes() for row in np.ascontiguousarray(reference, dtype=kind) + 0.0}
    return sum(row.tobytes() in there for row in np.ascontiguousarray(X, dtype=kind) + 0.0)
