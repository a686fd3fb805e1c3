"""Full-prefix losses against the loop over all k, lists, and sentence-transformers' MatryoshkaLoss.

    python -m benchmarks.losses                 every case, about four minutes
    python -m benchmarks.losses --only fisher   cases whose title holds a word
    python -m benchmarks.losses --processor     times of the processor: the machine is busy
    python -m benchmarks.losses --record        add the claims to results/waiting.json (then benchmarks.record)

One thread, forward and backward, contenders interleaved, best of several. Only ratios within a run mean
anything; each claim is printed beside its threshold with "ok" or "NOT MET", and a miss makes the exit code 1.
"""

# ruff: noqa: E402 - the number of threads is set before anything that reads it is imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import ctypes
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.record import Measured, write
from firstk.losses import FullPrefixCrossEntropy
from firstk.losses.functional.contrastive import info_nce
from firstk.losses.functional.cross_entropy import cross_entropy
from firstk.losses.functional.fisher import fisher
from firstk.losses.functional.reconstruction import reconstruction

Contenders = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Claim:
    """`faster` times as fast as the peer at least, or at most `cost` times its time."""

    subject: str
    peer: str
    faster: float | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Case:
    """One table: who runs, what is claimed, and how many (row, prefix, class) triples a sweep touches."""

    title: str
    build: Callable[[], Contenders]
    claims: tuple[Claim, ...]
    triples: int | None = None
    rounds: int = 8


def leaf(*shape: int, scale: float = 1.0) -> Tensor:
    """Return random numbers that ask for a gradient."""
    return (torch.randn(*shape) * scale).requires_grad_()


def log_spaced(d: int) -> list[int]:
    """Return the eight prefixes d, d/2, ..., d/128."""
    return sorted({max(1, round(d / 2**i)) for i in range(8)})


def cross_entropy_at(n: int, d: int, C: int) -> Contenders:
    """Return the contenders for a classifier with a shared head."""
    z, w, b, y = leaf(n, d), leaf(C, d, scale=d**-0.5), leaf(C), torch.randint(0, C, (n,))
    some = log_spaced(d)
    heads = nn.ModuleList(nn.Linear(k, C) for k in some)

    def looped(ks: list[int] | range) -> Tensor:
        return sum(F.cross_entropy(F.linear(z[:, :k], w[:, :k], b), y) for k in ks) / len(ks)

    def mrl() -> Tensor:
        return sum(F.cross_entropy(head(z[:, :k]), y) for k, head in zip(some, heads, strict=True)) / len(some)

    listed = dict.fromkeys(some, 1.0)
    return {
        "compiled": lambda: cross_entropy(z, w, y, b, omega="uniform", backend="compiled").backward(),
        "torch": lambda: cross_entropy(z, w, y, b, omega="uniform", backend="torch").backward(),
        "sampled": lambda: cross_entropy(z, w, y, b, omega="uniform", estimator="sampled").backward(),
        "8 prefixes": lambda: cross_entropy(z, w, y, b, omega=listed).backward(),
        "one full-width loss": lambda: F.cross_entropy(F.linear(z, w, b), y).backward(),
        "loop over 8 (MRL-E)": lambda: looped(some).backward(),
        "loop over 8 (MRL)": lambda: mrl().backward(),
        "loop over all k": lambda: looped(range(1, d + 1)).backward(),
    }


class Stored(nn.Module):
    """A sentence-transformers module that hands out stored embeddings, so that only the loss is timed."""

    config_keys: tuple[str, ...] = ()

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the embedding that the features hold."""
        return {"sentence_embedding": features["embedding"]}


def matryoshka(q: Tensor, p: Tensor, dims: list[int]) -> Callable[[], object]:
    """Return a step of sentence-transformers' MatryoshkaLoss over its ranking loss."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss

    model = SentenceTransformer(modules=[Stored()], device="cpu")
    loss = MatryoshkaLoss(model, MultipleNegativesRankingLoss(model), dims)
    labels = torch.zeros(len(q))
    return lambda: loss([{"embedding": q}, {"embedding": p}], labels).backward()


