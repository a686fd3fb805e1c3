"""An autoencoder with nested dropout (Rippel, Gelbart and Adams 2014): rows keep a random number of coordinates."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import WIDTH, Method
from benchmarks.evidence.methods.training import encode_with, train


def fit(part: Part, setting: tuple[int, float], seed: int) -> Encode:
    """Train encoder and decoder; settings are the hidden width (0: linear) and the learning rate."""
    torch.manual_seed(seed)
    hidden, rate = setting
    X = torch.tensor(part.X, dtype=torch.float32)
    X, p = X - X.mean(0), X.shape[1]
    encoder, decoder = _network(p, hidden, WIDTH), _network(WIDTH, hidden, p)

    def loss(rows: Tensor) -> Tensor:
        z = encoder(X[rows])
        # Lengths are drawn with probabilities 1/k: a geometric law hardly ever reaches the last of 128 coordinates.
        lengths = torch.exp(torch.rand(len(rows)) * torch.log(torch.tensor(WIDTH + 1.0))).long()
        kept = torch.arange(WIDTH) < lengths[:, None]
        return (decoder(z * kept) - X[rows]).square().sum(1).mean()

    train([*encoder.parameters(), *decoder.parameters()], len(X), loss, rate)
    mean = torch.tensor(part.X.mean(axis=0), dtype=torch.float32)
    codes = encode_with(encoder)
    return lambda rows, k, side: codes(rows - mean.numpy(), k, side)


def _network(a: int, hidden: int, b: int) -> nn.Module:
    return nn.Linear(a, b) if not hidden else nn.Sequential(nn.Linear(a, hidden), nn.ReLU(), nn.Linear(hidden, b))


METHOD = Method("autoencoder, nested dropout", fit, settings=((0, 3e-3), (512, 1e-3)), trained=True, draws=3)
