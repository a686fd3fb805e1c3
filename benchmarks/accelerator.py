"""Full-prefix losses on an accelerator, beside one ordinary loss at full width; needs a GPU, and none was here.

    python -m benchmarks.accelerator                       cuda, float32
    python -m benchmarks.accelerator --device mps --small  any device of torch, shapes of a laptop

Prints milliseconds of forward and backward (median of ten, after three), peak memory where the device tells it, and the
ratio to the ordinary loss, for the exact sum, drawn and sampled lengths, and the exact sum replayed as a CUDA graph.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from firstk.losses import FullPrefixCrossEntropy, FullPrefixInfoNCE

SHAPES = {"info_nce": [(1024, 384, 1024), (8192, 1024, 8192)], "cross_entropy": [(1024, 256, 1000), (4096, 768, 1000)]}
SMALL = {"info_nce": [(256, 256, 256)], "cross_entropy": [(256, 256, 100)]}
TIMES, WARM = 10, 3
ESTIMATORS = ("exact", "drawn", "sampled")
Step = Callable[[], Tensor]


def steps(kind: str, n: int, d: int, m: int, device: torch.device) -> dict[str, Step]:
    """Return forward and backward of each loss on the same tensors, by name."""
    source = torch.Generator().manual_seed(0)
    a, b = (torch.randn(size, d, generator=source).to(device).requires_grad_() for size in (n, m))
    labels = (torch.arange(n) % m).to(device)

    def plain() -> Tensor:
        if kind == "cross_entropy":
            return F.cross_entropy(a @ b.t(), labels)
        return F.cross_entropy(F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / 0.05, labels)

    def full(estimator: str) -> Step:
        if kind == "cross_entropy":
            head = FullPrefixCrossEntropy(estimator=estimator)
            return lambda: head(a, b, labels)
        pairs = FullPrefixInfoNCE(estimator=estimator)
        return lambda: pairs(a, b)

    def step(loss: Step) -> Step:
        def run() -> Tensor:
            a.grad = b.grad = None
            value = loss()
            value.backward()
            return value

        return run

    found = {"plain": step(plain)} | {name: step(full(name)) for name in ESTIMATORS}
    if device.type == "cuda":
        found["exact, CUDA graph"] = captured(found["exact"])
    return found


def captured(step: Step) -> Step:
    """Return a step that replays the kernels of another: it reads nothing on the host."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = step()

    def replay() -> Tensor:
        graph.replay()
        return value

    return replay


def milliseconds(step: Step, device: torch.device) -> float:
    """Return the median time of a step, waiting for the device."""
    wait = getattr(torch, device.type).synchronize if device.type != "cpu" else lambda: None
    times = []
    for i in range(WARM + TIMES):
        wait()
        start = time.perf_counter()
        step()
        wait()
        times += [time.perf_counter() - start] if i >= WARM else []
    return 1e3 * sorted(times)[TIMES // 2]


def main() -> None:
    """Print one line per shape and loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    device = torch.device(given.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no CUDA device. Name another one, as --device cpu --small")
    print("| loss (n, d, columns) | estimator | ms | over the plain loss | peak MB |\n|---|---|---|---|---|")
    for kind, shapes in (SMALL if given.small else SHAPES).items():
        for shape in shapes:
            base = 0.0
            for name, step in steps(kind, *shape, device).items():
                if device.type == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                took = milliseconds(step, device)
                base = base or took
                peak = f"{torch.cuda.max_memory_allocated() / 2**20:.0f}" if device.type == "cuda" else ""
                print(f"| {kind} {shape} | {name} | {took:.2f} | {took / base:.1f} | {peak} |", flush=True)


if __name__ == "__main__":
    main()
