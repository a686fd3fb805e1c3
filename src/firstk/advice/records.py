"""The report of an evaluation: a record that a page shows.

It is saved with a model. Like a curve, it can be read anywhere, without the encoder or the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base.json_records import Count, JsonRecord, check_fields
from firstk.encoder.storage.folder import EVALUATION, read_extra
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import Choice
from firstk.quality.evaluation import Evaluation, Packed, damaged


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
        check_fields(self)
        d = self.d
        if not len(self.magnitude) == len(self.variance) == d or len(self.usefulness) not in (0, d):
            raise damaged(f"its statistics are not of {d} axes each")
        if min((*self.magnitude, *self.variance), default=0.0) < 0:
            raise damaged("'magnitude' or 'variance' is negative")
        if not 0 <= self.pinned <= d:
            raise damaged(f"'pinned' is {self.pinned}, and there are {d} axes")

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
        check_fields(self)
        n, p, d = len(self.names), math.prod(self.shape), self.codes.shape[1]
        wanted = {"originals": (n, p), "codes": (n, d), "decoder": (d, p), "mean": (1, p)}
        image = len(self.shape) == 2 or self.shape[2:] in ((1,), (3,))
        if not image or min(self.shape) < 1 or any(getattr(self, name).shape != size for name, size in wanted.items()):
            raise damaged("the parts of its image samples do not fit together")
        if not self.low < self.high:
            raise damaged("its image samples have no range of values")

    def rebuilt(self, k: int) -> np.ndarray:
        """Return the images that the first `k` coordinates rebuild, shape (n, p)."""
        return self.mean.array() + self.codes.array()[:, :k] @ self.decoder.array()[:k]


@dataclass(frozen=True)
class Report(JsonRecord):
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

    FORMAT = "firstk.Report/1"
    AGAIN = "fit the model again with 'firstk fit'"

    facts: Mapping[str, Any]
    rows: Count
    columns: Count
    itemsize: Count
    held_out: str
    evaluations: tuple[Evaluation, ...] = ()
    choice: Choice | None = None
    axes: AxisStatistics | None = None
    images: ImageSamples | None = None
    notes: tuple[str, ...] = field(default=())
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def lead(self) -> Evaluation:
        """The evaluation that the page is about."""
        if not self.evaluations:
            raise InvalidInputError("This report holds no evaluation. " + " ".join(self.notes))
        return self.evaluations[0]


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
