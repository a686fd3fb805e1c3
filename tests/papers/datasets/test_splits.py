"""Splits: exact counts, stratified, disjoint, centred on the training part, and repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from firstk_papers.datasets import split


def labelled(sizes, seed=0):
    y = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(seed).standard_normal((len(y), 3)) + 7.0, y


@pytest.mark.parametrize(
    ("classes", "each", "counts"),
    [(20, 500, (7000, 1000, 2000)), (10, 7000, (49000, 7000, 14000))],
)
def test_counts_of_the_paper(classes, each, counts):
    parts = split(*labelled([each] * classes))
    assert (len(parts.X_train), len(parts.X_val), len(parts.X_test)) == counts
    for labels, count in zip((parts.y_train, parts.y_val, parts.y_test), counts, strict=True):
        assert np.bincount(labels).tolist() == [count // classes] * classes


def test_parts_are_disjoint_complete_and_centred_on_the_training_part():
    X, y = labelled([100, 60])
    before = X.copy()
    parts = split(X, y)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(parts.X_train.mean(axis=0), 0, atol=1e-12)
    assert np.abs(parts.X_test.mean(axis=0)).max() > 1e-6
    every = np.concatenate([parts.X_train, parts.X_val, parts.X_test])
    mean = (X.sum(axis=0) - every.sum(axis=0)) / len(X)  # what was subtracted from every row
    np.testing.assert_allclose(np.sort(every + mean, axis=0), np.sort(X, axis=0), atol=1e-10)


def test_same_seed_same_bytes():
    X, y = labelled([30, 30, 30])
    assert split(X, y, random_state=4).X_train.tobytes() == split(X, y, random_state=4).X_train.tobytes()
    assert split(X, y, random_state=5).X_train.tobytes() != split(X, y, random_state=4).X_train.tobytes()
