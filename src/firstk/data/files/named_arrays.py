"""Files of named arrays of as many rows, of which one matrix is the vectors: npy, npz and safetensors.

A format tells the arrays by its header, and how their rows are read in order; all else is done here once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol, TypeVar

import numpy as np

from firstk.data.files.contract import (
    AppendingWriter,
    Facts,
    Layout,
    Wanted,
    exactly,
    float_type,
    reading,
    unreadable,
    vectors_named,
)
from firstk.data.files.vector_columns import both, missing_column, several

# Reads the rows from a start to a stop; asked for in their order, from the first one on.
Take = Callable[[int, int], np.ndarray]


class DescribedArray(Protocol):
    """An array as a header describes it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def kind(self) -> str:
        """The letter that numpy has for its type: "f", "i" and "u" are numbers, "O" is what cannot be read."""


class StoredArray(DescribedArray, Protocol):
    """An array in a file."""

    @property
    def dtype(self) -> np.dtype:
        """Its type, as it is read."""

    def opened(self, stack: ExitStack) -> Take:
        """Return what reads its rows, until the stack is closed."""


class ArrayReader:
    """One file of named arrays.

    Attributes
    ----------
    form : str
        Name of the format.
    called : str
        What the format calls an array.
    broken : tuple of type
        What its libraries raise for a damaged file.
    facts : Facts
    """

    form: ClassVar[str]
    called: ClassVar[str] = "array"
    broken: tuple[type[BaseException], ...] = (OSError, ValueError, EOFError, TypeError)

    def __init__(self, path: Path, wanted: Wanted):
        self.path = path
        with self._reading():
            held, metadata = self.header()
        if wanted.plain:
            self.beside = {name: one for name, one in held.items() if one.shape}
            if not self.beside:
                raise unreadable(path, "it holds no array, or single numbers alone, not one a row", "Give an array")
            self.facts = Facts("", (), 0, np.dtype(np.float64), tuple(self.beside))
            return
        name = choose_matrix(path, held, wanted.with_default(vectors_named(metadata), held), f"{self.called}s")
        self.vectors, what = held[name], f"{self.called} {name!r}"
        shape, dtype = self.vectors.shape, self.vectors.dtype
        if dtype.kind not in "fiu" or dtype.itemsize > 8:
            why = f"{what} has a type that is not read here: {dtype}, not numbers of at most 64 bits"
            raise unreadable(path, why, "Convert it to floats")
        if len(shape) != 2 or shape[1] == 0:
            raise unreadable(path, f"{what} has shape {shape}; vectors are a matrix, a row each", "Reshape it")
        self.beside = beside_matrix(path, held, name, wanted)
        self.facts = Facts(name, (name,), shape[1], float_type(dtype), tuple(self.beside), metadata)

    @abstractmethod
    def header(self) -> tuple[Mapping[str, StoredArray], Mapping[str, str]]:
        """Return the arrays of the file by name, and its metadata."""

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.path, self.form, self.broken)

    def count(self) -> int:
        """Return the number of rows."""
        return self.vectors.shape[0]

    def blocks(self, size: int, columns: Sequence[str]) -> Iterator[tuple[np.ndarray, Mapping[str, np.ndarray]]]:
        """Yield at most `size` rows at a time, reading each array once from its beginning to its end."""
        with self._reading(), ExitStack() as stack:
            vectors, parts = self.vectors.opened(stack), {name: self.beside[name].opened(stack) for name in columns}
            for start in range(0, self.count(), size):
                stop = min(start + size, self.count())
                found = {name: part(start, stop) for name, part in parts.items()}
                yield vectors(start, stop).astype(self.facts.dtype, copy=False), found

    def column(self, name: str) -> Any:
        """Return a whole array."""
        with self._reading(), ExitStack() as stack:
            return self.beside[name].opened(stack)(0, self.beside[name].shape[0])


class ArrayWriter(AppendingWriter):
    """One file of arrays that is being written, the vectors first; the other columns wait in memory."""

    def __init__(self, layout: Layout, file: IO[Any]):
        super().__init__(layout, file)
        self.rows, self.dtype = 0, np.dtype(layout.dtype).newbyteorder("<")
        self._columns: dict[str, list[np.ndarray]] = {name: [] for name in layout.columns}

    def write(self, vectors: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows."""
        self.append(np.ascontiguousarray(vectors, dtype=self.dtype).reshape(-1).view(np.uint8).data)
        self.rows += len(vectors)
        for name, parts in self._columns.items():
            parts.append(exactly(columns, name))

    def append(self, content: memoryview) -> None:
        """Append bytes of vectors."""
        self._file.write(content)

    def columns(self) -> dict[str, np.ndarray]:
        """Return the other columns, each as one array."""
        return {name: np.concatenate(parts) for name, parts in self._columns.items()}


# -- which array is the vectors ----------------------------------------------------------------------------------------


Array = TypeVar("Array", bound=DescribedArray)


def choose_matrix(path: object, held: Mapping[str, DescribedArray], wanted: Wanted, called: str) -> str:
    """Return the name of the vectors: the one asked for, or the only matrix of floats, or the only one of numbers.

    `called` is what the format calls its arrays, for error messages.
    """
    if wanted.vectors is not None:
        if wanted.vectors not in held:
            raise missing_column(path, wanted.vectors, list(held))
        if wanted.vectors in wanted.beside:
            raise both(path, wanted.vectors)
        return wanted.vectors
    matrices = [
        name
        for name, one in held.items()
        if len(one.shape) == 2 and one.kind in ("f", "i", "u") and name not in wanted.beside
    ]
    candidates = [name for name in matrices if held[name].kind == "f"] or matrices
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise several(path, candidates)
    for name in wanted.beside:
        if name in held and len(held[name].shape) == 2:
            raise both(path, name)
    names = ", ".join(map(repr, held)) or "none"
    raise unreadable(path, f"it holds no matrix of numbers (its {called}: {names})", "Vectors are a matrix, a row each")


def beside_matrix(path: object, held: Mapping[str, Array], vectors: str, wanted: Wanted) -> dict[str, Array]:
    """Return the arrays with one entry for each vector; raise InvalidInputError if one that was asked for has not."""
    rows = held[vectors].shape[0]
    for name in wanted.beside:
        if name in held and held[name].shape[:1] != (rows,):
            why = f"{name!r} has shape {held[name].shape}, and {vectors!r} has {rows} rows"
            raise unreadable(path, why, "There must be an entry a row")
    return {key: one for key, one in held.items() if key != vectors and one.shape[:1] == (rows,) and one.kind != "O"}
