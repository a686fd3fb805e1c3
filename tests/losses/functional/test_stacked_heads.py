"""Separate heads in one array: against a loop of ordinary cross-entropies, values and gradients."""

import pytest
import torch
import torch.nn.functional as F

from firstk.losses import FullPrefixFreeHeadCrossEntropy
from firstk.losses.functional import stacked_heads as kernel
from firstk.losses.functional.stacked_heads import stacked_heads, stacked_heads_per_prefix

N, D, K, C = 11, 7, 4, 5
OMEGA = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)


@pytest.fixture(params=[K, D], ids=["as many heads as coordinates", "more coordinates"])
def parts(request):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    return normal(N, request.param), normal(K, C, K), normal(K, C), torch.randint(C, (N,), generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [N, 3])
def test_against_a_loop(parts, smoothing, rows, monkeypatch):
    monkeypatch.setattr(kernel, "_TILE", rows * K * C)
    z, weight, offset, labels = parts
    found = stacked_heads(z, weight, offset, labels, OMEGA, smoothing)
    loop = OMEGA @ torch.stack([
        F.cross_entropy(z[:, :k] @ weight[k - 1, :, :k].T + offset[k - 1], labels, label_smoothing=smoothing)
        for k in range(1, K + 1)
    ])  # fmt: skip
    torch.testing.assert_close(found, loop)
    for mine, theirs in zip(*(torch.autograd.grad(3 * each, parts[:3]) for each in (found, loop)), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_strides_do_not_matter(parts):
    z, weight, offset, labels = parts
    turned = z.T.contiguous().T, weight.permute(2, 0, 1).contiguous().permute(1, 2, 0), offset.T.contiguous().T
    losses = [stacked_heads(*each, labels, OMEGA) for each in ((z, weight, offset), turned)]
    torch.testing.assert_close(*losses)
    for mine, theirs in zip(*(torch.autograd.grad(each, parts[:3]) for each in losses), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_columns_past_the_prefix_are_never_looked_at(parts):
    z, weight, offset, labels = parts
    gradient = torch.autograd.grad(stacked_heads(z, weight, offset, labels, OMEGA), weight)[0]
    for k in range(K):
        assert not gradient[k, :, k + 1 :].any()
        assert gradient[k, :, : k + 1].all()


def test_the_same_as_heads_that_are_modules(parts):
    z, weight, offset, labels = parts
    heads = FullPrefixFreeHeadCrossEntropy(range(1, K + 1), C).double()
    with torch.no_grad():
        for k, head in enumerate(heads.heads, 1):
            head.weight.copy_(weight[k - 1, :, :k])
            head.bias.copy_(offset[k - 1])
    torch.testing.assert_close(stacked_heads_per_prefix(z, weight, offset, labels), heads.per_prefix(z, labels))
