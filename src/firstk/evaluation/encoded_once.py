"""An encoder that encodes each array of an evaluation once, and cuts the codes for every prefix length after that."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from threading import Lock
from typing import Any

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk.encoder.fitted import FittedEncoder
from firstk.metrics.curve import EvaluationData

_ARRAYS = ("X", "X_ref", "left", "right", "queries", "documents")


@dataclass(frozen=True, eq=False)
class EncodedOnce(FittedEncoder):
    """A fitted encoder that remembers the codes of the arrays of some data.

    Attributes
    ----------
    whole : FittedEncoder
        The encoder before any cut.
    arrays : tuple
        Arrays whose codes are remembered; those of others are computed each time.
    codes : dict
        From the position of an array and the side to its codes at full width.
    lock : Lock
        Held while an array is encoded, so that threads that want its codes wait for them.
    """

    whole: FittedEncoder | None = None
    arrays: tuple[Any, ...] = ()
    codes: dict[tuple[int, str], np.ndarray] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def coordinates(
        self,
        X: MatrixLike,
        k: int | None = None,
        *,
        side: str = "document",
        owner: str = "encode",
        exact: bool = False,
    ) -> np.ndarray:
        """Return the code before any normalization, cut from the codes at full width; summed in float64."""
        at = next((i for i, array in enumerate(self.arrays) if array is X), None)
        if at is None or self.whole is None or k is not None:
            return super().coordinates(X, k, side=side, owner=owner, exact=exact)
        with self.lock:
            if (at, side) not in self.codes:
                self.codes[at, side] = self.whole.coordinates(X, side=side, owner=owner, exact=True)
        return self.codes[at, side][:, : self.d]


def encoded_once(encoder: FittedEncoder, data: EvaluationData) -> EncodedOnce:
    """Return the encoder, remembering codes of the arrays of `data`."""
    own = {part.name: getattr(encoder, part.name) for part in fields(FittedEncoder)}
    arrays = tuple(part for name in _ARRAYS if (part := getattr(data, name)) is not None)
    return EncodedOnce(**own, whole=encoder, arrays=arrays)
