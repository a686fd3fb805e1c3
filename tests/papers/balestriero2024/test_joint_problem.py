"""The joint problem: the library's optimum against (4) to (6) by their definitions, and against anything nearby."""

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from firstk_papers.balestriero2024.encoder_capacity import free_code_loss, gaps
from firstk_papers.balestriero2024.joint_descent import measure as descend
from firstk_papers.balestriero2024.joint_limits import measure as limits
from firstk_papers.balestriero2024.joint_problem import Joint, Optimum, largest_sine, problem, solved, span

CELL = {"D": 6, "N": 40, "C": 3, "seed": 0}


@pytest.mark.parametrize("lam", [0.1, 3.0])
def test_the_optimum_is_that_of_theorem_1(lam):
    joint = problem(CELL)
    X, Y = joint.X.T, joint.Y.T  # the paper's orientation
    A, B = X @ (Y.T @ Y + lam * X.T @ X) @ X.T, X @ X.T
    V = eigh(A, B)[1][:, ::-1][:, :2]
    inverse = np.linalg.inv(V.T @ B @ V)
    by_hand = Optimum(V, inverse @ V.T @ X @ Y.T, inverse @ V.T @ B)
    found = solved(joint, 2, lam)
    assert found.loss(joint, lam) == pytest.approx(by_hand.loss(joint, lam), rel=1e-10)
    assert largest_sine(span(joint, found.V), span(joint, V)) < 1e-6


def test_nothing_nearby_is_better():
    joint, rng = problem(CELL), np.random.default_rng(1)
    best = solved(joint, 2, 0.5)
    least = best.loss(joint, 0.5)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            moved = Optimum(*(part + size * rng.standard_normal(part.shape) for part in (best.V, best.W, best.Z)))
            assert moved.loss(joint, 0.5) > least


def test_largest_sine_is_that_of_the_largest_angle():
    rng = np.random.default_rng(2)
    A, B = (np.linalg.qr(rng.standard_normal((8, 3)))[0] for _ in range(2))
    assert largest_sine(A, B) == pytest.approx(np.sin(subspace_angles(A, B).max()))


def test_a_free_code_is_the_best_matrix_of_rank_k():
    """Any code with least-squares readouts, moved downhill from the optimum, does worse."""
    joint, rng = problem(CELL), np.random.default_rng(3)
    both = np.hstack([joint.Y, np.sqrt(0.5) * joint.X])
    least = free_code_loss(joint, 2, 0.5)
    _, vectors = np.linalg.eigh(joint.Y @ joint.Y.T + 0.5 * joint.X @ joint.X.T)
    code = vectors[:, -2:]
    assert least == pytest.approx(np.sum((both - code @ code.T @ both) ** 2), rel=1e-10)
    other = np.linalg.qr(code + 0.1 * rng.standard_normal(code.shape))[0]
    assert np.sum((both - other @ other.T @ both) ** 2) > least


def test_a_free_code_gains_only_where_rows_exceed_the_width():
    narrow, wide = ({"K": 2, "D": D, "N": 30, "C": 3, "seed": 0, "lambdas": [0.1, 1e6]} for D in (6, 40))
    assert gaps(narrow)["gap"][0] > 1e-3
    assert abs(gaps(narrow)["gap"][1]) < 1e-6
    assert np.max(np.abs(gaps(wide)["gap"])) < 1e-12


def test_adam_comes_to_the_optimum_from_above():
    found = descend({**CELL, "K": 2, "lam": 1.0, "steps": 300, "learning_rate": 0.05})
    assert -1e-9 < min(found["gap"]) < 1e-6
    assert found["gap"][0] > 0.01


def test_turned_targets_share_nothing_and_move_the_code_only_inside_the_span():
    cell = {**CELL, "kind": "turned", "K": 2, "degrees": [0, 30], "lambdas": [0.01, 100.0]}
    inside, outside = (limits({**cell, "towards": towards}) for towards in ("inside", "outside"))
    assert inside["shared"] == outside["shared"] == [2, 0]
    assert inside["moves"][0] < 1e-8
    assert inside["moves"][1] > 0.1
    assert max(outside["moves"]) < 1e-8


def test_limits_are_least_squares_and_principal_projection():
    found = limits({**CELL, "kind": "limits", "K": 3, "lambdas": [1e-8, 1.0, 1e8]})
    assert found["least_squares"][0] < 1e-5 < found["least_squares"][2]
    assert found["principal"][2] < 1e-5 < found["principal"][0]


def test_problems_are_centred():
    joint = problem(CELL)
    assert isinstance(joint, Joint)
    np.testing.assert_allclose(joint.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(joint.Y.mean(axis=0), 0, atol=1e-12)
