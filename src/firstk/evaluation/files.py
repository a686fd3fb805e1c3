"""Evaluation of a saved encoder on files: rows, pairs, or queries with judged documents.

One call reads what a metric needs, scores every prefix next to the baselines, and chooses a prefix length; ``firstk
curve`` is its command.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstk._base.checks import check_prefix
from firstk._base.remote import place_of, shown_place
from firstk.data.files.beside import load_columns
from firstk.data.files.choosing import missing_column
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.naming import learned_from
from firstk.encoder.recommendation import Recommendation
from firstk.encoder.storage.card import saved_curve
from firstk.estimator.fit_files import draw
from firstk.evaluation.baselines import baselines_of
from firstk.evaluation.fit_task import stream_of_pairs
from firstk.evaluation.held_out import (
    UNSUPERVISED,
    Progress,
    about_list,
    compare,
    lead_metric,
    recommendation_of,
    rivals,
)
from firstk.evaluation.inputs import File, Stream, VectorSource, open_stream
from firstk.evaluation.judged_pairs import JudgedPairs, read_judged_pairs
from firstk.evaluation.new_documents import population_of, with_seen
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.overlap import HELD_OUT, SEED, TrainingOverlap, same_file, seed_of, shared_rows, training_overlap
from firstk.evaluation.precision_cost import OWN_METRICS, default_bytes, default_lengths, ladder, precision_table
from firstk.evaluation.query_split import pairs_of_new_queries
from firstk.evaluation.recommending import KEEP, Limits
from firstk.evaluation.search_notes import search_notes
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS, SEARCH, EvaluationData, check_metric

# Metrics whose readout or neighbors need rows of their own: without a reference, the file is split.
SPLIT = ("1nn_accuracy", "probe_accuracy", "r2", "readback_variance")
# Metrics that look at no other rows but to fit baselines on.
ALONE = (*OWN_METRICS, "explained_variance")

# Rows to evaluate, rows to look among, a text about them, and notes.
_Parts = tuple[dict[str, np.ndarray], dict[str, np.ndarray], str, tuple[str, ...]]


@dataclass(frozen=True)
class CurveRequest:
    """Files to evaluate on.

    Attributes
    ----------
    place : VectorSource
        Rows, pairs, or queries with judged documents.
    reference, reference_labels : str, optional
        Rows to look among, and to fit readouts and baselines on; and FILE[:COLUMN] of their labels.
    most : int
        Rows of each file that are used at most, drawn at random.
    """

    place: VectorSource
    reference: str | None = None
    reference_labels: str | None = None
    most: int = 5_000


@dataclass(frozen=True, eq=False)
class EvaluationInput:
    """Data to evaluate on, and what to say about them.

    Attributes
    ----------
    data : EvaluationData
    metric : str
    said : str
        Which rows are evaluated, against which.
    training : ndarray or None
        Rows on which baselines may be fitted.
    itemsize : int
        Bytes of a number in the file.
    store : path or None
        The file whose vectors would be stored, where there is one.
    notes : tuple of str
        What makes these scores look better than they are, and options that were of no use.
    caution : str
        What has to be read before the scores: that the fit was evaluated by another question.
    """

    data: EvaluationData
    metric: str
    said: str
    training: np.ndarray | None
    itemsize: int
    store: File | None = None
    notes: tuple[str, ...] = ()
    caution: str = ""


@dataclass(frozen=True)
class CurveResult:
    """Scores of every prefix, and the choice among them.

    Attributes
    ----------
    curve : PrefixCurve
    baselines : tuple of PrefixCurve
    table : PrecisionTable
        Scores in every precision, of baselines that are ahead somewhere, and of the raw vectors.
    recommendation : Recommendation or None
        What to store; None where a share of the score means nothing.
    given : EvaluationInput
        What was evaluated.
    notes : tuple of str
    refusal : InvalidInputError or None
        Why nothing could be chosen, where a choice was asked for.
    """

    curve: PrefixCurve
    baselines: tuple[PrefixCurve, ...]
    table: PrecisionTable
    recommendation: Recommendation | None
    given: EvaluationInput
    notes: tuple[str, ...]
    refusal: InvalidInputError | None = None


def evaluate_files(
    encoder: FittedEncoder,
    request: CurveRequest,
    metric: str = "auto",
    limits: Limits | None = None,
    *,
    confidence: float | None = 0.95,
    baselines: bool = True,
    rows: int | None = None,
    progress: Progress = lambda what: None,
) -> CurveResult:
    """Score every prefix of an encoder on files, next to the baselines, and choose an operating point.

    Parameters
    ----------
    encoder : FittedEncoder
    request : CurveRequest
    metric : str
        A name in `firstk.metrics.curve.METRICS`, or "auto" for the objective's own.
    limits : Limits, optional
        What to choose by; without any, the cheapest that keeps 99 % of the raw vectors' score.
    confidence : float in (0, 1), optional
        Of bootstrap intervals over the rows.
    baselines : bool
        Score baselines as well: those that are fitted only where there are rows to fit them on.
    rows : int, optional
        How many rows the store will hold, for the time of a search.
    progress : callable (str) -> None
        Told what has been evaluated.
    """
    limits = limits or Limits(keep=KEEP)
    check_prefix(limits.k, encoder.d, "firstk curve")
    given = read_evaluation(encoder, request, metric)
    if metric == "auto" and given.data.y is not None:
        given = replace(given, metric=lead_metric(encoder, given.data))
    name = check_metric(given.metric, given.data)
    given = replace(given, data=METRICS[name].prepare(encoder, given.data))
    others, notes = _baselines(encoder, given) if baselines else ({}, [])
    found = compare(
        encoder, population_of(given.data).data, name, others, baseline_ks=ladder(encoder.d),
        confidence=confidence, notes=notes, progress=progress,
    )  # fmt: skip
    leaders = rivals(found, others)
    sizes = default_bytes(encoder, limits.bytes_per_vector)
    if not sizes:
        notes.append(
            "This model has no cells for embedded bits, which are not evaluated: it was saved by an earlier firstk, or "
            "its codes hardly vary. Fit it again to have them."
        )
    table = precision_table(
        encoder, given.data, name, sizes=sizes,
        ks=None if limits.k is None else sorted({*default_lengths(encoder), limits.k}),
        others=leaders, product_quantizer=baselines, latency=limits.seconds is not None, rows=rows,
        progress=progress,
    )  # fmt: skip
    table = replace(table, input_bytes=encoder.p * given.itemsize)
    notes = [*given.notes, *_about_labels(given), *about_list(found.ours), *notes]
    advice, refusal = None, None
    try:
        table.check_within(limits)
        advice = recommendation_of(table, limits)
        if advice is not None and (advice.advised is None or advice.chance is not None):
            refusal = InvalidInputError(advice.headline())
    except InvalidInputError as error:  # the scores are there all the same
        refusal = error
    return CurveResult(found.ours, found.baselines, table, advice, given, tuple(notes), refusal)


def read_evaluation(encoder: FittedEncoder, request: CurveRequest, metric: str = "auto") -> EvaluationInput:
    """Read what the metric needs, or what the request names."""
    request.place.check()
    if request.place.judged:
        return _judged(encoder, request, metric)
    return _rows(encoder, request, _metric_of_rows(encoder, request, metric))


def _about_labels(given: EvaluationInput) -> tuple[str, ...]:
    """Say so where labels are such that an accuracy says nothing."""
    if given.data.y is None or given.metric not in ("1nn_accuracy", "probe_accuracy"):
        return ()
    y = np.asarray(given.data.y)
    values = len(np.unique(y))
    if values == 1:
        return ("All rows have one label, so every code finds it: these scores say nothing.",)
    if 2 * values > len(y):
        numeric = " If they are numbers to predict, use --metric r2." if y.dtype.kind in "fiu" else ""
        return (f"The labels have {values:,} values in {len(y):,} rows: they are no classes to be found.{numeric}",)
    return ()


def _baselines(encoder: FittedEncoder, given: EvaluationInput) -> tuple[dict[str, FittedEncoder], list[str]]:
    """Return the baselines of a metric; those that must be fitted, only where there are rows to fit on."""
    if given.metric in OWN_METRICS:
        return {}, [f"Baselines have no {given.metric}; --metric probe_accuracy compares them."]
    found = baselines_of(given.training, p=encoder.p)
    if given.training is None:
        return found, ["PCA and uncentred SVD are not evaluated: give rows to fit them on with --reference."]
    fitted = encoder.config.get("rows")
    if fitted is None or len(given.training) == fitted:
        return found, []
    return found, [
        f"PCA and uncentred SVD are fitted on {len(given.training):,} rows here; 'firstk fit' fits them on all rows "
        "that it learns from, so that their scores may differ in the third digit."
    ]


# -- rows ------------------------------------------------------------------------------------------------------


def _metric_of_rows(encoder: FittedEncoder, request: CurveRequest, metric: str) -> str:
    name = lead_metric(encoder) if metric == "auto" else metric
    if metric == "auto" and name in UNSUPERVISED and (request.place.label or request.place.labels):
        name = "1nn_accuracy"  # settled when the labels have been read: of numbers it is r2
    needs = METRICS[name].needs
    options = {"left": "pairs: --pairs", "relevance": "judged documents: --relevance and --queries"}
    for need, option in options.items():
        if need in needs:
            raise InvalidInputError(f"The metric '{name}' needs {option}.")
    if "y" in needs and request.place.label is None and request.place.labels is None:
        raise InvalidInputError(
            f"The metric '{name}' needs labels or targets: name their column with --label, or their file with "
            "--labels. Without any, --metric recall@10 or readback_variance will do."
        )
    return name


def _rows(encoder: FittedEncoder, request: CurveRequest, metric: str) -> EvaluationInput:
    stream = _opened(request.place, encoder)
    overlap = training_overlap(encoder, stream, request.place.nan)
    useless = _about_reference(request, metric)
    if request.reference is not None and not useless:
        found, reference, said, notes = _against(encoder, stream, request, metric, overlap)
    elif metric in SPLIT or (overlap is not None and overlap.held):
        found, reference, said, notes = _divided(encoder, stream, request, metric, overlap)
    else:
        found, count = _sample(stream, request.most, request.place.source)
        reference, said = {}, f"Evaluated on {count} of {_name(request.place.source)}."
        notes = _about_overlap(overlap, request)
    data = EvaluationData(X=found["X"], y=found.get("y"), X_ref=reference.get("X"), y_ref=reference.get("y"))
    store = request.place.source if request.reference is None else request.reference
    return EvaluationInput(
        data, metric, said, reference.get("X"), stream.itemsize, store, (*useless, *notes), _other_question(encoder)
    )


def _other_question(encoder: FittedEncoder) -> str:
    """Say so where a fit was evaluated by judgements, and rows without any are to follow."""
    known = saved_curve(encoder.config, encoder.d)
    if known is None or known.metric not in SEARCH:
        return ""
    return (
        f"The fit was evaluated by {known.metric} on judged documents, and this is another question, so what to store "
        "differs: give --queries and --relevance to ask the same."
    )


def _about_reference(request: CurveRequest, metric: str) -> tuple[str, ...]:
    """Say why a reference is not used, where it is of no use."""
    if request.reference is None:
        return ()
    if metric in OWN_METRICS:
        return (f"--reference is not used: {metric} looks at no other rows. --metric probe_accuracy does.",)
    if same_file(request.place.source, request.reference):
        return (
            f"--reference is not used: it is {_name(request.place.source)} itself, and no row is its own reference. "
            "Give other rows.",
        )
    return ()


def _against(
    encoder: FittedEncoder, stream: Stream, request: CurveRequest, metric: str, overlap: TrainingOverlap | None
) -> _Parts:
    """Take the rows of the file, and those of the reference."""
    found, count = _sample(stream, request.most, request.place.source)
    reference, among = _sample(_opened(_reference_place(request), encoder), request.most, request.reference)
    file, other = _name(request.place.source), _name(request.reference)
    notes = _about_overlap(overlap, request)
    if metric in ALONE:
        return found, reference, f"Evaluated on {count} of {file}; baselines are fitted on {among} of {other}.", notes
    if shared := shared_rows(found["X"], reference["X"]):
        notes += (
            f"{shared:,} of the rows evaluated are in {other} too and find themselves there, so these scores are "
            "better than those of new rows. Take such rows out of one of the files.",
        )
    return found, reference, f"Evaluated on {count} of {file}, against {among} of {other}.", notes


def _divided(
    encoder: FittedEncoder, stream: Stream, request: CurveRequest, metric: str, overlap: TrainingOverlap | None
) -> _Parts:
    """Take a part of the file, and the others: the part that was held out, where the model was fitted on the others."""
    if overlap is None or not overlap.held:
        # Nothing is known of these rows, or all were seen: the usual draw gives rows to look among all the same.
        parts, seed, rest, notes = draw(stream.rows, HELD_OUT, SEED), SEED, "", _about_overlap(overlap, request)
    else:
        parts, seed, notes = overlap.parts, seed_of(encoder.config), ()
        rest = f" The model was fitted on the other {overlap.fitted:,}."
    found, reference = stream.take([_at_most(part, request.most) for part in (parts.held, parts.reference)])
    _check_some(found, request.place.source)
    said = (
        f"Evaluated on {len(found['X']):,} rows of {_name(request.place.source)} that are held out (drawn at random, "
        f"seed {seed}, as 'firstk fit' does)"
    )
    if metric not in ALONE:
        said += f", against {len(reference['X']):,} others of it. Give rows of their own with --reference"
    return found, reference, f"{said}.{rest}", notes


def _about_overlap(overlap: TrainingOverlap | None, request: CurveRequest) -> tuple[str, ...]:
    """Say that the model was fitted on rows that it is evaluated on, and the way to rows that it has not seen."""
    if overlap is None:
        return ()
    way = f"Without --reference the {overlap.held:,} others are used." if overlap.held else "Evaluate on other rows."
    return (
        f"The model was fitted on {overlap.fitted:,} rows of {_name(request.place.source)}, so these scores are better "
        f"than those of new rows. {way}",
    )


def _reference_place(request: CurveRequest) -> VectorSource:
    place = request.place
    if place.labels is not None and request.reference_labels is None:
        raise InvalidInputError(
            "--labels is the file of the labels of VECTORS; give that of --reference as --reference-labels."
        )
    label = None if request.reference_labels is not None else place.label
    assert request.reference is not None
    _check_labels_of_reference(request.reference, label)
    return VectorSource(request.reference, place.vectors, label, request.reference_labels, nan=place.nan)


def _check_labels_of_reference(reference: str, label: str | None) -> None:
    held = load_columns(reference) if label is not None else {}
    for name in [] if label is None or label in held else label.split(","):
        if name.strip() not in held:
            raise InvalidInputError(
                f"{missing_column(reference, name.strip(), tuple(held))} If its labels have another name, give them as "
                f"--reference-labels {reference}:COLUMN."
            )


# -- pairs and searches ----------------------------------------------------------------------------------------


def _judged(encoder: FittedEncoder, request: CurveRequest, metric: str) -> EvaluationInput:
    judged = read_judged_pairs(request.place)
    _check_width(judged.documents.shape[1], encoder, request.place.source)
    name = _metric_of_judged(judged, metric)
    return (_searches if name in SEARCH else _pairs)(encoder, request, judged, name)


def _metric_of_judged(judged: JudgedPairs, metric: str) -> str:
    """Return the metric of searches, or of pairs; others raise."""
    if metric == "auto":
        return SEARCH[0] if judged.searches else "spearman"
    if judged.graded and metric not in SEARCH:
        raise InvalidInputError(f"--relevance goes with --metric {', '.join(SEARCH)}. Got '{metric}'.")
    if metric in SEARCH and not judged.searches:
        raise InvalidInputError(
            f"The metric '{metric}' is one of relevant documents, and these pairs have scores that differ: use "
            "spearman, or give grades of relevance as --relevance FILE:QUERY,DOCUMENT,GRADE."
        )
    if metric not in SEARCH and "left" not in METRICS[metric].needs:
        raise InvalidInputError(f"The metric '{metric}' is not one of pairs: use spearman or positive_recall@10.")
    return metric


def _pairs(encoder: FittedEncoder, request: CurveRequest, judged: JudgedPairs, metric: str) -> EvaluationInput:
    """Take pairs, of which the cosines are to agree with the scores."""
    new, left_out, notes = _not_learned_from(encoder, judged, "left sides")
    columns = {name: part[new] for name, part in judged.columns.items()}
    found, count = _sample(stream_of_pairs(columns), request.most, request.place.pairs, "pairs")
    data = EvaluationData(left=found["left"], right=found["right"], scores=found.get("scores"))
    said = f"Evaluated on {count} of {_name(request.place.pairs)}.{left_out}"
    return EvaluationInput(data, metric, said, _training(encoder, request), judged.itemsize, notes=tuple(notes))


def _searches(encoder: FittedEncoder, request: CurveRequest, judged: JudgedPairs, metric: str) -> EvaluationInput:
    """Take all documents, and the queries that the model has not learned from."""
    new, left_out, warned = _not_learned_from(encoder, judged, "queries")
    data = with_seen(judged.evaluation(judged.some_queries(request.most, SEED, new)), encoder.learned)
    people = population_of(data)
    said, notes = judged.described(data) + left_out, [*search_notes(encoder, people, metric), *warned]
    if data.query_seen is None and learned_from(encoder.config) == "pair":
        notes.append(
            "This model was saved without the hashes of the documents that it has learned from, so searches for new "
            "documents cannot be told from others, and may fare worse than these. Fit it again to have them."
        )
    said += f" {people.sentence}" if people.on_new else ""
    training = _training(encoder, request)
    training = judged.documents if training is None else training
    return EvaluationInput(data, metric, said, training, judged.itemsize, judged.store, tuple(notes))


def _not_learned_from(encoder: FittedEncoder, judged: JudgedPairs, what: str) -> tuple[np.ndarray, str, list[str]]:
    """Return the pairs of queries that did not teach the model, how many did, and a note where there are no others."""
    new = pairs_of_new_queries(encoder, judged)
    taught = len(np.unique(judged.pairs[:, 0])) - len(np.unique(judged.pairs[new, 0]))
    if not taught:
        return new, "", []
    if not len(new):
        note = f"The model was fitted on all of these {what}, so scores are better than those of new ones."
        return np.arange(len(judged.pairs)), "", [note]
    return new, f" The {taught:,} {what} that the model was fitted on are left out.", []


def _training(encoder: FittedEncoder, request: CurveRequest) -> np.ndarray | None:
    """Return the rows of the reference, to fit baselines on."""
    if request.reference is None:
        return None
    place = VectorSource(request.reference, request.place.vectors, nan=request.place.nan)
    return _sample(_opened(place, encoder), request.most, request.reference)[0]["X"]


# -- what all of them share ------------------------------------------------------------------------------------


def _opened(place: VectorSource, encoder: FittedEncoder) -> Stream:
    stream = open_stream(place)
    _check_width(stream.width, encoder, place.source)
    return stream


def _check_width(width: int, encoder: FittedEncoder, source: File) -> None:
    if width != encoder.p:
        raise InvalidInputError(
            f"'{shown_place(source)}' has vectors of {width} numbers, and this model takes {encoder.p}. Give the file "
            "that goes with it, or name the vector column with --vectors."
        )


def _sample(stream: Stream, most: int, source: File | None, what: str = "rows") -> tuple[dict[str, np.ndarray], str]:
    """Take all rows of a stream, or as many as are wanted at most; and say how many of how many."""
    (found,) = stream.take([_at_most(np.arange(stream.rows), most)])
    _check_some(found, source, what)
    count = f"{len(next(iter(found.values()))):,}"
    if stream.rows > most:
        return found, f"{count} of {stream.rows:,} {what} (drawn at random, seed {SEED})"
    return found, f"{count} {what}"


def _at_most(rows: np.ndarray, most: int) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(np.random.default_rng(SEED).choice(rows, size=most, replace=False))


def _check_some(found: dict[str, np.ndarray], source: File | None, what: str = "rows") -> None:
    if not found:
        raise InvalidInputError(
            f"There are no {what} to evaluate on in '{shown_place(source)}'. Give a file that holds some."
        )


def _name(path: File | None) -> str:
    return place_of(str(path)).name or str(path)
