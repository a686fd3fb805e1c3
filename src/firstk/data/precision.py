"""Precisions of stored codes: float32, float16, int8 or one bit per coordinate.

Truncation and rounding are two ways to reduce the size of a code, so they are evaluated together. Rounding acts on
each coordinate separately, so a stored code can still be truncated at any k (binary codes: at whole bytes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_choice, check_matrix, is_int, is_real
from firstk.exceptions import InvalidInputError

# The int8 range is symmetric: -128 is not used.
STEPS = 127


class Precision(Protocol):
    """A storage format of codes.

    ``fit`` returns the same precision fitted on codes like those that will be stored; ``record`` returns the fitted
    state as JSON values.
    """

    @property
    def name(self) -> str:
        """Name in `PRECISIONS`."""

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates."""

    def fit(self, Z: ArrayLike) -> Precision:
        """Return this precision with scale and threshold fitted on codes; a sample of them is enough."""

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes as they are stored."""

    def clipped(self, Z: ArrayLike) -> int:
        """Count the entries that `quantise` would clip because they are out of range."""

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes as float32."""

    def record(self) -> dict[str, object]:
        """Return the fitted state as JSON values, from which ``read_precision`` rebuilds the precision."""


@dataclass(frozen=True)
class Floating:
    """Floating-point numbers, rounded to the nearest; nothing is fitted.

    Examples
    --------
    >>> PRECISIONS["float16"].restore(PRECISIONS["float16"].quantise([[0.1, 2.0]]))
    array([[0.09997559, 2.        ]], dtype=float32)
    """

    name: str

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates."""
        return np.dtype(self.name).itemsize * _checked_k(k)

    def fit(self, Z: ArrayLike) -> Floating:
        """Check the codes; there is nothing to fit."""
        check_matrix(Z, f"{self.name}.fit", "Z")
        return self

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes in this type; raise InvalidInputError for numbers beyond its range."""
        Z = check_matrix(Z, f"{self.name}.quantise", "Z")
        _largest(Z, self.name)
        return Z.astype(self.name)

    def clipped(self, Z: ArrayLike) -> int:
        """Return 0: numbers beyond the range raise an error."""
        return 0

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes as float32."""
        return _checked_stored(stored, self.name, self.name).astype(np.float32)

    def record(self) -> dict[str, object]:
        """Return the name only, as nothing is fitted."""
        return {"precision": self.name}


@dataclass(frozen=True)
class Int8:
    """Integers from -127 to 127, times one scale for all coordinates.

    The scale is the largest absolute entry divided by 127. A single scale cancels in every cosine: any engine that
    takes int8 vectors can compare the stored integers directly, and nothing else has to be stored. A scale for each
    coordinate would have to be applied before each comparison, and is no more accurate (docs/decisions.md).

    Examples
    --------
    >>> int8 = PRECISIONS["int8"].fit([[1.27, -0.5], [0.3, 0.02]])
    >>> int8.quantise([[1.27, -0.5], [5.0, 0.016]])
    array([[127, -50],
           [127,   2]], dtype=int8)
    """

    scale: float | None = None
    name: str = field(default="int8", init=False)

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates."""
        return _checked_k(k)

    def fit(self, Z: ArrayLike) -> Int8:
        """Fit the scale on codes; larger entries in later codes are clipped to 127."""
        largest = _largest(check_matrix(Z, "int8.fit", "Z"), "float32")
        return Int8((largest or 1.0) / STEPS)

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes as int8."""
        Z = check_matrix(Z, "int8.quantise", "Z")
        steps = np.rint(Z / _fitted(self.scale, self.name))
        return np.clip(steps, -STEPS, STEPS, out=steps).astype(np.int8)

    def clipped(self, Z: ArrayLike) -> int:
        """Count the entries that are clipped to 127 or -127."""
        return int(np.count_nonzero(np.abs(Z) > (STEPS + 0.5) * _fitted(self.scale, self.name)))

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes as float32."""
        scale = np.float32(_fitted(self.scale, self.name))
        return _checked_stored(stored, self.name, "int8").astype(np.float32) * scale

    def record(self) -> dict[str, object]:
        """Return the scale."""
        return {"precision": self.name, "scale": _fitted(self.scale, self.name)}


