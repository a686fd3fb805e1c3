"""Separate heads, stacked: against a loop of ordinary cross-entropies, values and gradients."""

import pytest
import torch
import torch.nn.functional as F

from firstk.kernels.free_heads import free_head_losses, stacked_head_losses

N, D, K, C = 11, 7, 4, 5


@pytest.fixture
def parts():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    return normal(N, D), normal(K, C, K), normal(K, C), torch.randint(C, (N,), generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_against_a_loop(parts, smoothing):
    z, weight, offset, labels = parts
    omega = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    found = stacked_head_losses(z, weight, offset, labels, smoothing)
    loop = torch.stack([
        F.cross_entropy(z[:, :k] @ weight[k - 1, :, :k].T + offset[k - 1], labels, label_smoothing=smoothing)
        for k in range(1, K + 1)
    ])  # fmt: skip
    torch.testing.assert_close(found, loop)
    for mine, theirs in zip(*(torch.autograd.grad(each @ omega, parts[:3]) for each in (found, loop)), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_columns_past_the_prefix_are_never_looked_at(parts):
    z, weight, offset, labels = parts
    gradient = torch.autograd.grad(stacked_head_losses(z, weight, offset, labels).sum(), weight)[0]
    for k in range(K):
        assert not gradient[k, :, k + 1 :].any()
        assert gradient[k, :, : k + 1].all()


def test_the_same_as_heads_that_are_modules(parts):
    z, weight, offset, labels = parts
    heads = {k: torch.nn.Linear(k, C, dtype=torch.float64) for k in range(1, K + 1)}
    with torch.no_grad():
        for k, head in heads.items():
            head.weight.copy_(weight[k - 1, :, :k])
            head.bias.copy_(offset[k - 1])
    torch.testing.assert_close(stacked_head_losses(z, weight, offset, labels), free_head_losses(z, heads, labels))
