"""Evaluation of a fit on held-out rows or pairs, next to the four baselines, as the record that a report page shows.

`compare` is the one path by which an encoder and its baselines are scored: fits, files and the demo all take it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from firstk import __version__, metrics
from firstk._base.concurrency import Alongside
from firstk._base.remote import place_of
from firstk.contracts import Objective
from firstk.data.precision import PRECISIONS
from firstk.encoder.curve import PrefixCurve, supported_lengths
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.naming import objective_name
from firstk.encoder.recommendation import Recommendation
from firstk.estimator.fit_files import StreamedFit
from firstk.evaluation.baselines import BASELINES, baselines_of
from firstk.evaluation.new_documents import population_of
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.precision_cost import (
    OWN_METRICS,
    beside_one_another,
    default_bytes,
    default_lengths,
    ladder,
    precision_table,
)
from firstk.evaluation.recommending import AS_GOOD, CHANCE_CODE, Limits, simpler_codes
from firstk.evaluation.records import AxisStatistics, Comparison, HeldOutReport, ImageSamples, Packed
from firstk.evaluation.search_notes import search_notes
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS, EvaluationData, check_metric, prefix_curve, settled_metric
from firstk.metrics.ranking import rank_correlation
from firstk.metrics.scorers import n_rows
from firstk.metrics.task import fit_readout

if TYPE_CHECKING:
    from firstk.evaluation.inputs import Stream, VectorSource

# All prefixes up to here; beyond, eight an octave: no eye and no decision needs more, and 'firstk curve' takes any.
ALL_PREFIXES, PER_OCTAVE = 32, 8
# Rows on which single coordinates are probed, as many as in Talukder et al. 2026 C.3.
PROBED_ROWS = 2000
SAMPLES = 10
# Metrics of objectives that look at no labels or targets.
UNSUPERVISED = ("explained_variance", "readback_variance", "recall@10")
# A baseline whose scores differ by less than this share is no other code to speak of.
AHEAD = 1e-3
# Lengths at which a baseline keeps less of the score at full width than this are no advice, wherever it is ahead there.
WORTH = 0.5
# Metrics that count ten neighbors for each row, so that a few hundred rows tell shares to half a percent; pairs of rows
# and stored rows that a fit compares by them. `firstk curve` compares all.
COUNTED, MOST_PAIRS = ("recall@10", "mined_ndcg@10"), 2_000_000
CONFIDENCE = 0.95
# The name of the encoder among the codes that are compared.
OURS = "ours"
# Entries of the decoder that a page can carry: about 400 kB of text.
MOST_ENTRIES = 150_000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Provenance:
    """Where the rows of a fit came from, as a page shows it.

    Attributes
    ----------
    facts : mapping
        Shown as they are, in this order.
    rows, itemsize : int
        How many rows or pairs the file holds, and bytes of a number in it.
    held_out : str
        Which rows were held out.
    image_shape : tuple of int, optional
        Rows, columns and channels, where a vector is an image.
    """

    facts: Mapping[str, str | int | float]
    rows: int
    itemsize: int
    held_out: str
    image_shape: tuple[int, ...] | None = None


def provenance_of(
    fit: StreamedFit,
    place: VectorSource,
    stream: Stream,
    drawn_from: str,
    image_shape: tuple[int, ...] | None = None,
) -> Provenance:
    """Collect what a page says about a fit on a file; `drawn_from` names where the held-out rows are from."""
    config, held = fit.encoder.encoder_.config, len(next(iter(fit.held.values())))
    what = "pairs" if place.pairs is not None else "rows"
    settings = _unusual_settings(fit.encoder.objective_)
    facts: dict[str, str | int | float] = {"file": place_of(place.source).name, "objective": objective_name(config)}
    facts |= {"settings": settings} if settings else {}
    facts |= {"labels": stream.label} if stream.label else {}
    facts |= {
        "ordering": str(config["ordering"]),
        "solver": str(config["solver"]),
        f"{what} fitted on": int(config["rows"]),  # with those of the model that rows were added to
        f"{what} held out": held,
        "columns": stream.width,
        "coordinates": fit.encoder.encoder_.d,
        "firstk": __version__,
    }
    text = f"Evaluated on {held:,} held-out {what[:-1] if held == 1 else what} of {drawn_from}."
    if len(next(iter(fit.reference.values()))) < fit.rows:
        text += f" Neighbors are looked for, and probes fitted, among {len(fit.reference['X']):,} training rows."
    side = math.isqrt(stream.width)
    if image_shape is None and stream.vectors == "pixels" and side**2 == stream.width:
        image_shape = (side, side)  # a column of square images, such as that of 'firstk sample digits'
    return Provenance(facts, stream.rows, stream.itemsize, text, image_shape)


def _unusual_settings(objective: Objective) -> str:
    """Return the settings of an objective that are not its default ones, as text."""
    own = {f.name: (getattr(objective, f.name), f.default) for f in fields(objective)}  # type: ignore[arg-type]
    return ", ".join(f"{name} {value}" for name, (value, default) in own.items() if value != default)


def evaluate_fit(
    fit: StreamedFit,
    source: Provenance,
    progress: Progress = lambda what: None,
    limits: Limits | None = None,
    thread: Alongside | None = None,
) -> HeldOutReport:
    """Evaluate a fit on its held-out part.

    Parameters
    ----------
    fit : StreamedFit
        With a held-out part.
    source : Provenance
    progress : callable (str) -> None
        Told what has been evaluated.
    limits : Limits, optional
        What is recommended by; 99 % of the score of the raw vectors if not given.
    thread : Alongside, optional
        Where the cells of bits are fitted while curves are swept; one of its own if not given.

    Returns
    -------
    report : HeldOutReport
        What needs labels is left out where there are none, with a note.
    """
    encoder, data = fit.encoder.encoder_, fit.data
    if source.image_shape is not None and int(np.prod(source.image_shape)) != encoder.p:
        raise InvalidInputError(
            f"Images of {'x'.join(map(str, source.image_shape))} have {int(np.prod(source.image_shape))} values, and "
            f"the vectors have {encoder.p}. Give the shape of one image, such as --image 28x28."
        )
    notes: list[str] = []
    baselines, people = _baselines_of(fit), population_of(data)
    with Alongside() if thread is None else nullcontext(thread) as beside:
        # The cells of bits, which the table needs, are fitted while curves are swept.
        sizes = beside.submit(default_bytes, encoder, None if limits is None else limits.bytes_per_vector)
        comparisons = tuple(_comparisons(encoder, people.data, baselines, notes, progress))
    if data.relevance is not None:
        notes.extend(search_notes(encoder, people))
    elif data.left is not None:
        notes.append(_known_documents(fit))
    table, advice = None, None
    if comparisons:
        notes += about_list(comparisons[0].ours)
        metric, others = comparisons[0].ours.metric, rivals(comparisons[0], baselines)
        table = precision_table(
            encoder, affordable(data, metric, notes), metric, sizes=sizes.result(), others=others, progress=progress
        )
        table = replace(table, input_bytes=encoder.p * source.itemsize)
        advice = recommendation_of(table, limits, notes)
    progress("single coordinates")
    axes = _axes(encoder, data, notes)
    images = None if source.image_shape is None else _images(encoder, fit, source.image_shape, notes)
    return HeldOutReport(
        facts=source.facts,
        rows=source.rows,
        columns=encoder.p,
        itemsize=source.itemsize,
        held_out=source.held_out,
        comparisons=comparisons,
        axes=axes,
        images=images,
        precisions=table,
        notes=tuple(notes),
        recommendation=advice,
    )


def recommendation_of(
    table: PrecisionTable, limits: Limits | None = None, notes: list[str] | None = None
) -> Recommendation | None:
    """Recommend what to store; None, with a note, where a share of the score means nothing, or nothing is as small."""
    try:
        if limits is not None:
            table.check_within(limits)
        return table.recommend(limits)
    except InvalidInputError as error:
        if notes is None:
            raise
        notes.append(str(error))
        return None


def about_list(curve: PrefixCurve) -> list[str]:
    """Say so where only some lengths are recommended."""
    if curve.supported is None:
        return []
    lengths = ", ".join(map(str, curve.recommendable))
    return [f"Recommended are lengths of the ordering's list alone ({lengths}): the code is made for no others."]


def rivals(comparison: Comparison, baselines: Mapping[str, FittedEncoder]) -> dict[str, FittedEncoder]:
    """Return the baselines that may be the advice: those worth a place in a table of bytes.

    These are ahead of the encoder at some prefix length that is worth storing, or as good there and simpler. Beyond
    half of the columns all codes are as good; there the simpler one is the raw vectors, rounded. A baseline with the
    encoder's own scores is the encoder, one that is nowhere clearly ahead of another that is taken adds nothing to it,
    and columns drawn at random are no advice.
    """
    ours = dict(comparison.ours)
    worth = WORTH * (comparison.ours.input_score or comparison.ours.full)
    found = {}
    for curve in comparison.baselines:
        baseline, both = baselines[curve.label], [(k, score, ours[k]) for k, score in curve if k in ours]
        if curve.label == CHANCE_CODE or all(abs(score - own) <= AHEAD * abs(own) for _, score, own in both):
            continue
        longest = baseline.p // 2 if curve.label in simpler_codes(comparison.ours.label) else 0
        ahead = any(
            score >= worth and score > own + (-AS_GOOD if k <= longest else AHEAD) * abs(own) for k, score, own in both
        )
        if ahead and not any(_covers(other, curve, worth) for other in comparison.baselines if other.label in found):
            found[curve.label] = baseline
    return found


def _covers(curve: PrefixCurve, other: PrefixCurve, worth: float) -> bool:
    """Tell whether a curve is nowhere behind another by more than what counts as equal, where that is worth storing."""
    ours = dict(curve)
    return all(score < worth or score <= ours.get(k, -np.inf) + AS_GOOD * abs(score) for k, score in other)


def affordable(data: EvaluationData, metric: str, notes: list[str] | None = None) -> EvaluationData:
    """Return as many of the rows as a fit compares by a metric, evenly spaced; all of them for most metrics."""
    if metric not in COUNTED or data.X is None or data.neighbors is not None:
        return data
    X = np.asarray(data.X)
    most = max(1, MOST_PAIRS // n_rows(data.stored))
    if data.X_ref is None or len(X) <= most:
        return data
    rows = np.linspace(0, len(X) - 1, most).round().astype(int)
    if notes is not None:
        notes.append(
            f"{metric} is of {most:,} of the {len(X):,} held-out rows, ten neighbors each; 'firstk curve' takes all."
        )
    return replace(data, X=X[rows], y=None if data.y is None else np.asarray(data.y)[rows])


def steps_of(fit: StreamedFit) -> int:
    """Return about how often `evaluate_fit` will report progress: baselines that are ahead add to it."""
    encoder = fit.encoder.encoder_
    names = metrics_for(encoder, fit.data)
    curves = sum(1 + len(BASELINES) * (name not in OWN_METRICS) for name in names)
    # Every precision but embedded bits is one sweep, of the code and of the raw vectors; bits are scored size by size.
    return curves + 1 + 2 * (len(PRECISIONS) - 1) + len(default_bytes(encoder))


def prefix_grid(d: int) -> np.ndarray:
    """Return the prefix lengths at which a fit is evaluated: all of a short code, eight an octave of a long one.

    Examples
    --------
    >>> prefix_grid(4)
    array([1, 2, 3, 4])
    >>> len(prefix_grid(768))
    69
    """
    if d <= ALL_PREFIXES:
        return np.arange(1, d + 1)
    steps = np.arange(int(np.log2(d / ALL_PREFIXES) * PER_OCTAVE) + 1) / PER_OCTAVE
    return np.unique([*range(1, ALL_PREFIXES + 1), *np.rint(ALL_PREFIXES * 2**steps).astype(int), d])


# -- curves ----------------------------------------------------------------------------------------------------


def compare(
    encoder: FittedEncoder,
    data: EvaluationData,
    metric: str,
    baselines: Mapping[str, FittedEncoder],
    ks: Sequence[int] | None = None,
    *,
    baseline_ks: Sequence[int] | None = None,
    confidence: float | None = None,
    notes: list[str] | None = None,
    progress: Progress = lambda what: None,
) -> Comparison:
    """Score every prefix of an encoder, and of baselines, by one metric on the same data.

    Parameters
    ----------
    encoder : FittedEncoder
    data : EvaluationData
    metric : str
        A name in `firstk.metrics.curve.METRICS`.
    baselines : mapping from names to FittedEncoder
    ks, baseline_ks : sequence of int, optional
        Prefix lengths of the encoder, all if not given; and of the baselines, those of the encoder if not given.
    confidence : float in (0, 1), optional
        Of bootstrap intervals, from the same draws for all of them.
    notes : list of str, optional
        Gets a note for each baseline that cannot be scored; without it, that raises.
    progress : callable (str) -> None
        Told what has been evaluated.
    """
    data = METRICS[check_metric(metric, data)].prepare(encoder, data)
    raw = METRICS[metric].raw(encoder, data)
    lengths = range(1, encoder.d + 1) if ks is None else ks

    def curve_of(name: str) -> PrefixCurve | InvalidInputError:
        if name == OURS:
            return prefix_curve(encoder, data, metric, lengths, confidence=confidence, input_score=raw)
        baseline = baselines[name]
        if metric == "explained_variance" and baseline.decoder is not None:
            # Variance is that about the mean, so what a baseline leaves out is filled with the mean.
            baseline = replace(baseline, mean=encoder.mean, query_mean=encoder.mean)
        own = [k for k in (lengths if baseline_ks is None else baseline_ks) if k <= baseline.d]
        try:
            curve = prefix_curve(baseline, data, metric, own, confidence=confidence, input_score=raw)
        except InvalidInputError as error:
            return error
        return replace(curve, label=name)

    # A baseline that is the encoder, as PCA is for reconstruction, is not swept again.
    swept = [OURS, *(name for name, baseline in baselines.items() if not _begins_with(baseline, encoder))]
    found = {}
    for name, curve in zip(swept, beside_one_another(curve_of, swept, encoder, data), strict=True):
        progress(f"{metric}, {name}")
        found[name] = curve
    ours, curves = found[OURS], []
    assert isinstance(ours, PrefixCurve)
    for name in baselines:
        curve = found[name] if name in found else _at(ours, lengths if baseline_ks is None else baseline_ks, name)
        if isinstance(curve, PrefixCurve):
            curves.append(curve)
        elif notes is None:
            raise curve
        else:
            notes.append(f"{name} is left out: {curve}")
    return Comparison(ours, tuple(curves))


def _begins_with(baseline: FittedEncoder, encoder: FittedEncoder) -> bool:
    """Tell whether the first coordinates of a baseline, and what they decode to, are the encoder's, to the last bit."""
    return (
        encoder.network is None
        and encoder.normalized == baseline.normalized
        and np.array_equal(baseline.components[: encoder.d], encoder.components)
        and np.array_equal(baseline.mean, encoder.mean)
        and np.array_equal(baseline.query_mean, encoder.query_mean)
        and (
            encoder.decoder is None
            or (baseline.decoder is not None and np.array_equal(baseline.decoder[:, : encoder.d], encoder.decoder))
        )
    )


