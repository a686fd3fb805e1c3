"""Cells: the pieces of an experiment, stored on disk as they are finished.

A cell is a JSON dict that holds everything its result depends on, so that the hash of study and cell names its file:
an interrupted run resumes where it was, and two figures that need the same piece share it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from firstk.exceptions import FirstkError, InvalidInputError, MissingExtraError
from firstk_papers.datasets import MissingDataError
from firstk_papers.frame.files import write_text
from firstk_papers.frame.specs import PAPERS
from firstk_papers.frame.types import JsonDict, JsonObject

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

FOLDER = "cells"
SHOWN = 200  # characters of a cell in an error message: some hold whole spectra


class StudyError(RuntimeError):
    """An unexpected error inside a study, which is a bug: its traceback is shown, too."""


@dataclass(frozen=True)
class Job:
    """One cell of one study, and the experiment that needs it first; its result does not depend on that."""

    study: str
    cell: JsonDict
    experiment: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """The hash of study and cell, which names its file."""
        text = json.dumps([self.study, self.cell], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def shown(self) -> str:
        """The cell as an error names it."""
        text = json.dumps(self.cell)
        return f"the cell {text if len(text) <= SHOWN else text[: SHOWN - 4] + ' ...'} of the study '{self.study}'"


def study_module(name: str) -> ModuleType:
    """Import a study by its name among ours, or as a module of one's own."""
    ours = [] if "." in name else [f"firstk_papers.{paper}.{name}" for paper in PAPERS]
    module = next(filter(find_spec, ours), name)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise MissingExtraError("torch", "torch", f"The study '{name}'") from None
        if error.name not in (module, module.partition(".")[0]):
            raise
        raise InvalidInputError(
            f"There is no study '{name}', neither among firstk's own nor as a module that Python finds. Put "
            f"{name.partition('.')[0]}.py into the folder that --specs names."
        ) from None


def part_of(study: str, name: str) -> Callable[..., Any]:
    """Return a function of a study; raise an error if it has none of that name."""
    found = getattr(study_module(study), name, None)
    if not callable(found):
        raise InvalidInputError(f"The study '{study}' has no function '{name}'.")
    return found


def load(folder: Path, job: Job) -> JsonDict | None:
    """Return the stored result of a job with the seconds it took, or None; a damaged file counts as none."""
    try:
        kept = json.loads((folder / FOLDER / f"{job.key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no file, no text, or no JSON
        return None
    whole = isinstance(kept, dict) and kept.get("cell") == job.cell and {"result", "seconds"} <= set(kept)
    return kept if whole else None


def save(folder: Path, job: Job, result: JsonObject, seconds: float) -> None:
    """Store a result, by an atomic write."""
    kept = {"study": job.study, "cell": job.cell, "seconds": round(seconds, 3), "result": result}
    try:
        text = json.dumps(kept, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"A cell of '{job.study}' gives finite numbers, texts, lists and dicts: {error}"
        ) from None
    write_text(folder / FOLDER / f"{job.key}.json", text)


def attempt(job: Job) -> tuple[JsonObject, float] | str:
    """Do a job in a worker; return its result and the seconds it took, or the message of an expected error.

    Not every exception can be pickled, so that an expected one comes back as its message.
    """
    begun = time.perf_counter()
    try:
        return part_of(job.study, "measure")(job.cell), time.perf_counter() - begun
    except (MissingDataError, MissingExtraError) as error:
        # It does not depend on the cell, and a study has neither a folder nor a permission to download.
        return str(error)
    except FirstkError as error:
        return f"{error} This was {job.shown}."
    except Exception as error:
        named = f"The experiment {job.experiment} stopped at {job.shown}"
        raise StudyError(f"{named}: {type(error).__name__}: {error}") from error


def one_thread() -> None:
    """Keep a worker to one thread, so that results do not depend on how many workers there are."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker silently; the parent prints a message.
    threadpool_limits(1)
    # What is loaded later (torch, numba) reads the environment.
    os.environ.update(OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")


def do_all(jobs: list[Job], folder: Path, workers: int, done: Callable[[Job], None]) -> dict[str, str]:
    """Do jobs in worker processes and store each result as it comes; return error messages by key."""
    from concurrent.futures import as_completed

    failed: dict[str, str] = {}
    if not jobs:
        return failed
    with worker_pool(min(workers, len(jobs))) as pool:
        begun = {pool.submit(attempt, job): job for job in jobs}
        for future in as_completed(begun):
            job, outcome = begun[future], future.result()
            if isinstance(outcome, str):
                failed[job.key] = outcome
            else:
                save(folder, job, *outcome)
            done(job)
    return failed


@contextmanager
def worker_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes of one thread each; an error or Ctrl-C terminates them."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")  # forked threads of BLAS and torch do not survive
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=one_thread)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    pool.shutdown()
