"""``firstk align``: what to do when the embedding model changes, and the alignment that translates between both."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.atomic_file import check_new
from firstk.cli._counts import read_count
from firstk.cli._notes import warnings_as_notes
from firstk.cli._options import (
    FilterOption,
    ForceOption,
    JsonOption,
    NanOption,
    QuietOption,
    RelevanceOption,
    RowsOption,
    VectorsOption,
)
from firstk.cli._progress import step_progress
from firstk.cli.report import check_page
from firstk.data.remote import is_there
from firstk.exceptions import InvalidInputError
from firstk.words.text import number_of

if TYPE_CHECKING:
    import numpy as np

    from firstk.advice.upgrade.evaluation import UpgradeResult
    from firstk.advice.upgrade.files import UpgradeFiles
    from firstk.advice.upgrade.records import Pool, ScoredOption, UpgradeReport
    from firstk.advice.upgrade.verdict import Terms, Verdict

OWNER = "firstk align"

Old = Annotated[str, typer.Argument(metavar="OLD", help="The store: vectors of the old model.")]
New = Annotated[
    str, typer.Argument(metavar="NEW", help="Some of the same rows, embedded by the new model; better thousands.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the alignment.")]
QueriesOld = Annotated[
    str | None, typer.Option("--queries-old", help="Queries, embedded by the old model.", metavar="FILE")
]
QueriesNew = Annotated[
    str | None, typer.Option("--queries-new", help="The same queries, embedded by the new model.", metavar="FILE")
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column of ids, by which rows of both models belong together and judgements name them; found by itself if "
        "called id, doc_id, ... Without one, row i of both files is the same text.",
        metavar="COLUMN|QUERYCOLUMN,DOCUMENTCOLUMN",
    ),
]
VectorsNew = Annotated[
    str | None, typer.Option("--vectors-new", help="Vector column of the new model's files; as --vectors.")
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="In place of --relevance: a column of labels of OLD, and of --queries-old. A query is answered where the "
        "nearest row has its label. Without queries, a fifth of the pairs are held out to be queries.",
        metavar="COLUMN",
    ),
]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Of judged searches: ndcg@10 (if not given), mrr@10, relevant_recall@100 or 1nn_accuracy (with --label).",
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        help="Methods to compare, with commas: the first is taken unless your judgements clearly prefer another. If "
        "not given: auto, those that it chooses among, and procrustes. Those that iterate (residual_mlp, "
        "low_rank_affine, lambda_orthogonal) take minutes.",
    ),
]
CostPerMillion = Annotated[
    float | None, typer.Option("--cost-per-million", min=0, help="What embedding a million rows costs.")
]
BudgetRows = Annotated[
    int | None,
    typer.Option("--budget-rows", parser=read_count, metavar="COUNT", help="How many rows may be embedded anew."),
]
Retired = Annotated[
    bool, typer.Option("--old-model-retired", help="The old model can no longer embed queries: staying is no option.")
]
OrderFile = Annotated[
    Path | None,
    typer.Option("--order", help="Write the rows in the order in which to embed them anew: .csv.", metavar="FILE"),
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Write the page to forward: one HTML file.", metavar="FILE")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed that draws the held-out pairs.")]


def align(
    old: Old,
    new: New,
    out: Out,
    queries_old: QueriesOld = None,
    queries_new: QueriesNew = None,
    relevance: RelevanceOption = None,
    label: Label = None,
    ids: Id = None,
    filter: FilterOption = None,
    vectors: VectorsOption = None,
    vectors_new: VectorsNew = None,
    metric: MetricName = None,
    methods: Methods = None,
    cost_per_million: CostPerMillion = None,
    budget_rows: BudgetRows = None,
    rows: RowsOption = None,
    old_model_retired: Retired = False,
    order: OrderFile = None,
    report: ReportFile = None,
    seed: Seed = 0,
    force: ForceOption = False,
    nan: NanOption = "refuse",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Tell what to do when the embedding model changes: stay, translate or re-embed.

    Embed a few thousand rows of the store with the new model, and all judged queries with both. The first line says
    what to do; then each option is shown with its score and its gain over staying, with intervals.

    Staying searches the old store by the old model, as today. Translating needs no row to be embedded: a map that is
    fitted on the pairs brings the old vectors and new queries into one code, which can be cut. Re-embedding is scored
    among pairs that were held out, as nobody has the whole new store yet. Between both, the best part of the rows is
    embedded anew and the rest is translated.

    With --label, rows of a query's own label answer it. Without --relevance or --label nothing is known of relevance:
    the options are compared by how many of the new model's neighbors they find.

    One translation is recommended, of all methods and forms: into a code that both models share, of the store into the
    new model's space, or of queries into the old one's. Its alignment is saved, and the commands that use it are
    printed.
    """
    from firstk.advice.upgrade import Terms, evaluate_upgrade, verdict_of
    from firstk.advice.upgrade.files import UpgradeFiles, read_upgrade
    from firstk.advice.upgrade.records import FILE

    for file in (report, order):
        check_new(file, force=force)
    check_new(out, force=force, model=True)
    check_page(report)
    names = _checked(metric, methods, order, out)
    terms = Terms(cost_per_million, budget_rows, old_model_retired, rows)
    weight = None
    if queries_old is not None and not is_there(queries_old) and ":" in queries_old:
        queries_old, _, weight = queries_old.rpartition(":")
    files = UpgradeFiles(
        old,
        new,
        queries_old,
        queries_new,
        relevance,
        None if ids == ":row" else ids,
        ids == ":row",
        filter,
        weight,
        vectors,
        vectors_new,
        nan,
        metric,
        label,
    )
    files.check()
    with step_progress(None, quiet=quiet or json, what="aligning") as begin, warnings_as_notes():
        begin("reading")
        data, said = read_upgrade(files)
        shares = _shares(terms, len(data.old))
        found = evaluate_upgrade(data, methods=names, shares=shares, random_state=seed, progress=begin)
    verdict = verdict_of(found.report, terms)
    found.alignment.save(out, extra={FILE: found.report.to_json()})
    commands = _commands(files, verdict, found, out)
    written = _write(found, verdict, terms, files, commands, order, report, data.row_numbers)
    if json:
        typer.echo(_as_json(found.report, verdict, terms, commands, out, said))
    else:
        typer.echo("\n".join((*_lines(found.report, verdict, terms, commands, said), f"Saved in {out}.", *written)))


