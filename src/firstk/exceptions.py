"""Errors and warnings that firstk raises: catch `FirstkError` for any error, filter `FirstkWarning` for warnings.

Each message has three parts: what was wrong, the number, the way out.
"""

from __future__ import annotations


class FirstkError(Exception):
    """Base of every error that firstk raises on purpose.

    Attributes
    ----------
    exit_code : int
        With which the command line ends.
    """

    exit_code = 1


class InvalidInputError(FirstkError, ValueError):
    """Data or an argument that no computation can be right for."""


class IllegalCombinationError(FirstkError, ValueError):
    """An objective, ordering and solver that mean nothing together.

    Parameters
    ----------
    asked, why, instead : str
        What was asked for, why it means nothing, and what to use.
    """

    def __init__(self, asked: str, why: str, instead: str):
        super().__init__(f"{asked} is not possible: {why}. Instead: {instead}.")


class CorruptModelError(FirstkError, ValueError):
    """A saved model that is damaged, foreign, or of a format this version does not know."""


class MissingExtraError(FirstkError, ImportError):
    """An optional dependency that is needed here and is not installed."""

    def __init__(self, package: str, extra: str, purpose: str):
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'firstk[{extra}]', or from a clone: pip install '.[{extra}]'"
        )


class TrainingDivergedError(FirstkError, ArithmeticError):
    """A training run whose loss left for infinity."""


class FirstkWarning(UserWarning):
    """Base of the warnings that firstk gives on what was fitted; the command line prints them as notes."""


class TrainingWarning(FirstkWarning):
    """A training run that ended before it was done, or that cannot mean all that was asked for."""


class FewRowsWarning(FirstkWarning):
    """A fit on so few rows that its code says nothing about others."""


class LabelsWarning(FirstkWarning):
    """Targets that look like classes."""


class RankWarning(FirstkWarning):
    """Fewer coordinates carry signal than were asked for, or some carry none."""


class AlignmentWarning(FirstkWarning):
    """Pairs of vectors of two models that seem to have nothing to do with one another."""
