"""``firstk fit --append``: the model that rows are added to, and options that contradict what it was fitted with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from firstk.cli._options import settings_of
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.estimator.prefix_encoder import PrefixEncoder


@dataclass(frozen=True, eq=False)
class ModelToExtend:
    """A saved model that holds its moments.

    Attributes
    ----------
    path : path
    encoder : PrefixEncoder
    rows : int
        How many rows or pairs it was fitted on.
    command : typer.Context, optional
        Knows which options were typed: defaults contradict nothing.
    """

    path: Path
    encoder: PrefixEncoder
    rows: int
    command: typer.Context | None

    @classmethod
    def read(cls, path: Path, command: typer.Context | None) -> ModelToExtend:
        """Read a model, and raise an error if nothing can be added to it."""
        from firstk import solvers
        from firstk.estimator.prefix_encoder import PrefixEncoder

        encoder = PrefixEncoder.load(path)
        rows = encoder.encoder_.record.rows or 0
        if solvers.resolve(encoder.solver_).trains:
            raise InvalidInputError(
                f"'{path}' was trained, on rows that it does not hold: nothing can be added to it. Fit all rows again."
            )
        if encoder.learns_from is None:
            raise InvalidInputError(
                f"'{path}' was saved without the moments of its {rows:,} rows, so nothing can be added to it. Fit it "
                "again with --set save.moments=true (in Python: save(path, moments=True)); then --append adds to it."
            )
        return cls(path, encoder, rows, command)

    def objective_name(self, asked: str) -> str:
        """Return the name of its objective; raise an error if another was asked for."""
        from firstk import objectives

        own = objectives.resolve(self.encoder.objective).name
        if self._typed("objective") and asked != own:
            raise self._contradiction("--objective", own, asked)
        return own

    def extended_as(self, asked: PrefixEncoder, settings: Sequence[str], *, pairs: bool) -> PrefixEncoder:
        """Return the encoder that learns on from rows or pairs; raise an error where what was typed contradicts it."""
        from firstk.data.task import Pairs

        if (self.encoder.learns_from is Pairs) != pairs:
            was, now = ("rows", "pairs") if pairs else ("pairs", "rows")
            raise InvalidInputError(f"'{self.path}' learned from {was}, and these are {now}: fit a model of their own.")
        if self._typed("components") and self.encoder.n_components != asked.n_components:
            raise self._contradiction("--components", self.encoder.n_components, asked.n_components)
        for name in [part for group in settings_of(settings) for part in group]:
            own, wanted = _setting(self.encoder, name), _setting(asked, name)
            if own != wanted:
                raise self._contradiction(f"--set {name.replace('__', '.')}", own, wanted)
        # A closed form draws nothing: the seed is that of the held-out part of these rows.
        return self.encoder.set_params(verbose=asked.verbose, random_state=asked.random_state)

    def _contradiction(self, option: str, own: object, wanted: object) -> InvalidInputError:
        return InvalidInputError(
            f"{option} {wanted} contradicts '{self.path}', which was fitted with {own}. Leave {option} out: rows are "
            "added with the settings of the model."
        )

    def _typed(self, option: str) -> bool:
        source = None if self.command is None else self.command.get_parameter_source(option)
        return source is not None and source.name == "COMMANDLINE"

    def added_to(self, encoder: PrefixEncoder) -> str:
        """Say how many rows were there, and how many were added."""
        now = encoder.encoder_.record.rows or 0
        what = f"{encoder.encoder_.record.unit}s"
        return f"{now - self.rows:,} {what} added to the {self.rows:,} of {self.path}: {now:,} in all."


def _setting(encoder: PrefixEncoder, name: str) -> object:
    """Return a parameter by its name, with what its default and "auto" stand for."""
    from firstk import objectives, orderings

    member, _, setting = name.partition("__")
    if setting:
        return getattr(objectives.resolve(encoder.objective), setting)
    if member == "ordering":
        return orderings.resolve(encoder.ordering)
    found: object = encoder.solver_ if member == "solver" and encoder.learns_from else getattr(encoder, member)
    return found
