"""Progress of long work on standard error: how far, how fast, how long still; silent where it is no terminal."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from firstk.cli._options import in_options
from firstk.exceptions import FirstkWarning


@contextmanager
def row_progress(
    total: Callable[[], int], *, quiet: bool, what: str = "encoding", row_bytes: int = 0
) -> Iterator[Callable[[int], object]]:
    """Give a function that is told how many rows have just been done; with `row_bytes`, bytes a second are shown too.

    `total` is asked only where the bar is shown: some formats must be read to count their rows.
    """
    if not looked_at(quiet):
        yield lambda rows: None
        return
    from tqdm import tqdm

    with tqdm(total=total(), desc=what, unit=" rows", unit_scale=True, leave=False, file=sys.stderr) as bar:

        def done(rows: int) -> None:
            bar.update(rows)
            if bar.total is not None and bar.n >= bar.total:
                bar.refresh()  # what comes next may take long, and a bar short of its end looks stuck
            rate = bar.format_dict["rate"]
            if row_bytes and rate:
                bar.set_postfix_str(f"{rate * row_bytes / 1e6:.0f} MB/s", refresh=False)

        yield done


@contextmanager
def counted_progress(what: str, *, quiet: bool) -> Iterator[tuple[Callable[[int], object], Callable[[int], object]]]:
    """Give two functions: one is told the number of rows when it is known, the other how many have just been done."""
    if not looked_at(quiet):
        yield (lambda rows: None), (lambda rows: None)
        return
    from tqdm import tqdm

    with tqdm(total=None, desc=what, unit=" rows", unit_scale=True, leave=False, file=sys.stderr) as bar:
        yield bar.reset, bar.update


@contextmanager
def step_progress(total: Callable[[], int] | None, *, quiet: bool, what: str = "") -> Iterator[Callable[[str], None]]:
    """Give a function that is told the name of each step; `total` is None where it is not known.

    It is asked only where the bar is shown.
    """
    if not looked_at(quiet):
        yield lambda name: None
        return
    from tqdm import tqdm

    from firstk._base.progress import showing

    with (
        tqdm(total=None if total is None else total(), desc=what, unit=" steps", leave=False, file=sys.stderr) as bar,
        showing("auto"),
    ):
        begun = False

        def begin(name: str) -> None:
            nonlocal begun
            bar.update(int(begun))
            bar.set_postfix_str(name)
            begun = True

        yield begin


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
