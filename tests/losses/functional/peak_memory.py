"""Print, as JSON, how far the resident memory of this process rises during each case of test_memory.py.

It is a program of its own because a process with a past cannot be measured: malloc raises the size from which a block
goes back to the system when it is freed with every large block that is (up to 32 MB), and from then on counts the holes
between the blocks. The same loss took 14 MB in a fresh process and 31 MB at the end of a long test run.
"""

import ctypes
import gc
import json
import sys
from pathlib import Path

import torch

from firstk._base.checks import numba_may_compile
from firstk.losses.functional.contrastive import info_nce
from firstk.losses.functional.cross_entropy import cross_entropy

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
CROSS_ENTROPY = (256, 128, 400), (1000, 64, 400)  # n, d, C
INFO_NCE = 256, 256  # n, d
OMEGAS = {"uniform": "uniform", "four lengths": {8: 1, 16: 1, 32: 1, 64: 1}}


def status(field):
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def peak(work, tries=2):
    """Return the lesser of two tries: what `work` holds it holds every time, pages touched first do not come again."""
    return min(_peak_once(work) for _ in range(tries))


def _peak_once(work):
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR.write_text("5")  # the high-water mark starts again from here
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


def cross_entropy_peak(n, d, C, omega, backend):
    z, weight = torch.randn(n, d, requires_grad=True), torch.randn(C, d, requires_grad=True)
    labels = torch.randint(0, C, (n,))
    cross_entropy(z[:64], weight, labels[:64], omega=omega, backend=backend)  # compile, warm up

    def work():
        z.grad = weight.grad = None  # else a second try would add to gradients that are there
        cross_entropy(z, weight, labels, omega=omega, backend=backend).backward()

    return peak(work)


def sweep_peak(n, d, C):
    """Return what a loss takes that writes the logits of all prefixes down."""
    z, weight = torch.randn(n, d), torch.randn(C, d)
    return peak(lambda: torch.logsumexp((z[:, None, :] * weight).cumsum(dim=2), dim=1), tries=1)


def info_nce_peak(n, d, backend):
    q, p = torch.randn(2, n, d)
    q.requires_grad_()
    info_nce(q[:32], p[:32], backend=backend)

    def work():
        q.grad = None
        info_nce(q, p, backend=backend).backward()

    return peak(work)


def main():
    try:
        CLEAR.write_text("5")
    except OSError:
        json.dump(None, sys.stdout)
        return
    found = {"40 MB": peak(lambda: torch.ones(10_000_000))}
    for backend in ("torch", "compiled")[: 1 + numba_may_compile()]:
        for shape in CROSS_ENTROPY:
            for name, omega in OMEGAS.items():
                found[f"cross_entropy {shape} {name} {backend}"] = cross_entropy_peak(*shape, omega, backend)
        found[f"info_nce {backend}"] = info_nce_peak(*INFO_NCE, backend)
    for shape in CROSS_ENTROPY:
        found[f"sweep {shape}"] = sweep_peak(*shape)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
