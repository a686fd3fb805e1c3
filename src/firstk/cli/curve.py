"""``firstk curve``: how good is each prefix, and which k will do."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk._base.atomic_file import check_new
from firstk.cli import _options as given
from firstk.cli._progress import step_progress, warnings_as_notes
from firstk.cli.report import check_page, write_report
from firstk.data.remote import is_there, shown_place
from firstk.exceptions import InvalidInputError
from firstk.words.choice import (
    answer,
    axes_line,
    explanation,
    further_lines,
    lengths_table,
    out_of_reach,
    precision_lines,
    score_table,
    store_lines,
)
from firstk.words.commands import VECTORS, next_commands, options_of, recorded_options
from firstk.words.terms import about_metric
from firstk.words.text import number_of

if TYPE_CHECKING:
    from firstk.advice.records import Report
    from firstk.data.task import Task
    from firstk.encoder.fitted import FittedEncoder
    from firstk.quality.choice import Limits

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved encoder.")]
Reference = Annotated[
    str | None,
    typer.Option(help="Rows to look among, and to fit readouts and baselines on.", metavar="FILE[:LABEL]"),
]
MetricName = Annotated[
    str,
    typer.Option(
        help="explained_variance, readback_variance, r2, 1nn_accuracy, probe_accuracy, head_accuracy, recall@10, "
        "mixture, spearman, positive_recall@10, ndcg@10, mrr@10, relevant_recall@100; auto: the objective's own, or "
        "ndcg@10 where documents are judged."
    ),
]
Precisions = Annotated[
    str | None,
    typer.Option(
        help="Choose among these: float32, float16, int8, int4, binary, embedded, with commas; binary/binary for bits "
        "whose queries are bits as well."
    ),
]
Length = Annotated[int | None, typer.Option("-k", min=1, help="Choose this k.")]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="COSINE", min=-1, max=1, help="Also say which cut-off on the codes matches this cosine of raw vectors."
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Write the page to forward (.html), or its two charts (.svg, .png, .pdf).", metavar="FILE"
    ),
]
OtherModel = Annotated[
    Path | None,
    typer.Option("--compare", help="Another saved encoder: does it have the same axes on these rows?", metavar="OTHER"),
]


def curve(
    model: Model,
    source: given.VectorsArgument,
    label: given.LabelOption = None,
    queries: given.QueriesOption = None,
    relevance: given.RelevanceOption = None,
    pairs: given.PairsOption = None,
    ids: given.IdOption = None,
    filter: given.FilterOption = None,
    reference: Reference = None,
    metric: MetricName = "auto",
    keep: given.KeepOption = None,
    bytes_per_vector: given.BytesPerVectorOption = None,
    store: given.StoreOption = None,
    threshold: Threshold = None,
    k: Length = None,
    precision: Precisions = None,
    rows: given.RowsOption = None,
    report: ReportFile = None,
    compare: OtherModel = None,
    force: given.ForceOption = False,
    nan: given.NanOption = "refuse",
    json: given.JsonOption = False,
    quiet: given.QuietOption = False,
    explain: given.ExplainOption = False,
) -> None:
    """Evaluate every prefix of a saved encoder on a file of vectors, and choose k.

    The first lines say what to store: the cheapest number of coordinates and precision that keep 99 % of the raw
    vectors' score, how sure that is, and the command that does it. --keep asks for another share, --bytes-per-vector
    for the best in so many bytes. Then the score at each k, next to four baselines; --explain adds intervals and every
    precision.
    """
    from firstk._base.checks import check_choice
    from firstk.advice.fit_report import report_on
    from firstk.advice.read import read_for
    from firstk.data.task import Pairs
    from firstk.encoder.fitted import FittedEncoder
    from firstk.metrics.curve import METRICS
    from firstk.metrics.same_axes import same_axes
    from firstk.metrics.threshold import matched_threshold

    # Options are checked before anything is read.
    check_new(report, force=force)
    check_choice(metric, ("auto", *METRICS), "metric", "curve")
    _check_written(report)
    limits = _limits(keep, bytes_per_vector, k, precision)
    encoder = FittedEncoder.load(model)
    place = given.place_of_options(source, label, pairs, nan, queries, relevance, ids, filter)
    labels = None
    if reference is not None and not is_there(reference) and ":" in reference:
        file, _, column = reference.rpartition(":")
        # Labels of the reference are a column of it, or a file of their own.
        reference, labels = file, column if is_there(column) else f"{file}:{column}"
    with step_progress("evaluating", quiet=quiet or json) as begin, warnings_as_notes():
        task = read_for(encoder, place, reference=reference, reference_labels=labels, metric=metric)
        baselines, notes = _baselines(encoder, task, metric)
        settings = {"product_quantizer": True, "most_pairs": None, "baselines": baselines, "store": store}
        found, refusal = report_on(
            encoder, task, limits, metric=metric, settings=settings, details=explain, progress=begin
        )
        cut = None
        if threshold is not None:
            own = None if found.choice is None else found.choice.own
            stored = k or (encoder.d if own is None else own.point)
            if isinstance(task.held_out, Pairs) or task.held_out is None:
                raise InvalidInputError("--threshold compares rows or queries with all others; pairs have none.")
            cut = matched_threshold(encoder, task.held_out, threshold, stored)
        if compare is not None:  # on the rows, left sides or documents that are evaluated
            part = next(name for name in ("X", "left", "documents") if hasattr(task.held_out, name))
            axes = same_axes(encoder, FittedEncoder.load(compare), getattr(task.held_out, part))
    choice = found.choice
    if refusal is None and choice is not None and (choice.advised is None or choice.chance is not None):
        refusal = InvalidInputError(answer(choice)[0])
    options = recorded_options(place, shared=False) if task.files.store == place.source else {}
    found = replace(found, notes=tuple(map(given.in_options, (*found.notes, *notes))), options=options)
    written, record = [], _as_record(found, task, model, rows, refusal) if json else {}
    if compare is not None:
        written.append(axes_line(axes, str(compare)))
        record["same_axes"] = {"verdict": axes.verdict, "levels": axes.levels}
    if cut is not None:
        written.insert(0, str(cut))
        record["threshold"] = asdict(cut)
    if report is None:
        written.append("A page to forward: the same command with --report page.html.")
    elif report.suffix.lower() in PICTURES:
        written.append(f"Picture: {_write_picture(report, found)}")
    else:
        written.append(f"Open the page: {write_report(report, found, model, rows=rows).resolve().as_uri()}")
    if json:
        typer.echo(jsonlib.dumps(record, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join([*_lines(found, task, encoder, model, rows, explain), *written]))
    if refusal is not None:  # the scores have been shown all the same
        raise refusal


# Endings of a picture; a page has others.
PICTURES = (".svg", ".png", ".pdf")


def _check_written(path: Path | None) -> None:
    """Raise for a page or picture that cannot be written, before long work is done for it."""
    if path is None or path.suffix.lower() not in PICTURES:
        return check_page(path)
    from firstk.advice.report.figures import check_figure

    return check_figure(path)


def _baselines(encoder: FittedEncoder, task: Task, metric: str) -> tuple[Any, list[str]]:
    """Return the baselines, fitted on rows that the task has to fit on, and a note where these are not the fit's."""
    from firstk.advice.baselines import baselines_of
    from firstk.advice.evaluate import OWN_METRICS
    from firstk.data.task import Rows

    if metric in OWN_METRICS:
        return False, [f"Baselines have no {metric}; metric='probe_accuracy' compares them."]
    if not isinstance(task.train, Rows):
        return baselines_of(None, p=encoder.p), [
            "PCA and uncentred SVD are not evaluated: give rows to fit them on with reference=."
        ]
    found, fitted = baselines_of(task.train.X), encoder.record.rows
    if fitted is None or task.train.n == fitted:
        return found, []
    return found, [
        f"PCA and uncentred SVD are fitted on {task.train.n:,} rows here; 'firstk fit' fits them on all rows that it "
        "learns from, so that their scores may differ in the third digit."
    ]


