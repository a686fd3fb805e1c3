"""Gradients at initialisation, against autograd one row and one axis at a time."""

import numpy as np
import pytest

from firstk_papers.balestriero2024.axes import principal_axes
from firstk_papers.balestriero2024.initial_gradient import _stack, energy, jacobians, proof_bound
from fixtures.small_task import small_task

torch = pytest.importorskip("torch", reason="needs torch: pip install 'firstk[torch]'")


def test_jacobians_are_those_of_the_decoder_at_the_codes():
    from torch import nn

    X = np.random.default_rng(0).standard_normal((3, 5))
    found = jacobians(X, "tanh-1", 2, 4, seed=7)
    torch.manual_seed(7)
    encoder, decoder = (_stack(sizes, nn.Tanh).double() for sizes in ([5, 4, 2], [2, 4, 5]))
    assert found.shape == (3, 5, 2)
    for row, J in zip(torch.from_numpy(X), found, strict=True):
        expected = torch.autograd.functional.jacobian(decoder, encoder(row).detach())
        np.testing.assert_allclose(J, expected.numpy(), atol=1e-12)


def test_energy_is_the_squared_gradient_of_the_part_along_an_axis():
    """The gradient, in the code, of -<g(z), v> <v, x> is -J'v <v, x>: what axis v brings."""
    from torch import nn

    rng = np.random.default_rng(1)
    X, P = rng.standard_normal((4, 5)), np.linalg.qr(rng.standard_normal((5, 5)))[0]
    torch.manual_seed(3)
    encoder, decoder = (_stack(sizes, nn.ReLU).double() for sizes in ([5, 6, 2], [2, 6, 5]))
    expected = np.zeros(5)
    for row in torch.from_numpy(X):
        for k, v in enumerate(torch.from_numpy(P.T.copy())):
            z = encoder(row).detach().requires_grad_()
            (-(decoder(z) @ v) * (v @ row)).backward()
            expected[k] += float(torch.sum(z.grad**2))
    np.testing.assert_allclose(energy(jacobians(X, "relu-1", 2, 6, seed=3), X, P), expected, rtol=1e-9)


def test_the_bound_of_the_proof_by_its_definition():
    rows = small_task(n=40, shape=(2, 2))
    axes = principal_axes(rows.moments())
    X = rows.X - axes.mean
    J = jacobians(X, "relu-1", 2, 4, seed=0)
    U = np.linalg.svd(X, full_matrices=False)[0]
    last, first = (np.linalg.svd(sum(U[n, k] * J[n] for n in range(len(X))), compute_uv=False) for k in (3, 0))
    assert proof_bound(J, X, axes) == pytest.approx(last[0] ** 2 / first[-1] ** 2)
