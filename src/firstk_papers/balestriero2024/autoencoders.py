"""Autoencoders of images: a perceptron, convolutions with deconvolutions, and deeper residual convolutions.

They take the place of the networks of Balestriero and LeCun 2024, figures 1 (bottom), 3, 5, 7. Encoder and decoder are
apart, because the code is what a probe reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from torch import Tensor, nn

from firstk.exceptions import InvalidInputError
from firstk_papers.balestriero2024.convolutional import Residual, as_images, channels_last, convolved
from firstk_papers.balestriero2024.eigenspaces import Pixels

Shape = tuple[int, int, int]  # rows, columns, channels
STAGES = 3  # of halving


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """An encoder of images into codes, and a decoder back."""

    encoder: nn.Module
    decoder: nn.Module

    @property
    def both(self) -> nn.Module:
        """The two in a row."""
        return nn.Sequential(self.encoder, self.decoder)


def perceptron(shape: Shape, code: int, width: int) -> Autoencoder:
    """Return one hidden layer on either side; `width` x 32 units."""
    height, columns, channels = shape
    p, hidden = height * columns * channels, 32 * width
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(p, hidden), nn.ReLU(), nn.Linear(hidden, code))
    decoder = nn.Sequential(
        nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, p), nn.Unflatten(1, (channels, height, columns))
    )
    return Autoencoder(encoder, decoder)


def convolutional(shape: Shape, code: int, width: int, *, residual: bool = False) -> Autoencoder:
    """Return three halvings by convolution and three doublings by deconvolution, with a linear code between.

    Parameters
    ----------
    shape : (rows, columns, channels)
        Rows and columns divide by eight.
    code : int
        Width of the code.
    width : int
        Channels of the first stage; the others have twice as many.
    residual : bool
        Add a residual convolution after each stage of both halves but the last.
    """
    height, columns, channels = shape
    if height % 2**STAGES or columns % 2**STAGES:
        raise InvalidInputError(f"Images of {height} x {columns} pixels cannot be halved {STAGES} times.")
    sizes = (channels, width, 2 * width, 2 * width)
    corner = (sizes[-1], height // 2**STAGES, columns // 2**STAGES)
    flat = int(np.prod(corner))

    def more(count: int) -> list[nn.Module]:
        return [Residual(convolved(count, count))] if residual else []

    down: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        down += [convolved(inputs, outputs, size=4, stride=2), *more(outputs)]
    up: list[nn.Module] = []
    for inputs, outputs in zip(sizes[:1:-1], sizes[-2:0:-1], strict=True):
        up += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU(), *more(outputs)]
    encoder = nn.Sequential(*down, nn.Flatten(), nn.Linear(flat, code))
    decoder = nn.Sequential(
        nn.Linear(code, flat), nn.Unflatten(1, corner), *up, nn.ConvTranspose2d(width, channels, 4, 2, 1)
    )
    return Autoencoder(channels_last(encoder), channels_last(decoder))


def deep(shape: Shape, code: int, width: int) -> Autoencoder:
    """Return the convolutional autoencoder with residual convolutions between its stages."""
    return convolutional(shape, code, width, residual=True)


NETWORKS: dict[str, Callable[[Shape, int, int], Autoencoder]] = {
    "perceptron": perceptron,
    "convolutional": convolutional,
    "deep": deep,
}


@dataclass(frozen=True, eq=False)
class Standardised:
    """Images less their mean, divided by one number, so that an error of 1 is that of the mean image."""

    train: Tensor
    test: Tensor
    mean: np.ndarray  # (p,)
    scale: float


def standardised(data: Pixels) -> Standardised:
    """Centre images by the mean training image and divide by the standard deviation of all centred pixels."""
    mean = data.X_train.mean(axis=0)
    scale = float((data.X_train - mean).std(dtype=np.float64))
    train, test = (as_images((X - mean) / np.float32(scale), data.shape) for X in (data.X_train, data.X_test))
    return Standardised(train, test, mean, scale)
