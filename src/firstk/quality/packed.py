"""Matrices as text: sixteen bits a number, for records that hold pictures or resampled scores."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import is_int, is_real
from firstk.exceptions import InvalidInputError

# Sixteen bits a number: far finer than the 256 greys that are drawn from it, or the noise of a score.
_STEPS = 32767


@dataclass(frozen=True)
class Packed:
    """A matrix of finite numbers in sixteen bits each, as text: small enough for a page, exact enough for a picture.

    Attributes
    ----------
    shape : (int, int)
    scales : tuple of float
        Row i is `scales[i]` times its integers.
    data : str
        The integers, little-endian, row after row, in base64.

    Examples
    --------
    >>> Packed.of([[1.0, -2.0], [0.0, 0.0]]).array().round(3)
    array([[ 1., -2.],
           [ 0.,  0.]])
    """

    shape: tuple[int, int]
    scales: tuple[float, ...]
    data: str

    def __post_init__(self) -> None:
        shape = tuple(self.shape)
        if len(shape) != 2 or not all(is_int(n) and n > 0 for n in shape):
            raise _damaged("a packed matrix has two positive sizes")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "scales", _numbers(self.scales, shape[0]))
        try:
            size = len(base64.b64decode(self.data, validate=True))
        except (TypeError, ValueError, binascii.Error):
            raise _damaged("a packed matrix is no base64") from None
        if size != 2 * shape[0] * shape[1]:
            raise _damaged(f"a packed matrix of shape {shape} holds {size} bytes")

    @classmethod
    def of(cls, matrix: ArrayLike) -> Packed:
        """Pack a matrix."""
        M = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
        scales = np.abs(M).max(axis=1) / _STEPS
        steps = np.rint(M / np.where(scales > 0, scales, 1.0)[:, None]).astype("<i2")
        return cls(M.shape, tuple(scales.tolist()), base64.b64encode(steps.tobytes()).decode())

    def array(self) -> np.ndarray:
        """Unpack."""
        steps = np.frombuffer(base64.b64decode(self.data), dtype="<i2").reshape(self.shape)
        return steps * np.asarray(self.scales)[:, None]


def _numbers(values: tuple[float, ...], length: int) -> tuple[float, ...]:
    found = tuple(values)
    if len(found) != length or not all(is_real(value) for value in found):
        raise _damaged(f"a packed matrix needs {length} finite scales")
    return tuple(map(float, found))


def _damaged(reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"This is no evaluation that can be read: {reason}. Fit the model again with 'firstk fit'."
    )
