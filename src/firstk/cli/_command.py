"""What all commands have in common: help that begins with an example, and files that are looked for first.

A command imports what it needs when it runs, which takes seconds. A name that leads nowhere is told before that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from firstk._base.input_file import check_there

# What a reader of help needs not be told of a flag is that it has a type; newer versions of typer say so.
_NO_TYPE = ""


def _check_model(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        from firstk.encoder.storage.folder import read_manifest

        read_manifest(folder)


# Parameters that name what must be there before a command begins.
_THERE: dict[str, Callable[[Any], None]] = {
    "model": _check_model,
    "source": check_there,
    "queries": check_there,
    "documents": check_there,
    "reference": check_there,
}


class _PlainFlags:
    """Show flags without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as help shows them."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for one in params:
            if getattr(one, "is_flag", False) and one.metavar is None:
                one.metavar = _NO_TYPE
        return params


class Command(_PlainFlags, TyperCommand):
    """A command of firstk."""

    def invoke(self, ctx: Any) -> Any:
        """Look for the files that the command is given, and run it."""
        for name, value in ctx.params.items():
            if value is not None and name in _THERE:
                _THERE[name](value)
        return super().invoke(ctx)


class Group(_PlainFlags, TyperGroup):
    """All commands."""


def register(app: typer.Typer, command: Callable[..., None], example: str) -> None:
    """Add a command, whose help is its docstring with an example after the first paragraph."""
    first, *rest = unwrapped(command.__doc__ or "")
    app.command(cls=Command, help="\n\n".join((first, f"Example: {example}", *rest)))(command)


def unwrapped(text: str) -> list[str]:
    """Return the paragraphs of a text, each on one line: the terminal has a width of its own."""
    return [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]
