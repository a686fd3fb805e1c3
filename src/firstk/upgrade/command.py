"""``firstk align``: what to do when the embedding model changes, and the alignment that translates between both."""

from __future__ import annotations

import json as json_text
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.atomic_file import check_new
from firstk.cli._options import (
    ExplainOption,
    ForceOption,
    JsonOption,
    QuietOption,
    RelevanceOption,
    RowsOption,
    file_and_column,
    place_of_options,
    read_count,
)
from firstk.cli._progress import step_progress, warnings_as_notes
from firstk.cli.report import check_page
from firstk.exceptions import InvalidInputError
from firstk.words import number_of

if TYPE_CHECKING:
    from firstk.upgrade.evaluate import UpgradeResult
    from firstk.upgrade.read import UpgradeFiles
    from firstk.upgrade.verdict import Verdict

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
        help="Column of ids, by which rows of both models belong together and judgements name them; detected if it is "
        "called id, doc_id, ... Without one, row i of both files is the same text.",
        metavar="COLUMN|QUERYCOLUMN,DOCUMENTCOLUMN",
    ),
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
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        help="Methods to compare, with commas: the first is taken unless your judgements clearly prefer another. If "
        "not given: auto, those that it chooses among, and procrustes.",
    ),
]
BudgetRows = Annotated[
    int | None,
    typer.Option("--budget-rows", parser=read_count, metavar="COUNT", help="How many rows may be embedded anew."),
]
Retired = Annotated[
    bool, typer.Option("--old-model-retired", help="The old model can no longer embed queries, so staying is out.")
]
OrderFile = Annotated[
    Path | None,
    typer.Option("--order", help="Write the rows in the order in which to embed them anew: .csv.", metavar="FILE"),
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Write the page to forward: one HTML file.", metavar="FILE")
]


def align(
    old: Old,
    new: New,
    out: Out,
    queries_old: QueriesOld = None,
    queries_new: QueriesNew = None,
    relevance: RelevanceOption = None,
    label: Label = None,
    ids: Id = None,
    methods: Methods = None,
    budget_rows: BudgetRows = None,
    rows: RowsOption = None,
    old_model_retired: Retired = False,
    order: OrderFile = None,
    report: ReportFile = None,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    explain: ExplainOption = False,
) -> None:
    """Tell what to do when the embedding model changes: stay, translate or re-embed.

    Example: firstk align old.parquet new.parquet -o upgrade/ --report upgrade.html

    Embed a few thousand rows of the store with the new model, and all judged queries with both. The first line says
    what to do, or what to find out first; --explain shows each option with its score and its gain over staying, with
    intervals.

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
    from firstk._base.checks import check_choice
    from firstk._base.json_records import to_plain
    from firstk.encoder import check_target
    from firstk.upgrade.evaluate import AUTO, SHARES, evaluate_upgrade
    from firstk.upgrade.methods import PUBLIC
    from firstk.upgrade.read import UpgradeFiles, read_upgrade, write_order
    from firstk.upgrade.records import FILE
    from firstk.upgrade.verdict import Terms, verdict_of
    from firstk.upgrade.words import answer, explanation, tables

    for file in (report, order):
        check_new(file, force=force)
    check_new(out, force=force, model=True)
    check_page(report)
    check_target(out)
    if order is not None and order.suffix.lower() != ".csv":
        raise InvalidInputError(f"The order of rows is written as .csv. Got '{order}'.")
    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()] or [""]
    for name in names or ():
        check_choice(name, (AUTO, *PUBLIC), "--methods", OWNER)
    terms = Terms(budget_rows=budget_rows, retired=old_model_retired, rows=rows)
    place = place_of_options(old, label, None, "refuse", queries_old, relevance, ids)
    new, vectors_new = file_and_column(new)
    files = UpgradeFiles(place, new, queries_new, vectors_new)
    files.check()
    with step_progress("aligning", quiet=quiet or json) as begin, warnings_as_notes():
        begin("reading")
        data, paired = read_upgrade(files)
        share = [] if budget_rows is None else [budget_rows / (rows or len(data.old))]
        found = evaluate_upgrade(data, methods=names, shares=[*SHARES, *share], progress=begin)
    verdict = verdict_of(found.report, terms)
    said, more = answer(verdict), list(explanation(verdict))
    fitted = found.alignment.alignment_
    fitted = replace(fitted, config={**fitted.config, "verdict": [*said, *more]})
    fitted.save(out, extra={FILE: found.report.to_json()})
    commands = _commands(files, verdict, found, out)
    lines = [*said, *(f"  {command}" for command in commands)]
    lines += [*more, *tables(verdict), *paired] if explain else []
    lines.append(f"Saved in {out}." + ("" if explain else " Every option, with intervals: --explain."))
    if order is not None:
        assert data.row_numbers is not None
        count = write_order(order, files, found.worth, data.row_numbers)
        lines.append(f"{number_of(count, 'row')} in the order of their worth: {order}")
    if report is not None:
        from firstk.advice.report.html import write_document
        from firstk.upgrade.page import render_upgrade

        write_document(report, render_upgrade(verdict, commands=commands))
        lines.append(f"Open the page: {report.resolve().as_uri()}")
    if json:
        option = None if verdict.option is None else to_plain(verdict.option)
        document = {
            "alignment": str(out), "action": verdict.action, "option": option, "reason": verdict.reason,
            "more_rows": verdict.more_rows, "more_queries": verdict.more_queries, "verdict": [*said, *more],
            "commands": commands, "paired": paired, "terms": asdict(terms), "report": to_plain(found.report),
        }  # fmt: skip
        typer.echo(json_text.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join(lines))


def _commands(files: UpgradeFiles, verdict: Verdict, found: UpgradeResult, out: Path) -> list[str]:
    """Return the commands that do what the verdict says."""
    from firstk.upgrade.records import MIX, QUERIES, TRANSLATE

    option, old = verdict.option, files.old
    if option is None or verdict.action not in (TRANSLATE, MIX):
        return []
    by = "" if old.vectors is None else f":{old.vectors}"
    by_new = by if files.vectors_new is None else f":{files.vectors_new}"
    ending = Path(str(old.source)).suffix or ".parquet"
    store = ["firstk", "transform", str(out), f"{old.source}{by}"]
    queries = ["firstk", "transform", str(out), f"{files.queries_new or 'NEWQUERIES'}{by_new}"]
    to_store, to_queries = ["-o", f"translated{ending}"], ["-o", f"queries{ending}"]
    if option.kind == QUERIES:
        commands = [[*queries, "--into", "old", *to_queries]]
    elif option.kind == MIX or option.k is None:
        commands = [[*store, "--into", "new", *to_store]]
    else:
        cut = [] if option.k == found.alignment.n_components_ else ["-k", str(option.k)]
        commands = [[*store, *cut, *to_store], [*queries, "--side", "query", *cut, *to_queries]]
    return [shlex.join(command) for command in commands]
