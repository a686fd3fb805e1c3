"""Memory: what is free, to raise an error before an array that does not fit is allocated, and large arrays given back.

malloc keeps freed blocks for later, in an arena a thread. glibc lets that reach tens of megabytes for each thread of a
stream, and which blocks fit into which gap is a matter of timing: resident memory then creeps up over a long stream,
although nothing of it is held. Pages of their own are returned to the system as soon as an array is deleted.
"""

from __future__ import annotations

import math
import mmap
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from firstk.exceptions import InvalidInputError

# Below this malloc wastes little, and a map of its own would cost more than it gives back.
_LARGE = 1 << 20
# Pages that are the process's own; Windows has no other kind.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Return the bytes that can still be allocated, by the machine and by the container; None where unknown."""
    known = [free for free in (_free_in_machine(), _free_in_container()) if free is not None]
    return min(known, default=None)


def check_fits(needed: int, what: str, way_out: str) -> None:
    """Raise InvalidInputError if `needed` bytes are more than are free."""
    free = available_bytes()
    if free is not None and needed > free:
        need, have = needed / 2**30, free / 2**30
        raise InvalidInputError(f"{what} takes about {need:.1f} GiB of memory, and {have:.1f} GiB are free: {way_out}")


def _free_in_machine() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _free_in_container() -> int | None:
    try:
        most, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return max(0, int(most) - int(used))  # "max", no limit, is no number
    except (OSError, ValueError):
        return None


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Return an array of any content, like ``np.empty``, but of pages of its own where it is large."""
    count, dtype = math.prod(shape), np.dtype(dtype)
    if count * dtype.itemsize < _LARGE:
        return np.empty(shape, dtype)
    pages = mmap.mmap(-1, count * dtype.itemsize, **_PRIVATE)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # as numpy asks for its own large arrays: fewer faults
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype, count).reshape(shape)
