"""``firstk curve``: how good is each prefix, and which k will do."""

from __future__ import annotations

import json as jsonlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from firstk._base.checks import bad_parameter, check_choice, check_fraction
from firstk.cli import _curve_options as options
from firstk.cli._inputs import (
    JsonOption,
    LabelOption,
    LabelsOption,
    NanOption,
    PairsOption,
    QuietOption,
    VectorsArgument,
    VectorsOption,
)
from firstk.cli._progress import announced, counted, looked_at
from firstk.cli._wording import number_of
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.cli._evidence import EvaluationInput
    from firstk.encoder.curve import PrefixCurve
    from firstk.encoder.fitted import FittedEncoder
    from firstk.evaluation.operating_points import OperatingPoint, PrecisionTable

OWNER = "firstk curve"


@dataclass(frozen=True)
class Limits:
    """What is to be chosen by; nothing is chosen where all are None."""

    keep: float | None
    relative_to: str
    bytes_per_vector: int | None
    latency: float | None
    k: int | None
    precisions: tuple[str, ...]

    @property
    def chooses(self) -> bool:
        """True where a choice was asked for."""
        return any(limit is not None for limit in (self.keep, self.bytes_per_vector, self.latency, self.k))

    @property
    def tabulates(self) -> bool:
        """True where the curve alone does not answer."""
        return self.latency is not None or set(self.precisions) != {"float32"}


@dataclass(frozen=True)
class Run:
    """Which model is judged, by what."""

    model: Path
    source: str
    encoder: FittedEncoder
    judging: EvaluationInput
    rows: int | None

    @property
    def input_bytes(self) -> int:
        """Bytes of a vector as it came."""
        return self.encoder.p * self.judging.itemsize


@dataclass(frozen=True)
class CurveResult:
    """All that the command has found out."""

    curve: PrefixCurve
    baselines: tuple[PrefixCurve, ...]
    table: PrecisionTable | None
    chosen: OperatingPoint | None
    notes: tuple[str, ...]
    refusal: InvalidInputError | None = None


