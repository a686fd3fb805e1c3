"""``firstk demo``: fit, evaluate, cut, save, and a page to open, on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA = ("banking", "digits")


def demo(
    data: Annotated[
        str, typer.Argument(help="banking (sentence embeddings) or digits (images).", metavar="banking|digits")
    ] = "banking",
    out: Annotated[Path, typer.Option(help="Folder for the encoder and the page.")] = Path("firstk-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Do the whole job on embedded data, in seconds: fit, evaluate, cut, save, and write a page to open.

    On the embeddings of 4,000 questions to a bank it compares all 384 numbers with truncation, random dimensions, PCA
    and firstk at a few lengths, names the cheapest code that keeps 99 % of the accuracy, and prints the sentences that
    each finds. With 'digits' it fits several objectives on scikit-learn's handwritten digits.
    """
    from firstk._base.checks import check_choice
    from firstk.encoder.storage.folder import check_target

    check_choice(data, DATA, "DATA", "demo")
    check_target(out / "model")  # before the work, not after it
    if data == "digits":
        from firstk.cli._demo_digits import run
    else:
        from firstk.cli._demo_banking import run
    run(out, quiet=quiet)
