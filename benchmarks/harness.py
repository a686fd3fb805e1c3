"""One way to measure: contenders take turns, the best of several rounds counts, and what is printed is a ratio.

Timings on shared machines are noisy; ratios of best times taken in turns within one run are not. Peak memory is that of
a fresh process that does nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# BLAS threads of the last contender spin for a while before they sleep; the next one must not pay for them.
_PAUSE = 0.3


@dataclass(frozen=True)
class Claim:
    """A ratio that is promised: `ours` against the fastest of `peers`, at least `at_least` times as fast."""

    title: str
    ours: str
    peers: tuple[str, ...]
    at_least: float


def best_times(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Best wall time of each contender over `rounds` rounds in which they take turns.

    With ``clock=time.process_time`` and one thread, times of the processor: on a machine that is busy with other work.
    """
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            time.sleep(_PAUSE)
            start = clock()
            run()
            best[name] = min(best[name], clock() - start)
    return best


def duel(claim: Claim, contenders: Mapping[str, Callable[[], object]], rounds: int = 7) -> bool:
    """Find the fastest peer, let it and ours take turns, print the ratio, and tell whether the claim is met.

    Only the two take turns: a third contender's threads would still be spinning when the next one starts.
    """
    alone = {name: best_times({name: contenders[name]}, 2)[name] for name in claim.peers}
    fastest = min(alone, key=alone.__getitem__)
    seconds = alone | best_times({name: contenders[name] for name in (claim.ours, fastest)}, rounds)
    return report(claim, seconds)


def report(claim: Claim, seconds: Mapping[str, float]) -> bool:
    """Print the times and the ratio, and tell whether the claim is met."""
    peer = min(claim.peers, key=lambda name: seconds[name])
    ratio = seconds[peer] / seconds[claim.ours]
    print(f"\n{claim.title}")
    for name in (claim.ours, *claim.peers):
        print(f"  {name:<42} {seconds[name] * 1e3:9.1f} ms")
    met = ratio >= claim.at_least
    print(f"  {ratio:.2f}x the speed of {peer} (promised {claim.at_least:g}x): {'met' if met else 'NOT MET'}")
    return met


def peak_memory(module: str, name: str) -> float:
    """Peak memory in MiB of one contender beyond its data, in a process of its own."""
    command = [sys.executable, "-m", module, "--peak-of", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def reset_peak() -> float:
    """Forget the peak so far (Linux) and return the memory in use now, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """Peak resident memory of this process since the last reset, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