def _at(curve: PrefixCurve, ks: Sequence[int], label: str) -> PrefixCurve:
    """Return a curve at some of its prefix lengths, by another name."""
    places = [curve.k.index(k) for k in ks if k in curve.k]
    picked: dict[str, Any] = {
        name: None if values is None else tuple(values[i] for i in places)
        for name, values in (("k", curve.k), ("score", curve.score), ("low", curve.low), ("high", curve.high))
    }
    return replace(curve, **picked, label=label, supported=None, details={})


def lead_metric(encoder: FittedEncoder, data: EvaluationData | None = None) -> str:
    """Return the metric that an evaluation is about: the objective's own, or the nearest that baselines have too."""
    own = str(encoder.config["metric"]) if data is None else settled_metric(encoder, data)
    labels = encoder.head is not None and encoder.head.classes is not None
    if data is not None and data.y is not None and own in UNSUPERVISED:
        return _metric_of(data.y)  # labels that the objective does not look at say what the codes are for
    return {
        "explained_variance": "readback_variance",
        "head_accuracy": "1nn_accuracy",
        "mixture": "1nn_accuracy" if labels else "r2",
        "pair_agreement": "recall@10",
    }.get(own, own)


def metrics_for(encoder: FittedEncoder, data: EvaluationData) -> tuple[str, ...]:
    """Return the metrics of a held-out report, the one it is about first; then others that the data allow."""
    own, by_target = settled_metric(encoder, data), () if data.y is None else (_metric_of(data.y),)
    others = {
        "head_accuracy": ("head_accuracy",),
        "1nn_accuracy": ("probe_accuracy",),
        "mixture": ("readback_variance",),
        "explained_variance": ("readback_variance",),
        "readback_variance": ("readback_variance",),
        "recall@10": ("recall@10",),
    }.get(own, by_target)
    return tuple(dict.fromkeys((lead_metric(encoder, data), *others)))


