"""Our training step against a plain loop over prefixes, at the sizes of Talukder et al. 2026.

    python -m benchmarks.authors

The loop is what one writes from the paper's formulas, and how its authors train (docs/decisions/papers.md): every
prefix is encoded, decoded or classified by itself. One thread, times of the processor, contenders take turns, best of
several. Ours must be ahead in every row; a miss makes the exit code 1. The last column is the time of ours over that of
a loss at full width alone.
"""

# ruff: noqa: E402 - the number of threads is set before anything that reads it is imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import time
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstk import Moments
from firstk.losses import FullPrefixCrossEntropy, FullPrefixFisher, FullPrefixReconstruction

ROUNDS, LEAST = 15, 0.05  # seconds that a contender runs in a round
EPS = 1e-4


class Contest(NamedTuple):
    """The losses of one row, of the same parameters, and what ends a step."""

    ours: Callable[[], Tensor]
    loop: Callable[[], Tensor]
    single: Callable[[], Tensor]
    parameters: list[Tensor]
    retract: Callable[[], object] = lambda: None


def autoencoder(n: int, p: int, d: int) -> Contest:
    """Return losses of a linear autoencoder whose decoder is orthonormalized after every step."""
    x, full = torch.randn(n, p), FullPrefixReconstruction()
    B, A = nn.Parameter(torch.randn(d, p) / p**0.5), nn.Parameter(torch.linalg.qr(torch.randn(p, d))[0])

    def one(k: int) -> Tensor:
        return F.mse_loss(x @ B[:k].t() @ A[:, :k].t(), x)

    def retract() -> None:
        with torch.no_grad():
            Q, R = torch.linalg.qr(A)
            A.copy_(Q * R.diagonal().sign())

    return Contest(
        lambda: full(x, x @ B.t(), A) / p,
        lambda: torch.stack([one(k) for k in range(1, d + 1)]).mean(),
        lambda: one(d),
        [B, A],
        retract,
    )


def classifier(n: int, d: int) -> Contest:
    """Return losses of the network of C.1, on images of 784 pixels and ten classes."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((784, 256, 256)):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), nn.Dropout(0.1)]
    net = nn.Sequential(*layers, nn.Linear(256, d))
    W, x, y = nn.Parameter(torch.randn(10, d) / d**0.5), torch.randn(n, 784), torch.randint(10, (n,))
    full = FullPrefixCrossEntropy("uniform")

    def code() -> Tensor:
        return F.normalize(net(x), dim=1)

    def loop() -> Tensor:
        z = code()
        return torch.stack([F.cross_entropy(z[:, :k] @ W[:, :k].t(), y) for k in range(1, d + 1)]).mean()

    return Contest(lambda: full(code(), W, y), loop, lambda: F.cross_entropy(code() @ W.t(), y), [*net.parameters(), W])


def fisher(n: int, p: int, d: int, C: int, moments: bool) -> Contest:
    """Return losses of a linear encoder on all rows; ours takes codes, or moments that were computed once."""
    y = torch.arange(n) % C
    x = torch.randn(n, p) + torch.randn(C, p)[y]
    B, full = nn.Parameter(torch.randn(d, p) / p**0.5), FullPrefixFisher(code_eps=EPS)
    held = Moments("float64").update(x.numpy(), y.numpy())
    Sw, Sb = (torch.from_numpy(np.asarray(part)).float() for part in (held.Sw, held.Sb))

    def one(k: int) -> Tensor:
        z = x @ B[:k].t()
        mean, within, between = z.mean(0), torch.zeros(k, k), torch.zeros(k, k)
        for c in range(C):
            part = z[y == c]
            off, inside = part.mean(0) - mean, part - part.mean(0)
            between, within = between + len(part) / n * torch.outer(off, off), within + inside.t() @ inside / n
        return -torch.linalg.solve(within + EPS * torch.eye(k), between).trace()

    return Contest(
        (lambda: full(B, Sw, Sb)) if moments else (lambda: full.from_codes(x @ B.t(), y)),
        lambda: torch.stack([one(k) for k in range(1, d + 1)]).mean(),
        lambda: one(d),
        [B],
    )


CONTESTS: dict[str, Callable[[], Contest]] = {
    "autoencoder 784 -> 32, batch of 256": lambda: autoencoder(256, 784, 32),
    "autoencoder 69 -> 50, batch of 256": lambda: autoencoder(256, 69, 50),
    "classifier, d = 16, batch of 128": lambda: classifier(128, 16),
    "classifier, d = 256, batch of 128": lambda: classifier(128, 256),
    "Fisher 69 -> 19 from 7,000 codes": lambda: fisher(7000, 69, 19, 20, False),
    "Fisher 784 -> 9 from 10,000 codes": lambda: fisher(10000, 784, 9, 10, False),
    "Fisher 69 -> 19 from moments of 7,000": lambda: fisher(7000, 69, 19, 20, True),
    "Fisher 784 -> 9 from moments of 10,000": lambda: fisher(10000, 784, 9, 10, True),
}


def milliseconds(contest: Contest) -> dict[str, float]:
    """Return the least processor time of a whole step with Adam: forward, backward, update and retraction."""
    adam = torch.optim.Adam(contest.parameters, 1e-3, weight_decay=1e-4)

    def step(loss: Callable[[], Tensor]) -> None:
        adam.zero_grad()
        loss().backward()
        adam.step()
        contest.retract()

    found = []
    for loss in (contest.ours, contest.loop):
        torch.manual_seed(0)  # for dropout
        found.append(loss().detach())
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-5)
    best: dict[str, float] = {}
    for name in ("ours", "loop", "single") * (ROUNDS + 1):  # the first round warms up
        begun, ran = time.process_time(), 0
        while time.process_time() - begun < LEAST:
            step(getattr(contest, name))
            ran += 1
        best[name] = min(best.get(name, float("inf")), (time.process_time() - begun) / ran * 1e3)
    return best


def main() -> int:
    """Print a table of all rows; return 1 if the loop is ahead in one."""
    torch.manual_seed(0)
    behind = []
    print(f"{'whole step':<40} {'ours, ms':>9} {'loop, ms':>9} {'loop / ours':>12} {'ours / single':>14}")
    for name, build in CONTESTS.items():
        ms = milliseconds(build())
        ratio = ms["loop"] / ms["ours"]
        print(
            f"{name:<40} {ms['ours']:9.3f} {ms['loop']:9.3f} {ratio:12.2f} {ms['ours'] / ms['single']:14.2f}",
            flush=True,
        )
        behind += [name] if ratio <= 1 else []
    print(f"NOT MET: {', '.join(behind)}" if behind else "ours is ahead in every row")
    return bool(behind)


if __name__ == "__main__":
    raise SystemExit(main())
