"""The bounded sample: the same rows whatever the batching, the partition and the order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from firstk.moments.statistics import RowSample

ROWS = np.random.default_rng(0).standard_normal((300, 3))
NAMES = np.array([f"row {i}" for i in range(300)])


def taken(sample):
    return [int(name.split()[1]) for name in sample["name"]]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 3), min_size=300, max_size=300), st.permutations(range(4)), st.integers(1, 400))
def test_any_partition_in_any_merge_order(owner, order, capacity):
    whole = RowSample(capacity).update({"X": ROWS, "name": NAMES})
    parts = []
    for i in order:
        mine = np.flatnonzero(np.array(owner) == i)[::-1]
        part = RowSample(capacity)
        parts.append(part.update({"X": ROWS[mine], "name": NAMES[mine]}) if len(mine) else part)
    merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    assert len(merged) == min(capacity, 300)
    np.testing.assert_array_equal(merged["X"], whole["X"])
    np.testing.assert_array_equal(merged["name"], whole["name"])


def test_everything_that_belongs_to_a_row_stays_with_it():
    sample = RowSample(50).update({"X": ROWS, "name": NAMES, "y": np.arange(300), "weight": None})
    np.testing.assert_array_equal(ROWS[taken(sample)], sample["X"])
    np.testing.assert_array_equal(taken(sample), sample["y"])
    assert "weight" not in sample
    some = sample.take(np.array([3, 1]))
    np.testing.assert_array_equal(some["y"], sample["y"][[3, 1]])


def test_rows_longer_than_one_pass():
    many = np.random.default_rng(1).standard_normal((10_000, 2))
    forwards, backwards = RowSample(64).update({"X": many}), RowSample(64).update({"X": many[::-1]})
    np.testing.assert_array_equal(forwards["X"], backwards["X"])


def test_the_sample_is_fair():
    # Sorted rows, so that any preference of the hash for size would show: the mean rank of 2,000 of 20,000 rows
    # has a standard deviation of 0.0061 of the range.
    many = np.sort(np.random.default_rng(2).standard_normal(20_000))[:, None]
    sample = RowSample(2000).update({"X": many, "rank": np.array([f"{i}" for i in range(20_000)])})
    assert abs(sample["rank"].astype(int).mean() / 20_000 - 0.5) < 4 * 0.0061


def test_the_fair_sample_holds_for_small_whole_numbers():
    many = np.arange(20_000.0)[:, None]
    sample = RowSample(2000).update({"X": many})
    assert abs(sample["X"].mean() / 20_000 - 0.5) < 4 * 0.0061


def test_negative_zero_is_zero():
    a, b = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[-0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(RowSample(2).update({"X": a}).priority, RowSample(2).update({"X": b}).priority)


def test_sparse_rows_are_sampled_as_dense_ones():
    dense = ROWS * (np.random.default_rng(3).random(ROWS.shape) < 0.5)
    a = RowSample(40).update({"X": sparse.csr_matrix(dense)})
    np.testing.assert_array_equal(a["X"], RowSample(40).update({"X": dense})["X"])


def test_capacity_zero_keeps_nothing():
    sample = RowSample(0).update({"X": ROWS})
    assert len(sample) == 0
    assert len(sample.merge(RowSample(5).update({"X": ROWS}))) == 0


def test_lifted_rows():
    basis = np.linalg.qr(np.random.default_rng(4).standard_normal((7, 3)))[0]
    sample = RowSample(20).update({"X": ROWS, "y": np.arange(300)})
    lifted = sample.in_basis(basis.T)
    np.testing.assert_allclose(lifted["X"], sample["X"] @ basis.T, rtol=1e-14)
    np.testing.assert_array_equal(lifted["y"], sample["y"])


def test_the_sample_does_not_share_memory_with_the_data():
    rows = ROWS.copy()
    sample = RowSample(300).update({"X": rows})
    before = sample["X"].copy()
    rows[:] = 0.0
    np.testing.assert_array_equal(sample["X"], before)


@pytest.mark.parametrize("first", ["with", "without"])
def test_batches_with_and_without_weights(first):
    weights = np.full(150, 2.0)
    batches = [{"X": ROWS[:150], "weight": weights}, {"X": ROWS[150:], "weight": None}]
    sample = RowSample(300)
    for batch in batches if first == "with" else batches[::-1]:
        sample.update(batch)
    place = {tuple(row): i for i, row in enumerate(ROWS)}
    expected = [2.0 if place[tuple(row)] < 150 else 1.0 for row in sample["X"]]
    np.testing.assert_array_equal(sample["weight"], expected)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 9), max_size=30), st.lists(st.integers(0, 9), max_size=30), st.integers(1, 40))
def test_the_union_holds_each_row_as_often_as_the_sample_that_has_most_of_it(first, second, capacity):
    def sample(numbers):
        made = RowSample(capacity)
        return made.update({"X": ROWS[numbers], "name": NAMES[numbers]}) if numbers else made

    most = Counter(first) | Counter(second)  # of counters, the larger count
    wanted = sample(list(most.elements()))
    for one, other in ((first, second), (second, first)):
        found = sample(one).union(sample(other))
        assert found.priority.tolist() == wanted.priority.tolist()
        if len(wanted):
            assert taken(found) == taken(wanted)
