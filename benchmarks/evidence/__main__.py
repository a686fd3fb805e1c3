"""Evidence on several models, tasks and peers: ``python -m benchmarks.evidence``.

Settings are chosen on validation parts, test parts are opened last, and runs are kept in ``--cache``, so that an
interrupted run goes on where it ended. Without ``--trained`` only closed forms run: seconds each.

    python -m benchmarks.evidence --record results/evidence.json            closed forms
    python -m benchmarks.evidence --trained --record results/evidence.json  everything
    python -m benchmarks.evidence.page                                      the page of the docs, from the record
"""

# ruff: noqa: E402 - the number of threads is set before anything that reads it is imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.evidence.methods import METHODS
from benchmarks.evidence.record import table_of, write
from benchmarks.evidence.runs import cached_run, kept_at
from benchmarks.evidence.tasks import TASKS
from benchmarks.evidence.tasks.files import MODELS, cache_folder, vector_file
from firstk.exceptions import RankWarning

KS = (4, 8, 16, 32, 64, 128)
COMMAND = "python -m benchmarks.evidence"


def models_of(task: str, asked: Sequence[str]) -> list[str]:
    """Return the models whose vectors of a task's sets are there."""
    if task.startswith("fashion"):
        return ["pixels"]
    sets = [name for name in ("banking77", "sts", "scifact") if name in task]
    return [model for model in asked if all(vector_file(name, model).exists() for name in sets)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and print and record the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=tuple(TASKS))
    parser.add_argument("--methods", nargs="+", choices=[method.name for method in METHODS])
    parser.add_argument("--trained", action="store_true", help="also what takes longer than some seconds to fit")
    parser.add_argument("--cached", action="store_true", help="use no other runs than those that are kept")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    parser.add_argument("--record", type=Path)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", RankWarning)  # codes of 128 coordinates are asked of sets that have fewer
    for name in given.tasks:
        for model in models_of(name, given.models):
            measured(name, model, given)
    return 0


def measured(name: str, model: str, given: argparse.Namespace) -> None:
    """Run the methods on a task, print their scores and add them to the record."""
    task = TASKS[name](model)
    runs, left_out = {}, []
    for method in METHODS:
        if not method.applies(task.everything) or (given.methods and method.name not in given.methods):
            continue
        kept = kept_at(task, method, KS, given.cache).exists()
        if not kept and (given.cached or (method.trained and not given.trained)):
            left_out.append(method.name)
            continue
        runs[method] = cached_run(task, method, KS, given.cache)
        for part in runs[method].test:
            scores = " ".join(f"{score:.3f}" for score in runs[method].score(part))
            print(f"{model}, {name}, {part}: {method.name:<36}{scores}", flush=True)
    if runs and given.record:
        write(given.record, {f"{model}, {name}": table_of(task, runs, KS, left_out, COMMAND)})


if __name__ == "__main__":
    sys.exit(main())