def _metric_of(y: ArrayLike) -> str:
    """Return the metric of targets, which are floats or several columns, or of everything else: labels."""
    return "r2" if np.asarray(y).dtype.kind == "f" or np.ndim(y) > 1 else "1nn_accuracy"


def _baselines_of(fit: StreamedFit) -> dict[str, FittedEncoder]:
    sides = fit.reference
    rows = sides["X"] if "X" in sides else np.concatenate([sides["left"], sides["right"]])
    return baselines_of(rows, fit.statistics)


def _comparisons(
    encoder: FittedEncoder,
    data: EvaluationData,
    baselines: Mapping[str, FittedEncoder],
    notes: list[str],
    progress: Progress,
) -> Iterator[Comparison]:
    """Compare by the metric that the report is about at many prefix lengths, by others at a few."""
    few = sorted({*ladder(encoder.d), *(supported_lengths(encoder.config, encoder.d) or ())})
    # Lengths that may be recommended are among them.
    ks = sorted({*prefix_grid(encoder.d).tolist(), *few, *default_lengths(encoder)})
    for name in metrics_for(encoder, data):
        others = {} if name in OWN_METRICS else baselines
        try:
            yield compare(
                encoder, affordable(data, name), name, others, ks,
                baseline_ks=few, confidence=CONFIDENCE, progress=progress,
            )  # fmt: skip
            ks = few
        except InvalidInputError as error:
            notes.append(f"The curve of {name} is left out: {error}")


