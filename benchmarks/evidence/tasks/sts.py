"""STS benchmark: Spearman of cosines and annotators' scores; the official training, dev and test parts."""

from __future__ import annotations

import numpy as np

from benchmarks.evidence import scores
from benchmarks.evidence.data import Part, Sealed, Task
from benchmarks.evidence.tasks.files import about, vectors


def pairs(model: str, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return left sides, right sides and scores of a part."""
    E, rows = vectors("sts", model, "E"), about("sts", f"pairs_{name}")
    return E[rows[:, 0]], E[rows[:, 1]], about("sts", f"score_{name}").astype(np.float64)


def sentences(model: str) -> np.ndarray:
    """Return the different sentences of the training part."""
    return vectors("sts", model, "E")[np.unique(about("sts", "pairs_train"))]


def task(model: str) -> Task:
    """Return the task; settings are chosen on dev, and what is fitted in the end is fitted on the training part too."""
    part = Part(sentences(model), pairs=pairs(model, "train"))
    return Task(
        "sts", model, "Spearman",
        training=part, everything=part, validation=pairs(model, "dev"),
        test=Sealed(lambda: pairs(model, "test")), score=scores.spearman,
    )  # fmt: skip
