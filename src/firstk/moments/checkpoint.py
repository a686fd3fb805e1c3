"""The checkpoint of a stream: where it stands and what it has gathered, so that another run goes on from there.

A checkpoint belongs to a job, described in plain facts: one of other data or settings is refused, never mixed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base import arrays as _arrays
from firstk.exceptions import CorruptModelError, InvalidInputError


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds the state of a stream.

    Attributes
    ----------
    path : path
        Written atomically, so that it is complete whenever it exists.
    job : mapping
        What is computed from what, in facts that JSON can hold; the stream adds its own.
    resume : bool
        Go on from the file if it is there. Without it, a file that is there is refused.
    every : float
        Seconds between writes; it is also written when the work is interrupted, and removed when it is done.
    """

    path: str | Path
    job: Mapping[str, Any] = field(default_factory=dict)
    resume: bool = False
    every: float = 60.0

    def read(self, job: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Return the arrays and facts that were written last, of the same job; None where there is no file."""
        if not Path(self.path).exists():
            return None
        if not self.resume:
            raise InvalidInputError(
                f"'{self.path}' is the checkpoint of a run that was stopped. Go on from it with resume=True "
                "(--resume), or remove it."
            )
        arrays, facts = _arrays.read(self.path)
        wanted, found = _plain(dict(self.job) | dict(job)), facts.get("job")
        if not isinstance(found, dict) or not isinstance(facts.get("state"), dict):
            raise CorruptModelError(f"'{self.path}' is no checkpoint of a stream. Remove it to start again.")
        differing = sorted(name for name in {**wanted, **found} if wanted.get(name) != found.get(name))
        if differing:
            name = differing[0]
            raise InvalidInputError(
                f"'{self.path}' belongs to another run: '{name}' was {found.get(name)!r} and is {wanted.get(name)!r} "
                "now. Ask for the same, or remove the file to start again."
            )
        return arrays, facts["state"]

    def write(self, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any], job: Mapping[str, Any]) -> None:
        """Write the file in one atomic step."""
        facts = {"job": _plain(dict(self.job) | dict(job)), "state": dict(state)}
        _arrays.write(self.path, arrays, facts, "A checkpoint")

    def remove(self) -> None:
        """Remove the file: the work is done."""
        Path(self.path).unlink(missing_ok=True)


def _plain(job: dict[str, Any]) -> dict[str, Any]:
    """Return facts as JSON gives them back."""
    import json

    return json.loads(json.dumps(job, default=str))
