"""Margins of the claims of the papers: how far each measured value moves with the processor and with the seed.

A claim whose recorded outcome depends on the last bits of a matrix product, or on the seed, fails on somebody else's
machine. This runs a tier of the experiments under several sets of processor kernels and with shifted seeds, and prints
for each claim the values, the threshold and the spread. A claim *flips* where its outcome changes between runs, and is
*close* where a value lies nearer to the threshold than the values lie to each other: by differences, and by ratios too
where all are positive, because 0.03 and 0.08 are both far above 1e-6. The extremes of many runs lie far apart, so that
with six or more a mean that is three standard deviations away counts as well.

Kernels are chosen by environment variables that libraries read when they are imported, so that each run is a process
of its own. Finished cells are stored in ``--folder``: a stopped run resumes where it was.

    python -m benchmarks.claim_margins                                  # three kernels, three seeds: nine runs
    python -m benchmarks.claim_margins --star                           # each kernel, and each seed natively: five runs
    python -m benchmarks.claim_margins talukder2026/fig6a --seeds 0 1 2 3 4
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev

from firstk_papers.frame.claims import Claim, Measure
from firstk_papers.frame.specs import TIERS, Spec, catalogue, choose
from firstk_papers.frame.types import JsonDict, JsonObject

# Numpy's products are OpenBLAS's; torch's are MKL's and its own; losses are compiled by numba.
KERNELS: dict[str, dict[str, str]] = {
    "native": {},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge", "ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX"},
    "nehalem": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "MKL_CBWR": "COMPATIBLE",  # MKL listens to the line above on Intel's processors alone
        "NUMBA_CPU_NAME": "generic",
    },
}
MANY, FAR = 6, 3.0  # runs from which a standard deviation is trusted, and how many of them are far
STEP = 1000  # between shifted seeds: studies of random instances count on from the seed they are given


@dataclass(frozen=True)
class Margin:
    """One claim over all runs."""

    id: str
    claim: Claim
    timed: bool
    recorded: bool | JsonDict | None
    values: dict[str, Measure]
    outcomes: dict[str, bool | None]

    @property
    def numbers(self) -> list[float]:
        """The values that were measured."""
        return [float(value) for value in self.values.values() if value is not None]

    @property
    def spread(self) -> tuple[float, float] | None:
        """The least and the largest value; None where no run measures it."""
        return (min(self.numbers), max(self.numbers)) if self.numbers else None

    @property
    def room(self) -> float | None:
        """Distance of the nearest value to the threshold; None for a truth."""
        ((rule, bound),) = self.claim.threshold.items()
        ends = bound if rule == "between" else [bound]
        return min((abs(x - end) for x in self.numbers for end in ends), default=None) if rule != "is" else None

    @property
    def flips(self) -> bool:
        """Whether the outcome is not the same in all runs."""
        return len(set(self.outcomes.values())) > 1

    @property
    def close(self) -> bool:
        """Whether the threshold is nearer to a value than the values are to each other."""
        if self.room is None or self.spread is None or self.room >= self.spread[1] - self.spread[0]:
            return False
        ((rule, bound),) = self.claim.threshold.items()
        if rule == "between":
            return True
        if len(self.numbers) >= MANY and abs(mean(self.numbers) - bound) >= FAR * stdev(self.numbers):
            return False
        if bound <= 0 or self.spread[0] <= 0:
            return True
        low, high = (math.log(end / bound) for end in self.spread)
        return min(abs(low), abs(high)) < high - low

    @property
    def state(self) -> str:
        """One word: flips, close, differs (from what is recorded) or safe."""
        if self.flips:
            return "flips"
        if self.close:
            return "close"
        differs = isinstance(self.recorded, bool) and set(self.outcomes.values()) != {self.recorded}
        return "differs" if differs else "safe"

    def plain(self) -> JsonDict:
        """Return what is written to the file."""
        found = {"id": self.id, "threshold": self.claim.threshold_text, "recorded": self.recorded, "state": self.state}
        return found | {
            "timed": self.timed, "spread": self.spread, "room": self.room,
            "values": self.values, "outcomes": self.outcomes,
        }  # fmt: skip


def shifted(spec: Spec, shift: int) -> Spec:
    """Return a spec with other seeds: its seed, and each of its lists of seeds."""

    def moved(settings: JsonObject) -> JsonDict:
        found = dict(settings)
        if isinstance(found.get("seeds"), list):
            found["seeds"] = [seed + STEP * shift for seed in found["seeds"]]
        if "seed" in found:
            found["seed"] += STEP * shift
        return found

    tiers = {tier: moved(settings) for tier, settings in spec.tiers.items()}
    return replace(spec, seed=spec.seed + STEP * shift, tiers=tiers)


def run_here(names: list[str], tier: str, shift: int, folder: Path, workers: int) -> None:
    """Run experiments in this process and its workers; the records are left in the folder."""
    from firstk_papers.frame.runner import run

    chosen = [shifted(spec, shift) for spec in choose(names, catalogue())]
    found = run(chosen, tier, folder, workers=workers, figures=False)
    for name, why in found.failed.items():
        print(f"{name} was not run: {why}", file=sys.stderr)


def run_under(names: list[str], tier: str, kernel: str, shift: int, folder: Path, workers: int) -> None:
    """Run experiments in a process of its own, whose libraries find the variables of the kernel."""
    command = [sys.executable, "-m", "benchmarks.claim_margins", *names, "--here", "--tier", tier]
    command += ["--seeds", str(shift), "--folder", str(folder), "--workers", str(workers)]
    chosen = {name for settings in KERNELS.values() for name in settings}
    environment = {name: value for name, value in os.environ.items() if name not in chosen} | KERNELS[kernel]
    subprocess.run(command, env=environment, check=True)


def margins(names: list[str], tier: str, folders: Mapping[str, Path]) -> list[Margin]:
    """Read the records of all runs, claim by claim."""
    found = []
    for spec in choose(names, catalogue()):
        paths = {run: folder / f"{spec.stem}.json" for run, folder in folders.items()}
        records = {run: json.loads(path.read_text()) for run, path in paths.items() if path.is_file()}
        for claim in spec.claims:
            of_run = {run: {c["id"]: c for c in record["claims"]}[claim.id] for run, record in records.items()}
            found.append(
                Margin(
                    id=f"{spec.id}/{claim.id}",
                    claim=claim,
                    timed=claim.measure in spec.timed,
                    recorded=(claim.expect or {}).get(tier),
                    values={run: c["measured"] for run, c in of_run.items()},
                    outcomes={run: c["held"] for run, c in of_run.items()},
                )
            )
    return found


def printed(found: Sequence[Margin]) -> str:
    """Return one line a claim, the fragile ones last, where a terminal shows them."""
    order = ("safe", "differs", "close", "flips")
    lines = []
    for one in sorted(found, key=lambda one: order.index(one.state)):
        spread = "-" if one.spread is None else f"{one.spread[0]:.4g} .. {one.spread[1]:.4g}"
        outcomes = "/".join(sorted({str(held).lower() for held in one.outcomes.values()}))
        timed = " (timed)" if one.timed else ""
        lines.append(f"{one.state:8}{one.id:50}{one.claim.threshold_text:>18}  {spread:28}{outcomes}{timed}")
        if one.state in ("close", "flips"):
            lines.append("        " + ", ".join(f"{run} {value}" for run, value in one.values.items()))
    counts = {state: sum(one.state == state for one in found) for state in order}
    lines.append(", ".join(f"{count} {state}" for state, count in counts.items()))
    return "\n".join(lines)


def main() -> int:
    """Run, print and save; the exit code says whether a claim with a recorded outcome flips or differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["all"], help="experiments, as 'firstk reproduce' takes them")
    parser.add_argument("--tier", choices=TIERS, default="smoke")
    parser.add_argument("--kernels", nargs="+", choices=list(KERNELS), default=["native", "sandybridge", "nehalem"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="shifts; 0 is the recorded seed")
    parser.add_argument("--star", action="store_true", help="not all pairs: each kernel at 0, and each seed natively")
    parser.add_argument("--folder", type=Path, default=Path("claim-margins"), help="keeps cells, records and the JSON")
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        run_here(asked.names, asked.tier, asked.seeds[0], asked.folder, asked.workers)
        return 0
    pairs = [(k, s) for k in asked.kernels for s in asked.seeds if not asked.star or s == 0 or k == "native"]
    folders = {f"{kernel}+{shift}": asked.folder / f"{kernel}+{shift}" for kernel, shift in pairs}
    for kernel, shift in pairs:
        print(f"{kernel}, seeds + {STEP * shift} ...", file=sys.stderr, flush=True)
        run_under(asked.names, asked.tier, kernel, shift, folders[f"{kernel}+{shift}"], asked.workers)
    found = margins(asked.names, asked.tier, folders)
    print(printed(found))
    path = asked.folder / "claim-margins.json"
    path.write_text(json.dumps([one.plain() for one in found], indent=1) + "\n", encoding="utf-8")
    return int(any(one.state in ("flips", "differs") and isinstance(one.recorded, bool) for one in found))


if __name__ == "__main__":
    sys.exit(main())