def _checked(metric: str | None, methods: str | None, order: Path | None, out: Path) -> tuple[str, ...] | None:
    """Check options before anything is read, and return the methods that were named."""
    from firstk._base.checks import check_choice
    from firstk.advice.upgrade.evaluation import AUTO
    from firstk.advice.upgrade.searches import METRICS
    from firstk.alignment.methods import PUBLIC
    from firstk.encoder.storage.folder import check_target

    if metric is not None:
        check_choice(metric, METRICS, "--metric", OWNER)
    check_target(out)
    if order is not None and order.suffix.lower() != ".csv":
        raise InvalidInputError(f"The order of rows is written as .csv. Got '{order}'.")
    if methods is None:
        return None
    names = tuple(name.strip() for name in methods.split(",") if name.strip())
    for name in names or ("",):
        check_choice(name, (AUTO, *PUBLIC), "--methods", OWNER)
    return names


def _shares(terms: Terms, rows: int) -> tuple[float, ...]:
    """Return the shares of rows to embed anew: the usual ones, and what the budget pays for."""
    from firstk.advice.upgrade.evaluation import SHARES

    if terms.budget_rows is None:
        return SHARES
    return (*SHARES, terms.budget_rows / (terms.rows or rows))


def _write(
    found: UpgradeResult,
    verdict: Verdict,
    terms: Terms,
    files: UpgradeFiles,
    commands: Sequence[str],
    order: Path | None,
    page: Path | None,
    row_numbers: np.ndarray | None,
) -> Iterator[str]:
    """Write the order of rows and the page, where they were asked for; return what to say of them."""
    written = []
    if order is not None:
        from firstk.advice.upgrade.files import write_order

        count = write_order(order, files, found.worth, row_numbers)
        written.append(f"{number_of(count, 'row')} in the order of their worth: {order}")
    if page is not None:
        from firstk.advice.report.html import write_document
        from firstk.advice.report.upgrade import render_upgrade

        write_document(page, render_upgrade(found.report, verdict, terms, commands=commands))
        written.append(f"Open the page: {page.resolve().as_uri()}")
    return iter(written)


# -- what is printed -------------------------------------------------------------------------------------------


