"""Precisions of stored codes: float32, float16, int8, int4, one bit per coordinate, or bits where they are worth most.

Truncation and rounding are two ways to reduce the size of a code, so they are evaluated together. Rounding acts on
each coordinate separately, so a stored code can still be truncated at any k (int4 and binary codes: at whole bytes).
Of embedded codes (`firstk.bits`) every prefix of the bytes is a code: bytes, not k, say how long they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_choice, check_matrix, is_int, is_real
from firstk.bits.embedded import CODEBOOKS, FIELDS, Embedded, read_embedded
from firstk.exceptions import InvalidInputError

# The int8 range is symmetric: -128 is not used.
STEPS = 127
# Distance of the 16 equal steps that keep a Gaussian number of standard deviation 1 best in mean square (Max 1960).
GAUSSIAN_STEP = 0.3352


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
    coordinate would have to be applied before each comparison, and is no more accurate (docs/decisions/data.md).

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
class Int4:
    r"""Four bits per coordinate: 16 equal steps around the mean of each. Two coordinates make a byte.

    Coordinate j is stored as :math:`c = \lfloor (z - m_j) / s_j \rfloor + 8`, clipped to 0 ... 15, and restored as
    :math:`m_j + (c - 7.5) s_j`, with :math:`m_j` its mean and :math:`s_j` = 0.3352 times its standard deviation, the
    best step for a Gaussian. Four bits are too few for one step for all coordinates: the first coordinates of a code
    vary most, and their step would round the later ones to nothing (docs/decisions/data.md has the comparison).

    The first coordinate of a byte lies in its lower half, as in faiss's ``QT_4bit``, which reads the same bytes with
    ``vmin`` = m - 8 s and ``vdiff`` = 15 s. The upper half of the last byte is 0 where k is odd.

    Examples
    --------
    >>> int4 = PRECISIONS["int4"].fit([[1.0, 4.0], [-1.0, 6.0]])
    >>> stored = int4.quantise([[0.5, 4.0]])
    >>> stored, int4.restore(stored).round(2)
    (array([[89]], dtype=uint8), array([[0.5 , 4.16]], dtype=float32))
    """

    mean: np.ndarray | None = None
    step: np.ndarray | None = None
    name: str = field(default="int4", init=False)

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates, rounded up."""
        return -(-_checked_k(k) // 2)

    def fit(self, Z: ArrayLike) -> Int4:
        """Fit the means and the steps on codes."""
        Z = check_matrix(Z, "int4.fit", "Z")
        _largest(Z, "float32")
        return Int4(Z.mean(axis=0, dtype=np.float64), GAUSSIAN_STEP * Z.std(axis=0, dtype=np.float64))

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes as uint8 of shape (n, ceil(k / 2))."""
        mean, step = _fitted(self.mean, self.name), _fitted(self.step, self.name)
        Z = check_matrix(Z, "int4.quantise", "Z", width=len(mean))
        # A coordinate that did not vary has step 0, and is restored as its mean whatever is stored.
        levels = np.floor((Z - mean) / np.where(step > 0, step, np.inf)) + 8
        levels = np.clip(levels, 0, 15, out=levels).astype(np.uint8)
        if levels.shape[1] % 2:
            levels = np.pad(levels, ((0, 0), (0, 1)))
        return np.asarray(levels[:, ::2] | levels[:, 1::2] << 4)

    def clipped(self, Z: ArrayLike) -> int:
        """Return 0: the outer steps are fitted to stand for all that lies beyond them."""
        return 0

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes as float32."""
        mean, step = _fitted(self.mean, self.name), _fitted(self.step, self.name)
        stored = _checked_stored(stored, self.name, "uint8", width=self.bytes_per_vector(len(mean)))
        levels = np.stack([stored & 15, stored >> 4], axis=2).reshape(len(stored), -1)[:, : len(mean)]
        return (mean + (levels - 7.5) * step).astype(np.float32)

    def record(self) -> dict[str, object]:
        """Return the means and the steps."""
        mean, step = _fitted(self.mean, self.name), _fitted(self.step, self.name)
        return {"precision": self.name, "mean": mean.tolist(), "step": step.tolist()}


@dataclass(frozen=True, eq=False)
class Binary:
    r"""One bit per coordinate: whether it lies above its mean. Eight bits make a byte, the first in the highest bit.

    A bit is restored as :math:`m_j \pm s`, with :math:`m_j` the mean of coordinate j and s the mean absolute deviation
    over all coordinates. A single s preserves the cosines of the signs. Queries stay floating-point: compared with
    restored bits, they have higher recall than Hamming distance between bits (docs/decisions/data.md).

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
        apart = Z - mean
        return Binary(mean, float(np.abs(apart, out=apart).mean()))

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
    "int4": Int4(),
    "binary": Binary(),
    "embedded": Embedded(),
}


def resolve_precision(name: object, owner: str) -> Precision:
    """Return the unfitted precision of that name."""
    return PRECISIONS[check_choice(name, PRECISIONS, "precision", owner)]


def read_precision(record: object) -> Precision:
    """Return the fitted precision that ``record()`` describes; raise InvalidInputError for anything else."""
    values = dict(record) if isinstance(record, Mapping) else {}
    name = values.pop("precision", None)
    told = set(values) - ({CODEBOOKS} if name == "embedded" else set())  # there where codes have them
    if not isinstance(name, str) or name not in _FIELDS or told != set(_FIELDS[name]):
        raise InvalidInputError(f"A precision is read from the result of its record(). Got {record!r:.100}.")
    if name == "embedded":
        return read_embedded(values)
    scale = values.get("scale")
    if name == "int8":
        if not is_real(scale) or scale <= 0:
            raise bad_parameter("scale", "a record of int8", "a positive number", scale)
        return Int8(float(scale))
    if name == "int4":
        mean, step = (_numbers(values[part], part, "int4") for part in ("mean", "step"))
        if len(mean) != len(step) or step.min() < 0:
            raise bad_parameter("step", "a record of int4", "numbers of at least 0, as many as means", values["step"])
        return Int4(mean, step)
    if name == "binary":
        # Codes that do not vary have deviation 0.
        if not is_real(scale) or scale < 0:
            raise bad_parameter("scale", "a record of binary", "a number of at least 0", scale)
        return Binary(_numbers(values["mean"], "mean", "binary"), float(scale))
    return PRECISIONS[name]


def _numbers(values: object, name: str, precision: str) -> np.ndarray:
    if not isinstance(values, (list, tuple)) or not values or not all(is_real(value) for value in values):
        raise bad_parameter(name, f"a record of {precision}", "finite numbers, one for each coordinate", values)
    return np.asarray(values, dtype=np.float64)


# What the record of a precision holds besides its name.
_FIELDS: dict[str, tuple[str, ...]] = {
    "float32": (),
    "float16": (),
    "int8": ("scale",),
    "int4": ("mean", "step"),
    "binary": ("mean", "scale"),
    "embedded": tuple(FIELDS),
}


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
