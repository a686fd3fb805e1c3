"""``firstk sample``: an embedded data set as a file, so that every example runs anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firstk._base.atomic_file import check_new
from firstk.cli._options import ForceOption, JsonOption

PARTS = ("all", "train", "test")


def sample(
    name: Annotated[str, typer.Argument(help="The data set: digits, the only one so far.", metavar="NAME")] = "digits",
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="File to write; its ending is its format: .parquet, .npz, .csv, .jsonl, ..."),
    ] = Path("digits.npz"),
    part: Annotated[str, typer.Option(help="Which rows to write.", metavar="all|train|test")] = "all",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a small built-in data set to a file, to try the other commands on: 1,797 images of handwritten digits.

    Its columns are pixels (the vectors: 8 x 8 = 64 numbers), label (0 to 9) and part (train or test). Parquet and arrow
    need the extra 'tables'; npz, npy, csv, tsv, jsonl and safetensors need none.
    """
    from firstk._base.checks import check_choice
    from firstk.data.samples import SAMPLES, write_sample

    check_choice(name, SAMPLES, "NAME", "sample")
    check_choice(part, PARTS, "--part", "sample")
    check_new(out, force=force)
    written = write_sample(name, out, None if part == "all" else part)
    if json:
        from json import dumps

        typer.echo(dumps(written))
    else:
        typer.echo(f"{written['rows']:,} vectors of {written['width']} in {out}, with columns {written['columns']}.")
