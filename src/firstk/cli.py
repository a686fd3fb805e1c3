"""The command line. Commands import what they need when they run, so that ``firstk --help`` answers at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from firstk import __version__
from firstk._checks import FirstkError

app = typer.Typer(
    name="firstk",
    help="Learn codes you can cut anywhere: the first k coordinates are the best k-dimensional code, for every k.",
    epilog="Start with: firstk demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Exit codes: 0 done, 1 refused with a sentence, 2 wrong usage (typer's own), 130 interrupted.
REFUSED, INTERRUPTED = 1, 130


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"firstk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
) -> None:
    pass


@app.command(epilog="Example: firstk demo --out my-demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the encoder and the page.")] = Path("firstk-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Do the whole job on embedded data, in seconds: fit, judge, cut, save, and write a page to open.

    Fits several objectives on scikit-learn's digits, prints quality against k beside PCA, uncentred SVD, random
    dimensions and plain truncation, and names the smallest k that keeps 99 % of the raw vectors' accuracy.
    """
    from firstk.demo import run

    run(out, progress=not quiet)


def main() -> None:
    """Run the command line; a refusal is one sentence on standard error, never a traceback."""
    try:
        app()
    except FirstkError as error:
        typer.echo(f"firstk: {error}", err=True)
        sys.exit(REFUSED)
    except KeyboardInterrupt:
        typer.echo("firstk: interrupted; nothing was left half-written.", err=True)
        sys.exit(INTERRUPTED)
