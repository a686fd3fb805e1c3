"""``firstk report``: an evaluation as one page to forward."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.atomic_file import check_folder, check_new
from firstk.cli._options import ForceOption, RowsOption
from firstk.exceptions import InvalidInputError
from firstk.words.choice import headline
from firstk.words.commands import VECTORS, next_commands

if TYPE_CHECKING:
    from firstk.advice.records import Report


def report(
    model: Annotated[Path, typer.Argument(help="Folder that 'firstk fit' wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
    rows: RowsOption = None,
    keep: Annotated[
        float | None,
        typer.Option(
            "--keep",
            help="Recommend the cheapest code that keeps this share of the raw vectors' score; if not given, what the "
            "evaluation recommended.",
        ),
    ] = None,
    bytes_per_vector: Annotated[
        int | None,
        typer.Option(
            "--bytes-per-vector",
            min=1,
            help="Recommend the best code within this many bytes, using the scores that fit saved.",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write an evaluation as one self-contained HTML page.

    What to store, with the command that does it; curves next to the baselines, score against bytes, what each
    coordinate is worth and, for images, what k coordinates see; a slider over k moves all of it. The page needs no
    network, prints, and follows light and dark.
    """
    from firstk.advice.records import read_report
    from firstk.quality.choice import Limits, choose

    check_new(out, force=force)
    found = read_report(model)
    if (keep, bytes_per_vector) != (None, None) or found.choice is None:  # of the scores that were saved
        try:
            found = replace(found, choice=choose(found.lead, Limits(keep, bytes_per_vector=bytes_per_vector)))
        except InvalidInputError as error:
            if bytes_per_vector is not None or "means nothing" not in str(error):
                raise
            found = replace(found, choice=None)  # a share of a score that is not positive
    page = write_report(out, found, model, rows=rows)
    lines = [f"Open the page: {page.resolve().as_uri()}"]
    if found.choice is not None:
        lines.append(f"Its first line: {headline(found.choice)}")
    if (keep, bytes_per_vector) == (None, None):
        lines.append("Another choice: --bytes-per-vector or --keep. The page of a 'firstk curve': --report there.")
    typer.echo("\n".join(lines))


def write_report(out: Path, found: Report, model: Path, *, rows: int | None = None) -> Path:
    """Write the page of a report, with the commands that follow its choice where the file is known."""
    from firstk.advice.report import write_page
    from firstk.advice.report.sections import page_of

    file = found.options.get(VECTORS, found.facts.get("file"))
    options = {} if file is None else {**found.options, VECTORS: str(file)}
    return write_page(out, page_of(found, rows=rows, commands=next_commands(found.choice, model, options)))


def check_page(path: Path | None) -> None:
    """Raise for a page that cannot be written, before long work is done for it."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"A page ends in .html. Got '{path}'.")
    if path.is_dir():
        raise InvalidInputError(f"A page is a file, and '{path}' is a folder. Name a file in it.")
    check_folder(path.parent)
