"""Cells: the two stages of a string, in its order. Codebooks see many coordinates, trees what these leave of each.

A stage turns numbers into bits and leaves a residual; what its bits stand for is added to what those before it stand
for. The bytes of codebooks come first, because they need all coordinates at once; the bits of trees follow in the
order of `allocation`, which knows the error that codebooks leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix, check_weights
from firstk.bits.codebooks import Codebooks, wrong_codebooks
from firstk.bits.trees import Trees, wrong_trees

# Names of stored arrays.
_TREES, _BOOKS = "trees.", "codebooks."


@dataclass(frozen=True, eq=False)
class Cells:
    """Codebooks of the first coordinates, and a tree for each coordinate of what they leave over.

    Attributes
    ----------
    trees : Trees
    codebooks : Codebooks
        None (``levels == 0``) where there were too few rows, and where none were wanted.
    """

    trees: Trees
    codebooks: Codebooks

    @classmethod
    def fit(cls, Z: ArrayLike, weight: ArrayLike | None = None, *, codebooks: bool = True) -> Cells:
        """Fit both on codes of shape (n, d), whose rows may have weights; a sample of some thousands is enough.

        Without `codebooks`, trees have all bits.
        """
        Z = check_matrix(Z, "Cells.fit", "Z")
        weight = check_weights(weight, len(Z), "Cells.fit", "weight")
        books, left = Codebooks.fit(Z, weight) if codebooks else (Codebooks.none(), Z[:, :0])
        return cls(Trees.fit(np.hstack([left, Z[:, left.shape[1] :]]), weight), books)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.trees.d

    @property
    def variances(self) -> np.ndarray:
        """Variances of the coordinates before anything is taken off, on the rows of the fit."""
        variances = self.trees.distortion[:, 0].copy()
        variances[: self.codebooks.errors.shape[1]] = self.codebooks.errors[0]
        return variances

    def cut(self, k: int) -> Cells:
        """Return the cells of the first k coordinates."""
        return Cells(self.trees.cut(k), self.codebooks.cut(k))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is stored, by name."""
        named = {_TREES + name: part for name, part in self.trees.arrays().items()}
        return named | {_BOOKS + name: part for name, part in self.codebooks.arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], d: int) -> Cells:
        """Rebuild from `arrays`, of which none may be missing; raise ValueError for anything else."""
        trees, books = (
            {name.removeprefix(stage): part for name, part in arrays.items() if name.startswith(stage)}
            for stage in (_TREES, _BOOKS)
        )
        if set(trees) != {"centroids", "squares", "distortion"}:
            raise ValueError(f"arrays {sorted(trees)} of trees; trees have ['centroids', 'distortion', 'squares']")
        if set(books) not in ({"centroids", "windows", "errors"}, set()):
            raise ValueError(f"arrays {sorted(books)} of codebooks; codebooks have ['centroids', 'errors', 'windows']")
        made = cls(Trees(**trees), Codebooks(**books) if books else Codebooks.none())
        if wrong := wrong_trees(made.trees, d):
            raise ValueError(f"its trees are damaged: {wrong}")
        if wrong := wrong_codebooks(made.codebooks, d):
            raise ValueError(f"its codebooks are damaged: {wrong}")
        return made