def curve(
    model: options.Model,
    source: VectorsArgument,
    vectors: VectorsOption = None,
    label: LabelOption = None,
    labels: LabelsOption = None,
    reference: options.Reference = None,
    reference_labels: options.ReferenceLabels = None,
    pairs: PairsOption = None,
    relevance: options.Relevance = None,
    documents: options.Documents = None,
    ids: options.Ids = None,
    metric: options.MetricName = "auto",
    confidence: options.Confidence = 0.95,
    keep: options.Keep = None,
    relative_to: options.RelativeTo = "full",
    bytes_per_vector: options.BytesPerVector = None,
    latency: options.Latency = None,
    k: options.Length = None,
    precision: options.Precisions = None,
    rows: options.StoreRows = None,
    plot: options.PlotFile = None,
    baselines: options.Baselines = True,
    most: options.Most = 20_000,
    nan: NanOption = "refuse",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Judge every prefix of a saved encoder on a file of vectors, and choose k.

    Prints the score at each k with its interval, beside four baselines, and the smallest k for 95, 99 and 99.9 %.
    With --keep, --bytes-per-vector, --latency or -k it chooses, over the precisions that --precision allows.
    """
    from firstk.cli._evidence import CurveRequest, gather
    from firstk.cli._streams import VectorSource
    from firstk.encoder.fitted import FittedEncoder

    _check_early(metric, confidence, plot)
    limits = _limits(keep, relative_to, bytes_per_vector, latency, k, precision)
    encoder = FittedEncoder.load(model)
    place = VectorSource(source, vectors, label, labels, pairs, nan)
    asked = CurveRequest(place, reference, reference_labels, relevance, documents, ids, most)
    run = Run(model, source, encoder, gather(encoder, asked, metric), rows)
    found = _judge(run, limits, confidence or None, baselines, shown=looked_at(quiet or json))
    _show(found, run, plot, json)


def _show(found: CurveResult, run: Run, plot: Path | None, json: bool) -> None:
    """Write and print what was found; only then say that nothing could be chosen, where that is so."""
    if plot is not None:
        _write_plot(plot, found)
    if json:
        typer.echo(_as_json(found, run))
    else:
        typer.echo("\n".join([*_as_text(found, run), *([] if plot is None else [f"Picture: {plot}"])]))
    if found.refusal is not None:
        raise found.refusal


def _check_early(metric: str, confidence: float, plot: Path | None) -> None:
    """Refuse what cannot be right before anything is read."""
    from firstk.metrics.curve import METRICS

    check_choice(metric, ("auto", *METRICS), "--metric", OWNER)
    if not 0 <= confidence < 1:
        raise bad_parameter("--confidence", OWNER, "a number in [0, 1), 0 for no intervals", confidence)
    if plot is not None:
        from firstk._base.checks import require

        require("matplotlib", "report", "--plot")
        if plot.suffix.lower() not in (".svg", ".png", ".pdf"):
            raise bad_parameter("--plot", OWNER, "a file name that ends in .svg, .png or .pdf", str(plot))
        if not plot.parent.is_dir():
            raise InvalidInputError(f"--plot: there is no folder '{plot.parent}'. Make it first, or choose another.")


def _limits(
    keep: float | None, relative_to: str, size: int | None, latency: float | None, k: int | None, names: str | None
) -> Limits:
    from firstk.data.precision import PRECISIONS

    if keep is not None:
        keep = check_fraction(keep, "--keep", OWNER, open_left=True)
    check_choice(relative_to, ("full", "input"), "--relative-to", OWNER)
    if latency is not None and not 0 < latency < float("inf"):
        raise bad_parameter("--latency", OWNER, "a positive number of milliseconds", latency)
    asked = tuple(PRECISIONS) if names == "all" else tuple(n.strip() for n in (names or "float32").split(","))
    for name in asked:
        check_choice(name, PRECISIONS, "--precision", OWNER)
    return Limits(keep, relative_to, size, latency, k, asked)


# -- judging ---------------------------------------------------------------------------------------------------


def _judge(run: Run, limits: Limits, confidence: float | None, baselines: bool, shown: bool) -> CurveResult:
    from firstk._base.checks import check_prefix
    from firstk.metrics.curve import METRICS, check_metric, prefix_curve

    encoder, judging = run.encoder, run.judging
    check_prefix(limits.k, encoder.d, OWNER)
    name = check_metric(judging.metric, judging.evidence)
    judging = replace(judging, evidence=METRICS[name].prepare(encoder, judging.evidence))
    with announced("judging every prefix", quiet=not shown):
        ours = prefix_curve(encoder, judging.evidence, name, confidence=confidence)
    others, notes = _baselines(encoder, judging, shown) if baselines else ((), ())
    notes = (*judging.notes, *_about_labels(judging), *notes)
    table = _table(encoder, judging, limits, run.rows, shown) if limits.tabulates else None
    found = CurveResult(ours, others, table, None, notes)
    try:
        return replace(found, chosen=_choose(ours, table, limits) if limits.chooses else None)
    except InvalidInputError as refusal:  # what was measured is shown all the same
        return replace(found, refusal=refusal)


def _about_labels(judging: EvaluationInput) -> tuple[str, ...]:
    """Say so where labels are such that an accuracy says nothing."""
    import numpy as np

    y = judging.evidence.y
    if y is None or judging.metric not in ("1nn_accuracy", "probe_accuracy"):
        return ()
    y = np.asarray(y)
    values = len(np.unique(y))
    if values == 1:
        return ("All rows have one label, so every code finds it: these scores say nothing.",)
    if 2 * values > len(y):
        numeric = " If they are numbers to predict, use --metric r2." if y.dtype.kind in "fiu" else ""
        return (f"The labels have {values:,} values in {len(y):,} rows: they are no classes to be found.{numeric}",)
    return ()


def _baselines(
    encoder: FittedEncoder, judging: EvaluationInput, shown: bool
) -> tuple[tuple[PrefixCurve, ...], tuple[str, ...]]:
    """Judge the baselines at a few prefix lengths; those that must be fitted, only where there are rows to fit on."""
    import numpy as np

    from firstk.cli._evidence import OURS_ALONE
    from firstk.evaluation.baselines import BASELINES, plain_truncation, random_dimensions
    from firstk.evaluation.precision_cost import ladder
    from firstk.metrics.curve import prefix_curve

    if judging.metric in OURS_ALONE:
        return (), (f"Baselines have no {judging.metric}; --metric probe_accuracy compares them.",)
    unfitted = (plain_truncation, random_dimensions)
    rows = np.zeros((1, encoder.p)) if judging.training is None else judging.training
    chosen = {name: make for name, make in BASELINES.items() if judging.training is not None or make in unfitted}
    curves, notes = [], []
    if len(chosen) < len(BASELINES):
        notes.append("PCA and uncentred SVD are not judged: give rows to fit them on with --reference.")
    for name, make in counted(list(chosen.items()), "baselines", quiet=not shown):
        baseline = make(rows)
        if judging.metric == "explained_variance" and baseline.decoder is not None:
            # Variance is that about the mean, so what a baseline leaves out is filled with the mean.
            baseline = replace(baseline, mean=encoder.mean, query_mean=encoder.mean)
        try:
            ks = [k for k in ladder(encoder.d) if k <= baseline.d]
            curves.append(replace(prefix_curve(baseline, judging.evidence, judging.metric, ks), label=name))
        except InvalidInputError as error:
            notes.append(f"{name} is left out: {error}")
    return tuple(curves), tuple(notes)


def _table(
    encoder: FittedEncoder,
    judging: EvaluationInput,
    limits: Limits,
    rows: int | None,
    shown: bool,
) -> PrecisionTable:
    from firstk.evaluation.precision_cost import default_lengths, precision_table

    ks = sorted({*default_lengths(encoder), *([] if limits.k is None else [limits.k])})
    # Float32 is always judged: it is what a share of the full score means.
    precisions = dict.fromkeys(("float32", *limits.precisions))
    made = precision_table(
        encoder, judging.evidence, judging.metric, ks=ks, precisions=precisions,
        latency=limits.latency is not None, rows=rows,
        progress=lambda work: counted(work, "precisions", quiet=not shown),
    )  # fmt: skip
    return replace(made, input_bytes=encoder.p * judging.itemsize)


def _choose(curve: PrefixCurve, table: PrecisionTable | None, limits: Limits) -> OperatingPoint:
    """Choose over every k in float32, and over the k of the table in other precisions and by time."""
    from firstk.evaluation.operating_points import OperatingPoint, PrecisionTable

    offers = list(table or ())
    if limits.latency is None:
        there = {offer.k for offer in offers}
        # A k that was asked for may be any; one that is chosen is one that the code is made for.
        allowed = {limits.k} if limits.k is not None else set(curve.recommendable)
        offers += [OperatingPoint(k, "float32", 4 * k, score) for k, score in curve if k in allowed - there]
    candidates = PrecisionTable(tuple(offers), curve.metric, input_score=curve.input_score)
    return candidates.choose(
        keep=limits.keep,
        relative_to=limits.relative_to,
        bytes_per_vector=limits.bytes_per_vector,
        seconds=None if limits.latency is None else limits.latency / 1e3,
        k=limits.k,
        precision=limits.precisions,
    )


# -- what is written -------------------------------------------------------------------------------------------


def _write_plot(path: Path, found: CurveResult) -> None:
    """Write the curves, and below them the trade-off where precisions were judged; whole or not at all."""
    from matplotlib.figure import Figure

    from firstk._base.atomic_file import atomic_file
    from firstk.evaluation.report import plot_curves, plot_tradeoff

    figure = Figure(figsize=(7.2, 3.8 * (1 + (found.table is not None))), layout="constrained")
    axes = figure.subplots(1 + (found.table is not None), squeeze=False)[:, 0]
    plot_curves([found.curve], found.baselines, ax=axes[0])
    if found.table is not None:
        plot_tradeoff(found.table, found.chosen if found.chosen in found.table.offers else None, ax=axes[1])
    with atomic_file(path, "A picture") as temporary:
        figure.savefig(temporary, format=path.suffix[1:].lower())


def _as_json(found: CurveResult, run: Run) -> str:
    from firstk.cli._curve_text import as_record, smallest

    return jsonlib.dumps(
        {
            "model": str(run.model),
            "vectors": run.source,
            "objective": run.encoder.config.get("objective"),
            "metric": found.curve.metric,
            "judged": run.judging.said,
            "smallest": smallest(found.curve),
            "curve": found.curve.to_dict(),
            "baselines": [curve.to_dict() for curve in found.baselines],
            "precisions": None if found.table is None else found.table.to_dict(),
            "chosen": as_record(found.chosen, run.input_bytes, run.rows),
            "refused": None if found.refusal is None else str(found.refusal),
            "notes": list(found.notes),
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def _as_text(found: CurveResult, run: Run) -> list[str]:
    from firstk.cli import _curve_text as text
    from firstk.evaluation.precision_cost import ladder

    encoder, chosen = run.encoder, found.chosen
    width = f"{number_of(encoder.d, 'coordinate')} of {encoder.p:,}"
    lines = [f"{found.curve.metric} of {run.model}, {width}.", run.judging.said, ""]
    lines += text.score_table(found.curve, found.baselines, ladder(encoder.d), encoder.p)
    lines += ["", *text.smallest_lines(found.curve)]
    if found.table is not None:
        lines += ["", *text.table_lines(found.table)]
    if chosen is not None:
        lines += ["", *text.chosen_lines(chosen, found.curve, run.input_bytes, run.rows)]
        if (store := run.judging.store) is not None:
            out = f"-k {chosen.k} --precision {chosen.precision} -o short{Path(store).suffix}"
            lines.append(f"Next: firstk transform {run.model} {store} {out}")
    return [*lines, *found.notes]
