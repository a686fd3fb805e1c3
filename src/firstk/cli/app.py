"""The application: its commands in the order of ``--help``, its exit codes, and how an error is shown.

A command imports what it needs when it runs, which takes seconds. A name that leads nowhere is told before that.
Commands of wings and of other packages are entry points of the group "firstk.commands": a function, as typer takes it,
with an example as the second paragraph of its docstring.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from firstk import __version__
from firstk.cli._options import file_and_column, in_options, know_options
from firstk.cli._progress import give_bars_room
from firstk.cli.check import NO_ANSWER, check
from firstk.cli.curve import curve
from firstk.cli.demo import demo
from firstk.cli.diagnose import diagnose
from firstk.cli.export import export
from firstk.cli.fit import fit
from firstk.cli.info import info
from firstk.cli.report import report
from firstk.cli.sample import sample
from firstk.cli.transform import keeps_raw_vectors, transform
from firstk.data.remote import check_local, check_there, is_there
from firstk.exceptions import FirstkError, InvalidInputError


def _check_model(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        from firstk.encoder.storage.folder import read_manifest

        read_manifest(folder)


def _check_vectors(spec: str) -> None:
    check_there(file_and_column(spec)[0])


def _check_model_or_raw(folder: Path) -> None:
    if not keeps_raw_vectors(folder):
        _check_model(folder)


def _check_file_of(spec: str) -> None:
    """Check the file of FILE[:COLUMNS]; columns alone, with a comma between them, are of another file."""
    if not is_there(spec):
        file = spec.rpartition(":")[0] or ("" if "," in spec else spec)
        if file:
            check_there(file)


def _check_share_or_file(spec: str) -> None:
    try:
        float(spec)
    except ValueError:
        check_there(spec)


def _check_label(spec: str) -> None:
    """Check the file of FILE[:COLUMN]; what does not end as a file of vectors does is a column."""
    file = next((name for name in (spec, spec.rpartition(":")[0]) if Path(name).suffix.lower() in _ENDINGS), None)
    if file is not None and not is_there(spec):
        check_there(file)


_ENDINGS = (
    ".npy", ".npz", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".gz", ".parquet", ".pq", ".arrow", ".feather", ".ipc",
    ".safetensors",
)  # fmt: skip

# Parameters that name what must be there before a command begins.
_THERE: dict[str, Callable[[Any], None]] = {
    "model": _check_model,
    "model_or_raw": _check_model_or_raw,
    "source": _check_vectors,
    "label": _check_label,
    "queries": _check_file_of,
    "reference": _check_file_of,
    "against": check_there,
    "old": _check_vectors,
    "new": _check_vectors,
    "queries_old": _check_file_of,
    "queries_new": check_there,
    "pairs": _check_file_of,
    "relevance": _check_file_of,
    "held_out": _check_share_or_file,
}


# Parameters of paths that may be addresses of object storage; those that are no `Path` may be, too.
_ADDRESSES = {("transform", "out"), ("sample", "out"), ("info", "model_or_codes")}


# A hyphen at which help texts are not broken: names of options stay in one piece.
_JOINED = "\u2011"


class _PlainHelp:
    """Show flags without a type, which newer versions of typer print, and break no line at a hyphen."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as help shows them."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for one in params:
            if getattr(one, "is_flag", False) and one.metavar is None:
                one.metavar = ""
            if getattr(one, "help", None):
                one.help = one.help.replace("-", _JOINED)
        return params

    def get_help(self, ctx: Any) -> str:
        """Return the help text, wrapped."""
        return str(super().get_help(ctx)).replace(_JOINED, "-")  # type: ignore[misc]


class _Command(_PlainHelp, TyperCommand):
    """A command of firstk."""

    def invoke(self, ctx: Any) -> Any:
        """Look for the files that the command is given, and run it."""
        know_options(self.params)
        try:
            for name, value in ctx.params.items():
                if isinstance(value, Path) and (self.name, name) not in _ADDRESSES:
                    check_local(value)
                if value is not None and name in _THERE:
                    _THERE[name](value)
            from firstk._base.concurrency import share_freed_memory

            share_freed_memory()
            return super().invoke(ctx)
        except FirstkError as error:
            error.exit_code = _FAILURES.get(self.name or "", FAILED)
            error.args = (in_options(str(error)),)
            raise


