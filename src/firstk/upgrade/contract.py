"""The contract of a method of alignment: all of `firstk.upgrade.methods` on one page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.checks import check_matrix
from firstk.moments import CrossMoments

# What an alignment's method may be called; the registry holds the same names.
MethodName = Literal[
    "auto",
    "procrustes",
    "ridge",
    "procrustes_ridge",
    "reduced_rank",
    "cca",
    "whitened_ridge",
]
# Entries of a block of rows: the centred copy of the input stays this small.
_BLOCK_ENTRIES = 4_000_000


@dataclass(frozen=True, eq=False)
class AffineMap:
    """``y = weight (x - mean) + offset``.

    Attributes
    ----------
    mean : ndarray of shape (p,)
    weight : ndarray of shape (d, p)
    offset : ndarray of shape (d,)
    """

    mean: np.ndarray
    weight: np.ndarray
    offset: np.ndarray

    def __post_init__(self) -> None:
        for name in ("mean", "weight", "offset"):  # one layout, so that a map that was saved has the same last bits
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.float64))

    @property
    def p(self) -> int:
        """Width of the input."""
        return int(self.weight.shape[1])

    @property
    def d(self) -> int:
        """Width of the output."""
        return len(self.weight)

    def __call__(self, X: MatrixLike, owner: str, name: str = "X") -> np.ndarray:
        """Return the images of rows, in their precision: float32, or else float64."""
        X = check_matrix(X, owner, name, width=self.p)
        mean, weight, offset = (part.astype(X.dtype) for part in (self.mean, self.weight, self.offset))
        Y = np.empty((len(X), self.d), dtype=X.dtype)
        step = max(1, _BLOCK_ENTRIES // self.p)
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            np.matmul(X[rows] - mean, weight.T, out=Y[rows])
            Y[rows] += offset
        return Y

    def then(self, matrix: np.ndarray) -> AffineMap:
        """Return this map followed by ``y -> matrix y``."""
        return replace(self, weight=matrix @ self.weight, offset=matrix @ self.offset)

    def cut(self, k: int) -> AffineMap:
        """Return the map to the first k coordinates."""
        return replace(self, weight=self.weight[:k], offset=self.offset[:k])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that are saved."""
        return {"mean": self.mean, "weight": self.weight, "offset": self.offset}


@dataclass(frozen=True, eq=False)
class AlignmentSolution:
    """What a method of alignment finds: translations in both directions, and one ordered code of both models.

    Attributes
    ----------
    old_to_new, new_to_old : AffineMap
    encode_old, encode_new : AffineMap
        To the shared code, of one width; the first k coordinates are what the two models agree on most. Codes are
        compared by cosine.
    spectrum : ndarray of shape (d,)
        Agreement of each coordinate, descending.
    """

    old_to_new: AffineMap
    new_to_old: AffineMap
    encode_old: AffineMap
    encode_new: AffineMap
    spectrum: np.ndarray

    def cut(self, k: int) -> AlignmentSolution:
        """Return the solution whose shared code ends at k; translations stay as they are."""
        return replace(
            self, encode_old=self.encode_old.cut(k), encode_new=self.encode_new.cut(k), spectrum=self.spectrum[:k]
        )


@runtime_checkable
class AlignmentMethod(Protocol):
    """How the vectors of an old model and a new one are brought together. A frozen dataclass; fields are settings.

    :class:`firstk.upgrade.methods.ClosedFormMethod` has defaults for everything but `name` and `solve`.
    """

    name: ClassVar[str]

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range."""

    def candidates(self) -> list[Self]:
        """Return this method with each combination of what is left to "auto"; itself where nothing is."""

    def solve(self, moments: CrossMoments) -> AlignmentSolution:
        """Solve for cross moments."""

    def comparing(self, moments: CrossMoments) -> tuple[AffineMap, AffineMap]:
        """Return maps of old and of new vectors to a space where cosines order neighbors as the whole code does.

        For scores of held-out rows: unlike `solve`, without order and without the way back.
        """

    def translating(self, moments: CrossMoments) -> AffineMap:
        """Return the translation of old vectors: `old_to_new` of `solve`, without the rest."""
