"""``firstk report``: the study of a fit as one page to forward."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.evaluation.records import HeldOutReport


def report(
    model: Annotated[Path, typer.Argument(help="Folder that 'firstk fit' wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help="How many vectors you store, for the bytes saved.")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="The prefix length to recommend.")] = None,
    keep: Annotated[
        float, typer.Option("--keep", help="Without -k: recommend the fewest coordinates that keep this share.")
    ] = 0.99,
) -> None:
    """Write what a fit has learned about its encoder as one self-contained HTML page.

    Curves beside the baselines, bytes saved, what each coordinate is worth and, for images, what k coordinates see; a
    slider over k moves all of it. The page needs no network, prints, and follows light and dark.
    """
    from firstk.evaluation.report import write_page
    from firstk.evaluation.report.study_page import page_of

    page = write_page(out, page_of(read_study(model), rows=rows, k=k, keep=keep))
    typer.echo(f"Open the page: {page.resolve().as_uri()}")


def read_study(model: Path) -> HeldOutReport:
    """Read the study of a model folder, or say why there is none."""
    from firstk.encoder.storage.folder import read_extra
    from firstk.evaluation.records import FILE, HeldOutReport

    text = read_extra(model, FILE)
    if text is None:
        raise InvalidInputError(
            f"'{model}' holds a model without a study: it was saved from Python, or fitted with nothing held out. Fit "
            f"it with 'firstk fit VECTORS -o {model}', which holds out a fifth of the rows, or judge it on rows of "
            f"your own: firstk curve {model} TEST"
        )
    return HeldOutReport.from_json(text)
