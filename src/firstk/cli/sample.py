"""``firstk sample``: an embedded data set as a file, so that every example runs anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from firstk._base.atomic_file import check_new
from firstk.cli._options import ForceOption


def sample(
    name: Annotated[
        str, typer.Argument(help="The data set: banking (questions) or digits (images).", metavar="banking|digits")
    ] = "banking",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write; its ending is its format: .parquet, .npz, .csv, .jsonl, ... Without it: NAME.npz.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a small built-in data set to a file, to try the other commands on: questions to a bank, or digits.

    banking has 4,000 questions of bank customers: embedding (384 numbers of all-MiniLM-L6-v2), id, text, intent (77 of
    them) and part (train or test). digits has 1,797 images of handwritten digits: pixels (8 x 8 = 64 numbers), label (0
    to 9) and part. Parquet and arrow need the extra 'tables'; npz, npy, csv, tsv, jsonl and safetensors need none.
    """
    from firstk._base.checks import check_choice
    from firstk.data.samples import SAMPLES, write_sample

    check_choice(name, SAMPLES, "NAME", "sample")
    out = Path(f"{name}.npz") if out is None else out
    check_new(out, force=force)
    written = write_sample(name, out)
    typer.echo(f"{written['rows']:,} vectors of {written['width']} in {out}, with columns {written['columns']}.")
