"""Memory that is free on this machine, to raise an error before an array that does not fit is allocated."""

from __future__ import annotations

from pathlib import Path

from firstk.exceptions import InvalidInputError

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
