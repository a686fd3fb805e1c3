"""How the C library keeps freed memory: shared by all threads, not apart for each."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

# Of mallopt (malloc.h of glibc), and how many arenas keep threads that allocate little out of each other's way.
M_ARENA_MAX, ARENAS = -8, 2


def share_freed_memory() -> bool:
    """Let threads of this process use what others have freed, and tell whether the C library was told so.

    glibc gives each new thread an arena of its own, up to eight for each core, and what is freed in one stays there: a
    fit that works in some pools of threads, one after the other, then takes a third more memory. A number that the user
    has set (MALLOC_ARENA_MAX) stays. For programs; a library leaves this to its caller.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return False
    import ctypes  # takes a hundredth of a second, which help need not wait for

    with suppress(OSError, AttributeError):  # another C library, such as musl, has one heap anyway
        return bool(ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS))
    return False
