"""Memory for large intermediate arrays, which is returned to the system as soon as they are deleted.

malloc keeps freed blocks for later, in an arena a thread. glibc lets that reach tens of megabytes for each thread of a
stream, and which blocks fit into which gap is a matter of timing: resident memory then creeps up over a long stream,
although nothing of it is held.
"""

from __future__ import annotations

import math
import mmap
from contextlib import suppress

import numpy as np
from numpy.typing import DTypeLike

# Below this malloc wastes little, and a map of its own would cost more than it gives back.
_LARGE = 1 << 20


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Return an array of any content, like ``np.empty``, but of pages of its own where it is large."""
    count, dtype = math.prod(shape), np.dtype(dtype)
    if count * dtype.itemsize < _LARGE:
        return np.empty(shape, dtype)
    pages = mmap.mmap(-1, count * dtype.itemsize, **_private())
    if hasattr(mmap, "MADV_HUGEPAGE"):  # as numpy asks for its own large arrays: fewer faults
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype, count).reshape(shape)


def _private() -> dict[str, int]:
    """Return the flags that make pages the process's own; Windows has no other kind."""
    names = ("MAP_PRIVATE", "MAP_ANONYMOUS")
    return {"flags": sum(getattr(mmap, name) for name in names)} if hasattr(mmap, names[1]) else {}
