"""Progress of long work on standard error: what is done, how far, how long still."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

Part = TypeVar("Part")
# True: always; "auto": where somebody looks, and only what takes long; False: never.
Verbose = bool | Literal["auto"]
# Seconds after which work that is not done is long.
LONG = 2.0
# What work that takes no `verbose` of its own goes by. Silent unless somebody asked: threads of a pool begin with it.
_SHOWN: ContextVar[Verbose] = ContextVar("verbose", default=False)


@contextmanager
def showing(verbose: Verbose) -> Iterator[None]:
    """Let work within the block, in this thread, show its progress where `verbose` says so."""
    before = _SHOWN.set(verbose)
    try:
        yield
    finally:
        _SHOWN.reset(before)


def is_looked_at() -> bool:
    """Tell whether standard error is a terminal, or the output of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return sys.stderr.isatty() or "ZMQInteractiveShell" in type(shell).__name__


@contextmanager
def progress_bar(
    total: int | None, what: str, unit: str, verbose: Verbose | None = None, done: int = 0
) -> Iterator[Callable[..., None]]:
    """Give a function that is called after each unit of work, or several, with what is to be shown beside the bar.

    Parameters
    ----------
    total : int or None
        Units of work at most; ending sooner is fine. None where it is not known.
    what, unit : str
        What is being done, and what one unit of it is called.
    verbose : bool or "auto", optional
        What `showing` says around here, if not given; a part of other work is shown only where it is long itself.
    done : int
        Units that were done before.
    """
    delay = 0.0 if verbose is True else LONG
    verbose = _SHOWN.get() if verbose is None else verbose
    if not verbose or (verbose == "auto" and not is_looked_at()):
        yield lambda units=1, **beside: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, initial=done, desc=what, unit=unit, delay=delay, leave=False) as bar:

        def step(units: int = 1, **beside: Any) -> None:
            if beside:
                bar.set_postfix(beside, refresh=False)
            bar.update(units)
            if not units and bar.format_dict["elapsed"] >= delay:
                bar.refresh()  # what begins now may take long

        yield step


def tracked(
    parts: Iterable[Part], total: int, what: str, unit: str, units: Callable[[Part], int] = lambda part: 1
) -> Iterator[Part]:
    """Give on parts of some work, and show after each how much of it is done, where `showing` says so."""
    with progress_bar(total, what, unit) as done:
        for part in parts:
            yield part
            done(units(part))


@contextmanager
def steps(what: str, verbose: Verbose, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Give a function that is told the name of each step when it begins; `total` is None where it is not known.

    What a step does shows its own progress below, where it is long.
    """
    shown = bool(verbose) and (verbose is True or is_looked_at())  # from the first step on: it may be the long one
    with progress_bar(total, what, " steps", shown) as done, showing("auto" if shown else False):
        begun = False

        def begin(name: str) -> None:
            nonlocal begun
            done(int(begun))
            done(0, step=name)
            begun = True

        yield begin
