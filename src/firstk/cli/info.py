"""``firstk info``: what is in a saved model, or in a file of codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from firstk.cli._options import JsonOption
from firstk.data.remote import explained_reading, place_of
from firstk.exceptions import InvalidInputError


def info(
    model_or_codes: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL|CODES",
            help="Folder that 'firstk fit' or 'firstk align' wrote, or file that 'firstk transform' wrote.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Versions, processor and BLAS, for a report of a problem; needs no model.")
    ] = False,
) -> None:
    """Show what is in a saved model, and check its files.

    It shows the objective, the ordering, the widths, the number of rows that were seen, the curve at a few k, the
    smallest k, the bytes of a vector, and where the vectors come from. A file that is missing, or is not what was
    saved, gives exit code 1. Of a file of codes it shows how they are stored and what made them; of an alignment, what
    it translates and the verdict on it.

    With --debug it shows versions, processor and BLAS instead, to go with the report of a problem.
    """
    import json

    if debug:
        from firstk._base.environment import environment

        found_here = environment()
        typer.echo(
            json.dumps(found_here, indent=2) if as_json else "\n".join(f"{k}: {v}" for k, v in found_here.items())
        )
        return
    if model_or_codes is None:
        raise InvalidInputError(
            "Name a model or a file of codes: firstk info MODEL. Of this machine: firstk info --debug."
        )
    place = place_of(model_or_codes)
    with explained_reading(place):
        is_file = place.is_file()
    if is_file:
        from firstk.data.files import open_codes

        file = open_codes(model_or_codes)
        typer.echo(json.dumps(file.facts(), indent=2, ensure_ascii=False) if as_json else str(file))
        return
    from firstk.encoder.storage.folder import read_manifest
    from firstk.encoder.storage.info import model_info

    if (model_or_codes / "config.json").is_file() and read_manifest(model_or_codes, None).format == "firstk-alignment":
        from firstk.advice.upgrade.translating import alignment_facts

        facts = alignment_facts(model_or_codes)
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else _about_alignment(facts))
        return
    found = model_info(model_or_codes)
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.whole:
        raise typer.Exit(1)


def _about_alignment(facts: dict[str, Any]) -> str:
    lines = [
        f"An alignment of vectors of {facts['old_width']} numbers (old) and {facts['new_width']} (new): one code of "
        f"{facts['components']}, {facts['method']}, fitted on {facts['pairs']:,} pairs.",
        *(facts["verdict"] or ["It was saved without an evaluation: firstk align OLD NEW -o FOLDER makes one."]),
    ]
    return "\n".join(lines)
