"""Separate heads for short prefixes and a shared one beyond, in one function: against a loop, values and gradients."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from firstk._base.checks import numba_may_compile
from firstk._base.prefix_weights import resolve_omega
from firstk.losses.functional import own_heads as module
from firstk.losses.functional import stacked_heads as stacked
from firstk.losses.functional.own_heads import cross_entropy_adapted_heads, cross_entropy_own_heads


@pytest.fixture(params=["compiled", "torch"])
def path(request, monkeypatch):
    if request.param == "compiled" and not numba_may_compile():
        pytest.skip("numba is needed")
    monkeypatch.setattr(module, "path_of", lambda *_: request.param)
    monkeypatch.setattr(stacked, "use_compiled", lambda *_: request.param == "compiled")


def problem(n, d, C, K, dtype, scale=1.0):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return (scale * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).requires_grad_()

    tensors = normal(n, d), normal(C, d), normal(C), normal(K, C, K), normal(K, C)
    omega = torch.rand(d, generator=generator, dtype=torch.float64).to(dtype)
    return tensors, torch.randint(C, (n,), generator=generator), omega


def loop(z, weight, bias, own_weight, own_offset, labels, omega):
    total = 0.0
    for k in range(1, z.shape[1] + 1):
        own = k <= len(own_weight)
        head, offset = (own_weight[k - 1, :, :k], own_offset[k - 1]) if own else (weight[:, :k], bias)
        total = total + omega[k - 1] * F.cross_entropy(F.linear(z[:, :k], head, offset), labels)
    return total


def check(tensors, labels, omega, tolerance):
    wide = tuple(part.detach().double().requires_grad_() for part in tensors)
    weights = resolve_omega(omega.numpy(), len(omega))
    found = cross_entropy_own_heads(*tensors, labels, weights)
    wanted = loop(*wide, labels, torch.tensor(weights.omega))
    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=0)
    gradients = torch.autograd.grad(3 * found, tensors), torch.autograd.grad(3 * wanted, wide)
    for mine, theirs in zip(*gradients, strict=True):
        assert mine.shape == theirs.shape
        assert (mine.double() - theirs).norm() <= tolerance * theirs.norm()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 3e-6), (torch.float64, 1e-13)])
@pytest.mark.parametrize(
    ("n", "d", "C", "K"), [(9, 7, 5, 4), (1, 2, 3, 1), (4, 40, 17, 16), (6, 40, 33, 20), (5, 70, 16, 3)]
)
@pytest.mark.usefixtures("path")
def test_against_a_loop(n, d, C, K, dtype, tolerance):
    check(*problem(n, d, C, K, dtype), tolerance)


@pytest.mark.parametrize("scale", [0.1, 5.0])
@pytest.mark.usefixtures("path")
def test_small_and_large_steps_between_prefixes(scale):
    check(*problem(7, 48, 9, 16, torch.float32, scale), 1e-5)


@pytest.mark.usefixtures("path")
def test_prefixes_without_weight():
    """Whole blocks without weight before and between others, and a list so short that it is computed in segments."""
    tensors, labels, omega = problem(6, 80, 9, 16, torch.float32)
    omega[:20] = 0
    omega[32:64] = 0
    check(tensors, labels, omega, 3e-6)
    listed = torch.zeros(80)
    listed[[3, 7, 31, 79]] = torch.tensor([0.4, 0.3, 0.2, 0.1])
    check(tensors, labels, listed, 3e-6)


@pytest.mark.usefixtures("path")
def test_heads_past_their_prefix_get_no_gradient():
    tensors, labels, omega = problem(6, 20, 9, 8, torch.float32)
    gradient = torch.autograd.grad(
        cross_entropy_own_heads(*tensors, labels, resolve_omega(omega.numpy(), len(omega))), tensors[3]
    )[0]
    for k in range(8):
        assert not gradient[k, :, k + 1 :].any()
        assert gradient[k, :, : k + 1].all()


@pytest.mark.usefixtures("path")
def test_a_diverged_head_gives_nan():
    tensors, labels, omega = problem(6, 20, 9, 8, torch.float32)
    with torch.no_grad():
        tensors[0][2, 3] = torch.nan
    assert cross_entropy_own_heads(*tensors, labels, resolve_omega(omega.numpy(), len(omega))).isnan()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 3e-6), (torch.float64, 1e-13)])
@pytest.mark.parametrize(("n", "d", "C", "K"), [(9, 7, 5, 4), (1, 2, 3, 1), (6, 40, 33, 20), (128, 64, 100, 16)])
def test_gradients_of_a_batch_in_one_call_against_a_loop(n, d, C, K, dtype, tolerance):
    if not numba_may_compile():
        pytest.skip("numba is needed")
    from firstk.losses.functional.own_heads_cpu import gradients

    tensors, labels, omega = problem(n, d, C, K, dtype)
    wide = tuple(part.detach().double().requires_grad_() for part in tensors)
    wanted = loop(*wide, labels, omega.double())
    z, *heads = (part.detach().numpy() for part in tensors)
    found = [np.full_like(part, np.nan) for part in (z, *heads)]  # what is there before is no part of the result
    rest = omega.numpy().copy()
    rest[:K] = 0
    value = gradients(z, tuple(heads), labels.numpy(), omega.numpy(), rest, found[0], tuple(found[1:]))
    assert value == pytest.approx(float(wanted.detach()), rel=tolerance)
    for mine, theirs in zip(found, torch.autograd.grad(wanted, wide), strict=True):
        assert np.linalg.norm(mine - theirs.numpy()) <= tolerance * float(theirs.norm())


def adapted_loop(z, shared, labels, bias, own_weight, own_offset, omega, **options):
    """Each prefix by its own call of torch: the shared head, plus the part of its own up to K."""
    total = 0.0
    for k in np.flatnonzero(omega.omega) + 1:
        head, offset = shared[:, :k], bias
        if k <= min(len(own_weight), omega.support[-1] - 1):
            head = (shared.shape[1] / k) ** 0.5 * head + own_weight[k - 1, :, :k]
            offset = own_offset[k - 1] if bias is None else bias + own_offset[k - 1]
        total = total + omega.omega[k - 1] * F.cross_entropy(F.linear(z[:, :k], head, offset), labels, **options)
    return total


@pytest.mark.parametrize("options", [
    {}, {"ignore_index": 2}, {"label_smoothing": 0.2}, {"reduction": "sum"},
    {"weight": torch.tensor([0.5, 1.0, 2.0, 1.5], dtype=torch.float64), "ignore_index": 1, "label_smoothing": 0.1},
])  # fmt: skip
@pytest.mark.parametrize(("K", "omega"), [
    (3, resolve_omega("harmonic", 6, start=2)), (9, resolve_omega("uniform", 6)), (4, resolve_omega({2: 1, 4: 2}, 6)),
    (2, resolve_omega({5: 1, 6: 1}, 6)),
])  # fmt: skip
@pytest.mark.parametrize("with_bias", [True, False])
def test_parts_of_their_own_against_a_loop(options, K, omega, with_bias):
    (z, weight, bias, own_weight, own_offset), labels, _ = problem(11, 6, 4, K, torch.float64)
    given = dict(options)
    ours = {"class_weight": given.pop("weight")} | given if "weight" in given else given
    bias = bias if with_bias else None
    tensors = [part for part in (z, weight, bias, own_weight, own_offset) if part is not None]
    found = cross_entropy_adapted_heads(z, weight, labels, bias, own_weight, own_offset, omega=omega, **ours)
    wanted = adapted_loop(z, weight, labels, bias, own_weight, own_offset, omega, **options)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=0)
    gradients = (torch.autograd.grad(each, tensors, allow_unused=True) for each in (found, wanted))
    for mine, theirs in zip(*gradients, strict=True):
        mine, theirs = (torch.zeros(1) if part is None else part for part in (mine, theirs))
        assert (mine - theirs).norm() <= 1e-12 * max(1.0, float(theirs.norm()))


def test_sampled_prefixes_of_the_shared_head_have_the_right_mean():
    (z, weight, bias, own_weight, own_offset), labels, _ = problem(40, 6, 4, 2, torch.float64)
    omega = resolve_omega("uniform", 6)
    arguments = (z.detach(), weight.detach(), labels, bias.detach(), own_weight.detach(), own_offset.detach())
    generator = torch.Generator().manual_seed(0)
    drawn = [
        cross_entropy_adapted_heads(*arguments, omega=omega, estimator="sampled", generator=generator)
        for _ in range(400)
    ]
    wanted = adapted_loop(*arguments, omega)
    assert abs(float(torch.stack(drawn).mean() - wanted)) < 4 * float(torch.stack(drawn).std()) / 20
