"""Threads and signals: prefetch of items, a map over several cores that keeps the order, and work that can be stopped.

Threads of a program may share the memory that they free.

Order and pieces are those of the stream, whatever the number of threads: results are taken in the order in which their
pieces came, so that sums of them have the same bytes on one core and on many.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")
_THREAD = threading.local()
# Of mallopt (malloc.h of glibc), and how many arenas keep threads that allocate little out of each other's way.
_M_ARENA_MAX, _ARENAS = -8, 2


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prefetch(items: Iterator[Item], count: int = 2) -> Generator[Item, None, None]:
    """Yield items while the next `count` are made by another thread."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        coming = deque(pool.submit(next, items, end) for _ in range(count))
        try:
            while (item := coming.popleft().result()) is not end:
                coming.append(pool.submit(next, items, end))
                yield item
        finally:
            for future in coming:
                future.cancel()


def in_worker() -> bool:
    """Tell whether this thread is a worker of `ordered_map`, which has one of the cores for itself."""
    return bool(getattr(_THREAD, "works", False))


def _begin_worker() -> None:
    _THREAD.works = True


class _BlasLimit:
    """How many ask for one thread in BLAS, and what gives it back its own number."""

    lock = threading.Lock()
    asked = 0
    limits: threadpool_limits | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, for the whole process; the last of those who ask for it gives back what the first found.

    `threadpool_limits` gives back what it found itself, which is one thread where another limit was there before and
    ends later.
    """
    with _BlasLimit.lock:
        if _BlasLimit.asked == 0:
            _BlasLimit.limits = threadpool_limits(1, "blas")
        _BlasLimit.asked += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.asked -= 1
            if _BlasLimit.asked == 0 and _BlasLimit.limits is not None:
                _BlasLimit.limits.restore_original_limits()
                _BlasLimit.limits = None


class Alongside:
    """A thread for jobs beside the other work, one after the other.

    A call of `ordered_map` that begins while it is busy leaves one core to it: more threads than cores would take no
    less time, and more memory.

    Examples
    --------
    >>> with Alongside() as thread:
    ...     total = thread.submit(sum, [1, 2, 3])
    >>> total.result()
    6
    """

    _lock = threading.Lock()
    _unfinished = 0  # jobs of all such threads

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, initializer=_begin_worker)

    def submit(self, work: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Begin a job, after those that were given before it."""
        job = self._pool.submit(work, *arguments)
        self._count(1)
        job.add_done_callback(lambda _: self._count(-1))
        return job

    @classmethod
    def _count(cls, more: int) -> None:
        with cls._lock:
            cls._unfinished += more

    @classmethod
    def busy(cls) -> bool:
        """Tell whether a job is not finished."""
        return cls._unfinished > 0

    def __enter__(self) -> Alongside:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)


def ordered_map(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int, *, ahead: int | None = None
) -> Generator[Result, None, None]:
    """Yield ``work(item)`` in the order of the items, of which `workers` are worked on at a time.

    The next items are read meanwhile. BLAS keeps to one thread in each worker: that is quicker than all its threads on
    one item after another, because what is no matrix product is spread over the cores too. A worker that calls this
    itself does so one item after another: the cores are taken. One of them is, if a job of `Alongside` is running.

    Parameters
    ----------
    work : callable (item) -> result
    items : iterable
    workers : int
    ahead : int, optional
        How many results may wait for that of an earlier item: as many as there are workers if not given. More keep
        workers busy where items differ in size.
    """
    if in_worker():
        yield from map(work, items)
        return
    ahead = workers if ahead is None else ahead
    workers = max(1, workers - 1) if Alongside.busy() else workers
    waiting: deque[Future[Result]] = deque()
    with (
        one_blas_thread(),
        ThreadPoolExecutor(workers, initializer=_begin_worker) as pool,
        closing(prefetch(iter(items))) as coming,
    ):
        try:
            for item in coming:
                waiting.append(pool.submit(work, item))
                del item  # the worker alone holds it
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def share_freed_memory() -> bool:
    """Let threads of this process use what others have freed, and tell whether the C library was told so.

    glibc gives each new thread an arena of its own, up to eight for each core, and what is freed in one stays there: a
    fit that works in some pools of threads, one after the other, then takes a third more memory. A number that the user
    has set (MALLOC_ARENA_MAX) stays. For programs; a library leaves this to its caller.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return False
    import ctypes

    with suppress(OSError, AttributeError):  # another C library, such as musl, has one heap anyway
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS))
    return False


@contextmanager
def interruptible(*signals: signal.Signals) -> Iterator[threading.Event]:
    """Turn the first of these signals (SIGINT, if none is named) into a flag; a second one does what it always did.

    Only the main thread hears signals; elsewhere the flag stays down.
    """
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = {each: signal.getsignal(each) for each in signals or (signal.SIGINT,)}

    def give_back() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    def note(*_: object) -> None:
        flag.set()
        give_back()

    for each in before:
        signal.signal(each, note)
    try:
        yield flag
    finally:
        give_back()
