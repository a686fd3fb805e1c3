"""Banking77: 77 intents, the official training and test parts; a fifth of each intent's training rows validates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.evidence import scores
from benchmarks.evidence.data import Part, Sealed, Task
from benchmarks.evidence.tasks.files import about, part_of, vectors


def _task(name: str, measure: str, model: str, score: Callable[..., Any]) -> Task:
    X, y = vectors("banking77", model, "X_train"), about("banking77", "y_train")
    held = part_of(len(y), 0.2, 0, y)
    return Task(
        name, model, measure,
        training=Part(X[~held], y[~held]),
        everything=Part(X, y),
        validation=scores.Labelled(X[~held], y[~held], X[held], y[held]),
        test=Sealed(lambda: scores.Labelled(X, y, vectors("banking77", model, "X_test"), about("banking77", "y_test"))),
        score=score,
    )  # fmt: skip


def nearest(model: str) -> Task:
    """Return 1-NN accuracy by cosine."""
    return _task("banking77 1-NN", "1-NN accuracy", model, scores.nearest)


def few_shot(model: str) -> Task:
    """Return the accuracy of logistic regression on 8 rows of each intent, as mteb has it."""
    return _task("banking77 few-shot", "accuracy of logistic regression, 8 rows a class", model, scores.few_shot)


def clusters(model: str) -> Task:
    """Return the V-measure of 77 clusters of the test rows."""
    return _task("banking77 clusters", "V-measure", model, scores.clusters)
