"""The report of a fit or of a saved encoder: the evaluation, the choice, and what each coordinate is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from firstk import __version__, metrics, objectives
from firstk.advice.evaluate import (
    OWN_METRICS,
    Progress,
    default_bytes,
    evaluate,
    ladder,
    lead_metric,
    metric_of_target,
    other_metrics,
)
from firstk.advice.read import evaluated_on
from firstk.advice.records import AxisStatistics, ImageSamples, Report
from firstk.data.remote import place_of
from firstk.data.stores import find_store
from firstk.data.task import Data, Pairs, Rows, Search, Task
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.exceptions import InvalidInputError
from firstk.metrics.ranking import rank_correlation
from firstk.metrics.task import fit_readout
from firstk.quality.choice import Limits, choose
from firstk.quality.evaluation import Evaluation, Packed

__all__ = ["report_on"]

# Rows on which single coordinates are probed, as many as in Talukder et al. 2026 C.3.
PROBED_ROWS = 2000
# Images on a page, and entries of the decoder that it can carry: about 400 kB of text.
SAMPLES, MOST_ENTRIES = 10, 150_000
# Prefix lengths at which further metrics of a search are shown.
SHOWN = (16, 32, 64, 128)


def report_on(
    encoder: Any,
    task: Task,
    limits: Limits | None = None,
    *,
    metric: str = "auto",
    settings: Mapping[str, Any] | None = None,
    image_shape: tuple[int, ...] | None = None,
    details: bool = True,
    progress: Progress = lambda what: None,
) -> tuple[Report, InvalidInputError | None]:
    """Evaluate an encoder on the held-out part of a task, and choose what to store.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
    task : Task
        Read by `firstk.read`, with a held-out part.
    limits : Limits, optional
        What the choice goes by.
    metric : str
        As in `evaluate`.
    settings : mapping, optional
        Other arguments of `evaluate`.
    image_shape : tuple of int, optional
        Rows, columns and channels, where a vector is an image.
    details : bool
        Also score further metrics and single coordinates.
    progress : callable (str) -> None
        Told what has been evaluated.

    Returns
    -------
    report : Report
        What needs labels is left out where there are none, with a note.
    refusal : InvalidInputError or None
        Why nothing could be chosen; the scores are there all the same.
    """
    fitted, data = check_fitted(encoder, "report"), task.held_out
    assert data is not None
    limits, settings = limits or Limits(), dict(settings or {})
    if image_shape is not None and math.prod(image_shape) != fitted.p:
        raise InvalidInputError(
            f"Images of {'x'.join(map(str, image_shape))} have {math.prod(image_shape)} values, and the vectors have "
            f"{fitted.p}. Give the shape of one image, such as image=28x28."
        )
    side = math.isqrt(task.files.width)
    if image_shape is None and task.files.vectors == "pixels" and side**2 == task.files.width:
        image_shape = side, side  # a column of square images, such as that of 'firstk sample digits'
    notes = list(task.files.notes)
    lead, choice, refusal = None, None, None
    if limits.bytes_per_vector is not None:
        settings.setdefault("sizes", default_bytes(fitted, limits.bytes_per_vector))
    if limits.k is not None:
        settings.setdefault("also", (limits.k,))
    elif limits.bytes_per_vector is not None and settings.get("store") is not None:
        forms = find_store(settings["store"], "evaluate").forms
        within = (form.longest(limits.bytes_per_vector, fitted.d) for form in forms)
        settings.setdefault("also", tuple(k for k in within if k is not None))
    try:
        lead = evaluate(encoder, data, metric=metric, progress=progress, **settings)
    except InvalidInputError as error:
        if not details or metric != "auto" or limits.k is not None:
            raise  # what was asked for by name is not left out
        notes.append(f"The curve of {lead_metric(fitted, data)} is left out: {error}")
    evaluations = [] if lead is None else [replace(lead, input_bytes=fitted.p * task.files.itemsize)]
    if lead is not None:
        if lead.supported is not None:  # a code that is made for a list of lengths
            notes.append(
                "Lengths are recommended among those at which the order is fixed "
                f"({', '.join(map(str, lead.supported))}): the code is made for no others."
            )
        if isinstance(data, Rows) and lead.n_evaluated is not None and lead.n_evaluated < data.n:
            notes.append(
                f"{lead.metric} is of {lead.n_evaluated:,} of the {data.n:,} held-out rows, ten neighbors each; "
                "'firstk curve' takes all."
            )
        try:
            choice = choose(evaluations[0], limits)
        except InvalidInputError as error:
            refusal = error
            notes.append(str(error))
    about_new = []
    if choice is not None and choice.on_new:
        about_new.append(
            f"Scores are of the {choice.n_new:,} of these queries that ask for new documents: none that is relevant to "
            "them was learned from. We choose by these; a baseline that is behind over all queries replaces the model "
            "only if it is clearly better there."
        )
    if details:
        baselines = settings.get("baselines", True)
        evaluations += _further(encoder, fitted, data, baselines, notes, progress)
        progress("single coordinates")
    report = Report(
        facts=_facts(fitted, task, data),
        rows=task.files.rows,
        columns=fitted.p,
        itemsize=task.files.itemsize,
        held_out=" ".join([evaluated_on(task), *about_new]),
        evaluations=tuple(evaluations),
        choice=choice,
        axes=_axes(fitted, data, notes) if details else None,
        images=None if image_shape is None else _images(fitted, data, image_shape, notes),
        notes=tuple(notes),
    )
    return report, refusal


def _further(
    encoder: Any, fitted: FittedEncoder, data: Data, baselines: Any, notes: list[str], progress: Progress
) -> list[Evaluation]:
    """Score by further metrics, in float32, at a few prefix lengths."""
    found = []
    listed = fitted.record.supported_up_to(fitted.d) or ()
    few = sorted({*ladder(fitted.d), *listed})
    if isinstance(data, Search):
        few = sorted({*(k for k in SHOWN if k < fitted.d), fitted.d})
    for name in other_metrics(fitted, data):
        try:
            others = baselines if not isinstance(data, Search) and name not in OWN_METRICS else False
            found.append(
                evaluate(
                    encoder, data, metric=name, ks=few, precisions=["float32"], baselines=others, progress=progress
                )
            )
        except InvalidInputError as error:
            notes.append(f"The curve of {name} is left out: {error}")
    return found


def _facts(encoder: FittedEncoder, task: Task, data: Data) -> dict[str, str | int | float]:
    """Return plain facts about an encoder and the data it was evaluated on."""
    fit = encoder.record
    name = place_of(str(task.files.place.source)).name
    facts: dict[str, str | int | float] = {"file": name, "objective": fit.title}
    try:  # settings of the objective that are not its default ones
        objective: Any = objectives.restore(fit.objective, fit.settings)
        own = [(f.name, getattr(objective, f.name), f.default) for f in fields(objective)]
    except (KeyError, TypeError, ValueError):  # an objective of the user's own
        own = []
    settings = ", ".join(f"{name} {value}" for name, value, default in own if value != default)
    facts |= {"settings": settings} if settings else {}
    facts |= {"labels": task.files.label} if task.files.label else {}
    facts |= {"ordering": fit.ordering, "solver": fit.solver}
    facts |= {f"{fit.unit}s fitted on": fit.rows} if fit.rows else {}
    facts[f"{data.unit} held out"] = data.n
    if isinstance(data, Search):
        facts["documents"] = len(np.asarray(data.documents))
    return facts | {"columns": encoder.p, "coordinates": encoder.d, "firstk": __version__}


# -- single coordinates --------------------------------------------------------------------------------------------


def _axes(encoder: FittedEncoder, data: Data, notes: list[str]) -> AxisStatistics:
    """Statistics of each coordinate over the held-out rows."""
    Z = encoder.coordinates(data.X if isinstance(data, Rows) else data.stored).astype(np.float64)
    magnitude = np.abs(Z).mean(axis=0)
    useful, measure, chance = np.empty(0), "", None
    among = data.reference if isinstance(data, Rows) else None
    if isinstance(data, Rows) and data.y is not None and among is not None and among.y is not None:
        y, y_ref, Z_ref = np.asarray(data.y)[:PROBED_ROWS], np.asarray(among.y), encoder.coordinates(among.X)
        if metric_of_target(y) == "r2":
            useful, measure, chance = metrics.axis_readout_r2(Z_ref, y_ref, Z[:PROBED_ROWS], y), "1‑D readout R²", 0.0
        else:
            labels, counts = np.unique(y_ref, return_counts=True)
            useful, measure = metrics.axis_probe_accuracy(Z_ref, y_ref, Z[:PROBED_ROWS], y), "1‑D probe accuracy"
            chance = float(np.mean(y == labels[counts.argmax()]))
    if not len(useful) and isinstance(data, (Rows, Pairs)):
        notes.append("No labels given: per-coordinate usefulness is not shown.")
    varies = len(useful) >= 3 and np.ptp(magnitude) > 0 and np.ptp(useful) > 0
    return AxisStatistics(
        spectrum=tuple(encoder.spectrum.tolist()),
        magnitude=tuple(magnitude.tolist()),
        variance=tuple(Z.var(axis=0).tolist()),
        usefulness=tuple(useful.tolist()),
        measure=measure,
        chance=chance,
        rank_correlation=float(rank_correlation(magnitude, useful)) if varies else None,
        pinned=encoder.pinned,
    )


def _images(encoder: FittedEncoder, data: Data, shape: tuple[int, ...], notes: list[str]) -> ImageSamples | None:
    """Pick a few held-out images, one a class where there are classes, with what rebuilds them at any k."""
    if not isinstance(data, Rows) or data.reference is None:
        notes.append("Images are shown for rows, and this fit is on pairs.")
        return None
    X_ref = encoder.vectors(data.reference.X).astype(np.float64)
    d = max(1, min(encoder.d, MOST_ENTRIES // encoder.p))
    if d < encoder.d:
        notes.append(f"Images are rebuilt from at most {d} of {encoder.d} coordinates, to keep the page small.")
    mean = X_ref.mean(axis=0)
    readout = fit_readout(encoder.coordinates(X_ref, d), lambda rows: X_ref[rows] - mean)
    y = None if data.y is None else np.asarray(data.y)
    picked = np.arange(min(data.n, SAMPLES))
    if y is not None and metric_of_target(y) != "r2":  # the first row of each of the first classes
        picked = np.unique(y, return_index=True)[1][:SAMPLES]
    X = encoder.vectors(np.asarray(data.X)[picked]).astype(np.float64)
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
