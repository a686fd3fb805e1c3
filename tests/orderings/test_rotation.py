"""The rotation-augmented gradient (Bao et al. 2020 section 6): what it conserves, where it leads, and how fast."""

from types import SimpleNamespace

import numpy as np
import pytest

from firstk import Gradient, PrefixEncoder, Rotation
from firstk.contracts import View
from firstk.exceptions import IllegalCombinationError
from firstk.metrics import paired_cosines

torch = pytest.importorskip("torch")


def view_of(B, A, St):
    """A step's view with gradients of zero: what the ordering adds is then all there is."""
    encoder = SimpleNamespace(C=torch.nn.Parameter(B), weight=B)
    model = SimpleNamespace(encoder=encoder, decoder=torch.nn.Parameter(A))
    for part in (encoder.C, model.decoder):
        part.grad = torch.zeros_like(part)
    return View(model, None, St, None)


def loss(B, A, St):
    R = torch.eye(len(St), dtype=St.dtype) - A @ B
    return torch.trace(R @ St @ R.T)


@pytest.fixture
def start():
    rng = torch.Generator().manual_seed(0)
    St = torch.diag(torch.tensor([8.0, 5.0, 3.0, 2.0, 1.0, 0.5], dtype=torch.float64))
    B = torch.randn(3, 6, generator=rng, dtype=torch.float64)
    return B, B.T.clone() + 0.3 * torch.randn(6, 3, generator=rng, dtype=torch.float64), St


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_rotation_changes_the_loss_at_second_order_only(start, factor):
    B, A, St = start
    view = view_of(B, A, St)
    Rotation(factor=factor).correct(view)
    steps = np.array([1e-2, 1e-3, 1e-4])
    moved = [
        abs(float(loss(B - a * view.model.encoder.C.grad, A - a * view.model.decoder.grad, St) - loss(B, A, St)))
        for a in steps
    ]
    slopes = np.diff(np.log(moved)) / np.diff(np.log(steps))
    np.testing.assert_allclose(slopes, 2.0, atol=0.1)
    assert moved[0] > 0


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_second_moment_becomes_diagonal_at_the_rate_of_theorem_5(factor):
    """On the optimal subspace, near the ordered axes, the non-diagonality decays at rate g or faster.

    The proof (Bao et al. 2020 E.4, (43)) drops the half of algorithm 1's A, so its rate g is that of factor 2; factor 1
    has g/2.
    """
    spectrum = torch.tensor([8.0, 5.0, 3.0], dtype=torch.float64)
    St = torch.diag(spectrum)
    skew = torch.tensor([[0.0, 1, -1], [-1, 0, 1], [1, -1, 0]], dtype=torch.float64)
    B = torch.matrix_exp(1e-3 * skew)
    A, step, found = B.T.clone(), 1e-3, []
    for _ in range(5000):
        view = view_of(B, A, St)
        Rotation(factor=factor, tied=False).correct(view)
        S = B @ St @ B.T
        found.append(float(S.abs().sum() - S.diagonal().abs().sum()))
        B, A = B - step * view.model.encoder.C.grad, A - step * view.model.decoder.grad
    rate = -np.diff(np.log(found)) / step
    gap = float(torch.diff(spectrum).abs().min()) * factor / 2
    # Each off-diagonal entry decays at its own gap, so the sum does at the smallest one or faster, and ends at it.
    assert (rate > gap * 0.99).all()
    assert rate[-1] < 1.2 * gap


@pytest.mark.parametrize("rule", ["augmented", "hebbian"])
@pytest.mark.parametrize("init", ["random", "small"])
def test_both_rules_end_at_the_principal_axes(known, rule, init):
    enc = PrefixEncoder(4, ordering=Rotation(rule), init=init, random_state=0).fit(known.X)
    assert paired_cosines(enc.components_, known.axes).min() > 0.9999
    code = enc.transform(known.X)
    S = code.T @ code / len(code)
    assert np.abs(S - np.diag(np.diag(S))).max() < 1e-3 * S[0, 0]


def test_without_balance_the_loss_is_optimal_and_the_axes_are_wrong(known):
    enc = PrefixEncoder(4, ordering=Rotation(tied=False), init="random", random_state=0).fit(known.X)
    assert enc.optimality_gap_ < 1e-6
    assert paired_cosines(enc.components_, known.axes).min() < 0.9


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "lbfgs"])
def test_optimizers_that_rescale_are_refused_with_the_reason(known, optimizer):
    with pytest.raises(IllegalCombinationError, match=r"not the gradient of a loss.*optimizer='sgd'"):
        PrefixEncoder(4, ordering="rotation", solver=Gradient(optimizer=optimizer)).fit(known.X)


def test_it_needs_a_decoder_and_a_matrix(known):
    with pytest.raises(IllegalCombinationError, match="reconstructs the input"):
        PrefixEncoder(2, objective="fisher", ordering="rotation").fit(known.X, np.arange(2000) % 4)
    with pytest.raises(IllegalCombinationError, match="nonlinear network"):
        PrefixEncoder(2, ordering="rotation", network="mlp").fit(known.X)
