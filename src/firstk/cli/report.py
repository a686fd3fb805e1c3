"""``firstk report``: the evaluation of a fit as one page to forward."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firstk._base.atomic_file import check_new
from firstk.cli._options import ForceOption, RowsOption


def report(
    model: Annotated[Path, typer.Argument(help="Folder that 'firstk fit' wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
    rows: RowsOption = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="The prefix length to recommend.")] = None,
    keep: Annotated[
        float, typer.Option("--keep", help="Without -k: recommend the fewest coordinates that keep this share.")
    ] = 0.99,
    force: ForceOption = False,
) -> None:
    """Write the evaluation of a fit as one self-contained HTML page.

    Curves next to the baselines, bytes saved, what each coordinate is worth and, for images, what k coordinates see; a
    slider over k moves all of it. The page needs no network, prints, and follows light and dark.
    """
    from firstk.evaluation.records import read_report
    from firstk.evaluation.report import write_page
    from firstk.evaluation.report.held_out_page import page_of

    check_new(out, force=force)
    page = write_page(out, page_of(read_report(model), rows=rows, k=k, keep=keep))
    typer.echo(f"Open the page: {page.resolve().as_uri()}")
