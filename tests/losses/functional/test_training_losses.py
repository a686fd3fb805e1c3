"""Training losses: preconditioning, and the residual symmetry between steps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from firstk._base.prefix_weights import resolve_omega
from firstk.solvers.gradient.losses import least_squares
from firstk.solvers.gradient.losses.base import PrefixSum
from firstk.solvers.gradient.losses.pairs import _info_nce
from firstk.solvers.gradient.losses.ratio_trace import RatioTrace

D = torch.float64


def linear(C):
    return SimpleNamespace(encoder=SimpleNamespace(C=C, R=None))


def scatters(p=5):
    F, G = torch.randn(2, p, p, dtype=D)
    return F @ F.t() + torch.eye(p, dtype=D), G @ G.t()


def test_regauging_makes_rows_orthonormal_and_keeps_the_loss():
    N, M = scatters()
    loss = RatioTrace({"N": N, "M": M, "code_eps": 0.0})
    model, measure = linear(torch.randn(3, 5, dtype=D)), PrefixSum(resolve_omega("uniform", 3))
    before = loss.moment_loss(model, measure)
    loss.regauge(model)
    C = model.encoder.C
    torch.testing.assert_close(C @ N @ C.t(), torch.eye(3, dtype=D))
    torch.testing.assert_close(loss.moment_loss(model, measure), before)


@pytest.mark.parametrize("why", ["eps on the code", "rows alike"])
def test_there_is_nothing_to_regauge(why):
    """With eps the scale of the code counts; rows that are alike have no triangular factor."""
    N, M = scatters()
    C = torch.ones(2, 5, dtype=D) if why == "rows alike" else torch.randn(2, 5, dtype=D)
    before = C.clone()
    RatioTrace({"N": N, "M": M, "code_eps": 0.0 if why == "rows alike" else 1e-3}).regauge(linear(C))
    torch.testing.assert_close(C, before, rtol=0, atol=0)


def test_gradients_of_the_ratio_trace_are_divided_by_their_quotients():
    N, M = torch.eye(3, dtype=D), torch.diag(torch.tensor([4.0, -2.0, 0.0], dtype=D))
    C = torch.nn.Parameter(torch.diag(torch.tensor([1.0, 3.0, 1.0], dtype=D)))
    C.grad = torch.ones(3, 3, dtype=D)
    RatioTrace({"N": N, "M": M, "code_eps": 0.0}).precondition(linear(C), PrefixSum(resolve_omega("uniform", 3)))
    # 2 cum gamma over the row's own size; the last quotient is zero, and 1e-12 of the largest stands in for it.
    expected = torch.tensor([1 / (2 * 4.0), 9 / (2 * (2 / 3) * 2.0), 1 / (2 * 4e-12)], dtype=D)
    torch.testing.assert_close(C.grad, expected[:, None].expand(3, 3))


def test_gradients_stay_finite_where_no_quotient_is_positive():
    C = torch.nn.Parameter(torch.eye(2, dtype=D))
    C.grad = torch.ones(2, 2, dtype=D)
    loss = RatioTrace(
        {"N": torch.eye(2, dtype=D), "M": torch.diag(torch.tensor([-1.0, 0.0], dtype=D)), "code_eps": 0.0}
    )
    loss.precondition(linear(C), PrefixSum(resolve_omega("uniform", 2)))
    assert C.grad.isfinite().all()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_coordinate_without_curvature_is_divided_by_a_share_of_the_others(scale):
    curvature = scale * torch.diag(torch.tensor([1.0, 0.0], dtype=D))
    found = least_squares._divided(curvature, scale * torch.ones(2, 1, dtype=D))
    torch.testing.assert_close(found[:, 0], torch.tensor([0.5, 1e10], dtype=D))


def test_a_process_without_queries_adds_nothing():
    positives = torch.randn(4, 3, requires_grad=True)
    loss = _info_nce(torch.zeros(0, 3), positives, PrefixSum(resolve_omega("uniform", 3)), 0.1)
    loss.backward()
    assert loss.item() == 0.0
    assert not positives.grad.any()
