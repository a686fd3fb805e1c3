"""Rows with a task, by name: images and embedded texts on which closed forms are measured.

A task is named by a cell (set, rows, pool, seed), so that every study draws the same rows for the same cell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from firstk import Moments
from firstk_papers.datasets import ScoredPairs, load_banking77, load_stsb
from firstk_papers.datasets.images import images
from firstk_papers.frame.checks import check_choice
from firstk_papers.frame.types import JsonObject

MOST_TEST = 5_000
IMAGES = ("mnist", "fashion-mnist", "cifar10")
TEXTS = ("banking77", "stsb-genre", "stsb-score")
TITLES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "banking77": "Banking77, 77 intents",
    "stsb-genre": "STS sentences, 3 genres",
    "stsb-score": "STS pairs, score",
}


@dataclass(frozen=True, eq=False)
class Task:
    """Rows with labels or targets.

    Attributes
    ----------
    X, X_test : ndarray of shape (n, p)
    y, y_test : ndarray of shape (n,)
        Class numbers; numbers for a task with targets.
    numeric : bool
        Whether `y` are targets.
    shape : tuple of int or None
        (rows, columns) or (rows, columns, channels) of images.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    numeric: bool = False
    shape: tuple[int, ...] | None = None

    def moments(self) -> Moments:
        """Return the moments of rows and targets, all in float64: small eigenvalues matter here."""
        moments = Moments(precision="float64")
        return moments.update(self.X, targets=self.y) if self.numeric else moments.update(self.X, self.y)


def task(cell: JsonObject) -> Task:
    """Return the task of a cell: `set`, and where given `rows` (a random subset), `pool`, `shuffled` and `seed`."""
    found = _drawn(cell["set"], cell.get("rows"), cell.get("pool", 1), cell.get("seed", 0))
    if not cell.get("shuffled"):
        return found
    return replace(found, y=np.random.default_rng(cell.get("seed", 0)).permutation(found.y))


def title(cell: JsonObject) -> str:
    """Name a cell's task in a figure."""
    pool, rows = cell.get("pool", 1), cell.get("rows")
    name = TITLES[cell["set"]] + (f", {pool} x {pool} pooled" if pool > 1 else "")
    return name + (f", {rows:,} rows" if rows else "") + (", labels shuffled" if cell.get("shuffled") else "")


def pooled(X: np.ndarray, shape: tuple[int, ...], side: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return images of means over squares of `side` pixels, flattened, and their shape.

    Examples
    --------
    >>> pooled(np.arange(8.0).reshape(1, 8), (2, 4), 2)
    (array([[2.5, 4.5]]), (1, 2))
    """
    if side == 1:
        return X, shape
    height, width, channels = (*shape, 1)[:3]
    squares = X.reshape(len(X), height // side, side, width // side, side, channels)
    small = squares.mean(axis=(2, 4))  # (n, height / side, width / side, channels)
    return small.reshape(len(X), -1), (height // side, width // side, *shape[2:])


@lru_cache(maxsize=2)
def _drawn(name: str, rows: int | None, pool: int, seed: int) -> Task:
    found = _whole(name)
    X, y = _some(found.X, found.y, rows, seed)
    X_test, y_test = _some(found.X_test, found.y_test, MOST_TEST, seed)
    if found.shape is None:
        return replace(found, X=X, y=y, X_test=X_test, y_test=y_test)
    X, shape = pooled(X, found.shape, pool)
    return replace(found, X=X, y=y, X_test=pooled(X_test, found.shape, pool)[0], y_test=y_test, shape=shape)


def _some(X: np.ndarray, y: np.ndarray, rows: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows without replacement, in their own order."""
    if rows is None or rows >= len(X):
        return X, y
    chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[:rows])
    return X[chosen], y[chosen]


def _whole(name: str) -> Task:
    check_choice(name, (*IMAGES, *TEXTS), "set", "task")
    if name in IMAGES:
        found = images(name)
        return Task(found.X_train, found.y_train, found.X_test, found.y_test, shape=found.image_shape)
    if name == "banking77":
        texts = load_banking77()
        return Task(texts.X_train, texts.y_train, texts.X_test, texts.y_test)
    pairs = load_stsb()
    if name == "stsb-score":
        # The products u * v sum to the cosine, so that a linear readout of them is a weighted cosine.
        (left, right, scores), (left_test, right_test, scores_test) = pairs.part("train"), pairs.part("test")
        return Task(left * right, scores, left_test * right_test, scores_test, numeric=True)
    return Task(*_by_genre(pairs, "train"), *_by_genre(pairs, "test"))


def _by_genre(pairs: ScoredPairs, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct sentences of a part, each with the genre of the first pair that holds it."""
    rows, first = np.unique(getattr(pairs, f"pairs_{part}").ravel(), return_index=True)
    genre = np.unique(getattr(pairs, f"genres_{part}"), return_inverse=True)[1]
    return pairs.vectors[rows], np.repeat(genre, 2)[first]
