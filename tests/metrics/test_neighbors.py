"""Neighbors at every prefix length against the loop over k, with ties, zeros and blocks."""

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk.metrics import (
    _sweep,
    nearest_neighbor_accuracy,
    nearest_neighbors,
    neighbor_recall,
    positive_recall,
)


@pytest.fixture(params=["one block", "row by row", "compiled"], autouse=True)
def _sweeps(request, monkeypatch):
    if request.param == "compiled":
        pytest.importorskip("numba")
    monkeypatch.setattr("firstk.metrics._sweep._LARGE", 0 if request.param == "compiled" else np.inf)
    monkeypatch.setattr("firstk.metrics._sweep.BLOCK_BYTES", 1 if request.param == "row by row" else 1 << 20)


def similarities(R, Q):
    """Similarities of Q to R, larger is nearer, the slow way."""
    norms = [np.linalg.norm(V, axis=1, keepdims=True) for V in (Q, R)]
    unit = [np.divide(V, n, out=np.zeros_like(V), where=n > 0) for V, n in zip((Q, R), norms, strict=True)]
    return unit[0] @ unit[1].T


def order_by_loop(R, Q, k):
    return np.argsort(-similarities(R[:, :k], Q[:, :k]), axis=1, kind="stable")


def clusters(seed, n=90, m=40, d=7, dtype=np.float64):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, d))
    y_ref, y = rng.integers(0, 5, n), rng.integers(0, 5, m)
    noise = [rng.normal(size=(len(v), d)) for v in (y_ref, y)]
    return (centres[y_ref] + noise[0]).astype(dtype), y_ref, (centres[y] + noise[1]).astype(dtype), y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_accuracy_equals_the_loop(dtype):
    R, y_ref, Q, y = clusters(0, dtype=dtype)
    expected = [np.mean(y_ref[order_by_loop(R, Q, k)[:, 0]] == y) for k in range(1, 8)]
    assert expected[0] < expected[-1]
    np.testing.assert_allclose(nearest_neighbor_accuracy(R, y_ref, Q, y), expected, atol=1e-12)


def test_some_prefix_lengths_only():
    R, y_ref, Q, y = clusters(1)
    every = nearest_neighbor_accuracy(R, y_ref, Q, y)
    some = nearest_neighbor_accuracy(R, y_ref, Q, y, ks=[2, 5, 6])
    np.testing.assert_array_equal(some, every[[1, 4, 5]])


@pytest.mark.parametrize("n_ref", [1, 63, 64, 65, 300])
def test_equal_references_tie_and_the_first_wins(n_ref):
    rng = np.random.default_rng(2)
    row = rng.normal(size=(1, 20)).astype(np.float32)
    R, Q = np.repeat(row, n_ref, axis=0), rng.normal(size=(30, 20)).astype(np.float32)
    labels, zeros = np.arange(n_ref), np.zeros(30, dtype=int)
    # Only the first reference has label 0: any other winner of the tie scores nothing.
    for ks in (None, [7, 20]):
        accuracy = nearest_neighbor_accuracy(R, labels, Q, zeros, ks=ks)
        np.testing.assert_array_equal(accuracy, 1)


def test_cosine_at_one_coordinate_knows_only_signs():
    rng = np.random.default_rng(3)
    R, Q = rng.normal(size=(200, 1)), rng.normal(size=(50, 1))
    first = {sign: int(np.flatnonzero(np.sign(R[:, 0]) == sign)[0]) for sign in (-1, 1)}
    found = nearest_neighbors(R, Q, 1)[:, 0]
    np.testing.assert_array_equal(found, [first[int(s)] for s in np.sign(Q[:, 0])])


