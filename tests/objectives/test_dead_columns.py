"""A dead output of the embedding model: no closed form gives rounding errors a weight that decides neighbors."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import Fisher, Mixture, PrefixEncoder, Regression, Similarity
from firstk.metrics import nearest_neighbor_accuracy
from firstk.objectives import Classification, Denoising
from firstk_papers.datasets import load_banking77

NOISE = 1e-6


def embeddings(rows=900, width=24, classes=12):
    """Return unit vectors of a dozen classes, float32, of which column 5 holds nothing but rounding errors."""
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=rows)
    X = rng.standard_normal((classes, width))[y] + 0.8 * rng.standard_normal((rows, width))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[:, 5] = 6e-8 * rng.choice([-1, 0, 0, 1], rows)
    return X.astype(np.float32), y


def accuracy(encoder, X, y, queries, y_queries):
    return nearest_neighbor_accuracy(
        encoder.transform(queries), y_queries, encoder.transform(X), y, ks=[encoder.n_components_]
    )[0]


def drop(encoder, X, y, queries, y_queries):
    """Return by how much noise on the queries changes 1-NN accuracy."""
    noise = NOISE * np.random.default_rng(1).standard_normal(queries.shape)
    clean = accuracy(encoder, X, y, queries, y_queries)
    return abs(clean - accuracy(encoder, X, y, (queries + noise).astype(queries.dtype), y_queries))


def one_hot(y):
    return (y[:, None] == np.unique(y)).astype(float)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "objective",
    [Fisher(None), Regression(), Mixture(), Mixture(lam=0.0), Similarity(shrinkage=None), Denoising()],
    ids=lambda objective: f"{objective.name}{getattr(objective, 'lam', '')}",
)
def test_noise_of_a_millionth_changes_no_neighbors(objective, dtype):
    X, y = embeddings()
    target = one_hot(y) if objective.name == "regression" else y
    encoder = PrefixEncoder(objective=objective).fit(X[:600].astype(dtype), target[:600])
    assert np.all(encoder.components_[:, 5] == 0)
    assert drop(encoder, X[:600].astype(dtype), y[:600], X[600:].astype(dtype), y[600:]) < 0.005


def test_pairs_and_few_rows():
    X, y = embeddings()
    encoder = PrefixEncoder(objective=Similarity(shrinkage=None, neighbor_weight=0.0)).fit_pairs(X[:-1], X[1:])
    assert np.all(encoder.components_[:, 5] == 0)
    few = PrefixEncoder(objective=Fisher()).fit(X[:20], y[:20] % 3)  # in a basis of the row space
    assert np.abs(few.components_).max() < 1e4


def test_training_starts_without_the_dead_column():
    X, y = embeddings()
    goal = Classification(shrinkage=None)
    encoder = PrefixEncoder(8, objective=goal, random_state=0).fit(X[:600], y[:600])
    assert drop(encoder, X[:600], y[:600], X[600:], y[600:]) < 0.005


def test_columns_in_other_units_keep_their_weight():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=300)
    X = rng.standard_normal((300, 4)) + y[:, None]
    plain, scaled = (PrefixEncoder(objective=Fisher(None)).fit(X * units, y) for units in (1.0, [1.0, 1e-9, 1e4, 1.0]))
    np.testing.assert_allclose(scaled.spectrum_, plain.spectrum_, rtol=1e-6)


@pytest.mark.parametrize("objective", [Fisher(), Regression()], ids=lambda objective: objective.name)
def test_banking77(objective, data_folder):
    data = load_banking77(data_folder)
    target = one_hot(data.y_train) if objective.name == "regression" else data.y_train
    encoder = PrefixEncoder(objective=objective).fit(data.X_train, target)
    queries, labels = data.X_test[::3], data.y_test[::3]
    assert np.abs(encoder.components_).max() < 1e3
    assert accuracy(encoder, data.X_train, data.y_train, queries, labels) > 0.85
    assert drop(encoder, data.X_train, data.y_train, queries, labels) < 0.005
