"""Arenas of the C library."""

import os
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import sys, threading
from firstk._base.concurrency import share_freed_memory
if sys.argv[1] == "shared":
    assert share_freed_memory()
def fill():
    blocks = [bytearray(100_000) for _ in range(100)]  # less than what is mapped on its own
    barrier.wait()
barrier = threading.Barrier(8)
threads = [threading.Thread(target=fill) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
# Each arena begins at a multiple of 64 MiB, and takes as many addresses.
starts = [int(line.split("-")[0], 16) for line in open("/proc/self/maps")]
print(sum(start % (64 << 20) == 0 for start in starts))
"""


def arenas(how: str) -> int:
    settings = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
    env = {name: value for name, value in os.environ.items() if name not in settings}
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True, env=env)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_threads_share_arenas():
    assert arenas("shared") < 3 < 7 <= arenas("apart")