def test_zero_prefixes_have_cosine_zero():
    R = np.array([[-1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    Q = np.array([[1.0, -1e-9], [0.0, 0.0]])
    # Against the first query: -1, 0, about 0 from below; against a zero query all are 0.
    np.testing.assert_array_equal(nearest_neighbors(R, Q, 3), [[1, 2, 0], [0, 1, 2]])
    accuracy = nearest_neighbor_accuracy(np.zeros((2, 2)), [0, 1], np.zeros((1, 2)), [0])
    np.testing.assert_array_equal(accuracy, [1, 1])


def test_extreme_scales_do_not_overflow():
    R, y_ref, Q, y = clusters(4)
    expected = nearest_neighbor_accuracy(R, y_ref, Q, y)
    scale = np.where(np.arange(len(R)) % 2, 1e-200, 1e200)[:, None]
    np.testing.assert_array_equal(nearest_neighbor_accuracy(R * scale, y_ref, Q * 1e180, y), expected)


@pytest.mark.parametrize("n_ref", [12, 90, 700])
def test_nearest_neighbors_equal_the_sort(n_ref):
    R, _, Q, _ = clusters(6, n=n_ref)
    R[5] = R[2]
    expected = order_by_loop(R, Q, 7)[:, :10]
    np.testing.assert_array_equal(nearest_neighbors(R, Q), expected)


def test_recall_equals_the_loop():
    R, _, Q, _ = clusters(7)
    truth = nearest_neighbors(R, Q, 6)
    expected = [
        np.mean([len(set(a) & set(b)) / 6 for a, b in zip(order_by_loop(R, Q, k)[:, :6], truth, strict=True)])
        for k in range(1, 8)
    ]
    curve = neighbor_recall(R, Q, truth)
    np.testing.assert_allclose(curve, expected, atol=1e-12)
    assert curve[0] < curve[-1] == 1


def test_recall_at_more_than_the_truth_holds():
    R, _, Q, _ = clusters(8)
    truth = nearest_neighbors(R, Q, 3)
    order = order_by_loop(R, Q, 2)[:, :20]
    expected = np.mean([np.isin(t, o).mean() for t, o in zip(truth, order, strict=True)])
    assert neighbor_recall(R, Q, truth, at=20, ks=[2])[0] == pytest.approx(expected)
    assert neighbor_recall(R, Q, truth, at=1000, ks=[2])[0] == 1


def test_a_query_is_not_its_own_neighbor():
    R, _, _, _ = clusters(9)
    rows = np.array([4, 0, 77])
    own = nearest_neighbors(R, R, 5, exclude_self=True)
    np.testing.assert_array_equal(nearest_neighbors(R, R, 6)[:, 1:], own)
    np.testing.assert_array_equal(nearest_neighbors(R, R[rows], 5, exclude_self=rows), own[rows])
    kept = neighbor_recall(R, R[rows], own[rows], exclude_self=rows)
    assert kept[-1] == 1
    assert neighbor_recall(R, R[rows], own[rows])[-1] == pytest.approx(4 / 5)


def test_all_other_references_can_be_neighbors():
    found = nearest_neighbors(np.eye(3), np.eye(3), 2, exclude_self=True)
    np.testing.assert_array_equal(found, [[1, 2], [0, 2], [0, 1]])


def test_positive_recall_equals_the_loop():
    rng = np.random.default_rng(10)
    right = rng.normal(size=(60, 6))
    left = right + 0.8 * rng.normal(size=(60, 6))
    expected = [np.mean([i in row[:4] for i, row in enumerate(order_by_loop(right, left, k))]) for k in range(1, 7)]
    np.testing.assert_allclose(positive_recall(left, right, at=4), expected, atol=1e-12)


def test_equal_rights_are_one_candidate():
    right = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, -0.0], [0.0, 1.0]])
    left = np.array([[1.0, 0.1], [1.0, 0.2], [0.9, 0.1], [0.1, 1.0]])
    np.testing.assert_array_equal(positive_recall(left, right, at=1), [0.75, 1.0])


