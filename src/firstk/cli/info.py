"""``firstk info``: what is in a saved model, or in a file of codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firstk.cli._options import JsonOption


def info(
    model_or_codes: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|CODES",
            help="Folder that 'firstk fit' wrote, or file that 'firstk transform' wrote.",
            show_default=False,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Show what is in a saved model, and check its files.

    It shows the objective, the ordering, the widths, the number of rows that were seen, the curve at a few k, the
    smallest k, the bytes of a vector, and where the vectors come from. A file that is missing, or is not what was
    saved, gives exit code 1. Of a file of codes it shows how they are stored and what made them.
    """
    import json

    if model_or_codes.is_file():
        from firstk.data.files import open_codes

        file = open_codes(model_or_codes)
        typer.echo(json.dumps(file.facts(), indent=2, ensure_ascii=False) if as_json else str(file))
        return
    from firstk.encoder.storage.info import model_info

    found = model_info(model_or_codes)
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.whole:
        raise typer.Exit(1)
