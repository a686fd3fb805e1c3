"""Outcomes stay when inputs move by a rounding, rows change places, or rows are repeated.

Decisions that are exact ties follow a written rule; all others here are off the boundary.
"""

from __future__ import annotations

import numpy as np
import pytest

from firstk import Fisher, PrefixEncoder, Similarity
from firstk.metrics import _sweep, nearest_neighbor_accuracy, nearest_neighbors, neighbor_recall

RNG = np.random.default_rng(7)
N, P, CLASSES = 160, 12, 4
LABELS = np.arange(N) % CLASSES
ROWS = RNG.normal(size=(N, P)) * np.geomspace(3, 0.5, P) + 3.0 * RNG.normal(size=(CLASSES, P))[LABELS]
ROWS[:, 5] = ROWS[:, 3] - 2 * ROWS[:, 4]  # a collinear column
ROWS[:, 7] = 1.5  # and a constant one
WIDE = RNG.normal(size=(20, 50)) + 3.0  # fewer rows than columns
ENCODERS = {
    "reconstruction": PrefixEncoder(),
    "fisher": PrefixEncoder(objective=Fisher(None)),
    "fisher auto": PrefixEncoder(objective=Fisher(shrinkage="auto")),
    "fisher continued": PrefixEncoder(8, objective=Fisher(None)),
    "neighbors": PrefixEncoder(objective="similarity"),
    "dot products": PrefixEncoder(objective=Similarity(keep="dot_products")),
}


def an_ulp_off(X, seed=0):
    """Every number moved to the next one above or below it."""
    return np.nextafter(X, np.where(np.random.default_rng(seed).random(X.shape) < 0.5, -np.inf, np.inf))


def a_few_roundings_off(X, y):
    moved = an_ulp_off(X)
    moved[:, 5], moved[:, 7] = moved[:, 3] - 2 * moved[:, 4], X[:, 7]
    return moved, y


def in_another_order(X, y):
    order = np.random.default_rng(1).permutation(len(X))
    return X[order], y[order]


def twice(X, y):
    return np.repeat(X, 2, axis=0), np.repeat(y, 2)


def outcome(enc, X, y):
    enc = enc.fit(X, y)
    return enc.n_components_, getattr(enc.objective_, "shrinkage", None), enc.components_


@pytest.mark.parametrize("change", [a_few_roundings_off, in_another_order, twice])
@pytest.mark.parametrize("name", ENCODERS)
def test_rank_settings_order_and_signs_stay(name, change):
    width, shrinkage, components = outcome(ENCODERS[name], ROWS, LABELS)
    changed = outcome(ENCODERS[name], *change(ROWS, LABELS))
    assert changed[:2] == (width, shrinkage)
    np.testing.assert_allclose(changed[2], components, atol=1e-9 * np.abs(components).max())


@pytest.mark.parametrize("change", [lambda X: an_ulp_off(X), lambda X: X[::-1], lambda X: np.repeat(X, 2, axis=0)])
@pytest.mark.parametrize("name", ["reconstruction", "neighbors", "dot products"])
def test_fewer_rows_than_columns(name, change):
    width, _, components = outcome(ENCODERS[name], WIDE, None)
    changed = outcome(ENCODERS[name], change(WIDE), None)
    assert changed[0] == width
    np.testing.assert_allclose(changed[2], components, atol=1e-9 * np.abs(components).max())


@pytest.mark.parametrize("rows", [15, 40])
def test_weights_are_repetitions_for_mined_neighbors(rows):
    """Copies of a row are not each other's neighbors, in the columns as given and in a basis of the row space."""
    rng = np.random.RandomState(42)
    X, _, weight = rng.rand(rows, 30), rng.randint(0, 3, size=rows), rng.randint(0, 5, size=rows)
    weighted = PrefixEncoder(objective="similarity").fit(X, sample_weight=weight)
    repeated = PrefixEncoder(objective="similarity").fit(X.repeat(weight, axis=0))
    assert weighted.n_components_ == repeated.n_components_
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)


@pytest.fixture(params=["numpy", "compiled"])
def _sweeps(request, monkeypatch):
    if request.param == "compiled":
        pytest.importorskip("numba")
    monkeypatch.setattr(_sweep, "_LARGE", 0 if request.param == "compiled" else np.inf)


