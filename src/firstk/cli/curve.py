"""``firstk curve``: how good is each prefix, and which k will do."""

from __future__ import annotations

import json as jsonlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk._base.atomic_file import check_new
from firstk._base.remote import shown_place
from firstk.cli import _text as text
from firstk.cli._notes import warnings_as_notes
from firstk.cli._options import (
    ByRowOption,
    FilterOption,
    ForceOption,
    IdOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    NanOption,
    PairsOption,
    QueriesOption,
    QueryWeightOption,
    QuietOption,
    RelevanceOption,
    RowsOption,
    VectorsArgument,
    VectorsOption,
)
from firstk.cli._progress import step_progress
from firstk.cli.report import check_page, write_report
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.encoder.fitted import FittedEncoder
    from firstk.evaluation.files import CurveResult
    from firstk.evaluation.inputs import VectorSource
    from firstk.evaluation.recommending import Limits

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
Documents = Annotated[
    str | None,
    typer.Option(help="The other way round: the store, where VECTORS are the queries.", metavar="FILE"),
]
MetricName = Annotated[
    str,
    typer.Option(
        help="explained_variance, readback_variance, r2, 1nn_accuracy, probe_accuracy, head_accuracy, recall@10, "
        "mined_ndcg@10, mixture, spearman, positive_recall@10, ndcg@10, mrr@10, relevant_recall@100; auto: the "
        "objective's own, or ndcg@10 where documents are judged."
    ),
]
Confidence = Annotated[float, typer.Option(help="Confidence of the bootstrap intervals; 0 for none.")]
Precisions = Annotated[
    str | None,
    typer.Option(
        help="Choose among these: float32, float16, int8, int4, binary, embedded, with commas; all if not given."
    ),
]
BinaryQueries = Annotated[
    bool, typer.Option("--binary-queries", help="Queries are rounded to bits as well: binary codes are scored so.")
]
Keep = Annotated[
    float | None,
    typer.Option(help="Choose the cheapest code that keeps this share of the score; 0.99 if nothing else is asked."),
]
RelativeTo = Annotated[
    str,
    typer.Option(
        help="What --keep is a share of: the score of the raw vectors (input), of the best prefix or of the full code. "
        "auto: the raw vectors, where they can be scored.",
        metavar="auto|input|best|full",
    ),
]
BytesPerVector = Annotated[int | None, typer.Option(min=1, help="Choose among codes of at most so many bytes.")]
Latency = Annotated[
    float | None,
    typer.Option(help="Choose among codes that exact search goes through in so many milliseconds, measured here."),
]
Length = Annotated[int | None, typer.Option("-k", min=1, help="Choose this k.")]
Most = Annotated[int, typer.Option(min=1, help="Use at most so many rows of each file, drawn at random.")]
Baselines = Annotated[bool, typer.Option(help="Evaluate PCA, uncentred SVD, plain truncation, random dimensions too.")]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Write the page to forward: one HTML file.", metavar="FILE")
]
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
    queries: QueriesOption = None,
    relevance: RelevanceOption = None,
    ids: IdOption = None,
    by_row: ByRowOption = False,
    filter: FilterOption = None,
    query_weight: QueryWeightOption = None,
    documents: Documents = None,
    metric: MetricName = "auto",
    confidence: Confidence = 0.95,
    keep: Keep = None,
    relative_to: RelativeTo = "auto",
    bytes_per_vector: BytesPerVector = None,
    latency: Latency = None,
    k: Length = None,
    precision: Precisions = None,
    binary_queries: BinaryQueries = False,
    rows: RowsOption = None,
    report: ReportFile = None,
    plot: PlotFile = None,
    baselines: Baselines = True,
    most: Most = 5_000,
    force: ForceOption = False,
    nan: NanOption = "refuse",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Evaluate every prefix of a saved encoder on a file of vectors, and choose k.

    Says first what to store: the cheapest number of coordinates and precision that keep 99 % of the raw vectors' score,
    with how sure that is and the command that does it. --keep asks for another share, --bytes-per-vector for the best
    in so many bytes. Then the score at each k with its interval, next to four baselines, and in each precision; and
    that of embedded bits, which can be cut after any byte, over bytes.
    """
    from firstk.encoder.fitted import FittedEncoder
    from firstk.evaluation.files import CurveRequest, evaluate_files
    from firstk.evaluation.inputs import VectorSource
    from firstk.evaluation.report.curve_file import report_of_curve

    for file in (plot, report):
        check_new(file, force=force)
    _check_early(metric, confidence, plot)
    check_page(report)
    limits = _limits(keep, relative_to, bytes_per_vector, latency, k, precision)
    limits = replace(limits, binary_queries=binary_queries)
    encoder = FittedEncoder.load(model)
    store, asking = _store_and_queries(source, queries, documents, relevance or pairs)
    place = VectorSource(
        store, vectors, label, labels, pairs, nan, asking, relevance, ids, by_row, filter, query_weight
    )
    request = CurveRequest(place, reference, reference_labels, most)
    with step_progress(None, quiet=quiet or json, what="evaluating") as begin, warnings_as_notes():
        found = evaluate_files(
            encoder, request, metric, limits,
            confidence=confidence or None, baselines=baselines, rows=rows, progress=begin,
        )  # fmt: skip
    values = _as_record(found, encoder, model, source, rows, place) if json or report is not None else {}
    written = [] if report is not None else ["", "To forward this as a page: the same command with --report page.html."]
    if plot is not None:
        _write_plot(plot, found)
        written.append(f"Picture: {plot}")
    if report is not None:
        page = write_report(report, report_of_curve(values, encoder.p), model)
        written.append(f"Open the page: {page.resolve().as_uri()}")
    if json:
        typer.echo(jsonlib.dumps(values, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join([_as_text(found, encoder, model, rows, place), *written]))
    if found.refusal is not None:  # the scores have been shown all the same
        raise found.refusal


def _store_and_queries(
    source: str, queries: str | None, documents: str | None, judged: str | None
) -> tuple[str, str | None]:
    """Return the file of documents and that of queries: VECTORS is the store, or with --documents the queries."""
    if documents is None:
        return source, queries
    if judged is None:
        raise InvalidInputError("--documents belong to --relevance or --pairs, which are missing.")
    if queries is not None:
        raise InvalidInputError("VECTORS is the store (--queries) or the queries (--documents): leave one of both out.")
    return documents, source


def _check_early(metric: str, confidence: float, plot: Path | None) -> None:
    """Check options before anything is read."""
    from firstk._base.checks import bad_parameter, check_choice
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
    from firstk._base.checks import bad_parameter, check_choice, check_fraction
    from firstk.data.precision import PRECISIONS
    from firstk.encoder.curve import REFERENCES
    from firstk.evaluation.recommending import KEEP, Limits

    if keep is not None:
        keep = check_fraction(keep, "--keep", OWNER, open_left=True)
    check_choice(relative_to, REFERENCES, "--relative-to", OWNER)
    if latency is not None and not 0 < latency < float("inf"):
        raise bad_parameter("--latency", OWNER, "a positive number of milliseconds", latency)
    alone = k is not None and keep is None and size is None and latency is None
    # A k of one's own is shown as it is, unless it is to be rounded.
    usual = "float32" if alone else ",".join(PRECISIONS)
    asked = tuple(n.strip() for n in (usual if names in (None, "all") else str(names)).split(","))
    for name in asked:
        check_choice(name, PRECISIONS, "--precision", OWNER)
    if keep is None and size is None and latency is None and k is None:
        keep = KEEP
    return Limits(keep, relative_to, size, None if latency is None else latency / 1e3, k, asked)


# -- what is written -------------------------------------------------------------------------------------------


def _write_plot(path: Path, found: CurveResult) -> None:
    """Write the curves, and below them score against bytes, by an atomic write."""
    from matplotlib.figure import Figure

    from firstk.evaluation.report import plot_curves, plot_tradeoff
    from firstk.evaluation.report.figures import write_figure

    figure = Figure(figsize=(7.2, 7.6), layout="constrained")
    axes = figure.subplots(2)
    plot_curves([found.curve], found.baselines, ax=axes[0])
    advice = found.recommendation
    plot_tradeoff(found.table, None if advice is None or advice.chosen is None else advice.chosen.point, ax=axes[1])
    write_figure(path, figure)


def _as_record(
    found: CurveResult, encoder: FittedEncoder, model: Path, source: str, rows: int | None, place: VectorSource
) -> dict[str, Any]:
    """Return what --json prints, and what a page is made from."""
    from firstk.metrics.scorers import n_rows

    return {
        "model": str(model),
        "vectors": shown_place(source),
        "store": None if found.given.store is None else shown_place(found.given.store),
        "stored": n_rows(found.given.data.stored),
        "rows": rows,
        "objective": encoder.config.get("objective"),
        "metric": found.curve.metric,
        "judged": found.given.said,
        "options": text.recorded_options(place, shared=False) if found.given.store == place.source else {},
        "smallest": text.smallest(found.curve),
        "curve": found.curve.to_dict(),
        "baselines": [curve.to_dict() for curve in found.baselines],
        "precisions": found.table.to_dict(),
        "recommendation": None if found.recommendation is None else found.recommendation.to_dict(),
        "chosen": text.as_record(found.recommendation, encoder.p * found.given.itemsize, rows),
        "refused": None if found.refusal is None else str(found.refusal),
        "notes": [*([found.given.caution] if found.given.caution else []), *found.notes],
    }


def _as_text(found: CurveResult, encoder: FittedEncoder, model: Path, rows: int | None, place: VectorSource) -> str:
    from firstk.evaluation.precision_cost import ladder
    from firstk.metrics.curve import explained

    width = f"{text.number_of(encoder.d, 'coordinate')} of {encoder.p:,}"
    # The reference is stored where there is one, and its columns may have other names.
    same = found.given.store == place.source
    found_by = text.vector_options(place) if same else {}
    judged = text.judged_options(place)
    lines = [found.given.caution, ""] if found.given.caution else []
    lines += text.advice_lines(found.recommendation, model, found.given.store, rows, found_by, judged)
    lines += ["", found.given.said, *found.notes, "", explained(found.curve.metric), f"Evaluated: {model}, {width}."]
    lines += text.score_table(found.curve, found.baselines, ladder(encoder.d), encoder.p)
    lines += ["", *text.table_lines(found.table)]
    return "\n".join(lines)
