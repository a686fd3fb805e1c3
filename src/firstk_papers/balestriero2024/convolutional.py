"""Small convolutional networks for images, and the one loop that trains them: no part of the library.

They take the place of the ResNets of Balestriero and LeCun 2024, at a size that one core trains in half a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

SHIFT = 4  # pixels an augmented image moves at most, as is usual for images of 32 x 32
EVALUATED = 1000  # images at a time


class Residual(nn.Module):
    """``x + f(x)``."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Add the inner network's answer to its input."""
        return x + self.inner(x)


def convolved(inputs: int, outputs: int, *, size: int = 3, stride: int = 1) -> nn.Sequential:
    """Return a convolution with batch norm and ReLU."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, 1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())


def classifier(channels: int, classes: int, width: int) -> nn.Module:
    """Return four convolutions, one of them residual, of `width` to 4 `width` channels, and a linear head."""
    network = nn.Sequential(
        convolved(channels, width),
        nn.MaxPool2d(2),
        convolved(width, 2 * width),
        nn.MaxPool2d(2),
        Residual(convolved(2 * width, 2 * width)),
        convolved(2 * width, 4 * width),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, classes),
    )
    return channels_last(network)


def channels_last(network: nn.Sequential) -> nn.Sequential:
    """Store the colors of a pixel side by side in memory, which one core convolves faster."""
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def as_images(X: np.ndarray, shape: tuple[int, int, int]) -> Tensor:
    """Return rows as images (n, channels, rows, columns), with the colors of a pixel side by side in memory."""
    return torch.from_numpy(X.reshape(len(X), *shape)).permute(0, 3, 1, 2)


def as_rows(images: Tensor) -> np.ndarray:
    """Return images as rows: the inverse of `as_images`."""
    return images.permute(0, 2, 3, 1).reshape(len(images), -1).numpy()


def augmented(images: Tensor, generator: torch.Generator) -> Tensor:
    """Move each image by up to four pixels, zeros coming in, and mirror half of them."""
    n, _, height, width = images.shape
    shift = min(SHIFT, height // 8)
    padded = nn.functional.pad(images, (shift,) * 4)
    corner = torch.randint(0, 2 * shift + 1, (2, n, 1), generator=generator)
    mirrored = torch.rand(n, 1, generator=generator) < 0.5
    down = corner[0] + torch.arange(height)
    along = torch.arange(width).expand(n, width)
    along = corner[1] + torch.where(mirrored, along.flip(1), along)
    pick = torch.arange(n)[:, None, None]
    moved = padded.permute(0, 2, 3, 1)[pick, down[:, :, None], along[:, None, :]]  # (n, rows, columns, channels)
    return moved.permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Schedule:
    """How a network is trained: Adam, with one cycle of the rate up and down, or at a constant rate."""

    epochs: int
    batch: int
    rate: float
    one_cycle: bool


def training(
    network: nn.Module, n: int, loss: Callable[[Tensor], Tensor], schedule: Schedule, generator: torch.Generator
) -> Iterator[int]:
    """Train, step by step; yield the number of steps done after each.

    Parameters
    ----------
    network : nn.Module
    n : int
        Rows of the training set. Each epoch visits whole batches of them in a new order.
    loss : callable
        Rows of a batch -> its loss.
    schedule : Schedule
    generator : torch.Generator
        Of the order.
    """
    per_epoch = max(1, n // schedule.batch)
    optimizer = torch.optim.Adam(network.parameters(), schedule.rate)
    cycle = None
    if schedule.one_cycle:
        total = per_epoch * schedule.epochs
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, schedule.rate, total_steps=total)
    step = 0
    for _ in range(schedule.epochs):
        order = torch.randperm(n, generator=generator)
        for rows in order.split(schedule.batch)[:per_epoch]:
            network.train()
            optimizer.zero_grad()
            loss(rows).backward()
            optimizer.step()
            if cycle is not None:
                cycle.step()
            step += 1
            yield step


def evaluated(network: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """Return a network's answers, block by block, with batch norm at rest."""
    if isinstance(network, nn.Module):
        network.eval()
    with torch.no_grad():
        return torch.cat([network(block) for block in images.split(EVALUATED)])
