"""A function from vectors to codes in the place of an encoder, where codes are to be written: translations, say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from firstk.bits.quantizer import EmbeddedQuantizer
from firstk.data.stamp import CodeStamp
from firstk.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class CodeMap:
    """Vectors to codes, of which files keep the first k coordinates.

    Attributes
    ----------
    p, d : int
        Widths of vectors and of codes.
    codes : callable (X, k) -> ndarray of shape (n, k)
    made_by : str
        By which codes of different maps are told apart. Codes that can be compared have the same.
    name : str
        What an error message calls it.
    shared : bool
        Whether vectors of two models have this code.
    """

    p: int
    d: int
    codes: Callable[[np.ndarray, int], np.ndarray]
    made_by: str
    name: str
    shared: bool = False
    # Both sides are encoded alike: which of them these vectors are was settled when the map was made.
    mean: np.ndarray = field(default_factory=lambda: np.zeros(0))
    query_mean: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def encode(self, X: np.ndarray, k: int, *, side: str, owner: str) -> np.ndarray:
        """Return the first `k` coordinates of rows."""
        return self.codes(X, k)

    def stamp(self, k: int, *, column: str | None = None) -> CodeStamp:
        """Return the stamp of codes of so many coordinates; `column` is that of the vectors."""
        return CodeStamp(f"{self.made_by}, {k} of {self.d}", self.made_by, column=column)

    def quantizer(self, size: int | None, metric: str) -> EmbeddedQuantizer:
        """Raise InvalidInputError: embedded bits belong to encoders."""
        raise InvalidInputError(
            f"{self.name} has no embedded bits: those are fitted with an encoder. Choose a precision "
            "such as precision='int8', or write float32 and fit an encoder on that file."
        )
