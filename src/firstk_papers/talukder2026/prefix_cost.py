"""What all prefixes cost against a single loss: multiply-adds that are counted and times that are measured (B, C.1).

A cell times one size: contenders take turns and the least processor time of several rounds counts, so ratios within a
cell mean something on a busy machine too. Multiply-adds of matrix products are counted by torch as the step runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from firstk_papers.frame.panels import rounded
from firstk_papers.frame.types import JsonDict, JsonObject
from firstk_papers.talukder2026.cost_figures import FULL, LOOP, MONOTONE, SINGLE, report

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["cells", "measure", "report"]

REVISION = 1
Step = Callable[[], object]


@dataclass(frozen=True)
class Contest:
    """Losses by name, of the same parameters; `after` ends a step, once gradients are there."""

    losses: dict[str, Callable[[], Tensor]]
    parameters: tuple[Tensor, ...]
    after: Step = lambda: None

    def steps(self) -> dict[str, Step]:
        """Return forward and backward of each loss, with gradients cleared first so that none is added up."""
        return {name: partial(self._step, loss) for name, loss in self.losses.items()}

    def _step(self, loss: Callable[[], Tensor]) -> None:
        for part in self.parameters:
            part.grad = None
        loss().backward()
        self.after()


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return a cell for each size: n, p and d vary one at a time, and the last cells are of d near p and of a network.

    The network is that of figure 2.
    """
    common = {"revision": REVISION, "rounds": settings["rounds"], "seed": settings["seed"], "timed": True}
    made: list[JsonDict] = []
    for kind in ("reconstruction", "cross_entropy"):
        base = settings[kind]
        for name in ("n", "p", "d", "C"):
            for value in base.get(f"{name}_grid", ()):
                cell = common | {"kind": kind, **{k: base[k] for k in ("n", "p", "d", "C") if k in base}, name: value}
                cell["looped"] = cell["d"] <= base["longest_loop"]
                made += [cell] if cell not in made else []
    near = common | {"kind": "reconstruction", "looped": True, **settings["near_p"]}
    return [*made, near, common | {"kind": "network_step", **settings["network_step"]}]


def measure(cell: JsonObject) -> JsonDict:
    """Time and count the contenders of one size."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["seed"])
        contenders = CONTESTS[cell["kind"]](cell).steps()
        counts = {name: multiply_adds(step) for name, step in contenders.items()}
        seconds = best_times(contenders, cell["rounds"])
    return {"counts": counts, "ms": dict(zip(seconds, rounded(1e3 * s for s in seconds.values()), strict=True))}


def multiply_adds(step: Step) -> int:
    """Count the multiply-adds of the matrix products of one step; torch counts two operations for each."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops() // 2


def best_times(contenders: Mapping[str, Step], rounds: int) -> dict[str, float]:
    """Return the least processor time of each contender over rounds in which they take turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, step in contenders.items():
            begun = time.process_time()
            step()
            best[name] = min(best[name], time.process_time() - begun)
    return best


def reconstruction_contest(cell: JsonObject) -> Contest:
    """Return the losses of a linear autoencoder: full width, all prefixes by shared statistics, a loop."""
    import torch

    from firstk.losses import FullPrefixReconstruction

    n, p, d = cell["n"], cell["p"], cell["d"]
    x = torch.randn(n, p)
    B, A = ((torch.randn(shape) / p**0.5).requires_grad_() for shape in ((d, p), (p, d)))
    St, full = x.t() @ x / n, FullPrefixReconstruction()

    def error(z: Tensor, k: int) -> Tensor:
        return (x - z[:, :k] @ A[:, :k].t()).square().sum() / n

    def looped() -> Tensor:
        z = x @ B.t()
        return torch.stack([error(z, k) for k in range(1, d + 1)]).mean()

    losses = {
        SINGLE: lambda: error(x @ B.t(), d),
        FULL: lambda: full(x, x @ B.t(), A),
        "full prefix, from moments": lambda: full.from_moments(St, B, A),
    }
    return Contest(losses | ({LOOP: looped} if cell["looped"] else {}), (A, B))


def cross_entropy_contest(cell: JsonObject) -> Contest:
    """Return the losses of a classifier's head on given codes: full width, all prefixes in one sweep, a loop."""
    import torch
    import torch.nn.functional as F

    from firstk.losses import FullPrefixCrossEntropy

    n, d, C = cell["n"], cell["d"], cell["C"]
    z, W, b = torch.randn(n, d), torch.randn(C, d) / d**0.5, torch.zeros(C)
    y = torch.randint(C, (n,))
    parameters = tuple(part.requires_grad_() for part in (z, W, b))
    full = FullPrefixCrossEntropy("uniform")

    losses = {
        SINGLE: lambda: F.cross_entropy(F.linear(z, W, b), y),
        FULL: lambda: full(z, W, y, b),
    }
    looped = {LOOP: lambda: _looped_cross_entropy(z, W, b, y)}
    return Contest(losses | (looped if cell["looped"] else {}), parameters)


def _looped_cross_entropy(z: Tensor, W: Tensor, b: Tensor, y: Tensor) -> Tensor:
    """Return the mean over prefixes, each by a pass of its own through the head (Talukder et al. 2026 C.1)."""
    import torch
    import torch.nn.functional as F

    losses = [F.cross_entropy(F.linear(z[:, :k], W[:, :k], b), y) for k in range(1, z.shape[1] + 1)]
    return torch.stack(losses).mean()


def network_contest(cell: JsonObject) -> Contest:
    """Return the losses of the network of Talukder et al. 2026 C.1; a step ends with Adam."""
    import torch
    import torch.nn.functional as F

    from firstk.losses import FullPrefixCrossEntropy

    n, p, d, C = cell["n"], cell["p"], cell["d"], cell["C"]
    net = _network(p, cell["hidden"], d)
    W, b = torch.nn.Parameter(torch.randn(C, d)), torch.nn.Parameter(torch.zeros(C))
    x, y, ranks = torch.rand(n, p), torch.randint(C, (n,)), torch.arange(1.0, d + 1)
    parameters = (*net.parameters(), W, b)
    optimizer = torch.optim.Adam(parameters, 1e-3, weight_decay=1e-4)
    full = FullPrefixCrossEntropy("uniform")

    def monotone() -> Tensor:
        z = net(x)
        return F.cross_entropy(F.linear(z, W, b), y) + 0.01 * (z.abs().mean(0) @ ranks)

    losses = {
        MONOTONE: monotone,
        FULL: lambda: full(net(x), W, y, b),
        LOOP: lambda: _looped_cross_entropy(net(x), W, b, y),
    }
    return Contest(losses, parameters, optimizer.step)


def _network(p: int, hidden: Sequence[int], d: int) -> nn.Module:
    """Return the network of Talukder et al. 2026 C.1 (31); its code has unit norm."""
    from torch import nn

    class UnitNorm(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            return nn.functional.normalize(z, dim=1)

    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((p, *hidden)):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(hidden[-1], d), UnitNorm())


CONTESTS: dict[str, Callable[[JsonObject], Contest]] = {
    "reconstruction": reconstruction_contest,
    "cross_entropy": cross_entropy_contest,
    "network_step": network_contest,
}
