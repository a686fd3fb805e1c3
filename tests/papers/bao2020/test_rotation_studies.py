"""The rotation as the studies follow it: algorithm 1 written out, derivatives by differences, rules of section 6.1."""

import numpy as np
import pytest

pytest.importorskip("torch")

from firstk_papers.bao2020 import rotation_flow, rotation_rules
from firstk_papers.frame.instances import orthogonal

RNG = np.random.default_rng(0)
S = np.array([5.0, 3.0, 2.0, 1.0])


def test_the_field_is_algorithm_1():
    B, A, St = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 3)), np.diag(S)
    second = B @ St @ B.T
    turn = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            turn[i, j] = (0.5 if i < j else -0.5 if i > j else 0.0) * second[i, j]
    b, a = rotation_flow.rotation_field(B, A, St)
    np.testing.assert_allclose(b, turn @ B)
    np.testing.assert_allclose(a, -A @ turn)
    np.testing.assert_allclose(rotation_flow.rotation_field(B, A, St, 2.0)[0], 2 * b)


def test_non_diagonality_is_the_sum_off_the_diagonal():
    M = RNG.standard_normal((4, 4))
    slow = sum(abs(M[i, j]) for i in range(4) for j in range(4) if i != j)
    assert rotation_flow.non_diagonality(M) == pytest.approx(slow)


def test_the_corrected_derivative_is_that_of_a_small_step():
    Q, h = orthogonal(4, RNG), 1e-6
    field = rotation_flow.rotation_field(Q, Q.T, np.diag(S))[0]
    after, before = ((Q + t * field) @ np.diag(S) @ (Q + t * field).T for t in (h, -h))
    numeric = (after - before) / (2 * h)
    Y = Q @ np.diag(S) @ Q.T
    np.testing.assert_allclose(rotation_flow.derivative(Y), numeric, atol=1e-7)
    assert np.abs(rotation_flow.derivative(Y, printed=True) - numeric).max() > 0.1


def test_hebbian_and_augmented_rules_entry_by_entry():
    W, St = RNG.standard_normal((3, 4)) / 2, np.diag(S)
    second = W @ St @ W.T
    slow = W @ St
    extra = np.zeros_like(W)
    for i in range(3):
        for j in range(3):
            slow[i] -= second[i, j] * W[j] if j <= i else 0
            extra[i] -= second[i, j] * W[j] / 2 if j != i else 0
    np.testing.assert_allclose(rotation_rules.hebbian(W, St), slow)
    np.testing.assert_allclose(rotation_rules.augmented(W, St), slow + extra)


def test_a_step_is_minus_the_gradient():
    B, A, St, h = RNG.standard_normal((2, 4)), RNG.standard_normal((4, 2)), np.diag(S), 1e-6
    b, a = rotation_rules.step(B, A, St, None)
    E, F = RNG.standard_normal(B.shape), RNG.standard_normal(A.shape)
    slope = (rotation_rules.loss(B + h * E, A + h * F, St) - rotation_rules.loss(B - h * E, A - h * F, St)) / (2 * h)
    assert slope == pytest.approx(-np.sum(b * E) - np.sum(a * F), rel=1e-6)


def test_a_gradient_field_has_no_circulation(monkeypatch):
    data = rotation_rules.Problem(np.diag(S), np.eye(4), S)
    W = np.linalg.qr(RNG.standard_normal((4, 3)))[0]
    assert rotation_rules._circulation(W, data) > 1e-3
    monkeypatch.setattr(rotation_rules, "_tied_field", lambda W, data: -data.St @ W)
    assert rotation_rules._circulation(W, data) < 1e-8
