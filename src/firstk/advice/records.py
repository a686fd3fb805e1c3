"""The report of an evaluation: a record that a page shows.

It is saved with a model. Like a curve, it can be read anywhere, without the encoder or the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from firstk._base.checks import is_int, is_real
from firstk._base.json_records import LIMIT, from_json, to_plain
from firstk.encoder.storage.folder import EVALUATION, read_extra
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import Choice
from firstk.quality.evaluation import Evaluation, Packed

FORMAT = "firstk.Report/1"


@dataclass(frozen=True)
class AxisStatistics:
    """What each coordinate is like by itself (Talukder et al. 2026 figure 2).

    Attributes
    ----------
    spectrum : tuple of float
        gamma of each axis.
    magnitude, variance : tuple of float
        Mean of abs z_k, and variance of z_k, over the held-out rows.
    usefulness : tuple of float, empty if unknown
        How much coordinate k says alone: accuracy or R^2 of a readout of it.
    measure : str
        What `usefulness` is; "" if unknown.
    chance : float or None
        What a readout of nothing would score.
    rank_correlation : float or None
        Spearman's, of magnitude and usefulness; None where either is constant or unknown.
    pinned : int
        How many axes the objective determines.
    """

    spectrum: tuple[float, ...]
    magnitude: tuple[float, ...]
    variance: tuple[float, ...]
    usefulness: tuple[float, ...] = ()
    measure: str = ""
    chance: float | None = None
    rank_correlation: float | None = None
    pinned: int = 0

    def __post_init__(self) -> None:
        d = len(tuple(self.spectrum))
        for name in ("spectrum", "magnitude", "variance"):
            object.__setattr__(self, name, _series(getattr(self, name), name, d))
        object.__setattr__(self, "usefulness", _series(self.usefulness, "usefulness", d if self.usefulness else 0))
        for name in ("magnitude", "variance"):
            if min(getattr(self, name), default=0.0) < 0:
                raise _damaged(f"'{name}' is negative")
        if not is_int(self.pinned) or not 0 <= self.pinned <= d:
            raise _damaged(f"'pinned' is {self.pinned!r:.40}, and there are {d} axes")
        for name in ("chance", "rank_correlation"):
            _optional_number(getattr(self, name), name)

    @property
    def d(self) -> int:
        """Width of the code."""
        return len(self.spectrum)


@dataclass(frozen=True)
class ImageSamples:
    """A few held-out images, and what rebuilds them from any prefix of their codes.

    The image at k is ``mean + codes[:, :k] @ decoder[:k]``: the best linear decoder of each prefix, because the codes
    are written in coordinates that are uncorrelated and nest as the prefixes do.

    Attributes
    ----------
    shape : (int, int) or (int, int, int)
        Rows, columns and, for colour, channels.
    names : tuple of str
        What the images are called: their labels, or row numbers.
    originals, codes, decoder, mean : Packed
        Of shapes (n, p), (n, d), (d, p) and (1, p).
    low, high : float
        The values drawn black and white.
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]
    originals: Packed
    codes: Packed
    decoder: Packed
    mean: Packed
    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "names", tuple(map(str, self.names)))
        n, p, d = len(self.names), math.prod(self.shape), self.codes.shape[1]
        wanted = {"originals": (n, p), "codes": (n, d), "decoder": (d, p), "mean": (1, p)}
        if not _is_image(self.shape) or any(getattr(self, name).shape != size for name, size in wanted.items()):
            raise _damaged("the parts of its image samples do not fit together")
        if not (is_real(self.low) and is_real(self.high) and self.low < self.high):
            raise _damaged("its image samples have no range of values")

    def rebuilt(self, k: int) -> np.ndarray:
        """Return the images that the first `k` coordinates rebuild, shape (n, p)."""
        return self.mean.array() + self.codes.array()[:, :k] @ self.decoder.array()[:k]


@dataclass(frozen=True)
class Report:
    """All that a page needs to know of an evaluation.

    Attributes
    ----------
    facts : mapping
        Plain facts in the order in which a page shows them: objective, file, rows.
    rows, columns, itemsize : int
        How many vectors the file holds, their width, and bytes of each number, as they are stored.
    held_out : str
        Which units everything was evaluated on.
    evaluations : tuple of Evaluation
        The first is the one the page is about; others are by further metrics.
    choice : Choice or None
        What to store; None where a share of the score means nothing.
    axes : AxisStatistics or None
    images : ImageSamples or None
    notes : tuple of str
        What was left out, and why.
    options : mapping
        Options of the command line by which vectors and judgements were found.
    """

    facts: Mapping[str, str | int | float]
    rows: int
    columns: int
    itemsize: int
    held_out: str
    evaluations: tuple[Evaluation, ...] = ()
    choice: Choice | None = None
    axes: AxisStatistics | None = None
    images: ImageSamples | None = None
    notes: tuple[str, ...] = field(default=())
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", dict(self.facts))
        object.__setattr__(self, "options", dict(self.options))
        object.__setattr__(self, "evaluations", tuple(self.evaluations))
        object.__setattr__(self, "notes", tuple(self.notes))
        if not all(is_int(n) and 0 < n < LIMIT for n in (self.rows, self.columns, self.itemsize)):
            raise _damaged("'rows', 'columns' and 'itemsize' are positive ints")
        options = (*self.options, *self.options.values())
        if not all(isinstance(text, str) for text in (self.held_out, *self.notes, *self.facts, *options)):
            raise _damaged("its notes and options are text")

    @property
    def lead(self) -> Evaluation:
        """The evaluation that the page is about."""
        if not self.evaluations:
            raise InvalidInputError("This report holds no evaluation. " + " ".join(self.notes))
        return self.evaluations[0]

    def to_json(self) -> str:
        """Write as JSON text, from which `from_json` makes an equal report."""
        return json.dumps({"format": FORMAT, **to_plain(self)}, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, again: str = "fit the model again with 'firstk fit'") -> Report:
        """Read what `to_json` wrote; anything else raises an error."""
        return from_json(cls, text, FORMAT, again=again)


def read_report(model: str | Path) -> Report:
    """Read the report of a model folder."""
    text = read_extra(model, EVALUATION)
    if text is None:
        raise InvalidInputError(
            f"'{model}' holds a model without an evaluation: it was saved from Python, or fitted with nothing held "
            f"out. Fit it with 'firstk fit VECTORS -o {model}', which holds out a fifth of the rows, or evaluate it on "
            f"rows of your own: firstk curve {model} TEST"
        )
    return Report.from_json(text)


def _is_image(shape: tuple[int, ...]) -> bool:
    return all(is_int(side) and side > 0 for side in shape) and (len(shape) == 2 or shape[2:] in ((1,), (3,)))


def _series(values: Iterable[float], name: str, length: int) -> tuple[float, ...]:
    numbers = tuple(values)
    if len(numbers) != length or not all(is_real(value) for value in numbers):
        raise _damaged(f"'{name}' is not {length} finite numbers")
    return tuple(map(float, numbers))


def _optional_number(value: object, name: str) -> None:
    if value is not None and not is_real(value):
        raise _damaged(f"'{name}' is not a finite number")


def _damaged(reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"This is no evaluation that can be read: {reason}. Fit the model again with 'firstk fit'."
    )
