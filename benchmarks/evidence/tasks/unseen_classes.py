"""Unseen classes: codes are fitted on 50 intents of Banking77 and search among the other 27.

Settings are chosen in the same way: fitted on 35 of the 50, they search among the other 15.
"""

from __future__ import annotations

import numpy as np

from benchmarks.evidence import scores
from benchmarks.evidence.data import Part, Sealed, Task
from benchmarks.evidence.tasks.files import about, part_of, vectors

SEEN, TO_CHOOSE = 50, 15


def task(model: str) -> Task:
    """Return 1-NN accuracy among classes that no label was given of."""
    X, y = vectors("banking77", model, "X_train"), about("banking77", "y_train")
    order = np.random.default_rng(11).permutation(np.unique(y))
    seen, held = np.isin(y, order[:SEEN]), np.isin(y, order[:TO_CHOOSE])
    asked = part_of(len(y), 0.2, 0, y)
    fitted = seen & ~held

    def test() -> scores.Labelled:
        X_test, y_test = vectors("banking77", model, "X_test"), about("banking77", "y_test")
        other = ~np.isin(y_test, order[:SEEN])
        return scores.Labelled(X[~seen], y[~seen], X_test[other], y_test[other])

    return Task(
        "banking77 unseen classes", model, "1-NN accuracy",
        training=Part(X[fitted], y[fitted]),
        everything=Part(X[seen], y[seen]),
        validation=scores.Labelled(X[held & ~asked], y[held & ~asked], X[held & asked], y[held & asked]),
        test=Sealed(test),
        score=scores.nearest,
    )  # fmt: skip
