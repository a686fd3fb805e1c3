"""Warnings of the library as notes on standard error, in the words of the command line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from firstk.exceptions import FirstkWarning


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print warnings of the library as notes, without the line of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FirstkWarning)
        yield
    for text in dict.fromkeys(str(one.message) for one in caught):
        typer.echo(f"firstk: note: {text}", err=True)
