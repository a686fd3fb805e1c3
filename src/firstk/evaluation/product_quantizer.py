"""Product quantizers of faiss, as a peer that takes the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np

from firstk._base.checks import require
from firstk.metrics.subspace import unit_rows

# Bytes of a code: one for each group of columns.
SIZES = (8, 16, 32, 48, 64, 96, 128)
# Rows that a quantizer learns from: faiss itself takes no more than 256 for each of its 256 centers.
MOST_ROWS = 256 * 64
# Rounds of k-means, instead of faiss' 25: the error of rows falls by less than 1 % after the tenth, and accuracy not at
# all (docs/decisions.md), while training takes longer than all else that is measured of a quantizer.
ROUNDS = 10
# With fewer rows for each of the 256 centers, a quantizer learns the rows by heart.
FEWEST_ROWS = 256 * 8


def faiss_is_there() -> bool:
    """Tell whether faiss is installed."""
    return find_spec("faiss") is not None


def quantizers(rows: np.ndarray, seed: int = 0) -> Iterator[tuple[int, Callable[[np.ndarray], np.ndarray]]]:
    """Yield product quantizers of unit vectors: their bytes, and what storage makes of vectors.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
        Stored vectors to learn from; of fewer than 2,048 rows nothing is learned.
    seed : int
        Of the sample that is learned from.
    """
    faiss = require("faiss", "faiss", "A product quantizer")
    n, p = rows.shape
    if n < FEWEST_ROWS:
        return
    picked = np.random.default_rng(seed).permutation(n)[:MOST_ROWS]
    sample = np.ascontiguousarray(unit_rows(rows[np.sort(picked)]), dtype=np.float32)
    for size in SIZES:
        if p % size or size >= p:
            continue
        quantizer = faiss.ProductQuantizer(p, size, 8)
        quantizer.cp.min_points_per_centroid = 1  # no warning for each group of columns where rows are few
        quantizer.cp.niter = ROUNDS
        quantizer.train(sample)

        def stored(Z: np.ndarray, quantizer: object = quantizer) -> np.ndarray:
            unit = np.ascontiguousarray(unit_rows(Z), dtype=np.float32)
            return np.asarray(quantizer.decode(quantizer.compute_codes(unit)))  # type: ignore[attr-defined]

        yield size, stored
