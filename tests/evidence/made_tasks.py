"""Small made-up tasks of each kind, for the harness of `benchmarks.evidence`."""

from __future__ import annotations

import numpy as np
from benchmarks.evidence import scores
from benchmarks.evidence.data import Part, Sealed, Task

P, CLASSES = 160, 6


def drawn(n, seed):
    """Return rows of six classes, whose means are on fifteen directions of a long spectrum."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    means = np.random.default_rng(9).standard_normal((CLASSES, P)) * (np.arange(P) < 15)
    X = rng.standard_normal((n, P)) * np.linspace(1.5, 0.5, P) + means[y]
    return X.astype(np.float32), y


def labelled(score=scores.nearest):
    """Return a task with labels; `opened` counts how often its test part was read."""
    X, y = drawn(400, 0)
    opened = []

    def test():
        opened.append(1)
        return scores.Labelled(X, y, *drawn(90, 2))

    task = Task(
        "made", "made", "accuracy", training=Part(X, y), everything=Part(X, y),
        validation=scores.Labelled(X, y, *drawn(60, 1)), test=Sealed(test), score=score,
    )  # fmt: skip
    return task, opened


def paired(scored):
    """Return a task of pairs, scored or positives."""
    X, _ = drawn(300, 3)
    rng = np.random.default_rng(4)
    right = X + 0.5 * rng.standard_normal(X.shape).astype(np.float32)
    if scored:
        other = rng.permutation(len(X))
        right = np.where((np.arange(len(X)) % 2 == 0)[:, None], right, X[other])
        grades = np.where(np.arange(len(X)) % 2 == 0, 4.0, 1.0) + rng.random(len(X))
        part = (X, right, grades)
        return Task(
            "made", "made", "Spearman", training=Part(X, pairs=part), everything=Part(X, pairs=part), validation=part,
            test=Sealed(lambda: part), score=scores.spearman,
        )  # fmt: skip
    search = scores.Search(right, X[:40], tuple({i: 1.0} for i in range(40)), np.arange(40) < 20)
    part = Part(right, pairs=(X, right, None))
    return Task(
        "made", "made", "nDCG@10", training=part, everything=part,
        validation=search, test=Sealed(lambda: search), score=scores.ndcg,
    )  # fmt: skip
