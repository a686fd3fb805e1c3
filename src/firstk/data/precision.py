"""Precisions of stored codes: float32, float16, int8, int4, one bit per coordinate, or bits where they are worth most.

Truncation and rounding are two ways to reduce the size of a code, so they are evaluated together. Rounding acts on
each coordinate separately, so a stored code can still be truncated at any k (int4 and binary codes: at whole bytes).
Of embedded codes (`firstk.bits`) every prefix of the bytes is a code: bytes, not k, say how long they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_choice, check_matrix, is_int, is_real
from firstk.bits.embedded import CODEBOOKS, FIELDS, Embedded, read_embedded
from firstk.exceptions import InvalidInputError

# The int8 range is symmetric: -128 is not used.
STEPS = 127
# Distance of the 16 equal steps that keep a Gaussian number of standard deviation 1 best in mean square (Max 1960).
GAUSSIAN_STEP = 0.3352


class Rounded:
    """A precision that rounds each coordinate by itself: its size, its checks and its record.

    What was fitted are the fields of a dataclass, all None before.

    Attributes
    ----------
    name : str
        Name in `PRECISIONS`.
    bits : int
        Of a coordinate.
    dtype : str
        Of stored codes.
    """

    name: str
    bits: int
    dtype: str = "uint8"

    @abstractmethod
    def fitted(self, Z: np.ndarray) -> Self:
        """Return this precision fitted on codes."""

    @abstractmethod
    def rounded(self, Z: np.ndarray) -> np.ndarray:
        """Return codes as they are stored."""

    @abstractmethod
    def numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return what stored codes stand for."""

    def bytes_per_vector(self, k: int) -> int:
        """Bytes of a code of k coordinates, rounded up."""
        if not is_int(k) or k < 1:
            raise bad_parameter("k", "bytes_per_vector", "an int of at least 1", k)
        return -(-self.bits * int(k) // 8)

    def fit(self, Z: ArrayLike) -> Self:
        """Return this precision fitted on codes like those that will be stored; a sample of them is enough."""
        Z = check_matrix(Z, f"{self.name}.fit", "Z")
        _largest(Z, "float32")
        return self.fitted(Z)

    def quantise(self, Z: ArrayLike) -> np.ndarray:
        """Return codes as they are stored."""
        mean = self.state().get("mean")
        return self.rounded(check_matrix(Z, f"{self.name}.quantise", "Z", width=None if mean is None else len(mean)))

    def clipped(self, Z: ArrayLike) -> int:
        """Count the entries that `quantise` would clip because they are out of range; of most precisions none."""
        return 0

    def restore(self, stored: ArrayLike) -> np.ndarray:
        """Return stored codes as float32; raise InvalidInputError for a wrong dtype or shape."""
        stored, mean = np.asarray(stored), self.state().get("mean")
        width = None if mean is None else self.bytes_per_vector(len(mean))
        if stored.dtype != np.dtype(self.dtype) or stored.ndim != 2 or stored.shape[1] != (width or stored.shape[1]):
            raise InvalidInputError(
                f"The precision '{self.name}' restores codes stored as {self.dtype} of shape (n, {width or 'k'}). "
                f"Got {stored.dtype} of shape {stored.shape}."
            )
        return self.numbers(stored).astype(np.float32, copy=False)

    def state(self) -> dict[str, Any]:
        """Return what was fitted; raise InvalidInputError before the fit."""
        held = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "name"}  # type: ignore[arg-type]
        if any(value is None for value in held.values()):
            raise InvalidInputError(
                f"The precision '{self.name}' must be fitted before use: PRECISIONS['{self.name}'].fit(Z), with codes "
                "like those that will be stored."
            )
        return held

    def record(self) -> dict[str, object]:
        """Return the fitted state as JSON values, from which ``read_precision`` rebuilds the precision."""
        state = {key: held.tolist() if isinstance(held, np.ndarray) else held for key, held in self.state().items()}
        return {"precision": self.name} | state


@dataclass(frozen=True)
class Floating(Rounded):
    """Floating-point numbers, rounded to the nearest; nothing is fitted.

    Examples
    --------
    >>> PRECISIONS["float16"].restore(PRECISIONS["float16"].quantise([[0.1, 2.0]]))
    array([[0.09997559, 2.        ]], dtype=float32)
    """

    name: str

    @property
    def bits(self) -> int:  # type: ignore[override]
        """Bits of a coordinate."""
        return 8 * np.dtype(self.name).itemsize

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """Type of stored codes."""
        return self.name

    def fitted(self, Z: np.ndarray) -> Floating:
        """Return itself: there is nothing to fit."""
        return self

    def rounded(self, Z: np.ndarray) -> np.ndarray:
        """Return codes in this type; raise InvalidInputError for numbers beyond its range."""
        _largest(Z, self.name)
        return Z.astype(self.name)

    def numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return the numbers themselves."""
        return stored.astype(np.float32)


@dataclass(frozen=True)
class Int8(Rounded):
    """Integers from -127 to 127, times one scale for all coordinates.

    The scale is the largest absolute entry divided by 127; larger entries in later codes are clipped. A single scale
    cancels in every cosine: any engine that takes int8 vectors can compare the stored integers directly, and nothing
    else has to be stored. A scale for each coordinate would have to be applied before each comparison, and is no more
    accurate (docs/decisions/data.md).

    Examples
    --------
    >>> int8 = PRECISIONS["int8"].fit([[1.27, -0.5], [0.3, 0.02]])
    >>> int8.quantise([[1.27, -0.5], [5.0, 0.016]])
    array([[127, -50],
           [127,   2]], dtype=int8)
    """

    scale: float | None = None
    name, bits, dtype = "int8", 8, "int8"

    def fitted(self, Z: np.ndarray) -> Int8:
        """Fit the scale."""
        return Int8((_largest(Z, "float32") or 1.0) / STEPS)

    def rounded(self, Z: np.ndarray) -> np.ndarray:
        """Return codes as int8."""
        steps = np.rint(Z / self.state()["scale"])
        return np.clip(steps, -STEPS, STEPS, out=steps).astype(np.int8)

    def clipped(self, Z: ArrayLike) -> int:
        """Count the entries that are clipped to 127 or -127."""
        return int(np.count_nonzero(np.abs(Z) > (STEPS + 0.5) * self.state()["scale"]))

    def numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return the integers times the scale."""
        return stored.astype(np.float32) * np.float32(self.state()["scale"])


