"""Runs from specs to results: cells are computed, claims evaluated, and each experiment written as one record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from firstk.exceptions import FirstkError, InvalidInputError, MissingExtraError
from firstk_papers.datasets import MissingDataError
from firstk_papers.frame.cells import FOLDER, Job, StudyError, do_all, load, part_of, worker_pool
from firstk_papers.frame.checks import require
from firstk_papers.frame.claims import ClaimResult, Measure
from firstk_papers.frame.files import check_folder, write_text
from firstk_papers.frame.panels import Findings, Panel, panel_from_json, panel_to_json
from firstk_papers.frame.specs import Spec
from firstk_papers.frame.types import JsonDict


@dataclass(frozen=True)
class Result:
    """What one experiment gave in one tier: a file ``results/<tier>/<paper>-<name>.json``."""

    id: str
    paper: str
    title: str
    where: str
    tier: str
    settings: JsonDict
    seconds: float
    claims: tuple[ClaimResult, ...]
    measures: dict[str, Measure]
    panels: tuple[Panel, ...]
    notes: tuple[str, ...]
    censored: tuple[str, ...]
    substitutes: tuple[dict[str, str], ...]
    reading: str

    @property
    def stem(self) -> str:
        """Name of its files."""
        return self.id.replace("/", "-")

    def to_json(self) -> str:
        """Return the record as text."""
        try:
            return _lines(asdict(self) | {"panels": [panel_to_json(panel) for panel in self.panels]}) + "\n"
        except ValueError as error:
            raise InvalidInputError(f"The result of {self.id} holds a number that JSON has not: {error}.") from None

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read a record back."""
        try:
            plain = json.loads(text)
            panels = tuple(map(panel_from_json, plain.pop("panels")))
            claims = tuple(ClaimResult(**claim) for claim in plain.pop("claims"))
            for name in ("notes", "censored", "substitutes"):
                plain[name] = tuple(plain[name])
            return cls(claims=claims, panels=panels, **plain)
        except (json.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"This is no result of an experiment ({error}). Run 'firstk reproduce' again."
            ) from None


def _lines(plain: JsonDict) -> str:
    """Return JSON with a field, a claim and a panel on a line each: short, and a change of one shows as one."""

    def text(value: object) -> str:
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
            return "[\n  " + ",\n  ".join(json.dumps(item, allow_nan=False) for item in value) + "\n ]"
        return json.dumps(value, allow_nan=False)

    return "{\n " + ",\n ".join(f"{json.dumps(name)}: {text(value)}" for name, value in plain.items()) + "\n}"


@dataclass(frozen=True)
class Run:
    """What a run gave: results by id, and the error message of each experiment that could not be run."""

    results: dict[str, Result]
    failed: dict[str, str]


@contextmanager
def _naming(spec: Spec, part: str) -> Iterator[None]:
    """Add the name of the experiment to an error in a function of its study."""
    try:
        yield
    except (MissingDataError, MissingExtraError):
        raise  # a package or a file is missing, whichever experiment it was
    except FirstkError as error:
        raise InvalidInputError(f"The experiment {spec.id}: {error}") from error
    except Exception as error:
        named = f"The experiment {spec.id} stopped in '{part}' of the study '{spec.study}'"
        raise StudyError(f"{named}: {type(error).__name__}: {error}") from error


def jobs_of(spec: Spec, tier: str) -> list[Job]:
    """Return the cells of an experiment."""
    with _naming(spec, "cells"):
        return [Job(spec.study, cell, spec.id) for cell in part_of(spec.study, "cells")(spec.settings(tier))]


def run(
    specs: list[Spec],
    tier: str,
    folder: Path,
    *,
    workers: int = 1,
    fresh: bool = False,
    figures: bool = True,
    progress: Callable[[int], Callable[[Job], None]] = lambda total: lambda job: None,
) -> Run:
    """Run experiments; what is finished is stored in `folder` even if the run is stopped.

    Parameters
    ----------
    specs : list of Spec
    tier : {"smoke", "full", "authors"}
    folder : Path
        Of this tier's results.
    workers : int
        Processes of one thread each. Results do not depend on it.
    fresh : bool
        Do finished cells again.
    figures : bool
        Draw them, too: about as long as the cells of the smoke tier take.
    progress : callable
        Given the number of cells to do, returns a callback for each one that is done.
    """
    for place in (folder, folder / FOLDER):
        check_folder(place)  # before the work, not after it
    wanted = {spec.id: jobs_of(spec, tier) for spec in specs}
    every: dict[str, Job] = {}
    for job in chain.from_iterable(wanted.values()):
        every.setdefault(job.key, job)
    missing = [job for job in every.values() if fresh or load(folder, job) is None]
    messages = do_all(missing, folder, workers, progress(len(missing)))
    results, failed = {}, {}
    for spec in specs:
        wrong = [messages[job.key] for job in wanted[spec.id] if job.key in messages]
        if wrong:
            failed[spec.id] = wrong[0]
            continue
        results[spec.id] = _concluded(spec, tier, folder, wanted[spec.id])
        write(results[spec.id], folder)
    if figures:
        draw_all([folder / f"{result.stem}.json" for result in results.values()], workers)
    return Run(results, failed)


def _concluded(spec: Spec, tier: str, folder: Path, jobs: list[Job]) -> Result:
    """Read the cells of an experiment and evaluate its claims."""
    kept = [load(folder, job) or {} for job in jobs]
    settings = spec.settings(tier)
    cells = [(part["cell"], part["result"]) for part in kept]
    with _naming(spec, spec.report):
        findings: Findings = part_of(spec.study, spec.report)(settings, cells)
        # The code of a paper's authors need not have all that the paper shows.
        absent = {claim.measure: None for claim in spec.claims} if tier == "authors" else {}
        claims = tuple(claim.result(spec.paper, absent | dict(findings.measures), tier) for claim in spec.claims)
    return Result(
        id=spec.id,
        paper=spec.paper,
        title=spec.title,
        where=spec.where,
        tier=tier,
        settings=settings,
        seconds=round(sum(part["seconds"] for part in kept), 1),
        claims=claims,
        measures=dict(findings.measures),
        panels=tuple(findings.panels),
        notes=tuple(findings.notes),
        censored=tuple(findings.censored),
        substitutes=spec.substitutes,
        reading=spec.reading,
    )


def write(result: Result, folder: Path) -> None:
    """Write the record."""
    write_text(folder / f"{result.stem}.json", result.to_json())


def draw_all(records: list[Path], workers: int) -> None:
    """Draw the figure of each record next to it, in `workers` processes; a single one is drawn here."""
    if workers == 1 or len(records) < 2:
        for record in records:
            draw_record(record)
        return
    require("matplotlib", "report", "firstk reproduce")  # the error of a worker could not be pickled
    with worker_pool(min(workers, len(records))) as pool:
        for _ in pool.map(draw_record, records):
            pass


def draw_record(record: Path) -> None:
    """Draw the figure of a record: what is drawn now is what the committed record gives later."""
    from firstk_papers.frame.drawing import draw

    draw(Result.from_json(record.read_text(encoding="utf-8")).panels, record.with_suffix(""))


def read_results(folder: Path, specs: Mapping[str, Spec]) -> list[Result]:
    """Read the results that a folder holds, in the order of the specs; a damaged one counts as not run."""
    found = []
    for spec in specs.values():
        path = folder / f"{spec.stem}.json"
        if path.is_file():
            with suppress(InvalidInputError):
                found.append(Result.from_json(path.read_text(encoding="utf-8", errors="replace")))
    return found
