"""``firstk info``: what is in a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def info(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say what is in a saved model, and check that it is whole.

    Objective, ordering, widths, rows seen, the curve at a few k and the smallest k, bytes a vector, where the vectors
    come from, and whether each file is what was saved. A file that is missing or changed gives exit code 1.
    """
    import json

    from firstk.encoder.storage.info import model_info

    found = model_info(model)
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.whole:
        raise typer.Exit(1)