def _limits(keep: float | None, size: int | None, k: int | None, names: str | None) -> Limits:
    from firstk._base.checks import check_choice
    from firstk.data.precision import PRECISIONS
    from firstk.quality.choice import Limits

    # A k of one's own is shown as it is, unless it is to be rounded.
    usual = "float32" if k is not None and keep is None and size is None else ",".join(PRECISIONS)
    asked = [name.strip() for name in (usual if names in (None, "all") else str(names)).split(",")]
    for name in asked:
        check_choice(name, (*PRECISIONS, "binary/binary"), "precision", "curve")
    plain = tuple(dict.fromkeys(name.partition("/")[0] for name in asked))
    return Limits(keep, bytes_per_vector=size, k=k, precisions=plain, binary_queries="binary/binary" in asked)


# -- what is written -------------------------------------------------------------------------------------------


def _write_picture(path: Path, found: Report) -> Path:
    """Write the curves, and below them score against bytes, by an atomic write."""
    from matplotlib.figure import Figure

    from firstk.advice.report import plot_curves, plot_tradeoff
    from firstk.advice.report.figures import write_figure

    figure = Figure(figsize=(7.2, 7.6), layout="constrained")
    axes = figure.subplots(2)
    lead, own = found.lead, None if found.choice is None else found.choice.own
    plot_curves([lead.curve()], lead.baselines, ax=axes[0])
    plot_tradeoff(lead, None if own is None else own.point, ax=axes[1])
    return write_figure(path, figure)


