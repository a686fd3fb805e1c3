"""An adapter trained with MRL (Kusupati et al. 2022): one linear layer, a head for each listed length."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import WIDTH, Method
from benchmarks.evidence.methods.training import LENGTHS, encode_with, train


def fit(part: Part, setting: float, seed: int) -> Encode:
    """Train the layer and its heads; the setting is the learning rate."""
    torch.manual_seed(seed)
    X = torch.tensor(part.X, dtype=torch.float32)
    classes, labels = np.unique(part.y, return_inverse=True)
    y, layer = torch.tensor(labels), nn.Linear(X.shape[1], WIDTH)
    heads = nn.ModuleList(nn.Linear(k, len(classes)) for k in LENGTHS)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        z = layer(X[rows])
        parts = [nn.functional.cross_entropy(head(z[:, : head.in_features]), y[rows]) for head in heads]
        return torch.stack(parts).mean()

    train([*layer.parameters(), *heads.parameters()], len(X), loss, setting)
    return encode_with(layer)


METHOD = Method("MRL list", fit, settings=(3e-3, 1e-2), needs="labels", trained=True, draws=3)
