"""Judge a fit on what it has not seen, beside the four baselines, and write down what a report page needs.

What needs labels is left out where there are none, with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from firstk import metrics
from firstk.encoder.curve import PrefixCurve, supported_lengths
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import StreamedFit
from firstk.evaluation.baselines import BASELINES, baselines_of
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.precision_cost import precision_table
from firstk.evaluation.records import AxisStatistics, Comparison, HeldOutReport, ImageSamples, Packed
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import EvaluationData, prefix_curve, settled_metric
from firstk.metrics.task import fit_readout

# All prefixes up to here; beyond, sixteen an octave: no eye and no decision needs more.
ALL_PREFIXES, PER_OCTAVE = 64, 16
# Rows on which single coordinates are probed, as many as in Talukder et al. 2026 C.3.
PROBED_ROWS = 2000
SAMPLES = 10
CONFIDENCE = 0.95
# Entries of the decoder that a page can carry: about 400 kB of text.
MOST_ENTRIES = 150_000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Where the rows came from, as a page should say it.

    Attributes
    ----------
    facts : mapping
        Shown as they are, in this order.
    rows, itemsize : int
        How many rows or pairs the file holds, and bytes of a number in it.
    held_out : str
        A sentence: which rows were held out.
    image_shape : tuple of int, optional
        Rows, columns and channels, where a vector is an image.
    """

    facts: Mapping[str, str | int | float]
    rows: int
    itemsize: int
    held_out: str
    image_shape: tuple[int, ...] | None = None


def study(fit: StreamedFit, source: Source, progress: Progress = lambda what: None) -> HeldOutReport:
    """Judge a fit that has a held-out part.

    Parameters
    ----------
    fit : StreamedFit
    source : Source
    progress : callable
        Told what is judged next.
    """
    encoder, evidence = fit.encoder.encoder_, fit.evidence
    if source.image_shape is not None and int(np.prod(source.image_shape)) != encoder.p:
        raise InvalidInputError(
            f"Images of {'x'.join(map(str, source.image_shape))} have {int(np.prod(source.image_shape))} values, and "
            f"the vectors have {encoder.p}. Give the shape of one image, such as --image 28x28."
        )
    notes: list[str] = []
    comparisons = tuple(_comparisons(fit, encoder, evidence, notes, progress))
    progress("single coordinates")
    axes = _axes(encoder, evidence, notes)
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
        precisions=_precisions(encoder, evidence, comparisons, progress),
        notes=tuple(notes),
    )


def steps_of(fit: StreamedFit) -> int:
    """Return how often a study of this fit will report progress."""
    judged = len(metrics_for(fit.encoder.encoder_, fit.evidence))
    return judged * (1 + len(BASELINES)) + 2


def prefix_grid(d: int) -> np.ndarray:
    """Return the prefix lengths at which a study judges: all of a short code, sixteen an octave of a long one.

    Examples
    --------
    >>> prefix_grid(4)
    array([1, 2, 3, 4])
    >>> len(prefix_grid(768))
    122
    """
    if d <= ALL_PREFIXES:
        return np.arange(1, d + 1)
    steps = np.arange(int(np.log2(d / ALL_PREFIXES) * PER_OCTAVE) + 1) / PER_OCTAVE
    return np.unique([*range(1, ALL_PREFIXES + 1), *np.rint(ALL_PREFIXES * 2**steps).astype(int), d])


# -- curves ----------------------------------------------------------------------------------------------------


def metrics_for(encoder: FittedEncoder, evidence: EvaluationData) -> tuple[str, ...]:
    """Return the metrics of a study, the one it is about first: the objective's own, or the nearest to it that
    baselines have too; then others that the evidence allows.
    """  # noqa: D205
    own = settled_metric(encoder, evidence)
    by_target = () if evidence.y is None else (_metric_of(evidence.y),)
    chosen = {
        "explained_variance": ("readback_variance", *by_target),
        "readback_variance": ("readback_variance", *by_target),
        "head_accuracy": ("1nn_accuracy", "head_accuracy"),
        "1nn_accuracy": ("1nn_accuracy", "probe_accuracy"),
        "mixture": (*by_target, "readback_variance"),
    }.get(own, (own, *by_target))
    return tuple(dict.fromkeys(chosen))


def _metric_of(y: Any) -> str:
    """Numbers with a fraction are targets; everything else is a label."""
    return "r2" if np.asarray(y).dtype.kind == "f" else "1nn_accuracy"


