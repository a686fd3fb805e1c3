"""Image sets from OpenML, for users without local files.

One call to scikit-learn, followed by checks that the table is the expected set.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk_papers.datasets.folder import MissingDataError


@dataclass(frozen=True)
class Source:
    """A set on OpenML: all images in one table, the training part first.

    Attributes
    ----------
    name : str
        Its name on OpenML, version 1.
    n_train : int
        Number of rows of the training part.
    test_counts : tuple of int
        Rows per class in the test part, used to check that the rows are in the expected order.
    image_shape : tuple of int
    """

    name: str
    n_train: int
    test_counts: tuple[int, ...]
    image_shape: tuple[int, ...]


MNIST = Source("mnist_784", 60000, (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009), (28, 28))
FASHION_MNIST = Source("Fashion-MNIST", 60000, (1000,) * 10, (28, 28))
CIFAR10 = Source("CIFAR_10", 50000, (1000,) * 10, (32, 32, 3))


def fetch(source: Source, home: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (train images, train labels, test images, test labels) as uint8 and int64.

    Images have shape (n, *image_shape). Downloads are cached in `home/openml`.
    """
    from sklearn.datasets import fetch_openml

    # scikit-learn's fast parser needs pandas, which firstk does not require; the other parser is slower.
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    try:
        pixels, labels = fetch_openml(
            source.name,
            version=1,
            data_home=str(home / "openml"),
            return_X_y=True,
            as_frame=False,
            parser=parser,
        )
    except (OSError, HTTPException, ValueError) as error:
        raise MissingDataError(
            f"'{source.name}' could not be fetched from OpenML into {home / 'openml'} "
            f"({type(error).__name__}: {error}). Check the connection and the right to write there, "
            "or put the files of the set into that data folder (see its reader's documentation)."
        ) from None
    images, numbers = _decode(source, np.asarray(pixels), np.asarray(labels))
    cut = source.n_train
    return images[:cut], numbers[:cut], images[cut:], numbers[cut:]


def _decode(source: Source, pixels: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Check the table against the known properties of the set, and convert it to images and class indices."""
    n = source.n_train + sum(source.test_counts)
    p = int(np.prod(source.image_shape))
    if pixels.shape != (n, p) or labels.shape != (n,):
        raise InvalidInputError(
            f"OpenML's '{source.name}' should be {n} rows of {p} pixels with a label each. "
            f"Got shapes {pixels.shape} and {labels.shape}. "
            "Delete the downloaded copy and try again, or use the files of the set."
        )
    try:
        numbers = labels.astype(np.int64)  # the pandas parser returns strings
        counts = np.bincount(numbers[source.n_train :], minlength=len(source.test_counts)).tolist()
        images = _as_bytes(pixels)
    except ValueError as error:
        raise InvalidInputError(
            f"OpenML's '{source.name}' should hold class numbers and pixels from 0 to 255 ({error}). "
            "Delete the downloaded copy and try again, or use the files of the set."
        ) from None
    if counts != list(source.test_counts):
        raise InvalidInputError(
            f"The last {n - source.n_train} rows of OpenML's '{source.name}' should be the test part, with "
            f"{list(source.test_counts)} images per class. Got {counts}: the rows are in another order. "
            "Use the files of the set."
        )
    if len(source.image_shape) == 3:
        # Color images are stored as planes: all red, all green, all blue (n, 3, rows, columns).
        rows, columns, channels = source.image_shape
        images = images.reshape(n, channels, rows, columns).transpose(0, 2, 3, 1)
    return images.reshape(n, *source.image_shape), numbers


def _as_bytes(pixels: np.ndarray) -> np.ndarray:
    """Return pixels as uint8; raise InvalidInputError for numbers that a byte cannot hold."""
    low, high = pixels.min(), pixels.max()
    if not (low >= 0 and high <= 255):  # NaN fails both
        raise ValueError(f"pixels reach from {low} to {high}")
    return pixels.astype(np.uint8)
