"""Files of named arrays (npz, safetensors): which one is the vectors, and which lie beside it, by their headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from firstk.data.files.choosing import both, check_rows, missing_column, several
from firstk.data.files.contract import Wanted, unreadable


class Described(Protocol):
    """An array as a header describes it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def kind(self) -> str:
        """The letter that numpy has for its type: "f", "i" and "u" are numbers, "O" is what cannot be read."""


Array = TypeVar("Array", bound=Described)


def choose_matrix(path: object, held: Mapping[str, Described], wanted: Wanted, called: str) -> str:
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
    check_rows(path, {key: held[key].shape for key in wanted.beside if key in held}, vectors, rows)
    return {key: one for key, one in held.items() if key != vectors and one.shape[:1] == (rows,) and one.kind != "O"}
