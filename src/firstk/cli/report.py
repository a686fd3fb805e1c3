"""``firstk report``: an evaluation as one page to forward."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.atomic_file import check_folder, check_new
from firstk.cli._options import ForceOption, RowsOption
from firstk.cli._text import JUDGED_BY, VECTORS, commands_for
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.evaluation.records import HeldOutReport


def report(
    model: Annotated[Path, typer.Argument(help="Folder that 'firstk fit' wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
    curve: Annotated[
        Path | None,
        typer.Option(
            "--curve",
            metavar="FILE",
            help="What 'firstk curve MODEL ... --json' printed: the page is of that evaluation, not of the fit's own.",
        ),
    ] = None,
    rows: RowsOption = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Recommend this k; as float32, unless --keep is given too.")
    ] = None,
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
            "--bytes-per-vector", min=1, help="Recommend the best code in at most so many bytes, by the saved scores."
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write an evaluation as one self-contained HTML page.

    What to store, with the command that does it; curves next to the baselines, score against bytes, what each
    coordinate is worth and, for images, what k coordinates see; a slider over k moves all of it. The page needs no
    network, prints, and follows light and dark.
    """
    from firstk.encoder.storage.folder import read_manifest
    from firstk.evaluation.records import read_report
    from firstk.evaluation.report.advice import advice_of
    from firstk.evaluation.report.curve_file import read_curve

    check_new(out, force=force)
    found = read_report(model) if curve is None else read_curve(curve, read_manifest(model).config)
    page = write_report(out, found, model, rows=rows, k=k, keep=keep, bytes_per_vector=bytes_per_vector)
    lines = [f"Open the page: {page.resolve().as_uri()}"]
    advice = advice_of(found, k, keep, bytes_per_vector)
    if advice is not None:
        lines.append(f"Its first line: {advice.headline()}")
    if (curve, k, keep, bytes_per_vector) == (None, None, None, None):
        lines.append(
            "That is by the fit's own evaluation, and what the fit was asked for. Another choice: --bytes-per-vector "
            "or --keep. The page of a 'firstk curve': give that command --report."
        )
    typer.echo("\n".join(lines))


def write_report(
    out: Path,
    found: HeldOutReport,
    model: Path,
    *,
    rows: int | None = None,
    k: int | None = None,
    keep: float | None = None,
    bytes_per_vector: int | None = None,
) -> Path:
    """Write the page of an evaluation, with the commands that follow its recommendation where the file is known."""
    from firstk.evaluation.report import write_page
    from firstk.evaluation.report.advice import advice_of
    from firstk.evaluation.report.held_out_page import page_of

    file = found.options.get(VECTORS, found.facts.get("file"))
    commands = None
    if file is not None:
        advice = advice_of(found, k, keep, bytes_per_vector)
        most = None if advice is None else advice.bytes_per_vector
        judged = {name: value for name, value in found.options.items() if name in JUDGED_BY}
        own = {name: value for name, value in found.options.items() if name not in (VECTORS, *JUDGED_BY)}
        commands = partial(commands_for, model=model, store=str(file), options=own, judged=judged, most_bytes=most)
    page = page_of(found, rows=rows, k=k, keep=keep, bytes_per_vector=bytes_per_vector, commands=commands)
    return write_page(out, page)


def check_page(path: Path | None) -> None:
    """Raise for a page that cannot be written, before long work is done for it."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"A page ends in .html. Got '{path}'.")
    if path.is_dir():
        raise InvalidInputError(f"A page is a file, and '{path}' is a folder. Name a file in it.")
    check_folder(path.parent)
