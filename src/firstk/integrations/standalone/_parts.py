"""The numbers of an encoder that other programs compute with."""

from __future__ import annotations

import numpy as np

from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import TrainedMLP
from firstk.exceptions import InvalidInputError
from firstk.integrations._codes import EncoderLike, fitted


def exportable(encoder: EncoderLike, owner: str) -> tuple[FittedEncoder, TrainedMLP | None]:
    """Return the fitted encoder and its MLP, if it has one; raise an error for a network of the user's own."""
    found = fitted(encoder, owner)
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
