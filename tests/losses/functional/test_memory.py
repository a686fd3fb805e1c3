"""Peak memory, read from the kernel's own high-water mark of a fresh process (peak_memory.py)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .peak_memory import CROSS_ENTROPY, INFO_NCE, OMEGAS, STATUS

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs Linux's /proc")
MARGIN = 4e6  # bytes: pages of code and of the allocator that a first call touches


@pytest.fixture(scope="module")
def peaks():
    """Return the peak of every case, from one process; malloc maps each large block on its own, from first to last."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("peak_memory.py"))],
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if found is None:
        pytest.skip("the high-water mark cannot be reset here")
    return found


def bound(n, d, C):
    return 4 * (4 * n * C + 2 * d * n + d * C) + MARGIN


def test_the_ruler_sees_an_allocation(peaks):
    assert 35e6 < peaks["40 MB"] < 60e6


@pytest.mark.parametrize("shape", CROSS_ENTROPY, ids=str)
@pytest.mark.parametrize("omega", OMEGAS)
def test_cross_entropy_stays_below_the_bound(peaks, shape, omega, backend):
    """4 n C + 2 d n floats beside the inputs, where the sweep's n d C would be nine times that and more.

    The gradient of the head has the size of an input and is given its own d C floats.
    """
    assert peaks[f"cross_entropy {shape} {omega} {backend}"] < bound(*shape)


@pytest.mark.parametrize("shape", CROSS_ENTROPY, ids=str)
def test_the_bound_refuses_all_prefixes_at_once(peaks, shape):
    assert peaks[f"sweep {shape}"] > 4 * bound(*shape)


def test_info_nce_never_holds_all_similarities(peaks, backend):
    """Ten n x n arrays and ten n x d arrays, where n x n x d would be 67 MB."""
    n, d = INFO_NCE
    assert peaks[f"info_nce {backend}"] < 4 * (10 * n * n + 10 * n * d) + MARGIN
