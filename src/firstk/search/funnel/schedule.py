"""Schedule: which prefixes a funnel compares, and how many rows it keeps after each.

A record without data, so that a schedule can be chosen once, read, stored, and used on a store that has grown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from firstk._base.checks import bad_parameter, is_int
from firstk._base.json_records import Count, JsonRecord, Share
from firstk.exceptions import InvalidInputError


class OrderWarning(UserWarning):
    """The order of the coordinates does not help the search: prefixes find no more than any other coordinates would."""


class Stage(NamedTuple):
    """Keep the `size` rows that are nearest by their first `k` coordinates."""

    k: Count
    size: Count


@dataclass(frozen=True)
class Schedule(JsonRecord):
    """The stages of a funnel, first to last, and what they were chosen for.

    Attributes
    ----------
    stages : tuple of Stage
        k increases and size does not.
    rows : int
        Rows in the store that the sizes belong to; a store of another size scales them.
    n_neighbors : int
        The largest number of neighbors that the recall is meant for.
    exact_k : int
        Prefix of the scan that makes a search exact.
    remainder_cosine : float
        Inner products only: the cosine that is expected between what is left of a query and of its neighbor.
    recall : float or None
        The recall that was asked for; None for a schedule given by hand.
    measured_recall : float or None
        Recall on the sampled rows the schedule was chosen on.
    probes : int
        Cells that the first stage looks into, where the index has any; see `cells`.
    """

    stages: tuple[Stage, ...]
    rows: Count
    n_neighbors: Count
    exact_k: Count
    remainder_cosine: Share = 0.0
    recall: Share | None = None
    measured_recall: Share | None = None
    probes: Count = 1

    def sizes(self, rows: int, n_neighbors: int) -> list[int]:
        """Shortlist sizes for a store of `rows` rows: the same shares of it, and at least the neighbors."""
        grown = [-(-stage.size * rows // self.rows) for stage in self.stages]
        return [min(rows, max(size, n_neighbors)) for size in grown]

    def __str__(self) -> str:
        return ", then ".join(f"{stage.size} rows at k = {stage.k}" for stage in self.stages)


def given_schedule(stages: Iterable[Sequence[int]], d: int, rows: int, n_neighbors: int) -> Schedule:
    """Return a schedule from pairs (k, shortlist size) that a caller chose."""
    owner = "FunnelIndex.fit"
    allowed = f"pairs (k, size), k increasing in [1, {d}] (the width), size never growing and at least {n_neighbors}"
    try:
        pairs = [(k, size) for k, size in stages]
    except (TypeError, ValueError):
        raise bad_parameter("schedule", owner, allowed, stages) from None
    if not pairs or not all(is_int(value) for pair in pairs for value in pair):
        raise bad_parameter("schedule", owner, allowed, stages)
    ordered = all(a[0] < b[0] and a[1] >= b[1] for a, b in pairwise(pairs))
    if not ordered or pairs[0][0] < 1 or pairs[-1][0] > d or pairs[-1][1] < n_neighbors:
        raise bad_parameter("schedule", owner, allowed, stages)
    chosen = tuple(Stage(int(k), int(size)) for k, size in pairs)
    return Schedule(chosen, rows, n_neighbors, exact_k=chosen[0].k)


def check_schedule(schedule: Schedule, d: int) -> None:
    """Raise InvalidInputError if a schedule that was read from a file does not fit codes of width d."""
    given_schedule(schedule.stages, d, schedule.rows, schedule.n_neighbors)
    if schedule.exact_k > d:
        raise InvalidInputError(f"a schedule with exact_k={schedule.exact_k} for codes of width {d}")


def full_scan(d: int, rows: int, n_neighbors: int, recall: float) -> Schedule:
    """Return the schedule that reads every coordinate of every row; float32 needs a margin for its rounding."""
    size = min(rows, 2 * n_neighbors)
    return Schedule((Stage(d, size),), rows, n_neighbors, exact_k=d, recall=recall, measured_recall=1.0)
