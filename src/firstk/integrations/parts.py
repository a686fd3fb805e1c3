"""Statistics as bytes, for any engine: Spark and Ray (`spark`, `ray`), a job queue, a folder of files.

Any engine that can apply a function to partitions and collect the results can fit an encoder: `measure` on the
workers, `finish` on the driver. The size of a part depends on the width of the vectors, not on the number of rows, and
nothing is pickled. A checksum detects a damaged part; a partition without rows gives a part too, so that a lost one is
detected. Needs no extra; docs/scale.md has the code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base import arrays as _arrays
from firstk._base.checks import bad_parameter, is_int
from firstk.estimator.problem import Problem
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.pairs import PairMoments
from firstk.moments.statistics import Statistics

if TYPE_CHECKING:
    from firstk.estimator.prefix_encoder import PrefixEncoder

__all__ = ["finish", "measure", "merge"]


# Standard deviations by which the rows that parts keep exceed the sample: fewer than it holds once in 10^15 fits.
_SLACK = 8.0


class ShortSampleError(InvalidInputError):
    """Parts that kept too few rows of the sample, because many rows are equal or count for nothing."""


def measure(encoder: PrefixEncoder, batches: Iterable[Any], *, pairs: bool = False, rows: int | None = None) -> bytes:
    """Return the statistics of the batches of a partition; called on a worker.

    Parameters
    ----------
    encoder : PrefixEncoder
        With the settings of the fit; it is not modified.
    batches : iterable
        Each an X, an (X, y), an (X, y, weight) or a mapping of those names; with `pairs`, (left, right),
        (left, right, scores) or a mapping. They are read one at a time. Without any, the bytes hold no statistics.
    pairs : bool
    rows : int, optional
        Number of rows of all partitions. With it a part keeps only those rows of the sample whose hash can be among
        the lowest of all, so that all parts together hold little more than one sample; the fit is the same.
    """
    if rows is not None and (not is_int(rows) or rows < 0):
        raise bad_parameter("rows", "measure", "an int of at least 0, or None", rows)
    problem, found = _problem(encoder, pairs), None
    for batch in batches:
        coming = problem.statistics_of(batch)
        if coming is not None and (below := _below(coming.sample.capacity, rows)) is not None:
            coming.sample = coming.sample.part(np.arange(np.searchsorted(coming.sample.priority, below)))
        found = _joined(found, coming)
    # Without rows a part holds no arrays, but is not empty.
    facts = {"objective": problem.objective.name, "rows": rows}
    return _arrays.to_bytes({} if found is None else found.to_arrays(), facts)


def merge(parts: Iterable[bytes]) -> bytes:
    """Merge the statistics of several partitions, for engines that reduce in a tree."""
    found, facts = _merged(parts)
    return _arrays.to_bytes({} if found is None else found.to_arrays(), facts)


def finish(encoder: PrefixEncoder, parts: Iterable[bytes]) -> PrefixEncoder:
    """Fit an encoder on the statistics of the partitions, merged in the order given.

    The same order gives a bitwise identical result; another order differs by rounding.
    """
    found, facts = _merged(parts)
    if found is None:
        raise InvalidInputError("No partition had a row to fit on.")
    if _below(found.sample.capacity, facts.get("rows")) is not None and len(found.sample) < found.sample.capacity:
        raise ShortSampleError(
            f"The parts hold {len(found.sample)} rows of a sample of {found.sample.capacity}: many rows are equal, or "
            "there are fewer than was said. Measure again without 'rows'."
        )
    problem = _problem(encoder, isinstance(found.moments, PairMoments))
    if facts.get("objective") != problem.objective.name:
        raise InvalidInputError(
            f"These statistics are of objective '{facts.get('objective')}', and the encoder has "
            f"'{problem.objective.name}'. Give workers and driver the same encoder."
        )
    return encoder.learn(found)


def _below(capacity: int, rows: int | None) -> np.uint64 | None:
    """Return the hash below which a little more than a sample of these rows lies; None where all rows are kept."""
    wanted = capacity + _SLACK * (capacity**0.5 + _SLACK)
    return None if rows is None or rows <= wanted else np.uint64(int(wanted / rows * 2**64))


def _problem(encoder: PrefixEncoder, pairs: bool) -> Problem:
    problem = encoder.problem(pairs=pairs).seeded()
    problem.check_streamable("Merging partitions")
    return problem


def _joined(first: Statistics | None, second: Statistics | None) -> Statistics | None:
    if first is None or second is None:
        return second if first is None else first
    return first.merge(second)


def _merged(parts: Iterable[bytes]) -> tuple[Statistics | None, dict[str, Any]]:
    """Return the statistics of all parts, in their order, and what they say of themselves."""
    found: Statistics | None = None
    about: dict[str, Any] = {}
    for number, payload in enumerate(parts):
        what, again = f"Part {number}", "Measure the partition again with this firstk."
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise InvalidInputError(
                f"{what} is a {type(payload).__name__}, and measure and merge return bytes. {again}"
            )
        if not len(payload):
            raise InvalidInputError(
                f"{what} is empty, so it was lost: even a partition without rows gives bytes. {again}"
            )
        arrays, facts = _arrays.from_bytes(bytes(payload), what, again)
        if not (facts.get("rows") is None or is_int(facts["rows"])):
            raise CorruptModelError(f"{what} has no number of rows. {again}")
        for name in about and facts:
            if facts.get(name) != about.get(name):
                raise InvalidInputError(f"{what} has {name} '{facts.get(name)}', other parts have another.")
        try:
            found, about = _joined(found, Statistics.from_arrays(arrays) if arrays else None), facts or about
        except CorruptModelError as error:
            raise CorruptModelError(f"{what} cannot be used: {error} {again}") from None
    return found, about