def info_nce_at(n: int, d: int) -> Contenders:
    """Return the contenders for in-batch negatives with cosines at temperature 0.05."""
    q, p, y = leaf(n, d), leaf(n, d), torch.arange(n)
    some = [k for k in log_spaced(d) if k > 1]

    def one(k: int) -> Tensor:
        return F.cross_entropy(F.normalize(q[:, :k]) @ F.normalize(p[:, :k]).t() * 20, y)

    listed = dict.fromkeys(some, 1.0)
    return {
        "compiled": lambda: info_nce(q, p, omega="uniform", backend="compiled").backward(),
        "torch": lambda: info_nce(q, p, omega="uniform", backend="torch").backward(),
        "sampled": lambda: info_nce(q, p, omega="uniform", estimator="sampled").backward(),
        "8 prefixes": lambda: info_nce(q, p, omega=listed).backward(),
        "one full-width loss": lambda: one(d).backward(),
        "loop over all k": lambda: sum(one(k) for k in range(2, d + 1)).backward(),
        "MatryoshkaLoss, 8 dims": matryoshka(q, p, some),
        "MatryoshkaLoss, all dims": matryoshka(q, p, list(range(1, d + 1))),
    }


def fisher_at(p: int, d: int) -> Contenders:
    """Return the contenders for a linear encoder with 200 classes."""
    x, classes = torch.randn(3000, p) @ torch.randn(p, p) / p**0.5, torch.arange(3000) % 200
    means = torch.zeros(200, p).index_add(0, classes, x) / 15
    within, between = x - means[classes], means - x.mean(0)
    Sw, Sb = within.t() @ within / 3000, between.t() @ between / 200
    B = leaf(d, p)

    def shared() -> Tensor:
        A, M = B @ Sw @ B.t(), B @ Sb @ B.t()
        return sum(torch.linalg.solve(A[:k, :k], M[:k, :k]).trace() for k in range(1, d + 1)) / -d

    def scratch() -> Tensor:
        parts = (torch.linalg.solve(b @ Sw @ b.t(), b @ Sb @ b.t()).trace() for b in (B[:k] for k in range(1, d + 1)))
        return sum(parts) / -d

    return {
        "firstk": lambda: fisher(B, Sw, Sb).backward(),
        "d solves on shared matrices": lambda: shared().backward(),
        "d evaluations from scratch": lambda: scratch().backward(),
    }


def reconstruction_at(n: int, p: int, d: int) -> Contenders:
    """Return the contenders for a shared decoder."""
    x, z, a = torch.randn(n, p), leaf(n, d), leaf(p, d)

    def looped() -> Tensor:
        return sum(F.mse_loss(F.linear(z[:, :k], a[:, :k]), x, reduction="sum") for k in range(1, d + 1)) / (n * d)

    return {
        "firstk": lambda: reconstruction(x, z, a).backward(),
        "one full-width loss": lambda: (F.mse_loss(F.linear(z, a), x, reduction="sum") / n).backward(),
        "loop over all k": lambda: looped().backward(),
    }


