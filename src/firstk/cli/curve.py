"""``firstk curve``: how good is each prefix, and which k will do."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.checks import bad_parameter, check_choice, check_fraction
from firstk.cli import _text as text
from firstk.cli._options import (
    JsonOption,
    LabelOption,
    LabelsOption,
    NanOption,
    PairsOption,
    QuietOption,
    VectorsArgument,
    VectorsOption,
)
from firstk.cli._progress import step_progress

if TYPE_CHECKING:
    from firstk.encoder.fitted import FittedEncoder
    from firstk.evaluation.files import CurveResult
    from firstk.evaluation.operating_points import Limits

OWNER = "firstk curve"

# The options that no other command has: one name each, so that the command's signature reads as a list.
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved encoder.")]
Reference = Annotated[
    str | None,
    typer.Option(help="Rows to look among, and to fit readouts and baselines on.", metavar="FILE"),
]
ReferenceLabels = Annotated[
    str | None, typer.Option(help="Labels of the reference, in a file of their own.", metavar="FILE[:COLUMN]")
]
Relevance = Annotated[
    str | None,
    typer.Option(
        help="Judgements for nDCG@10: columns of queries (rows of VECTORS), documents, and perhaps grades.",
        metavar="FILE[:QUERY,DOCUMENT[,GRADE]]",
    ),
]
Documents = Annotated[
    str | None, typer.Option(help="Documents of the judgements; VECTORS itself if not given.", metavar="FILE")
]
Ids = Annotated[
    str | None,
    typer.Option("--id", help="Column by which judgements name queries and documents; row numbers if not given."),
]
MetricName = Annotated[
    str,
    typer.Option(
        help="explained_variance, readback_variance, r2, 1nn_accuracy, probe_accuracy, head_accuracy, recall@10, "
        "mined_ndcg@10, mixture, spearman, positive_recall@10, ndcg@10; auto: the objective's own."
    ),
]
Confidence = Annotated[float, typer.Option(help="Of the bootstrap intervals; 0 for none.")]
Precisions = Annotated[
    str | None,
    typer.Option(help="How codes may be stored: float32, float16, int8, binary, several with commas, or all."),
]
Keep = Annotated[float | None, typer.Option(help="Choose the cheapest that keeps this share of the score.")]
RelativeTo = Annotated[
    str, typer.Option(help="What --keep is a share of: the full code or the raw vectors.", metavar="full|input")
]
BytesPerVector = Annotated[int | None, typer.Option(min=1, help="Choose among codes of at most so many bytes.")]
Latency = Annotated[
    float | None,
    typer.Option(help="Choose among codes that exact search goes through in so many milliseconds, measured here."),
]
Length = Annotated[int | None, typer.Option("-k", min=1, help="Choose this k.")]
StoreRows = Annotated[int | None, typer.Option("--rows", min=1, help="Rows that the store will hold.")]
Most = Annotated[int, typer.Option(min=1, help="Use at most so many rows of each file, drawn at random.")]
Baselines = Annotated[bool, typer.Option(help="Evaluate PCA, uncentred SVD, plain truncation, random dimensions too.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", help="Write the picture: .svg, .png or .pdf.")]


def curve(
    model: Model,
    source: VectorsArgument,
    vectors: VectorsOption = None,
    label: LabelOption = None,
    labels: LabelsOption = None,
    reference: Reference = None,
    reference_labels: ReferenceLabels = None,
    pairs: PairsOption = None,
    relevance: Relevance = None,
    documents: Documents = None,
    ids: Ids = None,
    metric: MetricName = "auto",
    confidence: Confidence = 0.95,
    keep: Keep = None,
    relative_to: RelativeTo = "full",
    bytes_per_vector: BytesPerVector = None,
    latency: Latency = None,
    k: Length = None,
    precision: Precisions = None,
    rows: StoreRows = None,
    plot: PlotFile = None,
    baselines: Baselines = True,
    most: Most = 20_000,
    nan: NanOption = "refuse",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Evaluate every prefix of a saved encoder on a file of vectors, and choose k.

    Prints the score at each k with its interval, next to four baselines, and the smallest k for 95, 99 and 99.9 %.
    With --keep, --bytes-per-vector, --latency or -k it chooses, over the precisions that --precision allows.
    """
    from firstk.encoder.fitted import FittedEncoder
    from firstk.evaluation.files import CurveRequest, evaluate_files
    from firstk.evaluation.inputs import VectorSource

    _check_early(metric, confidence, plot)
    limits = _limits(keep, relative_to, bytes_per_vector, latency, k, precision)
    encoder = FittedEncoder.load(model)
    place = VectorSource(source, vectors, label, labels, pairs, nan)
    request = CurveRequest(place, reference, reference_labels, relevance, documents, ids, most)
    with step_progress(None, quiet=quiet or json, what="evaluating") as begin:
        found = evaluate_files(
            encoder, request, metric, limits,
            confidence=confidence or None, baselines=baselines, rows=rows, progress=begin,
        )  # fmt: skip
    if plot is not None:
        _write_plot(plot, found)
    shown = _as_json(found, encoder, model, source, rows) if json else _as_text(found, encoder, model, rows)
    typer.echo(shown if json or plot is None else f"{shown}\nPicture: {plot}")
    if found.refusal is not None:  # the scores have been shown all the same
        raise found.refusal


