"""What trained peers share: batches, Adam, and codes of a torch module."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.evidence.data import Encode
from benchmarks.evidence.methods import contract

BATCH, EPOCHS = 256, 20
# Lists of lengths have all that are evaluated.
LENGTHS = contract.LENGTHS["coordinates"]


def train(
    parameters: Iterable[nn.Parameter], rows: int, loss: Callable[[Tensor], Tensor], rate: float, epochs: int = EPOCHS
) -> None:
    """Minimize a loss of row numbers by Adam, with a rate that falls to zero."""
    steps = epochs * max(1, rows // BATCH)
    adam = torch.optim.Adam(list(parameters), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda t: 1 - t / steps)
    for _ in range(epochs):
        for batch in torch.randperm(rows).split(BATCH)[: max(1, rows // BATCH)]:
            adam.zero_grad()
            loss(batch).backward()
            adam.step()
            schedule.step()


def encode_with(module: nn.Module) -> Encode:
    """Return the first coordinates of a module's outputs."""

    def encode(X: np.ndarray, k: int, side: str) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = module.eval()(torch.tensor(X, dtype=torch.float32))[:, :k].numpy()
        return found

    return encode
