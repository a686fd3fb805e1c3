"""Splits: exact counts, stratified, disjoint, centred on the training part, and repeatable."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk.data import split
from firstk.exceptions import InvalidInputError


def labelled(sizes, seed=0):
    y = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(seed).standard_normal((len(y), 3)), y


@pytest.mark.parametrize(
    ("classes", "each", "counts"),
    [(20, 500, (7000, 1000, 2000)), (10, 7000, (49000, 7000, 14000))],
)
def test_counts_of_the_paper(classes, each, counts):
    parts = split(*labelled([each] * classes))
    assert (len(parts.X_train), len(parts.X_val), len(parts.X_test)) == counts
    for labels, count in zip((parts.y_train, parts.y_val, parts.y_test), counts, strict=True):
        assert np.bincount(labels).tolist() == [count // classes] * classes


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(20, 60), min_size=1, max_size=6),
    fractions=st.sampled_from([(0.7, 0.1, 0.2), (0.5, 0.25, 0.25), (0.8, 0.0, 0.2), (0.6, 0.4, 0.0), (1, 0, 0)]),
    with_labels=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_parts_are_disjoint_complete_and_stratified(sizes, fractions, with_labels, seed):
    X, y = labelled(sizes)
    before = X.copy()
    parts = split(X, y if with_labels else None, fractions=fractions, random_state=seed)
    np.testing.assert_array_equal(X, before)
    indices = (parts.index_train, parts.index_val, parts.index_test)
    assert sorted(np.concatenate(indices).tolist()) == list(range(len(X)))
    assert len(parts.index_val) == round(len(X) * fractions[1])
    assert len(parts.index_test) == round(len(X) * fractions[2])
    for rows, cut in zip(indices, (parts.X_train, parts.X_val, parts.X_test), strict=True):
        np.testing.assert_allclose(cut + parts.mean_, X[rows], atol=1e-12)
        if with_labels:
            expected = np.array(sizes) * len(rows) / len(X)
            # Two cuts, each within one row of proportion.
            assert np.abs(np.bincount(y[rows], minlength=len(sizes)) - expected).max() < 2


def test_centred_on_the_training_part_only():
    X, y = labelled([100, 100])
    parts = split(X + 7.0, y)
    np.testing.assert_allclose(parts.X_train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(parts.mean_, (X + 7.0)[parts.index_train].mean(axis=0))
    assert np.abs(parts.X_test.mean(axis=0)).max() > 1e-6


def test_without_centring_rows_are_as_given():
    X, y = labelled([50, 50])
    parts = split(X, y, centre=False)
    np.testing.assert_array_equal(parts.X_val, X[parts.index_val])
    assert not parts.mean_.any()
    parts.X_val[:] = 0  # a copy: the source stays
    assert X[parts.index_val].all()


@pytest.mark.parametrize(("given_dtype", "kept"), [("f4", "f4"), ("f8", "f8"), ("u1", "f8"), ("f2", "f4")])
def test_precision(given_dtype, kept):
    X = np.arange(200).reshape(100, 2).astype(given_dtype)
    parts = split(X)
    assert parts.X_train.dtype == parts.mean_.dtype == np.dtype(kept)
    assert parts.y_train is None


def test_the_mean_of_float32_is_accumulated_in_float64():
    X = np.full((100_000, 1), 16_777_217 / 2**24, dtype="f4") + np.float32(1000)
    parts = split(X, fractions=(1, 0, 0))
    assert parts.mean_[0] == X[0, 0]


def test_same_seed_same_bytes_and_texts_as_labels():
    X, y = labelled([30, 30, 30])
    names = np.array(["a", "b", "c"])[y]
    a, b = split(X, names, random_state=4), split(X, list(names), random_state=4)
    assert a.X_train.tobytes() == b.X_train.tobytes()
    assert a.y_test.tolist() == b.y_test.tolist() == names[a.index_test].tolist()
    assert split(X, names, random_state=5).X_train.tobytes() != a.X_train.tobytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: split(np.ones((10, 2)), fractions=(0.5, 0.5)),
            "'fractions' parameter of split must be three",
        ),
        (lambda: split(np.ones((10, 2)), fractions=0.5), "'fractions'"),
        (lambda: split(np.ones((10, 2)), fractions=(0.7, 0.1, 0.1)), "sum to 1"),
        (lambda: split(np.ones((10, 2)), fractions=(0, 0.5, 0.5)), "the first above 0"),
        (lambda: split(np.ones((10, 2)), fractions=(0.7, -0.1, 0.4)), "'fractions'"),
        (lambda: split(np.ones((3, 2))), "leaves the val part empty: 0.1 of 3 rows is 0.3"),
        (lambda: split(np.ones(3)), "two-dimensional"),
        (lambda: split(np.full((10, 2), np.nan)), "finite"),
        (lambda: split(np.ones((10, 2)), np.ones(9)), "10 and 9"),
        (lambda: split(np.ones((10, 2)), np.ones((10, 2))), "one label per row"),
        (lambda: split(np.ones((10, 2)), ["a"] * 9 + [None]), "missing labels"),
        (lambda: split(np.ones((10, 2)), [0] * 9 + [1]), "cannot keep all classes in 10 rows with 2 taken out"),
        (lambda: split(np.ones((50, 2)), np.linspace(0, 1, 50)), "for continuous targets omit y"),
        (lambda: split(np.ones((30, 2)), np.arange(30) % 10), "in 30 rows with 6 taken out"),
        (lambda: split(np.ones((10, 2)), random_state=-3), "'random_state'"),
        (
            lambda: split(*labelled([3, 100]), fractions=(0.2, 0.2, 0.6)),
            "cannot keep all classes in 41 rows",
        ),
        (
            lambda: split(*labelled([3, 100]), fractions=(0.05, 0.05, 0.9)),
            "no training row of 1 classes (class 0",
        ),
    ],
)
def test_bad_arguments_raise_errors(call, message):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert message in str(caught.value)
