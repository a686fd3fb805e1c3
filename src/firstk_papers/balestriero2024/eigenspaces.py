"""The eigen-subspaces of an image set: the shares of variance of its top and bottom, and images projected on them.

Every study of images and networks reads its data here, so that "top" and "bottom" mean one thing (Balestriero and LeCun
2024 section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from firstk import PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk_papers.datasets.images import images
from firstk_papers.frame.checks import check_choice

ENDS = ("top", "bottom", "whole")


@dataclass(frozen=True, eq=False)
class Pixels:
    """The first training and test images of a set, one flattened image a row, colors of a pixel side by side."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    shape: tuple[int, int, int]  # rows, columns, channels


@lru_cache(maxsize=2)
def pixels(name: str, rows: int, test_rows: int, shrink: int = 1) -> Pixels:
    """Return the first images of a set; `shrink` = 2 takes the mean of each 2 x 2 pixels, for quick runs."""
    found = images(name)
    height, width = found.image_shape[:2]
    if height % shrink or width % shrink:
        raise InvalidInputError(f"Images of {height} x {width} pixels cannot be shrunk by {shrink}.")
    channels = found.X_train.shape[1] // (height * width)

    def shrunk(X: np.ndarray) -> np.ndarray:
        blocks = X.reshape(len(X), height // shrink, shrink, width // shrink, shrink, channels)
        return blocks.mean(axis=(2, 4)).reshape(len(X), -1)

    return Pixels(
        shrunk(found.X_train[:rows]),
        found.y_train[:rows],
        shrunk(found.X_test[:test_rows]),
        found.y_test[:test_rows],
        (height // shrink, width // shrink, channels),
    )


@dataclass(frozen=True, eq=False)
class Eigenspaces:
    """Principal axes of the training images, and the variance of all axes together.

    Single precision cuts the axes at its rounding (1,487 of 3,072 for CIFAR-10), so `total` is taken from the images:
    the bottom is what the top leaves, cut axes included.
    """

    encoder: PrefixEncoder
    total: float

    @property
    def shares(self) -> np.ndarray:
        """Share of variance that the first k axes hold, from k = 0 on."""
        return np.concatenate([[0.0], np.cumsum(self.encoder.spectrum_)]) / self.total

    def cut(self, end: str, share: float) -> int:
        """Return k, the number of leading axes that are kept ("top") or removed ("bottom").

        The top is the fewest leading axes that hold at least `share` of the variance; the bottom is what is left when
        the fewest leading axes are removed such that it holds at most `share`. So the top never has less than it is
        said to have, and the bottom never more.
        """
        check_choice(end, ENDS, "end", "Eigenspaces.cut")
        if end == "whole":
            return 0
        least = share if end == "top" else 1 - share
        k = int(np.searchsorted(self.shares, least - 1e-9))
        if k >= len(self.shares):
            raise InvalidInputError(
                f"The axes above rounding hold {self.shares[-1]:.4%} of the variance, so there is no {end} of {share}."
            )
        return k

    def kept(self, end: str, k: int) -> float:
        """Return the share of variance of the subspace that `cut` describes."""
        return float(self.shares[k] if end == "top" else 1 - self.shares[k])

    def project(self, X: np.ndarray, end: str, k: int) -> np.ndarray:
        """Return images, less their mean, projected on one end of the spectrum."""
        centred = X - self.encoder.mean_.astype(X.dtype)
        if k == 0:
            return centred if end != "top" else np.zeros_like(X)
        short = self.encoder[:k]
        top = short.inverse_transform(short.transform(X)) - self.encoder.mean_.astype(X.dtype)
        return top if end == "top" else centred - top


@lru_cache(maxsize=2)
def eigenspaces(name: str, rows: int, shrink: int = 1) -> Eigenspaces:
    """Return the eigenspaces of the first training images of a set: PCA in closed form, read once a process."""
    X = pixels(name, rows, 1, shrink).X_train
    return Eigenspaces(PrefixEncoder("rank").fit(X), float(X.var(axis=0, dtype=np.float64).sum()))
