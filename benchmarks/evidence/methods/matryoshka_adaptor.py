"""Matryoshka-Adaptor without labels (Yoon et al. 2024), reimplemented from its description: its code is not public.

A small network with a skip connection is trained on three losses of the listed lengths: cosines of random pairs are to
be those of the full vectors, cosines of near neighbors likewise, and outputs are to stay near their inputs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.methods.training import LENGTHS, encode_with, train

NEIGHBORS = 10


class Adaptor(nn.Module):
    """x + W2 relu(W1 x); the second layer is zero at first."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(self.second.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the adapted vectors."""
        return x + self.second(F.relu(self.first(x)))


def similarity_losses(x: Tensor, z: Tensor) -> Tensor:
    """Return the mean distance of cosines of prefixes from those of x, over all pairs and over near ones."""
    wanted = F.normalize(x) @ F.normalize(x).t()
    near = wanted.fill_diagonal_(-1.0).topk(min(NEIGHBORS, len(x) - 1), dim=1)
    total = z.new_zeros(())
    for k in (length for length in LENGTHS if length < z.shape[1]):
        found = F.normalize(z[:, :k]) @ F.normalize(z[:, :k]).t()
        apart = (found - wanted).abs()
        apart = apart - torch.diag(apart.diagonal())
        total = total + apart.mean() + (found.gather(1, near.indices) - near.values).abs().mean()
    return total / len(LENGTHS)


def fit(part: Part, setting: tuple[float, float], seed: int) -> Encode:
    """Train the adaptor; settings are the learning rate and the weight of staying near the input."""
    torch.manual_seed(seed)
    rate, near = setting
    X = torch.tensor(part.X, dtype=torch.float32)
    model = Adaptor(X.shape[1])

    def loss(rows: Tensor) -> Tensor:
        x = X[rows]
        z = model(x)
        return similarity_losses(x, z) + near * (z - x).abs().mean()

    train(model.parameters(), len(X), loss, rate)
    return encode_with(model)


METHOD = Method(
    "Matryoshka-Adaptor (reimplemented)", fit, settings=((1e-3, 0.0), (1e-3, 1.0)), trained=True, draws=3
)  # fmt: skip
