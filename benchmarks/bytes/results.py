"""Per-query scores of every setting, kept on disk, and what follows from them: choices, curves and intervals."""

from __future__ import annotations

import getpass
import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bytes.cases import Case
from benchmarks.bytes.settings import BYTES, Setting
from firstk._base.atomic_file import atomic_file

DRAWS = 1000


def default_cache() -> Path:
    """Return the folder of the results of earlier runs."""
    return Path(tempfile.gettempdir()) / f"firstk-bytes-{getpass.getuser()}"


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one setting, a row a query, a column a way to search its codes."""

    setting: Setting
    ways: tuple[str, ...]
    recall: np.ndarray
    other: np.ndarray | None
    codebook_bytes: int
    seconds: dict[str, float]


def kept_at(case: Case, setting: Setting, folder: Path) -> Path:
    """Return the file of the scores of a setting."""
    return folder / f"{case.name}-{case.fingerprint}" / f"{setting.family},{setting.name}.npz".replace(" ", "_")


def scored(case: Case, setting: Setting, folder: Path) -> Scores:
    """Return the scores of a setting, from disk where an earlier run has left them."""
    path = kept_at(case, setting, folder)
    if setting.cached and path.exists():
        with np.load(path) as held:
            about = json.loads(str(held["about"]))
            other = held["other"] if "other" in held.files else None
            return Scores(setting, tuple(about["ways"]), held["recall"], other, about["codebook"], about["seconds"])
    start = time.perf_counter()
    encoded = setting.encode(case)
    found = {way: case.measures(rows) for way, rows in encoded.found(case.queries).items()}
    recall = np.stack([r for r, _ in found.values()], axis=1).astype(np.float32)
    other = None
    if case.other_measure:
        other = np.stack([o for _, o in found.values()], axis=1).astype(np.float32)
    result = Scores(setting, tuple(found), recall, other, encoded.codebook_bytes, dict(encoded.seconds))
    about = {"ways": result.ways, "codebook": int(result.codebook_bytes), "seconds": result.seconds}
    arrays = {"recall": recall, "about": np.array(json.dumps(about))} | ({} if other is None else {"other": other})
    if setting.cached:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, "A result") as draft, draft.open("wb") as file:
            np.savez(file, **arrays)
    print(
        f"{case.name}: {setting.family}, {setting.name}: {recall.mean(axis=0).max():.3f} in {setting.bytes} bytes "
        f"({time.perf_counter() - start:.1f} s)",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    return result


@dataclass(frozen=True, eq=False)
class Line:
    """A family's scores of every query at one number of bytes, each by settings chosen on other queries."""

    family: str
    bytes: int
    values: np.ndarray
    chosen: tuple[str, ...]
    codebook_bytes: int
    # Known by its mean alone, from the record of an earlier run: differences have no interval.
    earlier: bool = False

    @property
    def mean(self) -> float:
        """Mean over the queries."""
        return float(self.values.mean())


def line(case: Case, results: Iterable[Scores], family: str, size: int, measure: str = "recall") -> Line | None:
    """Choose among the settings of at most so many bytes, for each half of the queries on the other half."""
    columns = [
        (values[:, i], f"{result.setting.name}, {way}", result.codebook_bytes)
        for result in results
        if result.setting.family == family and result.setting.serves(size)
        for values in [result.recall if measure == "recall" else result.other]
        if values is not None
        for i, way in enumerate(result.ways)
    ]
    if not columns:
        return None
    values, chosen, codebook = np.empty(len(case.queries)), [], 0
    for fold in (0, 1):
        seen = case.folds != fold
        best = max(columns, key=lambda column: column[0][seen].mean())
        values[~seen] = best[0][~seen]
        chosen.append(best[1])
        codebook = max(codebook, best[2])
    return Line(family, size, values, tuple(dict.fromkeys(chosen)), int(codebook))


def earlier_lines(queries: int, record: Mapping[str, Any]) -> Iterator[Line]:
    """Return the lines of a table that an earlier run has left, ours excluded: they change with every version."""
    for family, rows in record.get("families", {}).items():
        for row in rows if not family.startswith("firstk embedded") else ():
            values = np.full(queries, float(row["score"]))
            yield Line(family, row["bytes"], values, tuple(row["chosen"]), row["codebook_bytes"], earlier=True)


def interval(differences: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Return the bootstrap interval of a mean over queries."""
    means = _draws(len(differences)) @ differences / len(differences)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@cache
def _draws(n: int) -> np.ndarray:
    """Return how often each query is in each draw: the same draws for all differences."""
    rng = np.random.default_rng(0)
    return np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(DRAWS)]).astype(np.float32)


def table(
    case: Case, results: list[Scores], lacking: Collection[tuple[str, int]] = (), measure: str = "recall"
) -> dict[str, dict[int, Line]]:
    """Return the lines of all families at all numbers of bytes but those at which a family lacks a setting."""
    families = list(dict.fromkeys(result.setting.family for result in results))
    found = {f: {b: line(case, results, f, b, measure) for b in BYTES if (f, b) not in lacking} for f in families}
    return {f: {b: one for b, one in lines.items() if one is not None} for f, lines in found.items()}
