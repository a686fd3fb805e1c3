"""Scores of embedded bits: one code for each number of bytes, all cut from one string.

What a search computes is what is scored: documents go through bits, queries stay in floating point, and both are
compared as :class:`firstk.encoder.quantizer.EmbeddedQuantizer` does. Metrics that compare nothing read the decoded
code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.rows import unit_rows
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.quantizer import EmbeddedQuantizer
from firstk.evaluation.encoded_once import EncodedOnce, encoded_once
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import EvaluationData


@dataclass(frozen=True, eq=False)
class BitStrings:
    """An encoder whose stored codes are embedded bits.

    Attributes
    ----------
    quantizer : EmbeddedQuantizer
        With all bytes that the code has.
    asking : EncodedOnce
        Codes in floating point, as queries are compared: coordinates that bits stand for, before they are rounded.
    """

    quantizer: EmbeddedQuantizer
    asking: EncodedOnce
    _bits: dict[tuple[object, ...], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def sizes(self, wanted: Iterable[int]) -> list[int]:
        """Return the numbers of bytes, of those wanted, that the code has."""
        return sorted({size for size in wanted if size <= self.quantizer.bytes})

    def coordinates(self, size: int) -> int:
        """Return how many coordinates have bits."""
        return len(self.quantizer.at(size).embedded.used)

    def store(self, size: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return what storage in so many bytes does to codes of `asking`."""

        def stored(Z: np.ndarray) -> np.ndarray:
            return self.quantizer.decode(self._whole(Z)[:, :size])

        return stored

    def ask(self, size: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return what is left of codes of `asking` in queries to documents of so many bytes."""
        return self.quantizer.at(size).coded_only

    def _whole(self, Z: np.ndarray) -> np.ndarray:
        """Return the bits of codes, at all bytes; those of one array are made once for all sizes."""
        place = (Z.__array_interface__["data"][0], Z.shape, Z.strides, Z.dtype)
        with self._lock:
            if place not in self._bits:
                offset, d = self.quantizer.stored.offset, self.quantizer.trees.d
                codes = Z if offset is None else Z[:, :d] - offset[:d]
                codes = unit_rows(codes) if self.quantizer.encoder.normalized else codes
                self._bits[place] = Z, self.quantizer.encode_codes(codes)  # with Z, lest another array take its place
            return self._bits[place][1]


def bit_strings(
    encoder: FittedEncoder, data: EvaluationData, *, compares: bool, rows: MatrixLike | None = None
) -> BitStrings | None:
    """Return the embedded bits of an encoder; None where it has no cells for them, or too little for a byte.

    Parameters
    ----------
    encoder : FittedEncoder
    data : EvaluationData
        Whose codes are made once for all sizes.
    compares : bool
        Whether codes are compared by cosine; otherwise they are read as coordinates.
    rows : array of shape (n, p), optional
        Rows to fit the cells on, for a baseline that has none.
    """
    try:
        quantizer = encoder.quantizer(None, "cosine" if compares else "l2", rows=rows)
    except InvalidInputError:
        return None
    return BitStrings(quantizer, encoded_once(quantizer.query_encoder, data))
