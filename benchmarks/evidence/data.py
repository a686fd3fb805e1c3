"""What a method is given, and what it is not: parts to fit and to choose on, and a sealed test part.

A test part is a function that reads it, and files of test parts cannot be read until fitting is over. So nothing can be
chosen on test data, also not by mistake.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_FITTING = False


class PeekedError(RuntimeError):
    """A test part was asked for while a method was being fitted or chosen."""


@contextmanager
def fitting() -> Iterator[None]:
    """Keep test parts sealed within this block."""
    global _FITTING
    before, _FITTING = _FITTING, True
    try:
        yield
    finally:
        _FITTING = before


def check_open(what: str) -> None:
    """Raise an error while anything is being fitted or chosen."""
    if _FITTING:
        raise PeekedError(
            f"{what} was asked for while a method was being fitted or its settings chosen. Methods get the training "
            "and the validation part only."
        )


@dataclass(frozen=True, eq=False)
class Part:
    """Vectors to learn from, with labels or pairs where the task has them.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        What an unsupervised method fits on.
    y : ndarray of shape (n,), optional
    pairs : tuple of ndarrays, optional
        Left sides, right sides (m, p) and scores (m,), or None instead of scores where all pairs are positives.
    """

    X: np.ndarray
    y: np.ndarray | None = None
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None = None

    def digest(self) -> str:
        """Return a hash of everything that a method can learn from."""
        found = hashlib.sha256()
        for array in (self.X, self.y, *(self.pairs or ())):
            found.update(b"-" if array is None else repr((array.shape, array.dtype.str)).encode())
            found.update(b"" if array is None else np.ascontiguousarray(array).data)
        return found.hexdigest()


# Codes of rows at a length, for documents, for queries, or for rows like documents that are not stored ("row").
Encode = Callable[[np.ndarray, int, str], np.ndarray]


@dataclass(frozen=True, eq=False)
class Sealed:
    """A test part behind a function that reads it."""

    read: Callable[[], Any] = field(repr=False)

    def opened(self) -> Any:
        """Return the test part; an error while anything is being fitted."""
        check_open("a test part")
        return self.read()


@dataclass(frozen=True, eq=False)
class Task:
    """A task of one model's vectors.

    Attributes
    ----------
    name, model : str
    measure : str
        What is scored.
    training, everything : Part
        What methods are fitted on to choose settings, and, these chosen, for the test.
    validation : object
        What settings are chosen on, as `score` takes it.
    test : Sealed
    score : callable
        Scores of codes by row, query or pair and length: ``score(encode, part, ks) -> {name of part: PerRowScores}``.
    chosen_by : str
        The part of the scores by which settings are chosen.
    """

    name: str
    model: str
    measure: str
    training: Part
    everything: Part
    validation: Any
    test: Sealed
    score: Callable[[Encode, Any, tuple[int, ...]], dict[str, Any]]
    chosen_by: str = "all"