def test_one_row_and_one_coordinate():
    assert nearest_neighbor_accuracy([[2.0]], ["a"], [[-1.0]], ["a"]) == [1.0]
    assert positive_recall([[2.0]], [[-1.0]]) == [1.0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda R: nearest_neighbor_accuracy(R, [0, 1, 2], R, [0, 1, 2], ks=[2, 1]),
            r"increasing ints in \[1, 3\]",
        ),
        (
            lambda R: nearest_neighbor_accuracy(R, [0, 1, 2], R[:, :2], [0, 1, 2]),
            "'Z' with 3 columns. Got 2",
        ),
        (lambda R: nearest_neighbors(R, R, 4), r"int in \[1, 3\]. Got 4"),
        (lambda R: nearest_neighbors(R, R, 3, exclude_self=True), r"int in \[1, 2\]. Got 3"),
        (lambda R: nearest_neighbors(R, R[:2], 1, exclude_self=True), "Got 2 queries and 3 references"),
        (lambda R: nearest_neighbors(R[:1], R[:1], 1, exclude_self=True), "at least two references"),
        (lambda R: neighbor_recall(R, R, [[0], [1]]), r"shape \(3, t\)"),
        (lambda R: neighbor_recall(R, R, [[0], [1], [3]]), "from 0 to 2.*from 0 to 3"),
        (lambda R: neighbor_recall(R, R, [[0, 1], [1, 1], [2, 0]]), r"in 1 of 3 rows \(row 1\)"),
        (lambda R: neighbor_recall(R, R, [[0.0], [1.0], [2.0]]), "ints, not float64"),
        (lambda R: positive_recall(R, R[:2]), "Got 3 and 2"),
    ],
)
def test_what_means_nothing_is_refused(call, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        call(np.eye(3))


def test_short_codes_in_float32_tell_close_angles_apart():
    """Ten thousand references on a circle stand closer than a float32 cosine can tell."""
    angle = np.sort(np.random.default_rng(3).uniform(0, 2 * np.pi, 10_000))
    Z = np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)
    assert nearest_neighbor_accuracy(Z, np.arange(10_000), Z[::50], np.arange(10_000)[::50], ks=[2])[0] > 0.98


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("k", [2, 8, 9, 12])
def test_references_that_differ_by_the_rounding_of_the_codes_tie_at_every_length(k, n):
    """Two roundings of the codes are a tie, for which the lowest row stands; eight are a difference."""
    query, references = np.zeros((1, k), np.float32), np.zeros((2, k), np.float32)
    query[:, 0] = references[:, 0] = 1.0
    for roundings, first in ((2, 0), (8, 1)):
        references[:, 1] = np.array([0.01 + roundings * 2.0**-23, 0.01])
        (block,) = _sweep.sweep(references, query, np.array([k]))
        assert block.nearest(n)[0].tolist() == [first, 1 - first][:n]


@pytest.mark.parametrize("at", [1, 3, 10])
def test_hits_of_one_true_neighbor_are_those_of_a_full_ranking(at):
    rng = np.random.default_rng(5)
    # Whole numbers: many exact ties, and many references that are equal at short prefixes.
    Z_ref, Z = (rng.integers(-2, 3, (n, 12)).astype(np.float32) for n in (90, 60))
    truth = nearest_neighbors(Z_ref, Z, 8)[np.arange(60), rng.integers(0, 8, 60)][:, None]
    ks = [1, 2, 3, 5, 8, 9, 12]
    expected = np.empty((60, len(ks)))
    for column, k in enumerate(ks):
        found = nearest_neighbors(Z_ref[:, :k], Z[:, :k], at)
        expected[:, column] = (found == truth).any(axis=1)
    hits = neighbor_recall(Z_ref, Z, truth, at=at, ks=ks, per_row=True)
    np.testing.assert_array_equal(hits, expected)
    assert 0 < expected.mean() < 1


def test_a_reference_that_is_excluded_is_no_hit():
    Z = np.random.default_rng(6).normal(size=(8, 4)).astype(np.float32)
    hits = neighbor_recall(Z, Z, np.arange(8)[:, None], at=7, exclude_self=True, per_row=True)
    assert not hits.any()