class _Group(_PlainHelp, TyperGroup):
    """All commands: those of `COMMANDS`, and then the entry points, which are imported when they are named."""

    @cached_property
    def _entry_points(self) -> dict[str, Any]:
        from importlib.metadata import entry_points

        return {one.name: one for one in sorted(entry_points(group=GROUP)) if one.name not in self.commands}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*self.commands, *self._entry_points]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, loaded if it is an entry point; None if there is none."""
        if cmd_name in self.commands or cmd_name not in self._entry_points:
            return super().get_command(ctx, cmd_name)
        alone = typer.Typer(**_PLAIN)
        try:
            _register(alone, self._entry_points[cmd_name].load())
        except (ImportError, AttributeError) as error:
            raise InvalidInputError(
                f"'firstk {cmd_name}' is registered as {self._entry_points[cmd_name].value}, which does not load: "
                f"{error}. Install the package that has it again; for firstk from its sources, pip install -e ."
            ) from None
        return typer.main.get_command(alone)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of a command line; say so where the installation knows no entry points."""
        if args[0] not in self.commands and not self._entry_points:
            raise InvalidInputError(
                f"There is no command '{args[0]}' among {', '.join(self.commands)}, and the commands of firstk's wings "
                "(move, align, reproduce) are not registered: the metadata of this installation is missing or older "
                "than its code. Install it again: pip install firstk, or pip install -e . in its sources."
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the first paragraph of its help, whole."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: one for name, one in found.items() if one is not None and not one.hidden}
        rows = [(name, (one.help or "").partition("\n\n")[0]) for name, one in shown.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _register(app: typer.Typer, command: Callable[..., None], example: str | None = None) -> None:
    """Add a command, whose help is its docstring with an example, or two, after the first paragraph."""
    first, *rest = _unwrapped(command.__doc__ or "")
    examples = [] if example is None else [f"Example: {example}"]
    if command.__name__ in SEARCHING:
        examples.append(f"For search: {SEARCHING[command.__name__]}")
    app.command(cls=_Command, help="\n\n".join((first, *examples, *rest)).replace("-", _JOINED))(command)


def _unwrapped(text: str) -> list[str]:
    """Return the paragraphs of a text, each on one line: the terminal has a width of its own."""
    return [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]


HELP = """Make embedding vectors shorter: learn a code whose first k numbers are the best k to keep, for every k.

Try it on built-in data: firstk demo

On your own vectors (npy, npz, parquet, arrow, csv, jsonl or safetensors), in this order:

\b
  firstk diagnose vectors.parquet         which objective to fit
  firstk fit vectors.parquet -o model/    learn the code; what to store
  firstk transform model/ vectors.parquet -k 64 -o short.parquet
  firstk report model/ -o report.html     one page to forward

For search, with judgements (lines of query id, document id, grade):

\b
  firstk fit docs.parquet --queries queries.parquet --relevance qrels.tsv
         --objective similarity -o model/
  firstk curve model/ docs.parquet --queries queries.parquet
         --relevance qrels.tsv --bytes-per-vector 64

Into a vector store, or from one to another (pgvector, Qdrant, ...):

\b
  firstk move vectors.parquet qdrant:folder#documents --model model/ -k 64

When the embedding model changes: stay, translate or re-embed?

\b
  firstk align old.parquet new.parquet -o upgrade/
"""

# Boxes and colours take longer to import than all the rest of a help text.
_PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
app = typer.Typer(
    name="firstk",
    cls=_Group,
    help=HELP,
    epilog="firstk COMMAND --help shows an example of each command.",
    no_args_is_help=True,
    context_settings={"max_content_width": 110},
    **_PLAIN,
)
# The group of entry points that are commands.
GROUP = "firstk.commands"

# Exit codes: 0 done, 1 an error with its message, 2 wrong usage (typer's own), 130 interrupted, 143 terminated.
# A command whose answer is its exit code has 1 for that: its errors are told apart from the answer, as those of diff.
FAILED, INTERRUPTED = 1, 130
_FAILURES = {"check": NO_ANSWER}

# Each command and the example with which its --help begins.
COMMANDS: tuple[tuple[Callable[..., None], str], ...] = (
    (demo, "firstk demo --out my-demo"),
    (sample, "firstk sample digits -o digits.npz"),
    (diagnose, "firstk diagnose digits.npz --label label"),
    (fit, "firstk fit digits.npz --objective fisher --label label -o model/"),
    (curve, "firstk curve model/ digits.npz --label label --keep 0.99 --precision int8,int4 --report curve.svg"),
    (transform, "firstk transform model/ digits.npz -k 8 -o short.npz"),
    (check, "firstk check model/ digits.npz -k 8"),
    (report, "firstk report model/ -o report.html --rows 10M"),
    (info, "firstk info model/"),
    (export, "firstk export model/ --to onnx -o model.onnx"),
)
# The words that name a store, its queries and their judgements; and commands that take them, as their help shows it.
_JUDGED = "docs.parquet --queries queries.parquet --relevance qrels.tsv"
SEARCHING = {
    "diagnose": f"firstk diagnose {_JUDGED}",
    "fit": f"firstk fit {_JUDGED} --objective similarity -o model/",
    "curve": f"firstk curve model/ {_JUDGED} --bytes-per-vector 64",
    "report": "firstk report model/ -o report.html --bytes-per-vector 64",
    "align": "firstk align old.parquet new.parquet --queries-old q_old.parquet --queries-new q_new.parquet --relevance "
    "qrels.tsv -o upgrade/",
}
for _command, _example in COMMANDS:
    _register(app, _command, _example)


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
        typer.echo(f"firstk: {error}", err=True)
        sys.exit(error.exit_code)
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
