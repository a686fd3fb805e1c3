"""Overlap of evaluation rows with training rows and with reference rows: what makes a score look better than it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstk._base.remote import place_of
from firstk._base.rows import half_as_single
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import MOST_HELD, draw
from firstk.evaluation.inputs import File, Stream
from firstk.moments.fingerprint import Fingerprint
from firstk.moments.stream import HoldOut, len_of

# Share and seed of the held-out part where nothing else is known: those of ``firstk fit``.
HELD_OUT, SEED = 0.2, 0


@dataclass(frozen=True, eq=False)
class TrainingOverlap:
    """A file that a model was fitted on.

    Attributes
    ----------
    parts : HoldOut
        Which of its rows were held out; none, perhaps.
    fitted : int
        How many it was fitted on.
    """

    parts: HoldOut
    fitted: int

    @property
    def held(self) -> int:
        """How many rows were held out."""
        return len(self.parts.held)


def training_overlap(encoder: FittedEncoder, stream: Stream, nan: str = "refuse") -> TrainingOverlap | None:
    """Return how a file was divided when the model was fitted on it, or when its rows were added; None for others."""
    found = (_overlap_of(replace(encoder, config={**encoder.config, **one}), stream, nan) for one in _fits(encoder))
    return next((overlap for overlap in found if overlap is not None), None)


def _fits(encoder: FittedEncoder) -> list[dict[str, Any]]:
    """Return what is known of each fit that a model is made of: one, unless rows were added to a saved model."""
    return [
        {name: one[name] for name in ("rows", "data_fingerprint")}
        | {"parameters": {"given": {"random_state": one.get("random_state")}}}
        for one in encoder.config.get("parts", ())
    ] or [{}]


def _overlap_of(encoder: FittedEncoder, stream: Stream, nan: str) -> TrainingOverlap | None:
    """Return how a file was divided when the model was fitted on it; None where it is another file.

    The model holds the fingerprint of its rows, their number and the seed. So the draw is made again, and it was this
    file if what is left over has that fingerprint. Labels that the fit looked at must be read along.
    """
    recorded, rows = encoder.config.get("data_fingerprint"), encoder.config.get("rows")
    if recorded is None or rows is None:
        return None
    counts = {stream.rows - rows}
    if nan == "drop":  # rows that were dropped are in neither part, so the usual share is tried as well
        counts.add(min(round(HELD_OUT * stream.rows), MOST_HELD))
    for count in sorted(counts):
        if 0 <= count <= min(MOST_HELD, stream.rows - 1):
            parts = draw(stream.rows, count / stream.rows, seed_of(encoder.config))
            if recorded in _fingerprints(stream, parts):
                return TrainingOverlap(parts, rows)
    return None


def seed_of(config: Mapping[str, Any]) -> int:
    """Return the seed by which ``firstk fit`` drew."""
    given = (config.get("parameters") or {}).get("given", {}).get("random_state")
    return given if isinstance(given, int) else SEED


def _fingerprints(stream: Stream, parts: HoldOut) -> set[str]:
    """Return the fingerprints of the rows that are not held out: with labels, and of the vectors alone."""
    both, alone, start = Fingerprint(), Fingerprint(), 0
    for batch in stream.batches():
        rest = dict(parts.split(batch, start).rest)
        start += len_of(batch)
        if not len_of(rest):
            continue
        rest["X"] = half_as_single(rest["X"])
        alone += Fingerprint.of({"X": rest["X"]})
        if "y" in rest:
            both += Fingerprint.of(rest)
    return {str(both), str(alone)}


def same_file(first: File, second: File) -> bool:
    """Tell whether two names are of one file or folder."""
    paths = [place_of(str(name)) for name in (first, second)]
    return str(first) == str(second) or (all(path.exists() for path in paths) and paths[0].samefile(paths[1]))


def shared_rows(X: np.ndarray, reference: np.ndarray) -> int:
    """Count the rows of X that are in the reference too, number for number."""
    # In the coarser of both precisions, as one file may be a copy of the other in fewer digits; and -0.0 is 0.0.
    kind = min(X.dtype, reference.dtype, key=lambda dtype: dtype.itemsize)
    there = {row.tobytes() for row in np.ascontiguousarray(reference, dtype=kind) + 0.0}
    return sum(row.tobytes() in there for row in np.ascontiguousarray(X, dtype=kind) + 0.0)
