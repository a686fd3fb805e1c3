"""What all prefixes cost beside a single loss: multiply-adds that are counted and times that are measured (000 B, C.1).

A cell times one size: contenders take turns and the least processor time of several rounds counts, so ratios within a
cell mean something on a busy machine too. Multiply-adds of matrix products are counted by torch as the step runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from firstk.experiments.panels import rounded
from firstk.experiments.studies._cost_figures import report

__all__ = ["cells", "measure", "report"]

REVISION = 1
Step = Callable[[], object]


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a cell for each size: n, p and d vary one at a time, and the last cell is the network of figure 2."""
    common = {"revision": REVISION, "rounds": settings["rounds"], "seed": settings["seed"]}
    made: list[dict[str, Any]] = []
    for kind in ("reconstruction", "cross_entropy"):
        base = settings[kind]
        for name in ("n", "p", "d", "C"):
            for value in base.get(f"{name}_grid", ()):
                cell = common | {"kind": kind, **{k: base[k] for k in ("n", "p", "d", "C") if k in base}, name: value}
                cell["looped"] = cell["d"] <= base["longest_loop"]
                made += [cell] if cell not in made else []
    return [*made, common | {"kind": "network_step", **settings["network_step"]}]


def measure(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Time and count the contenders of one size."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell["seed"])
        contenders = CONTENDERS[cell["kind"]](cell)
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


def _clearing(loss: Callable[[], Any], parameters: Sequence[Any]) -> Step:
    """Return forward and backward of a loss, with gradients cleared first so that none is added up."""

    def step() -> None:
        for part in parameters:
            part.grad = None
        loss().backward()

    return step


def reconstruction_steps(cell: Mapping[str, Any]) -> dict[str, Step]:
    """Return steps of a linear autoencoder: one loss, all prefixes by shared statistics, and a loop over prefixes."""
    import torch

    from firstk.kernels.reconstruction import reconstruction, reconstruction_from_moments

    n, p, d = cell["n"], cell["p"], cell["d"]
    x = torch.randn(n, p)
    B, A = (torch.randn(shape) / p**0.5 for shape in ((d, p), (p, d)))
    B.requires_grad_(), A.requires_grad_()
    St = x.t() @ x / n

    def error(z: Any, k: int) -> Any:
        return (x - z[:, :k] @ A[:, :k].t()).square().sum() / n

    def looped(ks: Iterable[int]) -> Any:
        z = x @ B.t()
        return sum(error(z, k) for k in ks) / d

    losses = {
        "single": lambda: error(x @ B.t(), d),
        "full prefix": lambda: reconstruction(x, x @ B.t(), A),
        "full prefix, from moments": lambda: reconstruction_from_moments(St, B, A),
    }
    if cell["looped"]:
        losses["loop over prefixes"] = lambda: looped(range(1, d + 1))
    return {name: _clearing(loss, (A, B)) for name, loss in losses.items()}


def cross_entropy_steps(cell: Mapping[str, Any]) -> dict[str, Step]:
    """Return steps of a classifier's head on given codes: one loss, all prefixes in one sweep, and a loop over them."""
    import torch
    import torch.nn.functional as F

    from firstk.kernels.cross_entropy import cross_entropy

    n, d, C = cell["n"], cell["d"], cell["C"]
    z, W, b = torch.randn(n, d), torch.randn(C, d) / d**0.5, torch.zeros(C)
    y = torch.randint(C, (n,))
    parts = [part.requires_grad_() for part in (z, W, b)]

    def looped() -> Any:
        return sum(F.cross_entropy(F.linear(z[:, :k], W[:, :k], b), y) for k in range(1, d + 1)) / d

    losses = {
        "single": lambda: F.cross_entropy(F.linear(z, W, b), y),
        "full prefix": lambda: cross_entropy(z, W, y, b, omega="uniform"),
    }
    if cell["looped"]:
        losses["loop over prefixes"] = looped
    return {name: _clearing(loss, parts) for name, loss in losses.items()}


def network_steps(cell: Mapping[str, Any]) -> dict[str, Step]:
    """Return whole training steps of the network of 000 C.1, Adam included."""
    import torch
    import torch.nn.functional as F

    from firstk import MLP
    from firstk.kernels.cross_entropy import cross_entropy
    from firstk.networks import build_mlp

    n, p, d, C = cell["n"], cell["p"], cell["d"], cell["C"]
    net = build_mlp(MLP(hidden=cell["hidden"]), p, d)
    W, b = torch.nn.Parameter(torch.randn(C, d)), torch.nn.Parameter(torch.zeros(C))
    x, y, ranks = torch.rand(n, p), torch.randint(C, (n,)), torch.arange(1.0, d + 1)
    optimiser = torch.optim.Adam([*net.parameters(), W, b], 1e-3, weight_decay=1e-4)

    def looped(z: Any) -> Any:
        return sum(F.cross_entropy(F.linear(z[:, :k], W[:, :k], b), y) for k in range(1, d + 1)) / d

    losses: dict[str, Callable[[Any], Any]] = {
        "monotone l1": lambda z: F.cross_entropy(F.linear(z, W, b), y) + 0.01 * (z.abs().mean(0) @ ranks),
        "full prefix": lambda z: cross_entropy(z, W, y, b, omega="uniform"),
        "loop over prefixes": looped,
    }

    def stepping(loss: Callable[[Any], Any]) -> Step:
        def step() -> None:
            optimiser.zero_grad()
            loss(net(x)).backward()
            optimiser.step()

        return step

    return {name: stepping(loss) for name, loss in losses.items()}


CONTENDERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Step]]] = {
    "reconstruction": reconstruction_steps,
    "cross_entropy": cross_entropy_steps,
    "network_step": network_steps,
}