def _as_record(
    found: Report, task: Task, model: Path, rows: int | None, refusal: InvalidInputError | None
) -> dict[str, Any]:
    """Return what --json prints: the report, from which a page can be made, and what a script would read."""
    return {
        "model": str(model),
        "vectors": shown_place(task.files.place.source),
        "store": None if task.files.store is None else shown_place(task.files.store),
        "rows": rows,
        "metric": found.lead.metric,
        "choice": None if found.choice is None else found.choice.to_dict(),
        "curve": found.lead.curve().to_dict(),
        "baselines": [curve.to_dict() for curve in found.lead.baselines],
        "refused": None if refusal is None else given.in_options(str(refusal)),
        "notes": list(found.notes),
        "report": jsonlib.loads(found.to_json()),
    }


def _lines(
    found: Report, task: Task, encoder: FittedEncoder, model: Path, rows: int | None, explain: bool
) -> Iterator[str]:
    from firstk.advice.evaluate import ladder

    choice, lead = found.choice, found.lead
    # The reference is stored where there is one, and its columns may have other names.
    options = options_of(task.files.place) if task.files.store == task.files.place.source else {}
    if not options and task.files.store is not None:
        options = {VECTORS: str(task.files.store)}
    if choice is not None:
        yield from (
            answer(choice, rows) if choice.advised is not None or choice.chance is not None else [out_of_reach(choice)]
        )
        yield from (f"  {line}" for line in next_commands(choice, model, options))
        yield from (
            [] if explain else map(given.in_options, task.files.notes)
        )  # what makes scores look too good belongs to the answer
        yield ""
    if not explain:
        yield from store_lines(lead) if lead.store else lengths_table(lead, encoder.p)
        yield ""
        yield f"{given.in_options(found.held_out)} More: --explain"
        return
    yield from [] if choice is None else explanation(choice)
    yield given.in_options(found.held_out)
    yield from found.notes
    yield from further_lines(found.evaluations[1:])
    yield about_metric(lead.metric)
    yield f"Evaluated: {model}, {number_of(encoder.d, 'coordinate')} of {encoder.p:,}."
    yield from score_table(lead, [k for k in ladder(encoder.d) if k in lead.curve().k], encoder.p)
    yield ""
    yield from precision_lines(lead)
    yield ""
