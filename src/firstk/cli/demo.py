"""``firstk demo``: the whole job on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the encoder and the page.")] = Path("firstk-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Do the whole job on embedded data, in seconds: fit, judge, cut, save, and write a page to open.

    Fits several objectives on scikit-learn's digits, prints quality against k beside PCA, uncentred SVD, random
    dimensions and plain truncation, and names the smallest k that keeps 99 % of the raw vectors' accuracy.
    """
    from firstk.cli._demo import run

    run(out, progress=not quiet)
