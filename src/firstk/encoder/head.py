"""Linear readouts of every prefix: from the first k coordinates of a code to targets, or to one score a class.

One set of weights serves all prefixes where theory allows it; short prefixes may have weights of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Head:
    """A linear readout of every prefix: ``offset_k + Z[:, :k] @ weight[:, :k].T``, or weights of a prefix's own.

    Attributes
    ----------
    weight : ndarray of shape (q, d)
    offset : ndarray of shape (q,)
    quadratic : ndarray of shape (q, d)
        Per-axis constants that a prefix of length k subtracts the first k of; zeros for regression.
    classes : ndarray or None
        Labels, when the readout is an argmax over them.
    own_weight : ndarray of shape (K, q, K) or None
        Weights of the prefixes up to K that have their own: number k - 1 has k columns, the rest are zero.
    own_offset : ndarray of shape (K, q) or None
    """

    weight: np.ndarray
    offset: np.ndarray
    quadratic: np.ndarray
    classes: np.ndarray | None = None
    own_weight: np.ndarray | None = None
    own_offset: np.ndarray | None = None

    @property
    def own(self) -> int:
        """K: the largest prefix length with weights of its own."""
        return 0 if self.own_weight is None else len(self.own_weight)

    def at(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weight (q, k) and offset (q,) of prefix k."""
        if self.own_weight is not None and self.own_offset is not None and k <= self.own:
            return self.own_weight[k - 1, :, :k], self.own_offset[k - 1]
        return self.weight[:, :k], self.offset - self.quadratic[:, :k].sum(axis=1)

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """Return scores of codes, (n, q), in the dtype of the codes; their width is the prefix length."""
        weight, offset = self.at(Z.shape[1])
        scores: np.ndarray = Z @ weight.T.astype(Z.dtype) + offset.astype(Z.dtype)
        return scores

    def cut(self, k: int) -> Head:
        """Return the readout of a code that ends at k."""
        return replace(
            self,
            weight=self.weight[:, :k],
            quadratic=self.quadratic[:, :k],
            own_weight=None if self.own_weight is None else self.own_weight[:k, :, :k],
            own_offset=None if self.own_offset is None else self.own_offset[:k],
        )

    def scaled(self, factor: np.ndarray) -> Head:
        """Return the readout with column k times factor k."""
        own = None if self.own_weight is None else self.own_weight * factor[: self.own]
        return replace(self, weight=self.weight * factor, own_weight=own)
