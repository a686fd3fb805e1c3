"""Statistics as bytes, for engines that firstk does not know: Spark, Ray Data, a queue of jobs, a folder of files.

Any engine that can apply a function to partitions and collect what it returns can fit an encoder: `measure` on the
workers, `finish` where the results are collected. What travels is bounded by the width of the vectors, whatever the
number of rows, and nothing is pickled by firstk. docs/scale.md has the few lines for each engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from firstk import _arrays
from firstk._checks import InvalidInput
from firstk.batches import measured
from firstk.contracts import Statistics
from firstk.problem import Problem

if TYPE_CHECKING:
    from firstk.estimator import PrefixEncoder


def measure(encoder: PrefixEncoder, batches: Iterable[Any], *, pairs: bool = False) -> bytes:
    """Return the statistics of the batches of a partition, on the worker that has them.

    Parameters
    ----------
    encoder : PrefixEncoder
        With the settings of the fit; it is not changed.
    batches : iterable
        Each an X, an (X, y), an (X, y, weight) or a mapping of those names; with `pairs`, (left, right),
        (left, right, scores) or a mapping. They are taken one at a time. None at all gives empty bytes.
    pairs : bool
    """
    problem, found = _problem(encoder, pairs), None
    for batch in batches:
        found = _joined(found, measured(problem, batch))
    return b"" if found is None else _arrays.to_bytes(found.to_arrays(), {"objective": problem.objective.name})


def merge(parts: Iterable[bytes]) -> bytes:
    """Return the statistics of several partitions as those of one: for engines that reduce in a tree."""
    found, facts = _merged(parts)
    return b"" if found is None else _arrays.to_bytes(found.to_arrays(), facts)


def finish(encoder: PrefixEncoder, parts: Iterable[bytes]) -> PrefixEncoder:
    """Fit an encoder on what the partitions gave, in the order in which they come.

    In the same order the result has the same bytes; in another it differs by rounding.
    """
    found, facts = _merged(parts)
    if found is None:
        raise InvalidInput("No partition had a row to fit on.")
    problem = _problem(encoder, hasattr(found.moments, "third"))
    if facts.get("objective") != problem.objective.name:
        raise InvalidInput(
            f"These statistics are of objective '{facts.get('objective')}', and the encoder has "
            f"'{problem.objective.name}'. Give workers and driver the same encoder."
        )
    return encoder._learn(found)


def _problem(encoder: PrefixEncoder, pairs: bool) -> Problem:
    problem = encoder._pose(pairs=pairs)
    problem.check_streamable("Merging partitions")
    return problem


def _joined(first: Statistics | None, second: Statistics | None) -> Statistics | None:
    if first is None or second is None:
        return second if first is None else first
    return first.merge(second)


def _merged(parts: Iterable[bytes]) -> tuple[Statistics | None, dict[str, Any]]:
    found: Statistics | None = None
    about: dict[str, Any] = {}
    for number, payload in enumerate(parts):
        if not len(payload):
            continue
        arrays, facts = _arrays.from_bytes(bytes(payload), f"Part {number}")
        if about and facts != about:
            raise InvalidInput(f"Part {number} is of objective '{facts.get('objective')}', others are of another.")
        found, about = _joined(found, Statistics.from_arrays(arrays)), facts
    return found, about
