"""Fashion-MNIST: pixels of 10,000 training and 2,000 test images, 1-NN accuracy."""

from __future__ import annotations

import numpy as np

from benchmarks.evidence import scores
from benchmarks.evidence.data import Part, Sealed, Task
from benchmarks.evidence.tasks.files import part_of
from firstk.data import load_fashion_mnist

ROWS, QUERIES = 10_000, 2_000


def nearest(model: str) -> Task:
    """Return 1-NN accuracy; the model is "pixels"."""
    images = load_fashion_mnist()  # test images are in memory, but no method is given them
    rows = np.random.default_rng(0).permutation(len(images.X_train))[:ROWS]
    X, y = images.X_train[rows], images.y_train[rows]
    held = part_of(len(y), 0.2, 0, y)

    def test() -> scores.Labelled:
        asked = np.random.default_rng(1).permutation(len(images.X_test))[:QUERIES]
        return scores.Labelled(X, y, images.X_test[asked], images.y_test[asked])

    return Task(
        "fashion-mnist 1-NN", model, "1-NN accuracy",
        training=Part(X[~held], y[~held]), everything=Part(X, y),
        validation=scores.Labelled(X[~held], y[~held], X[held], y[held]), test=Sealed(test), score=scores.nearest,
    )  # fmt: skip