def _commands(files: UpgradeFiles, verdict: Verdict, found: UpgradeResult, out: Path) -> list[str]:
    """Return the commands that do what the verdict says."""
    from firstk.advice.upgrade.records import MIX, QUERIES, TRANSLATE

    if verdict.action not in (TRANSLATE, MIX) or verdict.option is None:
        return []
    option = verdict.option
    by = [] if files.vectors is None else ["--vectors", files.vectors]
    by_new = by if files.vectors_new is None else ["--vectors", files.vectors_new]
    ending = Path(str(files.old)).suffix or ".parquet"
    store = ["firstk", "transform", str(out), str(files.old), *by]
    queries = ["firstk", "transform", str(out), str(files.queries_new or "NEWQUERIES"), *by_new]
    to_store, to_queries = ["-o", f"translated{ending}"], ["-o", f"queries{ending}"]
    if option.kind == QUERIES:
        commands = [[*queries, "--into", "old", *to_queries]]
    elif option.kind == MIX or option.k is None:
        commands = [[*store, "--into", "new", *to_store]]
    else:
        cut = [] if option.k == found.alignment.n_components_ else ["-k", str(option.k)]
        commands = [[*store, *cut, *to_store], [*queries, "--side", "query", *cut, *to_queries]]
    return [shlex.join(command) for command in commands]


def _lines(
    report: UpgradeReport, verdict: Verdict, terms: Terms, commands: Sequence[str], said: Sequence[str]
) -> Iterator[str]:
    yield verdict.lines[0]
    yield from (f"  {command}" for command in commands)
    yield from verdict.lines[1:]
    yield ""
    yield from said
    yield f"Old vectors have {report.widths[0]} numbers, new ones {report.widths[1]}. Translated by {report.method}" + (
        f" ({report.reason})." if report.reason else "."
    )
    for pool in report.pools:
        yield ""
        yield from _table(report, pool, terms)
    yield ""
    yield "* the translation that is saved. Of other methods the form that scores highest is shown."
    if len(report.learning) > 1:
        shown = ", ".join(f"{point.pairs:,}: {point.score.value:.3f}" for point in report.learning)
        yield f"The translation by number of pairs: {shown}."
    yield from report.notes


def _table(report: UpgradeReport, pool: Pool, terms: Terms) -> Iterator[str]:
    """Tabulate the options of a pool, what is recommended of the translations with a mark."""
    from firstk.advice.upgrade.records import STORE

    where = (
        f"all {pool.rows:,} rows of the store"
        if pool.name == STORE
        else f"{pool.rows:,} pairs that were held out; alignments are fitted on the other {pool.pairs:,}"
    )
    shown = list(_shown(pool))
    wide = max(len(one.option.name) for one in shown) + 4
    taken = pool.translation
    interval = f"{100 * report.confidence:g} % interval"
    yield f"{report.metric}, {number_of(pool.queries, 'query').replace('querys', 'queries')} among {where}:"
    yield f"{'':<{wide}}{'score':>7}  {interval:<16}{'gain':>7}  {interval:<18}{'rows embedded':>13}"
    for one in shown:
        score = f"{one.score.value:>7.3f}  {f'{one.score.low:.3f} to {one.score.high:.3f}':<16}"
        gain = f"{'':>7}  {'':<18}"
        if one.gain is not None:
            gain = f"{one.gain.value:>+7.3f}  {f'{one.gain.low:+.3f} to {one.gain.high:+.3f}':<18}"
        mark = "* " if one is taken else "  "
        yield f"{mark}{one.option.name:<{wide - 2}}{score}{gain}{terms.embedded(one.option, report.rows):>13,}"


def _shown(pool: Pool) -> Iterator[ScoredOption]:
    """Yield the options of a pool; of methods other than the recommended one, the form that scores highest."""
    taken = pool.translation.option.method
    best: dict[str, ScoredOption] = {}
    for one in pool.options:
        method = one.option.method
        if one.option.translates and (method not in best or one.score.value > best[method].score.value):
            best[method] = one
    for one in pool.options:
        if not one.option.translates or one.option.method == taken or one is best[one.option.method]:
            yield one


def _as_json(
    report: UpgradeReport, verdict: Verdict, terms: Terms, commands: Sequence[str], out: Path, said: Sequence[str]
) -> str:
    import json
    from dataclasses import asdict

    from firstk._base.json_records import to_plain

    found = {
        "alignment": str(out),
        "action": verdict.action,
        "option": None if verdict.option is None else to_plain(verdict.option),
        "verdict": list(verdict.lines),
        "commands": list(commands),
        "paired": list(said),
        "terms": asdict(terms),
        "report": to_plain(report),
    }
    return json.dumps(found, ensure_ascii=False, allow_nan=False)
