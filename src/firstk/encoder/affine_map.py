"""An affine map between two spaces of vectors; numpy only."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.checks import check_matrix

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
