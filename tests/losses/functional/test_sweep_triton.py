"""Triton's sweeps, in its interpreter on the CPU, are those of the torch reference."""

from __future__ import annotations

import pytest
import torch

from firstk.exceptions import IllegalCombinationError
from firstk.losses import FullPrefixCrossEntropy, FullPrefixInfoNCE
from firstk.losses.functional import sweep_torch
from firstk.losses.functional.cosine import bounded, inverse_prefix_norms
from firstk.losses.functional.sweep_torch import Norms

pytestmark = pytest.mark.wings  # triton takes a gigabyte, which the tests of the core do without
N, D, C = 7, 18, 11  # two tiles of rows and two of columns, two blocks of prefixes, none of them full


@pytest.fixture
def kernels(monkeypatch):
    pytest.importorskip("triton", reason="needs the extra 'triton'")
    from firstk.losses.functional import sweep_triton

    monkeypatch.setattr(sweep_triton, "ROWS", 4)
    monkeypatch.setattr(sweep_triton, "COLUMNS", 8)
    return sweep_triton


def problem(dtype, scale=1.0):
    source = torch.Generator().manual_seed(0)
    z, w, b = (scale * torch.randn(*size, generator=source, dtype=torch.float64) for size in ((N, D), (C, D), (C,)))
    a, omega = torch.rand(N, generator=source), torch.rand(D, generator=source)
    a[2] = omega[3] = 0
    y = torch.randint(0, C, (N,), generator=source)
    return tuple(part.to(dtype) for part in (z, w, b)), y, a.to(dtype), omega.to(dtype)


@pytest.mark.parametrize(("dtype", "scale", "bound"), [(torch.float64, 1, 1e-13), (torch.float32, 30, 1e-5)])
def test_cross_entropy(kernels, dtype, scale, bound):
    inputs, y, a, omega = problem(dtype, scale)
    wanted = sweep_torch.sweep(*(part.double() for part in inputs), y, a.double(), omega.double(), True)
    found = kernels.sweep(*inputs, y, a, omega, True)
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == dtype
        assert float((got - want).norm() / want.norm()) < bound
    assert float((kernels.sweep(*inputs, y, a, omega, False)[0] - found[0]).abs().max()) == 0


@pytest.mark.parametrize("masked", [False, True])
def test_cosines(kernels, masked):
    (z, w, _), y, a, omega = problem(torch.float64)
    z[0] = 0  # no cosines
    q, p = bounded(z), bounded(w)
    norms = Norms(inverse_prefix_norms(q), inverse_prefix_norms(p), torch.tensor(20.0, dtype=torch.float64))
    mask = torch.rand(N, C, generator=torch.Generator().manual_seed(1)) < 0.3
    mask[torch.arange(N), y] = False
    args = (q, p, None, y, a, omega, True, norms, mask if masked else None)
    for got, want in zip(kernels.sweep(*args), sweep_torch.sweep(*args), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-12)


def test_losses_take_them_by_name(kernels):
    (z, w, b), y, *_ = problem(torch.float32)
    results = []
    for backend in ("triton", "torch"):
        x = z.clone().requires_grad_()
        loss = FullPrefixCrossEntropy("harmonic", backend=backend)(x, w, y, b)
        loss = loss + FullPrefixInfoNCE("harmonic", backend=backend)(x, w[:N])
        results.append((loss, *torch.autograd.grad(loss, x)))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


def test_without_a_gpu_they_are_refused(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    (z, w, b), y, *_ = problem(torch.float32)
    with pytest.raises(IllegalCombinationError, match="triton and tensors on CUDA; these are on cpu"):
        FullPrefixCrossEntropy(backend="triton")(z, w, y, b)
