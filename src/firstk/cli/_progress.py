"""Progress of long work on standard error: how far, how fast, how long still; silent where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def row_progress(
    total: Callable[[], int], *, quiet: bool, what: str = "encoding", row_bytes: int = 0
) -> Iterator[Callable[[int], object]]:
    """Give a function that is told how many rows have just been done; with `row_bytes`, bytes a second are shown too.

    `total` is asked only where the bar is shown: some formats must be read to count their rows.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda rows: None
        return
    from tqdm import tqdm

    with tqdm(total=total(), desc=what, unit=" rows", unit_scale=True, leave=False, file=sys.stderr) as bar:

        def done(rows: int) -> None:
            bar.update(rows)
            rate = bar.format_dict["rate"]
            if row_bytes and rate:
                bar.set_postfix_str(f"{rate * row_bytes / 1e6:.0f} MB/s", refresh=False)

        yield done