@pytest.mark.usefixtures("_sweeps")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbors_that_differ_by_a_rounding_tie_and_the_first_wins(dtype):
    rng = np.random.default_rng(3)
    first = rng.normal(size=(40, 24)).astype(dtype)
    R = np.vstack([first, an_ulp_off(first, 1), an_ulp_off(first, 2)])
    Q = rng.normal(size=(30, 24)).astype(dtype)
    expected = nearest_neighbors(first, Q, 4)
    # Each of the three copies is as near: by rows, the first copies of the nearest come first.
    groups = nearest_neighbors(R, Q, 12).reshape(30, 4, 3)
    np.testing.assert_array_equal(groups, expected[:, :, None] + 40 * np.arange(3))
    labels = np.repeat([0, 1, 2], 40)
    accuracy = nearest_neighbor_accuracy(R, labels, Q, np.zeros(30, int))
    np.testing.assert_array_equal(accuracy[1:], 1.0)
    np.testing.assert_array_equal(neighbor_recall(R, Q, groups[:, 0], at=3)[-1], 1.0)


@pytest.mark.usefixtures("_sweeps")
def test_parallel_references_tie():
    """Cosines of multiples of a vector are equal, whatever their sums round to."""
    rng = np.random.default_rng(4)
    base, Q = rng.normal(size=(1, 33)), rng.normal(size=(50, 33))
    R = base * np.array([3.0, 1.0, 7.0, 0.1, 11.0])[:, None]
    np.testing.assert_array_equal(nearest_neighbors(R, Q, 5), np.tile(np.arange(5), (50, 1)))


@pytest.mark.usefixtures("_sweeps")
def test_hundreds_of_copies_tie_and_the_first_win(monkeypatch):
    monkeypatch.setattr(_sweep, "_CANDIDATES", 500)
    monkeypatch.setattr(_sweep, "_COORDINATES", 100)
    rng = np.random.default_rng(5)
    R = np.repeat(rng.normal(size=(2, 20)), 150, axis=0).astype(np.float32)
    Q = R[[0, 299, 3]]
    np.testing.assert_array_equal(nearest_neighbors(R, Q, 3), [[0, 1, 2], [150, 151, 152], [0, 1, 2]])


@pytest.mark.usefixtures("_sweeps")
def test_hundreds_of_references_closer_than_float32_sums_can_tell_are_told_apart():
    """Near copies of a few documents: cosines of float32 differ by less than they are rounded."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(6, 1, 96)) + 3e-3 * rng.normal(size=(6, 150, 96))
    X = X.reshape(-1, 96).astype(np.float32)[rng.permutation(900)]
    exact = X.astype(np.float64)
    unit = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    squares = ((unit[:40, None] - unit[None]) ** 2).sum(axis=2)
    squares[np.arange(40), np.arange(40)] = np.inf
    expected = np.sort(np.argsort(squares, axis=1)[:, :10], axis=1)
    found = np.sort(nearest_neighbors(X, X[:40], 10, exclude_self=np.arange(40)), axis=1)
    assert np.mean(found == expected) > 0.99


@pytest.mark.usefixtures("_sweeps")
def test_close_neighbors_in_short_codes_stay_apart():
    """A tie is a rounding of the codes, not of their cosines: angles of 1e-4 are told apart in float32."""
    angles = np.linspace(0, 0.1, 1001)
    R = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    shifted = angles[:-1] + 0.2e-4
    Q = np.column_stack([np.cos(shifted), np.sin(shifted)]).astype(np.float32)
    np.testing.assert_array_equal(nearest_neighbors(R, Q, 1)[:, 0], np.arange(1000))


def test_copies_of_a_document_are_one_candidate_of_pairs():
    """They are found by the vectors: codes of copies need not have the same bits."""
    rng = np.random.default_rng(6)
    documents = rng.normal(size=(30, 40)).astype(np.float32)
    which = rng.integers(0, 30, 230)
    left = documents[which] + 0.1 * rng.normal(size=(230, 40)).astype(np.float32)
    enc = PrefixEncoder(8, objective=Similarity(shrinkage=0.5, neighbor_weight=0.0)).fit_pairs(left, documents[which])
    curve = enc.curve_pairs(left, documents[which], metric="positive_recall@10")
    codes = enc.encode_document(documents), enc.encode_query(left)
    slow = []
    for k in range(1, 9):
        D, Q = (Z[:, :k] / np.linalg.norm(Z[:, :k], axis=1, keepdims=True) for Z in codes)
        better = ((Q * D[which]).sum(axis=1, keepdims=True) + 1e-6 < Q @ D.T).sum(axis=1)
        slow.append(np.mean(better < 10))
    np.testing.assert_allclose(curve.score[1:], slow[1:], atol=1e-9)
