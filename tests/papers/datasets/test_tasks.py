"""Rows with a task: pooling against a loop, the same rows for the same cell, and the texts' labels."""

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk_papers.datasets import tasks
from firstk_papers.datasets.tasks import pooled, task, title


@pytest.mark.parametrize("shape", [(6, 4), (4, 6, 3)])
def test_pooling_is_the_mean_of_squares(shape):
    X = np.random.default_rng(0).random((3, int(np.prod(shape))))
    small, new = pooled(X, shape, 2)
    images, means = X.reshape(3, *shape), small.reshape(3, *new)
    assert new == (shape[0] // 2, shape[1] // 2, *shape[2:])
    for i in range(new[0]):
        for j in range(new[1]):
            square = images[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            np.testing.assert_allclose(means[:, i, j], square.mean(axis=(1, 2)))


def test_a_cell_draws_the_same_rows_and_a_seed_others(data_folder, monkeypatch):
    monkeypatch.setenv("FIRSTK_DATA", str(data_folder))
    cell = {"set": "banking77", "rows": 50, "seed": 1}
    first = task(cell)
    tasks._drawn.cache_clear()
    again, other = task(cell), task({**cell, "seed": 2})
    assert len(first.X) == 50
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)


def test_sentences_have_the_genre_of_their_pair(data_folder, monkeypatch):
    monkeypatch.setenv("FIRSTK_DATA", str(data_folder))
    pairs = tasks.load_stsb()
    found = task({"set": "stsb-genre"})
    names = np.unique(pairs.genres_train)
    held = {}
    for pair, genre in zip(pairs.pairs_train, pairs.genres_train, strict=True):
        for row in pair:
            held.setdefault(int(row), genre)
    rows = sorted(held)
    np.testing.assert_array_equal(found.X, pairs.vectors[rows])
    assert [names[label] for label in found.y] == [held[row] for row in rows]


def test_products_of_a_pair_sum_to_its_dot_product(data_folder, monkeypatch):
    monkeypatch.setenv("FIRSTK_DATA", str(data_folder))
    left, right, scores = tasks.load_stsb().part("train")
    found = task({"set": "stsb-score"})
    np.testing.assert_allclose(found.X.sum(axis=1), np.sum(left * right, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(found.y, scores)
    assert found.moments().q == 1


def test_shuffled_labels_are_the_same_labels_elsewhere(data_folder, monkeypatch):
    monkeypatch.setenv("FIRSTK_DATA", str(data_folder))
    cell = {"set": "banking77", "rows": 50, "seed": 1}
    plain, shuffled = task(cell), task({**cell, "shuffled": True})
    np.testing.assert_array_equal(np.sort(plain.y), np.sort(shuffled.y))
    assert not np.array_equal(plain.y, shuffled.y)
    np.testing.assert_array_equal(plain.X, shuffled.X)


def test_an_unknown_set_raises():
    with pytest.raises(InvalidInputError, match="banking77"):
        task({"set": "imagenet"})


def test_titles_say_what_was_changed():
    assert title({"set": "cifar10", "pool": 2, "rows": 5000}) == "CIFAR-10, 2 x 2 pooled, 5,000 rows"
    assert title({"set": "mnist"}) == "MNIST"
