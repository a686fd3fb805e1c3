"""Progress of long work on standard error: how far, how fast, how long still; silent where it is no terminal."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import typer

from firstk.cli._options import in_options
from firstk.exceptions import FirstkWarning


def row_progress(
    total: Callable[[], int], *, quiet: bool, what: str = "encoding"
) -> AbstractContextManager[Callable[..., None]]:
    """Give a function that is told how many rows have just been done.

    `total` is asked only where the bar is shown: some formats must be read to count their rows.
    """
    from firstk._base.progress import progress_bar

    shown = looked_at(quiet)
    return progress_bar(total() if shown else None, what, " rows", shown)


def step_progress(what: str, *, quiet: bool) -> AbstractContextManager[Callable[[str], None]]:
    """Give a function that is told the name of each step."""
    from firstk._base.progress import steps

    return steps(what, looked_at(quiet))


@contextmanager
def counted_progress(what: str, *, quiet: bool) -> Iterator[tuple[Callable[[int], object], Callable[[int], object]]]:
    """Give two functions: one is told the number of rows when it is known, the other how many have just been done."""
    if not looked_at(quiet):
        yield (lambda rows: None), (lambda rows: None)
        return
    from tqdm import tqdm

    with tqdm(total=None, desc=what, unit=" rows", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield bar.reset, bar.update


def give_bars_room() -> None:
    """Let bars show on a terminal that does not say how large it is: tqdm draws nothing in no columns and no rows.

    Some containers and remote shells are such terminals. To be called before tqdm is loaded, which reads these then.
    """
    try:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):  # no terminal, where no bar is drawn
        return
    for name, size, usual in (("TQDM_NCOLS", columns, 80), ("TQDM_NROWS", rows, 24)):
        if size == 0:
            os.environ.setdefault(name, str(usual))


def looked_at(quiet: bool) -> bool:
    """Tell whether progress is wanted, and standard error is a terminal."""
    return not quiet and sys.stderr.isatty()


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print warnings of the library as notes, without the line of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FirstkWarning)
        yield
    for text in dict.fromkeys(str(one.message) for one in caught):
        typer.echo(f"firstk: note: {in_options(text)}", err=True)