def _known_documents(fit: StreamedFit) -> str:
    """Say how many held-out pairs have a right side that training has seen (docs/theory.md, 5)."""
    known = {row.tobytes() for row in fit.reference["right"]}
    seen = sum(row.tobytes() in known for row in fit.held["right"])
    return (
        f"{seen} of {len(fit.held['right'])} held-out pairs have a right side that is in the training pairs as well: "
        "on those a fit can score by remembering it."
    )


# -- single coordinates ----------------------------------------------------------------------------------------


def _axes(encoder: FittedEncoder, data: EvaluationData, notes: list[str]) -> AxisStatistics:
    """Statistics of each coordinate over the held-out rows."""
    X = data.stored if data.X is None else data.X
    Z = encoder.coordinates(X).astype(np.float64)
    magnitude = np.abs(Z).mean(axis=0)
    useful, measure, chance = _usefulness(encoder, Z, data)
    if not len(useful) and data.relevance is None:
        notes.append("No labels given: per-coordinate usefulness is not shown.")
    return AxisStatistics(
        spectrum=tuple(encoder.spectrum.tolist()),
        magnitude=tuple(magnitude.tolist()),
        variance=tuple(Z.var(axis=0).tolist()),
        usefulness=tuple(useful.tolist()),
        measure=measure,
        chance=chance,
        rank_correlation=_rank_correlation(magnitude, useful),
        pinned=encoder.pinned,
    )