def _check_early(metric: str, confidence: float, plot: Path | None) -> None:
    """Check options before anything is read."""
    from firstk.metrics.curve import METRICS

    check_choice(metric, ("auto", *METRICS), "--metric", OWNER)
    if not 0 <= confidence < 1:
        raise bad_parameter("--confidence", OWNER, "a number in [0, 1), 0 for no intervals", confidence)
    if plot is not None:
        from firstk.evaluation.report.figures import check_figure

        check_figure(plot)


def _limits(
    keep: float | None, relative_to: str, size: int | None, latency: float | None, k: int | None, names: str | None
) -> Limits:
    from firstk.data.precision import PRECISIONS
    from firstk.evaluation.operating_points import Limits

    if keep is not None:
        keep = check_fraction(keep, "--keep", OWNER, open_left=True)
    check_choice(relative_to, ("full", "input"), "--relative-to", OWNER)
    if latency is not None and not 0 < latency < float("inf"):
        raise bad_parameter("--latency", OWNER, "a positive number of milliseconds", latency)
    asked = tuple(PRECISIONS) if names == "all" else tuple(n.strip() for n in (names or "float32").split(","))
    for name in asked:
        check_choice(name, PRECISIONS, "--precision", OWNER)
    return Limits(keep, relative_to, size, None if latency is None else latency / 1e3, k, asked)


# -- what is written -------------------------------------------------------------------------------------------


def _write_plot(path: Path, found: CurveResult) -> None:
    """Write the curves, and below them the trade-off where other precisions were evaluated, by an atomic write."""
    from matplotlib.figure import Figure

    from firstk.evaluation.report import plot_curves, plot_tradeoff
    from firstk.evaluation.report.figures import write_figure

    figure = Figure(figsize=(7.2, 3.8 * (1 + (found.table is not None))), layout="constrained")
    axes = figure.subplots(1 + (found.table is not None), squeeze=False)[:, 0]
    plot_curves([found.curve], found.baselines, ax=axes[0])
    if found.table is not None:
        plot_tradeoff(found.table, found.chosen if found.chosen in found.table.points else None, ax=axes[1])
    write_figure(path, figure)


def _as_json(found: CurveResult, encoder: FittedEncoder, model: Path, source: str, rows: int | None) -> str:
    return jsonlib.dumps(
        {
            "model": str(model),
            "vectors": source,
            "objective": encoder.config.get("objective"),
            "metric": found.curve.metric,
            "judged": found.given.said,
            "smallest": text.smallest(found.curve),
            "curve": found.curve.to_dict(),
            "baselines": [curve.to_dict() for curve in found.baselines],
            "precisions": None if found.table is None else found.table.to_dict(),
            "chosen": text.as_record(found.chosen, encoder.p * found.given.itemsize, rows),
            "refused": None if found.refusal is None else str(found.refusal),
            "notes": list(found.notes),
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def _as_text(found: CurveResult, encoder: FittedEncoder, model: Path, rows: int | None) -> str:
    from firstk.evaluation.precision_cost import ladder

    width = f"{text.number_of(encoder.d, 'coordinate')} of {encoder.p:,}"
    lines = [f"{found.curve.metric} of {model}, {width}.", found.given.said, ""]
    lines += text.score_table(found.curve, found.baselines, ladder(encoder.d), encoder.p)
    lines += ["", *text.smallest_lines(found.curve)]
    if found.table is not None:
        lines += ["", *text.table_lines(found.table)]
    if (chosen := found.chosen) is not None:
        lines += ["", *text.chosen_lines(chosen, found.curve, encoder.p * found.given.itemsize, rows)]
        if (store := found.given.store) is not None:
            out = f"-k {chosen.k} --precision {chosen.precision} -o short{Path(store).suffix}"
            lines.append(f"Next: firstk transform {model} {store} {out}")
    return "\n".join([*lines, *found.notes])
