"""Fit on rows as they stream by, with a part held out: what ``firstk fit`` does between reading and judging.

Closed forms see each row once and keep moments only; training needs the rows and holds them in memory. A batch is a
mapping from names to arrays with one row each: "X" and maybe "y", or "left", "right" and maybe "scores".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstk._checks import InvalidInput, bad_parameter, is_real
from firstk.contracts import Statistics
from firstk.estimator import PrefixEncoder
from firstk.evaluation import Evidence
from firstk.problem import pose

Columns = Mapping[str, np.ndarray]
# Rows that are judged, and rows among which neighbours are looked for: enough for a curve, bounded for any file.
MOST_HELD = MOST_REFERENCE = 10_000


@dataclass(frozen=True, eq=False)
class Draw:
    """Which rows of a stream are kept apart, and which of the others are remembered as well.

    Attributes
    ----------
    held : ndarray of int
        Row numbers, ascending, on which nothing is fitted.
    reference : ndarray of int
        Row numbers, ascending, of rows that are fitted on and kept to look neighbours up among.
    """

    held: np.ndarray
    reference: np.ndarray


@dataclass(frozen=True, eq=False)
class StreamedFit:
    """A fitted encoder, with what it can be judged by.

    Attributes
    ----------
    encoder : PrefixEncoder
    rows : int
        How many it was fitted on.
    held, reference : mapping
        Rows that the fit has not seen (empty where none were held out), and rows that it has.
    statistics : Statistics
        Of the rows it was fitted on.
    """

    encoder: PrefixEncoder
    rows: int
    held: Columns
    reference: Columns
    statistics: Statistics

    @property
    def evidence(self) -> Evidence:
        """The held-out rows, and the reference to judge them by."""
        held = self.held
        if "left" in held:
            return Evidence(left=held["left"], right=held["right"], scores=held.get("scores"))
        return Evidence(X=held["X"], y=held.get("y"), X_ref=self.reference["X"], y_ref=self.reference.get("y"))


def draw(n: int, share: float, seed: int = 0) -> Draw:
    """Draw the held-out part of `n` rows, at most 10,000, and as many again to look neighbours up among.

    Parameters
    ----------
    n : int
    share : float in [0, 1)
        Of the rows, to hold out; 0 holds out none.
    seed : int

    Examples
    --------
    >>> parts = draw(10, 0.2)
    >>> len(parts.held), len(parts.reference)
    (2, 8)
    """
    if not is_real(share) or not 0 <= share < 1:
        raise bad_parameter("held_out", "fit", "a share of the rows in [0, 1), or a file", share)
    held = min(round(share * n), MOST_HELD)
    if share and not held:
        raise InvalidInput(f"A share of {share:g} of {n} rows is no row at all. Hold out more, or none: --held-out 0.")
    rows = np.random.default_rng(seed).choice(n, size=held + min(n - held, MOST_REFERENCE), replace=False)
    return Draw(np.sort(rows[:held]), np.sort(rows[held:]))


def fit_stream(
    encoder: PrefixEncoder, batches: Iterable[Columns], parts: Draw, held: Columns | None = None
) -> StreamedFit:
    """Fit an encoder on a stream, but for the rows that are held out.

    Parameters
    ----------
    encoder : PrefixEncoder
        Not fitted yet.
    batches : iterable of mappings
        Every row once, in the order by which `parts` counts them.
    parts : Draw
    held : mapping, optional
        Rows of another file to judge by, in place of those drawn.
    """
    intake = _Intake(encoder)
    kept, seen = _Pile(parts.held), _Pile(parts.reference)
    start = 0
    for batch in batches:
        batch = {name: _floats(part) for name, part in batch.items()}
        count = len(next(iter(batch.values())))
        apart = kept.pick(batch, start, count)
        seen.pick(batch, start, count)
        rest = np.delete(np.arange(count), apart)
        intake.take({name: part[rest] for name, part in batch.items()} if len(apart) else batch, len(rest))
        start += count
    intake.finish()
    own = kept.columns() if held is None else {name: _floats(part) for name, part in held.items()}
    return StreamedFit(encoder, intake.rows, own, seen.columns(), encoder._statistics)


@dataclass
class _Pile:
    """Rows of a stream that are to be kept, by number."""

    wanted: np.ndarray
    parts: list[dict[str, np.ndarray]] = field(default_factory=list)

    def pick(self, batch: Columns, start: int, count: int) -> np.ndarray:
        """Keep what is wanted of a batch, and return its positions there."""
        first, last = np.searchsorted(self.wanted, (start, start + count))
        rows = self.wanted[first:last] - start
        if len(rows):
            self.parts.append({name: part[rows] for name, part in batch.items()})
        return rows

    def columns(self) -> dict[str, np.ndarray]:
        """Return all that was kept."""
        return {name: np.concatenate([part[name] for part in self.parts]) for name in (self.parts or [{}])[0]}


class _Intake:
    """Hands batches to an encoder: at once where moments suffice, all together where rows are needed."""

    def __init__(self, encoder: PrefixEncoder):
        self.encoder, self.rows = encoder, 0
        self.waiting: list[Columns] = []
        self.problem: Any = None

    def take(self, batch: Columns, count: int) -> None:
        """Take in a batch, unless nothing is left of it."""
        if not count:
            return
        self.rows += count
        if self.problem is None:
            e = self.encoder
            self.problem = pose(
                e.objective, e.ordering, e.solver, e.n_components, network=e.network, pairs="left" in batch
            )
        if self.problem.solver.trains:
            self.waiting.append(batch)
        elif "left" in batch:
            self.encoder.partial_fit_pairs(batch["left"], batch["right"], batch.get("scores"))
        else:
            self.encoder.partial_fit(batch["X"], self._target(batch))

    def finish(self) -> None:
        """Train on what was waiting, or solve; a training that was interrupted is no result."""
        if not self.rows:
            raise InvalidInput("There is no row to fit on. Give a file with rows, or hold fewer of them out.")
        if self.waiting:
            whole = {name: np.concatenate([batch[name] for batch in self.waiting]) for name in self.waiting[0]}
            self.waiting.clear()
            if "left" in whole:
                self.encoder.fit_pairs(whole["left"], whole["right"], whole.get("scores"))
            else:
                self.encoder.fit(whole["X"], self._target(whole))
        raise_if_interrupted(self.encoder)

    def _target(self, batch: Columns) -> np.ndarray | None:
        """Return labels or targets only where the objective learns from them; others are there to judge by."""
        return None if self.problem.objective.takes == "rows" else batch.get("y")


def raise_if_interrupted(encoder: PrefixEncoder) -> None:
    """Let Ctrl-C end a command: training keeps its best state and returns, which is no result that was asked for."""
    if encoder.encoder_.config.get("ended") == "interrupted":
        raise KeyboardInterrupt


def _floats(part: Any) -> np.ndarray:
    """Return half precision as single: numpy has no fast arithmetic for it."""
    part = np.asarray(part)
    return part.astype(np.float32) if part.dtype == np.float16 else part