def _comparisons(
    fit: StreamedFit, encoder: FittedEncoder, evidence: EvaluationData, notes: list[str], progress: Progress
) -> Iterator[Comparison]:
    baselines = baselines_of(_rows_of(fit.reference), fit.statistics)
    names = metrics_for(encoder, evidence)
    for name in names:
        try:
            yield _comparison(name, encoder, baselines, evidence, progress)
        except InvalidInputError as error:
            notes.append(f"The curve of {name} is left out: {error}")
    if evidence.left is not None:
        notes.append(_seen_documents(fit))
    elif evidence.y is None:
        notes.append("There were no labels, so that no curve says how well classes are told apart.")


def _comparison(
    metric: str,
    encoder: FittedEncoder,
    baselines: Mapping[str, FittedEncoder],
    evidence: EvaluationData,
    progress: Progress,
) -> Comparison:
    ks = np.array(sorted({*prefix_grid(encoder.d).tolist(), *(supported_lengths(encoder.config, encoder.d) or ())}))
    progress(f"{metric}, ours")
    ours = prefix_curve(encoder, evidence, metric, ks, confidence=CONFIDENCE)
    if metric == "head_accuracy":  # baselines have no head
        return Comparison(ours)
    return Comparison(ours, tuple(_judged(baselines, metric, evidence, ks, progress)))


def _judged(
    baselines: Mapping[str, FittedEncoder], metric: str, evidence: EvaluationData, ks: np.ndarray, progress: Progress
) -> Iterator[PrefixCurve]:
    for name, baseline in baselines.items():
        progress(f"{metric}, {name}")
        yield replace(prefix_curve(baseline, evidence, metric, ks[ks <= baseline.d]), label=name)


def _rows_of(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return columns["X"] if "X" in columns else np.concatenate([columns["left"], columns["right"]])


def _seen_documents(fit: StreamedFit) -> str:
    """Say how many held-out pairs point at something that training has seen (docs/theory.md, 5)."""
    known = {row.tobytes() for row in fit.reference["right"]}
    seen = sum(row.tobytes() in known for row in fit.held["right"])
    return (
        f"{seen} of {len(fit.held['right'])} held-out pairs have a right side that is in the training pairs as well: "
        "on those a fit can score by remembering it."
    )


def _precisions(
    encoder: FittedEncoder, evidence: EvaluationData, comparisons: tuple[Comparison, ...], progress: Progress
) -> PrecisionTable | None:
    """Judge prefixes stored in fewer bits by the metric that the study is about."""
    if not comparisons:
        return None
    progress("stored precisions")
    return precision_table(encoder, evidence, comparisons[0].ours.metric)


# -- single coordinates ----------------------------------------------------------------------------------------


def _axes(encoder: FittedEncoder, evidence: EvaluationData, notes: list[str]) -> AxisStatistics:
    """Statistics of each coordinate over the held-out rows."""
    X = evidence.X if evidence.left is None else evidence.right
    Z = encoder.coordinates(X).astype(np.float64)
    magnitude = np.abs(Z).mean(axis=0)
    useful, measure, chance = _usefulness(encoder, Z, evidence)
    if not len(useful):
        notes.append("There were no labels or targets, so that single coordinates have no usefulness to show.")
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


def _usefulness(
    encoder: FittedEncoder, Z: np.ndarray, evidence: EvaluationData
) -> tuple[np.ndarray, str, float | None]:
    if evidence.y is None or evidence.X_ref is None or evidence.y_ref is None:
        return np.empty(0), "", None
    y, Z_ref = np.asarray(evidence.y)[:PROBED_ROWS], encoder.coordinates(evidence.X_ref)
    if _metric_of(y) == "r2":
        return metrics.axis_readout_r2(Z_ref, evidence.y_ref, Z[:PROBED_ROWS], y), "1‑D readout R²", 0.0
    labels, counts = np.unique(np.asarray(evidence.y_ref), return_counts=True)
    chance = float(np.mean(y == labels[counts.argmax()]))
    accuracy = metrics.axis_probe_accuracy(Z_ref, evidence.y_ref, Z[:PROBED_ROWS], y)
    return accuracy, "1‑D probe accuracy", chance


def _rank_correlation(magnitude: np.ndarray, useful: np.ndarray) -> float | None:
    """Spearman's rank correlation; None where it means nothing."""
    if len(useful) < 3 or np.ptp(magnitude) == 0 or np.ptp(useful) == 0:
        return None
    return float(spearmanr(magnitude, useful).statistic)


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
