"""Order-aware metrics: the papers' formulas, their invariances, and inner products other than Euclid's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstk.exceptions import InvalidInputError
from firstk.metrics import max_cosines, paired_cosines


def cosine(q, e, M):
    return abs(q @ M @ e) / np.sqrt((q @ M @ q) * (e @ M @ e))


@pytest.mark.parametrize("euclidean", [True, False])
def test_cosines_equal_the_loop(euclidean):
    rng = np.random.default_rng(0)
    Q, E, F = rng.normal(size=(4, 6)), rng.normal(size=(5, 6)), rng.normal(size=(6, 6))
    metric = None if euclidean else F @ F.T
    M = np.eye(6) if euclidean else metric
    paired = [cosine(Q[k], E[k], M) for k in range(4)]
    largest = [max(cosine(q, e, M) for e in E) for q in Q]
    np.testing.assert_allclose(paired_cosines(Q, E, metric), paired, atol=1e-12)
    np.testing.assert_allclose(max_cosines(Q, E, metric), largest, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(1e-100, 1e100), st.sampled_from([-1.0, 1.0]))
def test_sign_and_scale_do_not_matter(seed, scale, sign):
    rng = np.random.default_rng(seed)
    Q, E = rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    np.testing.assert_allclose(paired_cosines(sign * scale * Q, E), paired_cosines(Q, E), atol=1e-12)
    np.testing.assert_allclose(max_cosines(Q, sign * scale * E), max_cosines(Q, E), atol=1e-12)


def test_order_matters_to_paired_and_not_to_max():
    E = np.eye(4)[:3]
    Q = E[[1, 0, 2]]
    np.testing.assert_array_equal(paired_cosines(Q, E), [0, 0, 1])
    np.testing.assert_array_equal(max_cosines(Q, E), [1, 1, 1])


def test_the_metric_decides_in_an_ill_conditioned_space():
    M = np.diag([1.0, 1e-8])
    q, e = np.array([[1.0, 0.0]]), np.array([[1.0, 3.0]])
    assert paired_cosines(q, e)[0] == pytest.approx(1 / np.sqrt(10))
    assert paired_cosines(q, e, M)[0] == pytest.approx(1 / np.sqrt(1 + 9e-8), abs=1e-12)
    # An axis of small norm in the metric is small, not zero.
    np.testing.assert_allclose(paired_cosines(np.eye(2), np.eye(2), M), [1, 1])


def test_axes_of_norm_zero_have_cosine_zero():
    np.testing.assert_array_equal(paired_cosines(np.zeros((2, 3)), np.eye(3)), [0, 0])
    null = np.diag([1.0, 1.0, 0.0])
    np.testing.assert_array_equal(max_cosines(np.eye(3), np.eye(3), null), [1, 1, 0])


def test_cosines_never_exceed_one():
    rng = np.random.default_rng(1)
    Q = rng.normal(size=(200, 3))
    assert paired_cosines(Q, Q).max() <= 1.0
    assert paired_cosines(Q, Q).min() > 1 - 1e-12


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        (np.eye(2), "with 3 columns. Got 2"),
        (np.ones((2, 3)), "square 'metric', 3 x 3"),
        (np.triu(np.ones((3, 3))), r"symmetric 'metric'.*by up to 1"),
        (np.diag([1.0, -2.0, 1.0]), r"Axis 1 has the squared norm -2"),
    ],
)
def test_what_is_no_metric_is_refused(metric, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        paired_cosines(np.eye(3), np.eye(3), metric)
