"""Canonical forms: one representative of all codes that are equivalent under an objective and an ordering.

The transformations that leave every prefix loss unchanged are the residual symmetry (docs/theory.md, section 2). A
convention fixes each of them here, so that two fits that found equivalent codes return the same numbers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from firstk._base.linalg import ordered_eigh, signed, symmetrised


@dataclass(frozen=True)
class Code:
    """Axes of a code, the weights shared by all prefixes, and the scatters of the data.

    Attributes
    ----------
    components : ndarray of shape (d, p)
    shared : ndarray of shape (q, d) or None
        Decoder or head: column k belongs to axis k.
    N : ndarray of shape (p, p)
        Metric of the rows.
    M : ndarray of shape (p, p) or None
        Matrix that the objective maximizes, for ratio traces.
    own : ndarray of shape (K, q, K) or None
        Separate heads of the first K prefixes; entry k - 1 has k columns.
    """

    components: np.ndarray
    shared: np.ndarray | None
    N: np.ndarray
    M: np.ndarray | None = None
    own: np.ndarray | None = None

    def mixed(self, T: np.ndarray) -> Code:
        """Return the code T B with shared weights A T^-1, which leaves the loss of the full code unchanged.

        Separate heads are transformed too; this needs T to be lower triangular on their prefixes.
        """
        shared = None if self.shared is None else np.linalg.solve(T.T, self.shared.T).T
        own = None if self.own is None else self.own @ np.linalg.inv(T[: len(self.own), : len(self.own)])
        return replace(self, components=T @ self.components, shared=shared, own=own)

    def scaled(self, factor: np.ndarray) -> Code:
        """Multiply axis k by factor k, and divide shared column k by it."""
        safe = np.where(factor == 0, 1.0, factor)
        shared = None if self.shared is None else self.shared / safe
        own = None if self.own is None else self.own / safe[: len(self.own)]
        return replace(self, components=self.components * safe[:, None], shared=shared, own=own)

    @property
    def gram(self) -> np.ndarray:
        """B N B^T."""
        return symmetrised(self.components @ self.N @ self.components.T)


def flag_form(code: Code, residual: str, blocks: tuple[int, ...]) -> Code:
    """Orthonormalize rows in N, in order: B <- L^-1 B with B N B^T = L L^T; inside blocks, diagonalize M as well.

    For objectives that depend on the nested spans only. Orthonormalizing in order keeps every span.
    """
    G = code.gram
    L = _cholesky(G)
    code = Code(scipy.linalg.solve_triangular(L, code.components, lower=True), code.shared, code.N, code.M)
    if residual != "blocks" or code.M is None:
        return code
    T = np.zeros_like(G)
    for part in _parts(blocks, len(G)):
        rows = code.components[part]
        T[part, part] = ordered_eigh(symmetrised(rows @ code.M @ rows.T))[1].T
    return Code(T @ code.components, code.shared, code.N, code.M)


def _cholesky(G: np.ndarray) -> np.ndarray:
    ridge = 1e-14 * np.trace(G) / len(G)
    return np.linalg.cholesky(G + ridge * np.eye(len(G)))


def shared_form(code: Code, residual: str, blocks: tuple[int, ...], scaling: str) -> Code:
    """Fix the reciprocal scales (and invertible blocks) of an encoder with a shared decoder.

    "orthonormal" gives the decoder's columns unit norm, "metric" gives the encoder's rows unit N-norm.
    """
    if residual not in ("axes", "blocks"):
        return code
    if residual == "blocks":
        # Make rows orthonormal in N and shared columns orthogonal, longest first, inside each block.
        assert code.shared is not None
        G, T = code.gram, np.eye(len(code.components))
        for part in _parts(blocks, blocks[-1]):
            L = _cholesky(G[part, part])
            A = code.shared[:, part] @ L
            Q = ordered_eigh(A.T @ A)[1]
            T[part, part] = Q.T @ np.linalg.inv(L)
        code = code.mixed(T)
    assert code.shared is not None
    if scaling == "orthonormal":
        return code.scaled(np.linalg.norm(code.shared, axis=0))
    return _rows_of_one_length(code)


def _rows_of_one_length(code: Code) -> Code:
    norms = np.sqrt(np.maximum(np.diag(code.gram), 0.0))
    return code.scaled(np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0))


def head_form(code: Code, scale: str, second_moment: np.ndarray) -> Code:
    """Fix the scales that a classifier's heads leave free; the mean squared norm of the code is 1.

    Parameters
    ----------
    code : Code
        N is the within-class scatter.
    scale : {"noise", "head", "learned"}
        "noise" gives every axis the same N-norm, that is the same within-class noise, and makes axes whose prefixes
        have separate heads orthonormal in N; "head" gives the head's columns, centered over classes, equal length, so
        that the scale is in the code; "learned" keeps the learned ratios.
    second_moment : ndarray of shape (p, p)
        E[x x^T] of the encoder's input.
    """
    shared = code.shared
    assert shared is not None
    if scale == "noise":
        if code.own is not None:  # in order, which keeps every span
            K, T = len(code.own), np.eye(len(code.components))
            T[:K, :K] = np.linalg.inv(_cholesky(code.gram[:K, :K]))
            code = code.mixed(T)
        code = _rows_of_one_length(code)
    elif scale == "head":
        code = code.scaled(np.linalg.norm(shared - shared.mean(axis=0), axis=0))
    B = code.components
    size = np.sqrt(max(float(np.sum((B @ second_moment) * B)), np.finfo(float).tiny))
    return code.scaled(np.full(len(B), 1 / size))


def _parts(blocks: tuple[int, ...], d: int) -> list[slice]:
    edges = [0, *(k for k in blocks if k < d), d]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def sorted_form(code: Code) -> Code:
    """Sort axes by |a_k|^2 b_k N b_k^T, largest first, for orderings that determine axes up to order."""
    carried = np.diag(code.gram) * (1.0 if code.shared is None else np.square(code.shared).sum(axis=0))
    order = np.argsort(-carried, kind="stable")
    shared = None if code.shared is None else code.shared[:, order]
    return Code(code.components[order], shared, code.N, code.M)


def with_signs(code: Code) -> Code:
    """Make the largest entry of each axis positive, and flip the shared weights accordingly."""
    return code.scaled(signed(code.components))
