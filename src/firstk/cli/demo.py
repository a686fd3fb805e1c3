"""``firstk demo``: fit, evaluate, cut, save, and a page to open, on built-in data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the encoder and the page.")] = Path("firstk-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Do the whole job on built-in data, in seconds: fit, evaluate, cut, save, and write a page to open.

    On embeddings of 4,000 questions to a bank it compares the first 4, 8, 16 and 32 numbers of the raw vectors, of
    random dimensions, of PCA and of firstk with all 384. It names the cheapest code that keeps 99 % of the accuracy,
    and prints the nearest sentences that each finds.
    """
    from firstk.cli._demo_banking import run
    from firstk.encoder.storage.folder import check_target

    check_target(out / "model")  # before the work, not after it
    run(out, quiet=quiet)
