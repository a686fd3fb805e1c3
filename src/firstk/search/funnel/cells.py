"""Cells around centroids of prefixes (an inverted file of faiss): a search looks into the cells nearest to a query.

An index keeps the centroids and the cell of each row. faiss lays the rows out by cell when the index is searched first.
Needs the extra "search"; without faiss every row is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.checks import require

# Cells for each square root of the number of rows, and the rows of a cell that its centroid is computed from.
_PER_ROOT, _TRAINED_ON, _ROUNDS = 1.5, 64, 10
# Rows whose cells are found at once.
_BLOCK = 1 << 12


def faiss_module() -> Any:
    """Return faiss."""
    return require("faiss", "search", "A search with engine='faiss'")


@contextmanager
def one_faiss_thread() -> Iterator[None]:
    """Keep the faiss of this thread to one thread."""
    faiss = faiss_module()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def fit_centroids(prefixes: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Return centroids of a sample of prefixes for so many rows, by k-means: float32 of shape (cells, width)."""
    faiss, count = faiss_module(), max(1, int(_PER_ROOT * rows**0.5))
    means = faiss.Kmeans(
        prefixes.shape[1], count, niter=_ROUNDS, seed=seed, min_points_per_centroid=1,
        max_points_per_centroid=_TRAINED_ON,
    )  # fmt: skip
    means.train(np.ascontiguousarray(prefixes))
    return np.asarray(means.centroids)


def sample_size(rows: int) -> int:
    """Return how many prefixes centroids are fitted on, at most."""
    return min(rows, int(_TRAINED_ON * _PER_ROOT * rows**0.5))


def cells_of(prefixes: Iterator[np.ndarray], centroids: np.ndarray) -> np.ndarray:
    """Return the cell of each row, that of the nearest centroid, whatever queries are compared by: int32."""
    half, found = 0.5 * np.square(centroids).sum(axis=1), [np.empty(0, np.int64)]
    for part in prefixes:
        found += [np.argmax(part[s : s + _BLOCK] @ centroids.T - half, axis=1) for s in range(0, len(part), _BLOCK)]
    return np.concatenate(found).astype(np.int32)


def nearest_cells(queries: np.ndarray, centroids: np.ndarray, euclidean: bool, count: int) -> np.ndarray:
    """Return the `count` nearest cells of each query, nearest first, (m, count)."""
    faiss = faiss_module()
    metric = faiss.METRIC_L2 if euclidean else faiss.METRIC_INNER_PRODUCT
    return np.asarray(faiss.knn(np.ascontiguousarray(queries), centroids, count, metric)[1])


@dataclass(frozen=True, eq=False)
class RowsInCells:
    """Prefixes laid out by cell.

    Attributes
    ----------
    index : faiss.IndexIVFFlat
    sizes : ndarray of int64, shape (cells,)
        Rows of each cell.
    """

    index: Any
    sizes: np.ndarray

    @classmethod
    def of(
        cls, prefixes: Iterator[np.ndarray], centroids: np.ndarray, cells: np.ndarray, euclidean: bool, probes: int
    ) -> RowsInCells:
        """Lay rows out: their prefixes in pieces, their cells, and how many cells a search looks into."""
        faiss, (count, width) = faiss_module(), centroids.shape
        metric = faiss.METRIC_L2 if euclidean else faiss.METRIC_INNER_PRODUCT
        means = (faiss.IndexFlatL2 if euclidean else faiss.IndexFlatIP)(width)
        means.add(centroids)
        index = faiss.IndexIVFFlat(means, width, count, metric)
        index.is_trained, index.nprobe = True, min(probes, count)
        start = 0
        for part in prefixes:
            part, stop = np.ascontiguousarray(part, np.float32), start + len(part)
            rows, inside = np.arange(start, stop), np.ascontiguousarray(cells[start:stop], np.int64)
            index.add_core(len(part), *map(faiss.swig_ptr, (part, rows, inside)))
            start = stop
        index.own_fields = False
        index.referenced_objects = [means]  # it must live as long as the index
        return cls(index, np.bincount(cells, minlength=count))

    def search(self, queries: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest rows in the probed cells, (m, size), -1 where there are no more; and the multiply-adds."""
        queries, index = np.ascontiguousarray(queries), self.index
        near, probed = index.quantizer.search(queries, index.nprobe)
        rows = index.search_preassigned(queries, size, probed, near)[1]
        return rows, index.d * (self.sizes.size + self.sizes[probed].sum(axis=1))