@dataclass(frozen=True, eq=False)
class Binary:
    r"""One bit per coordinate: whether it lies above its mean. Eight bits make a byte, the first in the highest bit.

    A bit is restored as :math:`m_j \pm s`, with :math:`m_j` the mean of coordinate j and s the mean absolute deviation
    over all coordinates. A single s preserves the cosines of the signs. Queries stay floating-point: compared with
    restored bits, they have higher recall than Hamming distance between bits (docs/decisions.md).

    Examples
    --------
    >>> binary = PRECISIONS["binary"].fit([[1.0, 4.0], [-1.0, 6.0]])
    >>> stored = binary.quantise([[0.5, 4.9]])
    >>> stored, binary.restore(stored)
    (array([[128]], dtype=uint8), array([[1., 4.]], dtype=float32))
    """

    mean: np.ndarray | None = None
    scale: float | None = None
    name: str = field(default="binary", init=False)

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates, rounded up."""
        return -(-_checked_k(k) // 8)

    def fit(self, Z: ArrayLike) -> Binary:
        """Fit the means and the mean absolute deviation on codes."""
        Z = check_matrix(Z, "binary.fit", "Z")
        _largest(Z, "float32")
        mean = Z.mean(axis=0, dtype=np.float64)
        return Binary(mean, float(np.abs(Z - mean).mean()))

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes as packed bits, uint8 of shape (n, ceil(k / 8)); padding bits of the last byte are 0."""
        mean = _fitted(self.mean, self.name)
        return np.packbits(check_matrix(Z, "binary.quantise", "Z", width=len(mean)) > mean, axis=1)

    def clipped(self, Z: ArrayLike) -> int:
        """Return 0, as bits are never clipped."""
        return 0

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes as float32."""
        mean, scale = _fitted(self.mean, self.name), _fitted(self.scale, self.name)
        stored = _checked_stored(stored, self.name, "uint8", width=self.bytes_per_vector(len(mean)))
        bits = np.unpackbits(stored, axis=1, count=len(mean)).view(bool)
        return np.where(bits, (mean + scale).astype(np.float32), (mean - scale).astype(np.float32))

    def record(self) -> dict[str, object]:
        """Return the means and the scale."""
        return {"precision": self.name, "mean": _fitted(self.mean, self.name).tolist(), "scale": self.scale}


PRECISIONS: dict[str, Precision] = {
    "float32": Floating("float32"),
    "float16": Floating("float16"),
    "int8": Int8(),
    "binary": Binary(),
}


def resolve_precision(name: object, owner: str) -> Precision:
    """Return the unfitted precision of that name."""
    return PRECISIONS[check_choice(name, PRECISIONS, "precision", owner)]


def read_precision(record: object) -> Precision:
    """Return the fitted precision that ``record()`` describes; raise InvalidInputError for anything else."""
    known = {"float32": set[str](), "float16": set[str](), "int8": {"scale"}, "binary": {"mean", "scale"}}
    values = dict(record) if isinstance(record, Mapping) else {}
    name = values.pop("precision", None)
    if not isinstance(name, str) or name not in known or set(values) != known[name]:
        raise InvalidInputError(f"A precision is read from the result of its record(). Got {record!r:.100}.")
    if not known[name]:
        return PRECISIONS[name]
    scale = values["scale"]
    # Codes that do not vary have deviation 0, which would lead to a division by zero.
    if not is_real(scale) or scale < 0 or (name == "int8" and scale == 0):
        raise bad_parameter("scale", f"a record of {name}", "a positive number", scale)
    if name == "int8":
        return Int8(float(scale))
    means = values["mean"]
    if not isinstance(means, (list, tuple)) or not means or not all(is_real(value) for value in means):
        raise bad_parameter("mean", "a record of binary", "finite numbers, one for each coordinate", means)
    return Binary(np.asarray(means, dtype=np.float64), float(scale))


def _fitted(value: Any, name: str) -> Any:
    if value is None:
        raise InvalidInputError(
            f"The precision '{name}' must be fitted before use: "
            f"PRECISIONS['{name}'].fit(Z), with codes like those that will be stored."
        )
    return value


def _largest(Z: np.ndarray, name: str) -> float:
    """Return the largest absolute entry; raise if it overflows the float type (codes are restored as float32)."""
    largest, limit = float(np.abs(Z).max()), float(np.finfo(name).max)
    if largest > limit:
        wider = ", or use float32" if name == "float16" and largest <= np.finfo(np.float32).max else ""
        raise InvalidInputError(
            f"{name} holds numbers up to {limit:.5g}; 'Z' has {largest:.5g}. Scale the vectors before the fit{wider}."
        )
    return largest


def _checked_k(k: object) -> int:
    if not is_int(k) or k < 1:
        raise bad_parameter("k", "bytes_per_vector", "an int of at least 1", k)
    return int(k)


def _checked_stored(stored: ArrayLike, name: str, dtype: str, width: int | None = None) -> np.ndarray:
    """Return stored codes as an array; raise InvalidInputError for a wrong dtype or shape."""
    stored = np.asarray(stored)
    if stored.dtype != np.dtype(dtype) or stored.ndim != 2 or (width is not None and stored.shape[1] != width):
        wanted = f"(n, {width})" if width is not None else "(n, k)"
        raise InvalidInputError(
            f"The precision '{name}' restores codes stored as {dtype} of shape {wanted}. "
            f"Got {stored.dtype} of shape {stored.shape}."
        )
    return stored