def mnist_step() -> Contenders:
    """Return whole training steps of the network of Talukder et al. 2026 C.1 with Adam, batch 128."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers: list[nn.Module] = []
            for width_in, width in ((784, 256), (256, 256)):
                layers += [nn.Linear(width_in, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1)]
            self.body = nn.Sequential(*layers, nn.Linear(256, 16))
            self.head = nn.Linear(16, 10)

        def forward(self, x: Tensor) -> Tensor:
            return F.normalize(self.body(x))

    x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))

    def stepper(loss_of: Callable[[Tensor, nn.Linear], Tensor]) -> Callable[[], None]:
        model = Encoder()
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)

        def step() -> None:
            adam.zero_grad()
            loss_of(model(x), model.head).backward()
            adam.step()

        return step

    def looped(z: Tensor, head: nn.Linear) -> Tensor:
        parts = (F.cross_entropy(F.linear(z[:, :k], head.weight[:, :k], head.bias), y) for k in range(1, 17))
        return sum(parts) / 16

    full = FullPrefixCrossEntropy("uniform")
    return {
        "plain step": stepper(lambda z, head: F.cross_entropy(head(z), y)),
        "full-prefix step": stepper(lambda z, head: full(z, head.weight, y, head.bias)),
        "full-prefix step, loop (Talukder et al. 2026)": stepper(looped),
    }


def cross_entropy_case(n: int, d: int, C: int, *, torch_path: float | None, sampled: float | None) -> Case:
    """Declare a cross-entropy table with its thresholds."""
    claims = [Claim("compiled", "loop over all k", faster=40)]
    if torch_path:
        claims.append(Claim("torch", "loop over all k", faster=torch_path))
    if sampled:
        claims.append(Claim("sampled", "one full-width loss", cost=sampled))
    title = f"cross-entropy (n, d, C) = ({n}, {d}, {C})"
    return Case(title, lambda: cross_entropy_at(n, d, C), tuple(claims), n * d * C)


def reconstruction_case(n: int, p: int, d: int) -> Case:
    """Declare a reconstruction table with its threshold."""
    claim = Claim("firstk", "one full-width loss", cost=1.1)
    title = f"reconstruction (n, p, d) = ({n}, {p}, {d})"
    return Case(title, lambda: reconstruction_at(n, p, d), (claim,), rounds=40)


CASES = (
    cross_entropy_case(512, 384, 77, torch_path=None, sampled=1.15),
    cross_entropy_case(1024, 256, 1000, torch_path=3, sampled=1.15),
    cross_entropy_case(512, 768, 1000, torch_path=3, sampled=None),
    Case(
        "InfoNCE (n, d) = (256, 768)",
        lambda: info_nce_at(256, 768),
        (
            Claim("compiled", "loop over all k", faster=80),
            Claim("compiled", "MatryoshkaLoss, all dims", faster=80),
        ),
        256 * 768 * 256,
    ),
    Case(
        "Fisher (p, d) = (784, 128)",
        lambda: fisher_at(784, 128),
        (
            Claim("firstk", "d solves on shared matrices", faster=5),
            Claim("firstk", "d evaluations from scratch", faster=30),
        ),
    ),
    reconstruction_case(256, 784, 32),
    reconstruction_case(4096, 784, 64),
    Case(
        "training step of Talukder et al. 2026 C.1 on MNIST's shapes",
        mnist_step,
        (Claim("full-prefix step", "plain step", cost=1.25),),
        rounds=60,
    ),
)


Clock = Callable[[], float]


def timed(run: Callable[[], object], clock: Clock) -> float:
    """Return the seconds of one run."""
    start = clock()
    run()
    return clock() - start


def measure(contenders: Contenders, rounds: int, clock: Clock = time.perf_counter) -> dict[str, float]:
    """Return the best time of each contender, in seconds.

    Rounds are interleaved, so that a busy machine is busy for all. A quick contender runs three times in a
    row each round, so that it does not inherit the cache of a slow one; the slowest run twice in all.
    """
    best = {name: timed(run, clock) for name, run in contenders.items()}
    for turn in range(rounds):
        for name, run in contenders.items():
            if best[name] < 1 or turn == 0:
                repeats = 3 if best[name] < 0.1 else 1
                best[name] = min(best[name], *(timed(run, clock) for _ in range(repeats)))
    return best


def report(case: Case, clock: Clock) -> list[Measured]:
    """Print one table and its claims, and return them as rows of the record."""
    torch.manual_seed(0)
    best = measure(case.build(), case.rounds, clock)
    print(f"\n{case.title}")
    for name, seconds in best.items():
        swept = case.triples and name in ("compiled", "torch")
        limit = f"   {seconds / case.triples * 1e9:.2f} ns per (row, prefix, class)" if swept else ""
        print(f"  {name:32s}{seconds * 1e3:12.2f} ms{limit}")
    rows = []
    for claim in case.claims:
        subject, peer = best[claim.subject], best[claim.peer]
        if claim.faster is not None:
            ratio, unit, ok = peer / subject, "x faster than", peer / subject >= claim.faster
            wanted = f"at least {claim.faster:g}x"
        else:
            ratio, unit, ok = subject / peer, "x the time of", subject / peer <= (claim.cost or 0)
            wanted = f"at most {claim.cost:g}x"
        print(f"  {claim.subject}: {ratio:.3g} {unit} {claim.peer}, {wanted}: {'ok' if ok else 'NOT MET'}")
        name = f"{case.title}: {claim.subject}{_instructions()}"
        rows.append(Measured(name, subject, claim.peer, ratio, unit, wanted, ok))
    return rows


def _instructions() -> str:
    """Return how a row says that both sides were kept from using the widest vectors of the processor."""
    given = os.environ.get("ATEN_CPU_CAPABILITY", "")
    return f" ({given})" if given else ""


def additive_cost() -> bool:
    """Print how the full-prefix reconstruction grows with d beside the plain loss (Talukder et al. 2026 appendix B)."""
    print("\nreconstruction as d grows, (n, p) = (1024, 784)")
    for d in (8, 16, 32, 64, 128, 256):
        best = measure(reconstruction_at(1024, 784, d) if d <= 64 else _without_loop(1024, 784, d), 8)
        full, one = best["firstk"] * 1e3, best["one full-width loss"] * 1e3
        loop = f"   loop {best['loop over all k'] * 1e3:9.2f} ms" if "loop over all k" in best else ""
        print(f"  d = {d:4d}: full prefix {full:7.2f} ms, one loss {one:7.2f}, extra {full - one:+6.2f}{loop}")
    return True


def _without_loop(n: int, p: int, d: int) -> Contenders:
    contenders = reconstruction_at(n, p, d)
    del contenders["loop over all k"]
    return contenders


def peak_bytes(work: Callable[[], object]) -> int:
    """Return how far the resident memory of the process rises during `work` (Linux)."""

    def status(field: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024

    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


def memory() -> bool:
    """Print the peak memory of exact cross-entropy beside 4 n C + 2 d n floats."""
    print("\npeak memory of exact cross-entropy, forward and backward, beside its inputs")
    held = True
    for n, d, C in ((1024, 256, 1000), (512, 768, 1000)):
        for backend in ("compiled", "torch"):
            z, w, y = leaf(n, d), leaf(C, d), torch.randint(0, C, (n,))

            def step(z: Tensor = z, w: Tensor = w, y: Tensor = y, backend: str = backend) -> None:
                cross_entropy(z, w, y, omega="uniform", backend=backend).backward()

            step(leaf(32, d), w, y[:32])
            w.grad = None
            used, bound = peak_bytes(step), 4 * (4 * n * C + 2 * d * n)
            ok = used <= bound
            held &= ok
            print(
                f"  {(n, d, C)} {backend:9s}{used / 1e6:7.1f} MB, at most {bound / 1e6:.1f} MB "
                f"(n d C would be {4e-6 * n * d * C:.0f}): {'ok' if ok else 'NOT MET'}"
            )
    return held


def main() -> int:
    """Run the chosen cases; return 1 if a claim was not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word of the title")
    parser.add_argument("--processor", action="store_true", help="times of the processor: the machine is busy")
    parser.add_argument("--record", action="store_true", help="add the claims to results/waiting.json")
    given = parser.parse_args()
    only = given.only.lower()
    torch.set_num_threads(1)
    clock = time.process_time if given.processor else time.perf_counter
    held = []
    for case in CASES:
        if only in case.title.lower():
            rows = report(case, clock)
            held += [row.met is not False for row in rows]
            if given.record:
                write("losses", rows, "processor" if given.processor else "clock")
    if only in "reconstruction as d grows":
        held.append(additive_cost())
    if only == "peak memory":
        held.append(memory())
    elif only in "peak memory" and Path("/proc/self/clear_refs").exists():
        # In a process of its own: what earlier cases left in the allocator would count otherwise.
        command = [sys.executable, "-m", "benchmarks.losses", "--only", "peak memory"]
        held.append(subprocess.run(command, check=False).returncode == 0)
    print(f"\n{'every claim held' if all(held) else 'some claims were NOT MET'}")
    return 0 if all(held) else 1


if __name__ == "__main__":
    raise SystemExit(main())
