"""Progress of long work on standard error: what is done, how far, how long still."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

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
    return sys.stderr.isatty() or "ZMQInteractiveShell" in type(_shell()).__name__


def _shell() -> Any:
    """Return the interactive shell that runs this process; None where there is none."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


@contextmanager
def progress_bar(
    total: int, what: str, unit: str, verbose: Verbose | None = None, done: int = 0
) -> Iterator[Callable[..., None]]:
    """Give a function that is called after each unit of work, or several, with what is to be shown beside the bar.

    Parameters
    ----------
    total : int
        Units of work at most; ending sooner is fine.
    what, unit : str
        What is being done, and what one unit of it is called.
    verbose : bool or "auto", optional
        What `showing` says around here, if not given.
    done : int
        Units that were done before.
    """
    verbose = _SHOWN.get() if verbose is None else verbose
    if not verbose or (verbose == "auto" and not is_looked_at()):
        yield lambda units=1, **beside: None
        return
    from tqdm.auto import tqdm

    delay = LONG if verbose == "auto" else 0.0
    with tqdm(total=total, initial=done, desc=what, unit=unit, delay=delay, leave=False) as bar:

        def step(units: int = 1, **beside: Any) -> None:
            if beside:
                bar.set_postfix(beside, refresh=False)
            bar.update(units)

        yield step
