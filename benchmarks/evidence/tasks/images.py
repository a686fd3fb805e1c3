"""Images, 1-NN accuracy and that of logistic regression on the codes of 10,000 of them.

Fashion-MNIST as pixels, and CIFAR-10 as 1,280 features of a frozen network (`python -m benchmarks.image_features`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.evidence import scores
from benchmarks.evidence.data import Part, Sealed, Task
from benchmarks.evidence.tasks.files import image_vectors, part_of

ROWS, QUERIES = 10_000, 5_000


def _task(name: str, measure: str, model: str, score: Callable[..., Any]) -> Task:
    data = name.split()[0]
    X, y = _some(*image_vectors(data, model, "train"), ROWS, 0)
    held = part_of(len(y), 0.2, 0, y)

    def test() -> scores.Labelled:
        return scores.Labelled(X, y, *_some(*image_vectors(data, model, "test"), QUERIES, 1))

    return Task(
        name, model, measure,
        training=Part(X[~held], y[~held]), everything=Part(X, y),
        validation=scores.Labelled(X[~held], y[~held], X[held], y[held]), test=Sealed(test), score=score,
    )  # fmt: skip


def _some(X: np.ndarray, y: np.ndarray, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(seed).permutation(len(X))[:rows]
    return X[drawn], y[drawn]


def fashion_nearest(model: str) -> Task:
    """Return 1-NN accuracy on Fashion-MNIST; the model is "pixels"."""
    return _task("fashion-mnist 1-NN", "1-NN accuracy", model, scores.nearest)


def fashion_linear(model: str) -> Task:
    """Return the accuracy of logistic regression on Fashion-MNIST."""
    return _task("fashion-mnist linear", "accuracy of logistic regression", model, scores.linear)


def cifar10_nearest(model: str) -> Task:
    """Return 1-NN accuracy on features of CIFAR-10; the model is "efficientnet"."""
    return _task("cifar10 1-NN", "1-NN accuracy", model, scores.nearest)


def cifar10_linear(model: str) -> Task:
    """Return the accuracy of logistic regression on features of CIFAR-10."""
    return _task("cifar10 linear", "accuracy of logistic regression", model, scores.linear)
