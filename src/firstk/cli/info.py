"""``firstk info``: what is in a saved model, or in a file of codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firstk.cli._options import JsonOption
from firstk.data.remote import explained_reading, place_of


def info(
    model_or_codes: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL|CODES",
            help="Folder that 'firstk fit' or 'firstk align' wrote, or file that 'firstk transform' wrote. Without it: "
            "versions, processor and BLAS, for a report of a problem.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is in a saved model, and check its files.

    It shows the objective, the ordering, the widths, the number of rows that were seen, the curve at a few k, the
    smallest k, the bytes of a vector, and where the vectors come from. A file that is missing, or is not what was
    saved, gives exit code 1. Of a file of codes it shows how they are stored and what made them; of an alignment, what
    it translates and the verdict on it.
    """
    import json

    if model_or_codes is None:
        from firstk._base.environment import environment

        found_here = environment()
        typer.echo(
            json.dumps(found_here, indent=2) if as_json else "\n".join(f"{k}: {v}" for k, v in found_here.items())
        )
        return
    place = place_of(model_or_codes)
    with explained_reading(place):
        is_file = place.is_file()
    if is_file:
        from firstk.data.files import open_codes

        file = open_codes(model_or_codes)
        typer.echo(json.dumps(file.facts(), indent=2, ensure_ascii=False) if as_json else str(file))
        return
    from firstk.encoder.storage.folder import is_alignment, read_extra
    from firstk.encoder.storage.info import model_info

    if is_alignment(model_or_codes):
        from firstk import PrefixAlignment

        alignment = PrefixAlignment.load(model_or_codes).alignment_
        record = read_extra(model_or_codes, "upgrade.json")
        facts = {"alignment": str(model_or_codes), **alignment.facts()}
        facts["report"] = None if record is None else json.loads(record)
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else str(alignment))
        return
    found = model_info(model_or_codes)
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.whole:
        raise typer.Exit(1)
