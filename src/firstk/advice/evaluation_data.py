"""Data to evaluate a saved encoder on: rows, pairs or judgements that it has not learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from firstk._base.rows import half_as_single
from firstk.advice.evaluate import OWN_METRICS, UNSUPERVISED, lead_metric
from firstk.advice.inputs import File, VectorSource, open_stream
from firstk.advice.judgements import read_judged, read_side
from firstk.advice.read import HELD_OUT, SEED, file_name, task_of
from firstk.data.files.column_files import load_columns
from firstk.data.files.vector_columns import missing_column
from firstk.data.remote import place_of, shown_place
from firstk.data.task import Pairs, Rows, Search, Task
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import MOST_HELD, Stream, draw
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS, SEARCH
from firstk.moments.fingerprint import MOST_TAUGHT, Fingerprint, query_hashes, taught_rows
from firstk.moments.stream import HoldOut, len_of

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
