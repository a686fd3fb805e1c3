"""The checkpoint of a long run: arrays and a state from which another run goes on.

A checkpoint belongs to a job, described in plain facts; reading one of other data or settings raises an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base import arrays as array_files
from firstk.exceptions import CorruptModelError, InvalidInputError


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds the state of a run.

    Attributes
    ----------
    path : path
        Written atomically, so that it is complete whenever it exists.
    job : mapping
        What is computed from what, in facts that JSON can hold; a stream adds its own.
    resume : bool
        Go on from the file if it exists. Without it, a file that exists raises an error.
    every : float
        Seconds between writes; it is also written when the work is interrupted, and removed when it is done.
    """

    path: str | Path
    job: Mapping[str, object] = field(default_factory=dict)
    resume: bool = False
    every: float = 60.0

    def read(self, job: Mapping[str, object] | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Return the arrays and facts that were written last, of the same job; None where there is no file."""
        if not Path(self.path).exists():
            return None
        if not self.resume:
            raise InvalidInputError(
                f"'{self.path}' is the checkpoint of a run that was stopped. Go on from it with resume=True, "
                "or remove it."
            )
        arrays, facts = array_files.read(self.path)
        wanted, found = _plain(dict(self.job) | dict(job or {})), facts.get("job")
        if not isinstance(found, dict) or not isinstance(facts.get("state"), dict):
            raise CorruptModelError(f"'{self.path}' is not a checkpoint. Remove it to start again.")
        differing = sorted(name for name in {**wanted, **found} if wanted.get(name) != found.get(name))
        if differing:
            name = differing[0]
            raise InvalidInputError(
                f"'{self.path}' belongs to another run: '{name}' was {found.get(name)!r} and is {wanted.get(name)!r} "
                "now. Ask for the same, use another folder or file, or remove this one to start again."
            )
        return arrays, facts["state"]

    def write(
        self, arrays: Mapping[str, np.ndarray], state: Mapping[str, object], job: Mapping[str, object] | None = None
    ) -> None:
        """Write the file in one atomic step."""
        facts = {"job": _plain(dict(self.job) | dict(job or {})), "state": dict(state)}
        array_files.write(self.path, arrays, facts, "A checkpoint")

    def remove(self) -> None:
        """Remove the file: the work is done."""
        Path(self.path).unlink(missing_ok=True)


def _plain(job: Mapping[str, object]) -> dict[str, Any]:
    """Return facts as JSON gives them back."""
    return json.loads(json.dumps(job, default=str))