def _usefulness(encoder: FittedEncoder, Z: np.ndarray, data: EvaluationData) -> tuple[np.ndarray, str, float | None]:
    if data.y is None or data.X_ref is None or data.y_ref is None:
        return np.empty(0), "", None
    y, Z_ref = np.asarray(data.y)[:PROBED_ROWS], encoder.coordinates(data.X_ref)
    if _metric_of(y) == "r2":
        return metrics.axis_readout_r2(Z_ref, data.y_ref, Z[:PROBED_ROWS], y), "1‑D readout R²", 0.0
    labels, counts = np.unique(np.asarray(data.y_ref), return_counts=True)
    chance = float(np.mean(y == labels[counts.argmax()]))
    accuracy = metrics.axis_probe_accuracy(Z_ref, data.y_ref, Z[:PROBED_ROWS], y)
    return accuracy, "1‑D probe accuracy", chance


def _rank_correlation(magnitude: np.ndarray, useful: np.ndarray) -> float | None:
    """Spearman's rank correlation; None where it means nothing."""
    if len(useful) < 3 or np.ptp(magnitude) == 0 or np.ptp(useful) == 0:
        return None
    return float(rank_correlation(magnitude, useful))


# -- images ----------------------------------------------------------------------------------------------------


def _images(encoder: FittedEncoder, fit: StreamedFit, shape: tuple[int, ...], notes: list[str]) -> ImageSamples | None:
    """Pick a few held-out images, one a class where there are classes, with what rebuilds them at any k."""
    if "X" not in fit.held:
        notes.append("Images are shown for rows, and this fit is on pairs.")
        return None
    X_ref = encoder.vectors(fit.reference["X"]).astype(np.float64)
    d = max(1, min(encoder.d, MOST_ENTRIES // encoder.p))
    if d < encoder.d:
        notes.append(f"Images are rebuilt from at most {d} of {encoder.d} coordinates, to keep the page small.")
    mean = X_ref.mean(axis=0)
    readout = fit_readout(encoder.coordinates(X_ref, d), lambda rows: X_ref[rows] - mean)
    picked = _picked(fit.held)
    X = encoder.vectors(fit.held["X"][picked]).astype(np.float64)
    y = fit.held.get("y")
    return ImageSamples(
        shape=shape,
        names=tuple(f"row {i}" for i in picked) if y is None else tuple(str(y[i]) for i in picked),
        originals=Packed.of(X),
        codes=Packed.of(readout.coordinates(encoder.coordinates(X, d))),
        decoder=Packed.of(readout.C),
        mean=Packed.of(mean),
        low=float(X_ref.min()),
        high=float(max(X_ref.max(), X_ref.min() + 1e-9)),
    )


def _picked(held: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the first row of each of the first classes; without labels the first rows."""
    n = len(held["X"])
    if "y" not in held or _metric_of(held["y"]) == "r2":
        return np.arange(min(n, SAMPLES))
    _, first = np.unique(np.asarray(held["y"]), return_index=True)
    return first[:SAMPLES]
