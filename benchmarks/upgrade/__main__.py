"""``python -m benchmarks.upgrade``: stay, translate or re-embed; new queries against a store of old vectors.

For each ordered pair of three models, on two sets, with 500, 1,000 and 3,000 pairs: the score of every option on test
queries, with bootstrap intervals, and what the verdict says without them (`benchmarks.upgrade.verdict`). Settings are
chosen on held-out pairs. Results are added to results/upgrade.json, and what is there is not run again: remove the file
to begin anew. ``python -m benchmarks.upgrade.page`` makes the tables of the docs, and
``python -m benchmarks.upgrade.scale`` has the timings.

What is required: "auto" at most 0.01 behind the best of Procrustes, ridge and low-rank affine in every row, and ahead
on average; its code at half of its width keeps 95 % of its score in two thirds of the rows; of the verdict a mean
regret of at most 0.01, and no row that is wrong by more than its interval.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.upgrade import verdict
from benchmarks.upgrade.cases import DATA, PAIRS, cases, scores
from benchmarks.upgrade.options import METHODS, Fits, options
from benchmarks.upgrade.tables import read, required, write

RESAMPLES = 1000


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, print what is required, and return whether it holds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upgrade", description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA, help="sets of texts")
    parser.add_argument("--pairs", nargs="+", type=int, default=PAIRS, help="numbers of pairs")
    parser.add_argument("--upgrades", nargs="+", metavar="OLD:NEW", help="pairs of models, such as minilm:mpnet")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="methods, and 'auto'")
    parser.add_argument("--no-verdict", action="store_true", help="leave the verdicts out")
    asked = parser.parse_args(arguments)
    for case in cases(tuple(asked.data), tuple(asked.pairs)):
        if asked.upgrades is not None and f"{case.old}:{case.new}" not in asked.upgrades:
            continue
        start, known = time.process_time(), read().get(str(case), {})
        fits, found = Fits(case), dict[str, Any]()
        for name, store, queries in options(case, fits, tuple(asked.methods), known.get("scores", {})):
            found.setdefault("scores", {})[name] = _summary(scores(case.data, store, queries))
            if name == "auto":
                found["auto"] = repr(fits("auto").method_)
        if not asked.no_verdict and "verdict" not in known:
            found["verdict"] = asdict(verdict.row(case, fits))
        if found:
            write(str(case), found)
            print(f"{case}: {_line(found)} ({time.process_time() - start:.0f} s)", flush=True)
    return required(read())


def _summary(values: np.ndarray) -> list[float]:
    """Return the mean score and its 95 % bootstrap interval over queries."""
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return [round(float(number), 5) for number in (values.mean(), low, high)]


def _line(found: dict[str, Any]) -> str:
    parts = [f"{name} {value[0]:.3f}" for name, value in found.get("scores", {}).items()]
    said = found.get("verdict")
    return ", ".join(parts + ([f"verdict {said['action']} {said['translation']}"] if said else []))


if __name__ == "__main__":
    sys.exit(main())
