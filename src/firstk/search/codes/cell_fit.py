"""Whether new rows still fit the cells of a quantizer: their error, against that of the rows it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.json_records import JsonRecord

if TYPE_CHECKING:
    from firstk._base.array_types import MatrixLike
    from firstk.bits import EmbeddedQuantizer

# Errors of new rows may be so many times those of the fit.
RATIO = 1.5
# One-sided 99 % margin of a mean, in standard errors, and the fewest rows whose mean says something.
_MARGIN, _FEWEST = 2.326, 16
# Rows of one addition that are decoded, at most.
_ROWS = 8192


class FitWarning(UserWarning):
    """Rows were added that no longer fit the cells of the quantizer: their bytes say less about them."""


@dataclass(frozen=True)
class Fit(JsonRecord):
    r"""The errors of added rows, summed: :math:`e = |z - \hat z|^2` of a code and what its bytes are decoded to.

    Attributes
    ----------
    rows : int
    total, squares : float
        Sums of e and of e^2.
    """

    rows: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, quantizer: EmbeddedQuantizer, X: MatrixLike, codes: np.ndarray) -> Fit:
        """Return the errors of rows and their codes; of many rows every so manieth is looked at."""
        if not len(codes):
            return cls()
        step = -(-len(codes) // _ROWS)
        rows: Any = X if hasattr(X, "shape") else np.asarray(X)
        Z = quantizer.encoder.encode(rows[::step])
        errors = np.square(Z - quantizer.embedded.restore(codes[::step])).sum(axis=1, dtype=np.float64)
        return cls(len(errors), float(errors.sum()), float(np.square(errors).sum()))

    def __add__(self, other: Fit) -> Fit:
        return Fit(self.rows + other.rows, self.total + other.total, self.squares + other.squares)

    def trouble(self, expected: float) -> str:
        """Return a warning if rows do not fit any more, or an empty text; `expected` is the error at the fit.

        They do not if their mean error is more than 1.5 times the expected one by 2.3 standard errors.
        """
        if self.rows < _FEWEST:
            return ""
        mean = self.total / self.rows
        margin = _MARGIN * np.sqrt(max(self.squares / self.rows - mean**2, 0) / self.rows)
        if not mean - margin > RATIO * expected:
            return ""
        times = f"{mean / expected:.2g} times" if expected > 0 else "more than"
        return (
            f"The rows added to this index do not fit its cells: their mean squared error is {mean:.3g}, {times} that "
            f"of the rows the encoder was fitted on ({expected:.3g}). Scores of these rows are less exact. Fit an "
            "encoder on rows like those of today, and build the index again."
        )
