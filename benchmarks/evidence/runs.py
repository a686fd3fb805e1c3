"""One run: choose settings on validation data, fit, and only then score the test part. Runs are kept on disk."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.data import Encode, Part, Task, fitting
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.scores import Clustered
from firstk._base.atomic_file import atomic_file
from firstk.metrics.bootstrap import MeanScore, RankAgreement

KINDS = {"mean": (MeanScore, "values", None), "rank": (RankAgreement, "values", "scores"),
         "clusters": (Clustered, "clusters", "labels")}  # fmt: skip
# Folders of firstk that fit codes, and those that turn codes into bytes.
_FITS_CODES = ("_base", "moments", "losses", "objectives", "orderings", "solvers", "estimator")
SOURCES = {"coordinates": _FITS_CODES, "bytes": (*_FITS_CODES, "bits", "encoder")}
_FITS: dict[tuple[Method, Any, int, str], tuple[Encode, float]] = {}


@dataclass(frozen=True, eq=False)
class Run:
    """Scores of a method on a task.

    Attributes
    ----------
    ks : tuple of int
        Lengths.
    chosen : tuple of str
        The setting of each length.
    validation : ndarray of shape (K,)
    test : mapping
        For each part the scores by row, a list over seeds.
    seconds : float
        Processor time of all fits, those of the settings that were not chosen too.
    """

    ks: tuple[int, ...]
    chosen: tuple[str, ...]
    validation: np.ndarray
    test: Mapping[str, Sequence[Any]]
    seconds: float

    def score(self, part: str = "all") -> np.ndarray:
        """Return the test score of each length, a mean over seeds."""
        return np.mean([each.score() for each in self.test[part]], axis=0)

    def range(self, part: str = "all") -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest test score over seeds."""
        scores = np.stack([each.score() for each in self.test[part]])
        return scores.min(axis=0), scores.max(axis=0)


def run(task: Task, method: Method, ks: tuple[int, ...] | None = None) -> Run:
    """Choose on validation data, fit on all training data, and score the test part: in this order."""
    ks = method.lengths if ks is None else ks
    with fitting():
        tried = [_fit(method, task.training, setting, 0) for setting in method.settings]
        validation, chosen = _chosen(task, method, [encode for encode, _ in tried], ks)
        fits = {
            (i, seed): _fit(method, task.everything, method.settings[i], seed)
            for i in sorted(set(chosen))
            for seed in range(method.draws)
        }
    seconds = sum(one for _, one in (*tried, *fits.values()))
    test = task.test.opened()
    found: dict[str, list[Any]] = {}
    for seed in range(method.draws):
        for part, scores in _scored(task, {i: fits[i, seed][0] for i in set(chosen)}, chosen, test, ks).items():
            found.setdefault(part, []).append(scores)
    return Run(ks, tuple(repr(method.settings[i]) for i in chosen), validation, found, seconds)


def _fit(method: Method, part: Part, setting: Any, seed: int) -> tuple[Encode, float]:
    """Return a fit and its processor time; tasks with the same training part share it."""
    key = (method, setting, seed, part.digest())
    if key not in _FITS:
        began = time.process_time()
        _FITS[key] = (method.fit(part, setting, seed), time.process_time() - began)
    return _FITS[key]


def forget_fits() -> None:
    """Free the memory of fits that no other task will share."""
    _FITS.clear()


def _chosen(task: Task, method: Method, fits: Sequence[Encode], ks: tuple[int, ...]) -> tuple[np.ndarray, list[int]]:
    """Return validation scores, and the number of the setting of each length: one for all lengths, if it is ours."""
    table = np.stack([task.score(encode, task.validation, ks)[task.chosen_by].score() for encode in fits])
    best = np.full(len(ks), table.mean(axis=1).argmax()) if method.ours else table.argmax(axis=0)
    return table[best, np.arange(len(ks))], best.tolist()


def _scored(
    task: Task, fits: Mapping[int, Encode], chosen: Sequence[int], test: Any, ks: tuple[int, ...]
) -> dict[str, Any]:
    """Return the scores of all lengths, each by the fit with its setting."""
    pieces: dict[str, dict[int, Any]] = {}
    for i, encode in fits.items():
        own = [j for j, setting in enumerate(chosen) if setting == i]
        for part, scores in task.score(encode, test, tuple(ks[j] for j in own)).items():
            _, name, _ = KINDS[_kind(scores)]
            for column, j in enumerate(own):
                alone = getattr(scores, name)[:, column : column + 1]
                pieces.setdefault(part, {})[j] = replace(scores, **{name: alone})
    return {part: _joined([columns[j] for j in range(len(ks))]) for part, columns in pieces.items()}


def _joined(columns: Sequence[Any]) -> Any:
    _, name, _ = KINDS[_kind(columns[0])]
    return replace(columns[0], **{name: np.concatenate([getattr(each, name) for each in columns], axis=1)})


def _kind(scores: Any) -> str:
    return next(name for name, (kind, *_) in KINDS.items() if isinstance(scores, kind))


def kept_at(task: Task, method: Method, folder: Path) -> Path:
    """Return the file of a run: named by the data, the method's version and, for ours, the code that fits."""
    digest = hashlib.sha256(
        repr((method.lengths, task.measure, method.version, method.settings, method.draws)).encode()
    )
    digest.update((task.training.digest() + task.everything.digest()).encode())
    if method.ours:
        digest.update(code(method.unit).encode())
    name = f"{task.model}, {task.name}, {method.name}, {digest.hexdigest()[:12]}.npz".replace(" ", "_")
    return folder / "runs" / name


@cache
def code(unit: str) -> str:
    """Return a hash of the sources of firstk that fit codes, and of those that make bytes of them where these count."""
    import firstk

    root = Path(firstk.__file__).parent
    files = [file for name in SOURCES[unit] for file in sorted((root / name).rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def cached_run(task: Task, method: Method, folder: Path) -> Run:
    """Return a run from disk, where an earlier one has left it, else run it and keep it."""
    path = kept_at(task, method, folder)
    if path.exists():
        return _read(path)
    result = run(task, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, "A run") as draft, draft.open("wb") as file:
        np.savez(file, **_arrays(result))
    return result


def _arrays(result: Run) -> dict[str, np.ndarray]:
    about: dict[str, Any] = {"ks": result.ks, "chosen": result.chosen, "seconds": result.seconds, "parts": {}}
    arrays: dict[str, np.ndarray] = {"validation": result.validation}
    for part, runs in result.test.items():
        kind = _kind(runs[0])
        _, name, other = KINDS[kind]
        about["parts"][part] = {"kind": kind, "seeds": len(runs)}
        arrays[f"{part} values"] = np.stack([getattr(each, name) for each in runs])
        if other is not None:
            arrays[f"{part} other"] = getattr(runs[0], other)
    return arrays | {"about": np.array(json.dumps(about))}


def _read(path: Path) -> Run:
    with np.load(path) as held:
        about, test = json.loads(str(held["about"])), {}
        for part, one in about["parts"].items():
            kind, name, other = KINDS[one["kind"]]
            fixed = {} if other is None else {other: held[f"{part} other"]}
            test[part] = [kind(**{name: values}, **fixed) for values in held[f"{part} values"]]
        return Run(tuple(about["ks"]), tuple(about["chosen"]), held["validation"], test, about["seconds"])
