"""Peak memory, read from the kernel's own high-water mark of the process."""

import ctypes
import gc
from pathlib import Path

import pytest
import torch

from firstk.kernels.contrastive import info_nce
from firstk.kernels.cross_entropy import cross_entropy

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="needs Linux's /proc")
MARGIN = 4e6  # bytes: pages of code and of the allocator that a first call touches


def status(field):
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def peak(work, tries=3):
    """Return how far above its start the process's resident memory rises during `work`; the least of some tries.

    What `work` holds it holds every time. What else happens to be counted comes and goes: pages of code touched for
    the first time, arenas that malloc opens for a new thread, memory of earlier tests that is still being freed.
    """
    return min(_peak_once(work) for _ in range(tries))


def _peak_once(work):
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # else freed blocks of earlier tests would serve unseen
    try:
        CLEAR.write_text("5")
    except OSError:
        pytest.skip("the high-water mark cannot be reset here")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


def test_the_ruler_sees_an_allocation():
    assert 35e6 < peak(lambda: torch.ones(10_000_000)) < 60e6


@pytest.mark.parametrize(("n", "d", "C"), [(1024, 256, 1000), (2000, 64, 800)])
@pytest.mark.parametrize("omega", ["uniform", {8: 1, 16: 1, 32: 1, 64: 1}])
def test_cross_entropy_stays_below_the_bound(n, d, C, omega, backend):
    """4 n C + 2 d n floats beside the inputs, where the sweep's n d C would be sixty times that.

    The gradient of the head has the size of an input and is given its own d C floats.
    """
    z, weight = torch.randn(n, d, requires_grad=True), torch.randn(C, d, requires_grad=True)
    labels = torch.randint(0, C, (n,))
    cross_entropy(z[:64], weight, labels[:64], omega=omega, backend=backend)  # compile, warm up

    def work():
        z.grad = weight.grad = None  # else a second try would add to gradients that are there
        cross_entropy(z, weight, labels, omega=omega, backend=backend).backward()

    used = peak(work)
    assert used < 4 * (4 * n * C + 2 * d * n + d * C) + MARGIN


def test_info_nce_never_holds_all_similarities(backend):
    """Ten n x n arrays and ten n x d arrays, where n x n x d would be 537 MB."""
    n, d = 512, 512
    q, p = torch.randn(2, n, d)
    q.requires_grad_()
    info_nce(q[:32], p[:32], backend=backend)

    def work():
        q.grad = None
        info_nce(q, p, backend=backend).backward()

    used = peak(work)
    assert used < 4 * (10 * n * n + 10 * n * d) + MARGIN
