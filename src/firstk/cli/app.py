"""The application: its commands in the order of ``--help``, its exit codes, and how an error is shown."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any

import typer

from firstk import __version__
from firstk.cli._command import Group, register
from firstk.cli._progress import give_bars_room
from firstk.cli.curve import curve
from firstk.cli.demo import demo
from firstk.cli.diagnose import diagnose
from firstk.cli.export import export
from firstk.cli.fit import fit
from firstk.cli.info import info
from firstk.cli.report import report
from firstk.cli.reproduce import reproduce
from firstk.cli.sample import sample
from firstk.cli.transform import transform
from firstk.exceptions import FirstkError

HELP = """Make embedding vectors shorter: learn a code whose first k numbers are the best k to keep, for every k.

Try it on built-in data: firstk demo

On your own vectors (npy, npz, parquet, arrow, csv, jsonl or safetensors), in this order:

  firstk diagnose vectors.parquet         see what to expect
  firstk fit vectors.parquet -o model/    learn the code
  firstk curve model/ other.parquet       choose how short
  firstk transform model/ vectors.parquet -k 64 -o short.parquet
"""

app = typer.Typer(
    name="firstk",
    cls=Group,
    help=HELP,
    epilog="firstk COMMAND --help shows an example of each command.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Exit codes: 0 done, 1 an error with its message, 2 wrong usage (typer's own), 130 interrupted, 143 terminated.
FAILED, INTERRUPTED = 1, 130

# Each command and the example with which its --help begins.
COMMANDS: tuple[tuple[Callable[..., None], str], ...] = (
    (demo, "firstk demo --out my-demo"),
    (sample, "firstk sample digits -o digits.npz"),
    (diagnose, "firstk diagnose digits.npz --label label --image 8x8"),
    (fit, "firstk fit digits.npz --objective fisher --label label -o model/"),
    (curve, "firstk curve model/ digits.npz --label label --keep 0.99 --precision all --plot curve.svg"),
    (transform, "firstk transform model/ digits.npz -k 8 -o short.npz"),
    (report, "firstk report model/ -o report.html --rows 10M"),
    (info, "firstk info model/"),
    (reproduce, "firstk reproduce bao2020/fig1 --tier smoke"),
    (export, "firstk export model/ --to onnx -o model.onnx"),
)
for _command, _example in COMMANDS:
    register(app, _command, _example)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"firstk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def _terminated(number: int, _: object) -> None:
    """Leave as Ctrl-C does: what was begun is cleaned up on the way."""
    raise SystemExit(128 + number)


def _said_again(dropped: Any) -> None:
    """Send a signal once more whose exception was raised in a destructor or a weak reference: Python drops it there."""
    number = {SystemExit: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}.get(dropped.exc_type)
    if number is None:
        sys.__unraisablehook__(dropped)
    else:
        # A moment later: by then the destructor is left, and the next exception has somewhere to go.
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()


def main() -> None:
    """Run the command line; an error is one message on standard error, never a traceback."""
    signal.signal(signal.SIGTERM, _terminated)
    sys.unraisablehook = _said_again
    give_bars_room()
    try:
        app()
    except FirstkError as error:
        typer.echo(f"firstk: {error.at_command_line}", err=True)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        _say_interrupted()
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        # typer keeps Ctrl-C inside a command for itself and leaves with this code, without a word.
        if end.code == INTERRUPTED:
            _say_interrupted()
        raise


def _say_interrupted() -> None:
    typer.echo("firstk: interrupted; nothing was left half-written.", err=True)
