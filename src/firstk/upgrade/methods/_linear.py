"""What methods of alignment share: their base class, shrunk covariances, and the ordered code of a translation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import ClassVar, Self

import numpy as np

from firstk._base.checks import bad_parameter, is_real
from firstk._base.linalg import ordered_eigh, signed, symmetrised
from firstk.moments import CrossMoments
from firstk.upgrade.contract import AffineMap, AlignmentSolution

# Share of the largest singular value below which a direction is rounding.
_RANK = 1e-10


class ClosedFormMethod:
    """Defaults of :class:`firstk.upgrade.contract.AlignmentMethod`.

    A setting that may be left to "auto" is listed in `grid`, with the values that are tried, those that adapt least to
    the pairs first.
    """

    name: ClassVar[str]
    grid: ClassVar[dict[str, tuple[float, ...]]] = {}

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range; by default, outside [0, 1]."""
        for name in self.grid:
            value = getattr(self, name)
            if value != "auto" and (not is_real(value) or not 0 <= value <= 1):
                raise bad_parameter(name, type(self).__name__, "a number in [0, 1], or 'auto'", value)

    def candidates(self) -> list[Self]:
        """Return every combination of the values of what is left to "auto"."""
        names = [name for name in self.grid if getattr(self, name) == "auto"]
        values = product(*(self.grid[name] for name in names))
        return [replace(self, **dict(zip(names, combination, strict=True))) for combination in values]  # type: ignore[type-var]

    def solve(self, moments: CrossMoments) -> AlignmentSolution:
        """Solve for cross moments."""
        raise NotImplementedError

    def comparing(self, moments: CrossMoments) -> tuple[AffineMap, AffineMap]:
        """Return the maps to the shared code."""
        solution = self.solve(moments)
        return solution.encode_old, solution.encode_new

    def translating(self, moments: CrossMoments) -> AffineMap:
        """Return the translation of old vectors."""
        return self.solve(moments).old_to_new


class TranslationMethod(ClosedFormMethod):
    """A method that fits a linear map of centred vectors in either direction; the shared code is that of old to new."""

    def translation(self, moments: CrossMoments) -> np.ndarray:
        """Return W of shape (p, q) such that ``W^T a`` is the translation of a centred old vector."""
        raise NotImplementedError

    def solve(self, moments: CrossMoments) -> AlignmentSolution:
        """Solve for cross moments."""
        return from_translations(moments, self.translation(moments).T, self.translation(moments.exchanged()).T)

    def comparing(self, moments: CrossMoments) -> tuple[AffineMap, AffineMap]:
        """Return the translation of old vectors, and new vectors as they are."""
        return self.translating(moments), AffineMap(np.zeros(moments.q), np.eye(moments.q), np.zeros(moments.q))

    def translating(self, moments: CrossMoments) -> AffineMap:
        """Return the translation of old vectors."""
        return AffineMap(moments.old_mean, self.translation(moments).T, moments.new_mean)


def from_translations(moments: CrossMoments, forward: np.ndarray, backward: np.ndarray) -> AlignmentSolution:
    """Return the solution of two linear translations of centred vectors, with the shared code of the first.

    Parameters
    ----------
    moments : CrossMoments
    forward : ndarray of shape (q, p)
        From old to new vectors, both centred.
    backward : ndarray of shape (p, q)
    """
    to_new = AffineMap(moments.old_mean, forward, moments.new_mean)
    to_old = AffineMap(moments.new_mean, backward, moments.old_mean)
    agreement = forward @ moments.cross + np.outer(moments.new_mean, moments.new_mean)
    directions = np.column_stack([forward, moments.new_mean])
    return with_shared_code(to_new, to_old, agreement, directions)


def with_shared_code(
    to_new: AffineMap, to_old: AffineMap, agreement: np.ndarray, directions: np.ndarray | None = None
) -> AlignmentSolution:
    """Return a solution whose shared code lies in the space of the new model, turned and ordered by agreement.

    With translated vectors y' and new ones y, the agreement along a direction v is ``E[(v^T y')(v^T y)]``. The axes
    are the eigenvectors V of the symmetric part of ``E[y' y^T]``, largest first, so that no k orthonormal directions
    have more agreement than the first k. The code is ``V^T y'`` of old vectors and ``V^T y`` of new ones: V is
    orthonormal, so the whole code has the cosines of translated and new vectors.

    Parameters
    ----------
    to_new, to_old : AffineMap
    agreement : ndarray of shape (q, q)
        ``E[y' y^T]``, not centred.
    directions : ndarray of shape (q, r), optional
        What translated vectors are combinations of; if they do not span the space, the code is as wide as their rank.
        What new vectors have beyond it would change the norm of their code, and no order of neighbors.
    """
    basis = np.eye(to_new.d)
    if directions is not None:  # an orthonormal basis of the columns; the standard one where they span the space
        U, sizes, _ = np.linalg.svd(directions, full_matrices=False)
        rank = int((sizes > _RANK * sizes[0]).sum()) if sizes.size else 0
        basis = basis if rank == len(directions) else U[:, : max(1, rank)]
    values, turned = ordered_eigh(symmetrised(basis.T @ agreement @ basis))
    axes = (basis @ turned).T
    axes *= signed(axes)[:, None]
    identity = AffineMap(np.zeros(to_new.d), axes, np.zeros(len(axes)))
    return AlignmentSolution(to_new, to_old, to_new.then(axes), identity, values)


def to_scale(W: np.ndarray, moments: CrossMoments) -> np.ndarray:
    """Return a translation of shape (p, q) times the scale of least squares, ``tr(W^T X) / tr(W^T C W)``.

    A penalty on W shortens what it translates, and cosines, by which settings are chosen, hardly see it: beside vectors
    of the new model, translated ones would rank too low by inner product.
    """
    size = np.vdot(W, moments.old_scatter @ W)
    return W * (np.vdot(W, moments.cross) / size) if size > 0 else W


def shrunk_values(values: np.ndarray, shrinkage: float) -> np.ndarray:
    """Return the eigenvalues of ``(1 - a) S + a tr(S)/p I``, those of S being `values`."""
    return (1.0 - shrinkage) * values + shrinkage * values.mean()


def inverse(values: np.ndarray) -> np.ndarray:
    """Return 1 / values; zero where a value is rounding."""
    kept = values > _RANK * values.max(initial=0.0)
    return np.divide(1.0, values, out=np.zeros_like(values), where=kept)
