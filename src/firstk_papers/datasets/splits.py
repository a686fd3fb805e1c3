"""Training, validation and test parts with exact counts, as in the experiments of Talukder et al. 2026 (C.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

_VALIDATION, _TEST = 0.1, 0.2


class Split(NamedTuple):
    """Three disjoint parts of one data set, less the mean of the training rows, and their labels."""

    X_train: np.ndarray
    X_val: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_val: np.ndarray
    y_test: np.ndarray


def split(X: np.ndarray, y: np.ndarray, *, random_state: int = 0) -> Split:
    """Split 70/10/20, stratified by class, centered on the training part, not scaled.

    Examples
    --------
    >>> from firstk.data import load_digits
    >>> parts = split(load_digits().X, load_digits().y)
    >>> len(parts.X_train), len(parts.X_val), len(parts.X_test)
    (1258, 180, 359)
    >>> np.bincount(parts.y_val)[:3].tolist()
    [18, 18, 18]
    """
    seeds = np.random.default_rng(random_state).integers(2**31, size=2).tolist()
    n_val, n_test = round(len(X) * _VALIDATION), round(len(X) * _TEST)
    rest, test = train_test_split(np.arange(len(X)), test_size=n_test, random_state=seeds[0], stratify=y)
    train, val = train_test_split(rest, test_size=n_val, random_state=seeds[1], stratify=y[rest])
    mean = X[train].mean(axis=0, dtype=np.float64).astype(X.dtype)
    return Split(*(X[rows] - mean for rows in (train, val, test)), *(y[rows] for rows in (train, val, test)))
