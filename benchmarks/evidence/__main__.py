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
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.evidence.data import Task
from benchmarks.evidence.methods import METHODS
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.record import table_of, write
from benchmarks.evidence.runs import Run, cached_run, forget_fits, kept_at
from benchmarks.evidence.tasks import TASKS
from benchmarks.evidence.tasks.files import IMAGE_MODELS, MODELS, cache_folder, image_file, vector_file
from firstk.exceptions import RankWarning

ALL = (*MODELS, *IMAGE_MODELS.values())


def models_of(task: str, asked: Sequence[str]) -> list[str]:
    """Return the models whose vectors of a task's sets are there."""
    for name, model in IMAGE_MODELS.items():
        if task.startswith(name):
            return [model] if model in asked and (model == "pixels" or image_file(name, model).exists()) else []
    sets = [name for name in ("banking77", "sts", "scifact") if name in task]
    return [model for model in asked if all(vector_file(name, model).exists() for name in sets)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and print and record the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=ALL, default=ALL)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=tuple(TASKS))
    parser.add_argument("--methods", nargs="+", choices=[method.name for method in METHODS])
    parser.add_argument("--trained", action="store_true", help="also what takes longer than some seconds to fit")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no other run after so many minutes")
    parser.add_argument("--cached", action="store_true", help="use no other runs than those that are kept")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    parser.add_argument("--record", type=Path)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", RankWarning)  # codes of 128 coordinates are asked of sets that have fewer
    for model in given.models:
        tasks = [TASKS[name](model) for name in given.tasks if model in models_of(name, given.models)]
        run_all(tasks, given)
        for task in tasks if given.record else ():
            for unit, title in (("coordinates", ""), ("bytes", ", bytes")):
                if (runs := kept_runs(task, unit, given)).found:
                    write(given.record, {f"{model}, {task.name}{title}": table_of(task, runs.found, runs.left_out)})
    return 0


def run_all(tasks: Sequence[Task], given: argparse.Namespace) -> None:
    """Run what is asked for and not kept: method by method, as tasks with one training part share fits."""
    began = time.monotonic()
    for method in METHODS:
        for task in tasks:
            kept = kept_at(task, method, given.cache).exists()
            late = time.monotonic() - began > 60 * given.minutes
            left_out = not kept and (late or given.cached or (method.trained and not given.trained))
            if left_out or not asked(method, task, given):
                continue
            found = cached_run(task, method, given.cache)
            for part in found.test:
                scores = " ".join(f"{score:.3f}" for score in found.score(part))
                print(f"{task.model}, {task.name}, {part}: {method.name:<36}{scores}", flush=True)
        forget_fits()


class Kept(NamedTuple):
    """Runs of a task, and the names of methods without one."""

    found: dict[Method, Run]
    left_out: list[str]


def kept_runs(task: Task, unit: str, given: argparse.Namespace) -> Kept:
    """Return the runs of a task that were asked for and are kept."""
    methods = [method for method in METHODS if method.unit == unit and asked(method, task, given)]
    kept = [method for method in methods if kept_at(task, method, given.cache).exists()]
    left_out = [method.name for method in methods if method not in kept]
    return Kept({method: cached_run(task, method, given.cache) for method in kept}, left_out)


def asked(method: Method, task: Task, given: argparse.Namespace) -> bool:
    """Return whether a method applies to a task and was asked for."""
    return method.applies(task.everything) and (not given.methods or method.name in given.methods)


if __name__ == "__main__":
    sys.exit(main())