@dataclass(frozen=True, eq=False)
class Int4(Rounded):
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
    name, bits = "int4", 4

    def fitted(self, Z: np.ndarray) -> Int4:
        """Fit the means and the steps."""
        return Int4(Z.mean(axis=0, dtype=np.float64), GAUSSIAN_STEP * Z.std(axis=0, dtype=np.float64))

    def rounded(self, Z: np.ndarray) -> np.ndarray:
        """Return codes as uint8 of shape (n, ceil(k / 2))."""
        mean, step = self.state().values()
        # A coordinate that did not vary has step 0, and is restored as its mean whatever is stored.
        levels = np.floor((Z - mean) / np.where(step > 0, step, np.inf)) + 8
        levels = np.clip(levels, 0, 15, out=levels).astype(np.uint8)
        if levels.shape[1] % 2:
            levels = np.pad(levels, ((0, 0), (0, 1)))
        return np.asarray(levels[:, ::2] | levels[:, 1::2] << 4)

    def numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return the middles of the steps."""
        mean, step = self.state().values()
        levels = np.stack([stored & 15, stored >> 4], axis=2).reshape(len(stored), -1)[:, : len(mean)]
        return np.asarray(mean + (levels - 7.5) * step)


@dataclass(frozen=True, eq=False)
class Binary(Rounded):
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
    name, bits = "binary", 1

    def fitted(self, Z: np.ndarray) -> Binary:
        """Fit the means and the mean absolute deviation."""
        mean = Z.mean(axis=0, dtype=np.float64)
        apart = Z - mean
        return Binary(mean, float(np.abs(apart, out=apart).mean()))

    def rounded(self, Z: np.ndarray) -> np.ndarray:
        """Return codes as packed bits, uint8 of shape (n, ceil(k / 8)); padding bits of the last byte are 0."""
        return np.packbits(self.state()["mean"] < Z, axis=1)

    def numbers(self, stored: np.ndarray) -> np.ndarray:
        """Return the means plus or minus the deviation."""
        mean, scale = self.state().values()
        bits = np.unpackbits(stored, axis=1, count=len(mean)).view(bool)
        return np.where(bits, (mean + scale).astype(np.float32), (mean - scale).astype(np.float32))


Precision = Rounded | Embedded

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
    blank = PRECISIONS.get(name) if isinstance(name, str) else None
    if isinstance(blank, Embedded) and set(values) - {CODEBOOKS} == set(FIELDS):  # there where codes have them
        return read_embedded(values)
    if not isinstance(blank, Rounded) or set(values) != {part.name for part in fields(blank)} - {"name"}:  # type: ignore[arg-type]
        raise InvalidInputError(f"A precision is read from the result of its record(). Got {record!r:.100}.")
    owner, state = f"a record of {name}", dict[str, Any]()
    for part, value in values.items():
        if part == "scale":  # that of bits is 0 where codes do not vary
            if not is_real(value) or value < 0 or (value == 0 and name != "binary"):
                raise bad_parameter(part, owner, "a positive number", value)
            state[part] = float(value)
        else:
            if not isinstance(value, (list, tuple)) or not value or not all(map(is_real, value)):
                raise bad_parameter(part, owner, "finite numbers, one for each coordinate", value)
            state[part] = np.asarray(value, dtype=np.float64)
    if "step" in state and (len(state["mean"]) != len(state["step"]) or state["step"].min() < 0):
        raise bad_parameter("step", owner, "numbers of at least 0, as many as means", values["step"])
    return type(blank)(**state) if state else blank


def _largest(Z: np.ndarray, name: str) -> float:
    """Return the largest absolute entry; raise if it overflows the float type (codes are restored as float32)."""
    largest, limit = float(np.abs(Z).max()), float(np.finfo(name).max)
    if largest > limit:
        wider = ", or use float32" if name == "float16" and largest <= np.finfo(np.float32).max else ""
        raise InvalidInputError(
            f"{name} holds numbers up to {limit:.5g}; 'Z' has {largest:.5g}. Scale the vectors before the fit{wider}."
        )
    return largest
