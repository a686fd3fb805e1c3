"""CSR (Wen et al. 2025) on frozen vectors: k active features of a wide sparse autoencoder, compared by bytes.

A small implementation of our own after the paper and the loss of sentence-transformers, not their code: the autoencoder
reconstructs the vectors from k and from 4 k features, and keeps each vector next to its reconstruction among others
(the contrastive part of the paper, without labels). An
active feature costs 12 bits for its number and 8 for its value, so that a code of k features is compared with others of
as many bytes.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.methods.training import train

FEATURES, INDEX_BITS, VALUE_BITS = 4096, 12, 8


def bytes_of(k: int) -> int:
    """Return the bytes of k active features."""
    return math.ceil(k * (INDEX_BITS + VALUE_BITS) / 8)


def fit(part: Part, setting: tuple[float, float], seed: int) -> Encode:
    """Train one autoencoder with 32 active features, cut to the k largest; settings: rate, weight of the contrast."""
    torch.manual_seed(seed)
    rate, contrast = setting
    X = torch.tensor(part.X, dtype=torch.float32)
    mean = X.mean(0)
    down = torch.nn.Parameter(torch.randn(FEATURES, X.shape[1]) / X.shape[1] ** 0.5)
    up = torch.nn.Parameter(down.detach().clone())
    bias = torch.nn.Parameter(torch.zeros(FEATURES))

    def sparse(x: torch.Tensor, k: int) -> torch.Tensor:
        z = F.relu((x - mean) @ down.t() + bias)
        top = z.topk(k, dim=1)
        return torch.zeros_like(z).scatter(1, top.indices, top.values)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        x, (few, many) = X[rows], (sparse(X[rows], k) for k in (32, 128))
        back = [(z @ up + mean - x).square().sum(1).mean() for z in (few, many)]
        cosines = F.normalize(few) @ F.normalize(many).t() / 0.05
        return back[0] + back[1] / 8 + contrast * F.cross_entropy(cosines, torch.arange(len(x)))

    train([down, up, bias], len(X), loss, rate, 15)

    def encode(rows: np.ndarray, k: int, side: str) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = sparse(torch.tensor(rows, dtype=torch.float32), k).numpy()
        return found

    return encode


METHOD = Method(
    "CSR", fit, settings=((1e-3, 0.1), (1e-3, 0.0)), trained=True, draws=3, bytes_of=bytes_of
)  # fmt: skip
