"""The application: its commands in the order of ``--help``, its exit codes, and how a refusal reads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from firstk import __version__
from firstk._checks import FirstkError
from firstk.cli.demo import demo
from firstk.cli.export import export

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

# Each command and the example that ends its --help.
COMMANDS: tuple[tuple[Callable[..., Any], str], ...] = (
    (demo, "firstk demo --out my-demo"),
    (export, "firstk export model/ --to onnx -o model.onnx"),
)
for _command, _example in COMMANDS:
    app.command(epilog=f"Example: {_example}")(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"firstk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
) -> None:
    pass


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
