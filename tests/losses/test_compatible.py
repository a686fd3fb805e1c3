"""Losses of compatible training against loops over rows and prefixes, and against their gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from firstk.exceptions import InvalidInputError  # noqa: E402
from firstk.losses import FullPrefixCompatibility, OrthogonalBasis, orthogonality_penalty  # noqa: E402


def codes(d=6, k=4, n=5):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, width, dtype=torch.float64, generator=generator) for width in (d, k)]


def slow(z, old, omega):
    total = 0.0
    for j, weight in enumerate(omega, start=1):
        for a, b in zip(z.tolist(), old.tolist(), strict=True):
            a, b = a[:j], b[:j]
            cosine = sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
            total += weight * (1 - cosine) / len(z)
    return total


@pytest.mark.parametrize("omega", ["uniform", "harmonic", [0, 0, 1, 0]])
def test_it_is_the_weighted_mean_over_prefixes_and_rows(omega):
    z, old = codes()
    loss = FullPrefixCompatibility(omega)
    weights = loss.weights(4).omega
    assert float(loss(z, old)) == pytest.approx(slow(z, old, weights), rel=1e-12)
    assert float(loss.per_prefix(z, old) @ torch.tensor(weights)) == pytest.approx(float(loss(z, old)))


def test_gradients_and_the_free_coordinates():
    z, old = codes()
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda part: FullPrefixCompatibility()(part, old), (z,))
    FullPrefixCompatibility()(z, old).backward()
    assert not z.grad[:, 4:].any()
    assert z.grad[:, :4].any()


def test_equal_codes_cost_nothing_whatever_their_length():
    _, old = codes()
    assert float(FullPrefixCompatibility()(torch.hstack([3 * old, old]), old)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("size", "dtype", "tolerance"),
    [(1e-25, torch.float32, 1e-5), (1e25, torch.float32, 1e-5), (300.0, torch.float16, 1e-2)],
)
def test_the_scale_and_the_precision_of_codes_do_not_matter(size, dtype, tolerance):
    """Squares of such codes are beyond the range of their precision."""
    z, old = codes()
    scaled = [(size * part).to(dtype) for part in (z, old)]
    wanted = float(FullPrefixCompatibility()(z, old))
    assert float(FullPrefixCompatibility()(*scaled)) == pytest.approx(wanted, rel=tolerance)


def test_codes_of_norm_zero_have_a_finite_gradient():
    z = torch.zeros(2, 3, requires_grad=True)
    FullPrefixCompatibility()(z, torch.ones(2, 2)).backward()
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize(
    "shapes", [((3, 2), (3, 4)), ((3, 4), (2, 4)), ((3,), (3, 1)), ((3, 4), (3, 0)), ((0, 4), (0, 2))]
)
def test_shapes_that_do_not_fit_are_told(shapes):
    with pytest.raises(InvalidInputError, match="k at most d"):
        FullPrefixCompatibility()(torch.ones(shapes[0]), torch.ones(shapes[1]))


def test_the_penalty_by_its_formula():
    W = torch.tensor(np.random.default_rng(0).standard_normal((5, 3)), dtype=torch.float64, requires_grad=True)
    norm = np.linalg.norm(W.detach().numpy().T @ W.detach().numpy() - np.eye(3))
    for lam in (0.0, 0.5 * norm, 2 * norm):
        assert float(orthogonality_penalty(W.detach(), lam)) == pytest.approx(max(0.0, norm - lam) ** 2)
        assert float(orthogonality_penalty(W.detach().T, lam)) == pytest.approx(max(0.0, norm - lam) ** 2)
    assert torch.autograd.gradcheck(lambda part: orthogonality_penalty(part, 0.5), (W,))
    turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0].requires_grad_()
    orthogonality_penalty(turn).backward()
    assert torch.isfinite(turn.grad).all()
    with pytest.raises(InvalidInputError, match="lam of at least 0"):
        orthogonality_penalty(W, -1.0)


def test_the_basis_is_a_turn_before_and_after_a_step():
    basis = OrthogonalBasis(4)
    z = torch.randn(6, 4)
    torch.testing.assert_close(basis(z), z, atol=1e-5, rtol=1e-5)
    basis(z)[:, 0].sum().backward()
    torch.optim.SGD(basis.parameters(), lr=0.1).step()
    assert not torch.allclose(basis(z), z, atol=1e-3)
    torch.testing.assert_close(basis(z) @ basis(z).T, z @ z.T, atol=1e-4, rtol=1e-4)
    with pytest.raises(InvalidInputError, match="an int of at least 1"):
        OrthogonalBasis(0)
