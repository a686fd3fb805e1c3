"""A file that is read by ranges, each fetched by a request that may fail and is tried again.

Ranges grow while they follow one another, from a megabyte to 32, and the next one is fetched while the last is used, so
that one pass over a file costs few requests and little waiting. What is kept of them is bounded.
"""

from __future__ import annotations

import io
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Result = TypeVar("Result")

_SMALLEST, _LARGEST, _GROWTH = 1 << 20, 1 << 25, 4
# Bytes of ranges that are kept, for readers that go back and forth between columns.
_KEPT = 1 << 27
# Attempts of a request, and the wait after the first, which doubles.
ATTEMPTS = 5
WAIT = 0.1


class Ranges:
    """Ranges of a file of known size that were fetched, and the one that will be needed next.

    Parameters
    ----------
    size : int
    fetch : callable (start, stop) -> bytes
        Raises OSError where it fails.
    """

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]):
        self.size, self._fetch = size, fetch
        self._lock = threading.Lock()
        self.held: list[tuple[int, bytes]] = []  # the one used last is the last
        self._next: tuple[int, Future[bytes]] | None = None

    def at(self, place: int) -> tuple[int, bytes]:
        """Return a range in which a place lies, with its start."""
        with self._lock:
            for i in range(len(self.held) - 1, -1, -1):
                start, held = self.held[i]
                if start <= place < start + len(held):
                    self.held.append(self.held.pop(i))
                    return self.held[-1]
            before = next((len(held) for start, held in self.held if start + len(held) == place), 0)
            size = min(_LARGEST, _GROWTH * before) if before else _SMALLEST
            found = None
            if before and self._next is not None:
                (start, coming), self._next = self._next, None
                if start == place:
                    found = coming.result()
                else:
                    coming.cancel()
            found = self._whole(place, min(self.size, place + size)) if found is None else found
            self.held.append((place, found))
            while len(self.held) > 1 and sum(len(one) for _, one in self.held) > _KEPT:
                self.held.pop(0)
            if before and (start := place + len(found)) < self.size and self._next is None:
                stop = min(self.size, start + min(_LARGEST, _GROWTH * len(found)))
                self._next = start, _pool().submit(self._whole, start, stop)
            return self.held[-1]

    def _whole(self, start: int, stop: int) -> bytes:
        held = self._fetch(start, stop)
        if len(held) != stop - start:
            raise OSError(f"bytes {start} to {stop} were asked for, and {len(held)} came")
        return held

    def shrink(self) -> None:
        """Forget all but small ranges, such as headers, which are read again with the next pass."""
        with self._lock:
            self.held = [one for one in self.held if len(one[1]) <= _SMALLEST]
            if self._next is not None:
                self._next[1].cancel()
                self._next = None


class RangeFile(io.RawIOBase):
    """A file whose bytes come from ranges, which several files may share."""

    def __init__(self, ranges: Ranges):
        super().__init__()
        self._ranges, self._at = ranges, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ranges.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def size(self) -> int:
        """Return the number of bytes."""
        return self._ranges.size

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the file goes."""
        view, filled = memoryview(buffer).cast("B"), 0
        while filled < len(view) and self._at < self._ranges.size:
            start, held = self._ranges.at(self._at)
            piece = memoryview(held)[self._at - start : self._at - start + len(view) - filled]
            view[filled : filled + len(piece)] = piece
            filled, self._at = filled + len(piece), self._at + len(piece)
        return filled

    def close(self) -> None:
        """Forget large ranges."""
        if not self.closed:
            self._ranges.shrink()
        super().close()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, thread_name_prefix="firstk-ranges")


def with_retries(work: Callable[[], Result], passing: tuple[type[BaseException], ...]) -> Result:
    """Do something that may fail for a moment: again after a wait, which doubles; `passing` are such failures."""
    for attempt in range(ATTEMPTS):
        try:
            return work()
        except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ValueError):
            raise
        except passing:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(WAIT * 2**attempt * (0.5 + random.random()))
    raise AssertionError
