"""Codes for search engines and other programs: float32 codes of a fitted encoder, and the metric to compare them.

All integrations use this module, so that an encoder gives the same neighbors everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sklearn.preprocessing import normalize

from firstk._base.checks import check_choice
from firstk.bits.quantizer import METRICS
from firstk.encoder.fitted import SEARCH_METRIC, FittedEncoder, check_fitted
from firstk.encoder.network import TrainedMLP
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk._base.array_types import MatrixLike
    from firstk.estimator.prefix_encoder import PrefixEncoder

EncoderLike: TypeAlias = "PrefixEncoder | FittedEncoder"


def exportable(encoder: EncoderLike, owner: str) -> tuple[FittedEncoder, TrainedMLP | None]:
    """Return the fitted encoder and its MLP, if it has one; raise an error for a network of the user's own."""
    found = check_fitted(encoder, owner)
    if found.network is None:
        return found, None
    if isinstance(found.network, TrainedMLP):
        return found, found.network
    raise InvalidInputError(
        f"{owner} takes linear encoders and firstk's own MLP; this one has a network of your own, whose code is not "
        "known here."
    )


def single(array: np.ndarray, owner: str) -> np.ndarray:
    """Return an array in float32; raise an error for numbers that do not fit."""
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(small).all():
        raise InvalidInputError(f"{owner} writes float32, and this encoder has numbers that do not fit.")
    return small


@dataclass(frozen=True)
class Codes:
    """The codes of one encoder, and the metric to compare them.

    Attributes
    ----------
    encoder : FittedEncoder
    metric : str
        "cosine", "inner_product" or "l2".
    """

    encoder: FittedEncoder
    metric: str

    @classmethod
    def of(cls, encoder: EncoderLike, metric: str, owner: str) -> Codes:
        """Resolve the encoder and the name of the metric; "auto" is the one that curves evaluate."""
        found = check_fitted(encoder, owner)
        check_choice(metric, ("auto", *METRICS), "metric", owner)
        return cls(found, SEARCH_METRIC if metric == "auto" else metric)

    @property
    def unit(self) -> bool:
        """Whether codes are normalized after truncation; zero rows stay zero."""
        return self.encoder.normalized or self.metric == "cosine"

    def cut(self, X: MatrixLike, ks: Sequence[int], *, side: str, owner: str) -> list[np.ndarray]:
        """Return float32 codes of each length in `ks`, from one pass over the rows."""
        Z = self.encoder.coordinates(X, max(ks), side=side, owner=owner).astype(np.float32, copy=False)
        pieces = [np.ascontiguousarray(Z[:, :k]) for k in ks]
        return [normalize(piece) for piece in pieces] if self.unit else pieces
