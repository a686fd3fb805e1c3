"""Containers of data sets: frozen dataclasses of arrays, one per kind of task.

They hold arrays and names only and read no files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """Labelled rows in a training and a test part.

    Attributes
    ----------
    name : str
    X_train, X_test : ndarray of shape (n, p), float32
    y_train, y_test : ndarray of shape (n,), int64
    """

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def X(self) -> np.ndarray:
        """All rows, training part first."""
        return np.concatenate([self.X_train, self.X_test])

    @property
    def y(self) -> np.ndarray:
        """All labels, in the order of `X`."""
        return np.concatenate([self.y_train, self.y_test])


@dataclass(frozen=True, eq=False)
class ImageSet(LabelledSet):
    """Labelled images, one flattened image per row, in a training and a test part.

    Talukder et al. 2026 C.1 make their own split of all 70,000: `X` and `y`.

    Attributes
    ----------
    X_train, X_test : ndarray of shape (n, p), float32
        Pixels in [0, 1]: the stored integer divided by its maximum (255; 16 for digits), so that
        `round(X * 255)` gives the stored bytes back. `X_train.reshape(-1, *image_shape)` are the images.
    name, y_train, y_test
        As in `LabelledSet`; class indices into `class_names`.
    image_shape : tuple of int
        (rows, columns) or (rows, columns, channels).
    class_names : tuple of str
    """

    image_shape: tuple[int, ...]
    class_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LabelledEmbeddings(LabelledSet):
    """Embedded texts with one class each, in a training and a test part.

    Attributes
    ----------
    X_train, X_test : ndarray of shape (n, p), float32
        As stored, widened from float16: unit length up to 16-bit rounding (a few parts in ten thousand).
    name, y_train, y_test
        As in `LabelledSet`.
    class_names : tuple of str
    """

    class_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LabelledTexts(LabelledEmbeddings):
    """Embedded texts with one class each, and the texts themselves.

    Attributes
    ----------
    name, X_train, y_train, X_test, y_test, class_names
        As in `LabelledEmbeddings`.
    texts_train, texts_test : tuple of str
        The text of each row.
    ids_train, ids_test : tuple of str
        Part and row of each text in the source, such as "train-17".
    """

    texts_train: tuple[str, ...]
    texts_test: tuple[str, ...]
    ids_train: tuple[str, ...]
    ids_test: tuple[str, ...]
