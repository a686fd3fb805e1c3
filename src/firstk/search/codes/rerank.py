"""Reranking: a shortlist scored again from codes in floating point, which stay on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.codes.scan import best
from firstk.search.row_index import as_ids

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from firstk.bits import EmbeddedQuantizer

# Numbers of the shortlists that are scored at once.
_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class FloatCodes:
    """Codes of rows in floating point, (N, k), and the rows that ids have there."""

    codes: np.ndarray
    order: np.ndarray | None
    ids: np.ndarray | None

    @classmethod
    def of(cls, rerank: ArrayLike | str | Path, ids: ArrayLike | None, d: int, owner: str) -> FloatCodes:
        """Check codes, or map the file that holds them."""
        if isinstance(rerank, (str, Path)):
            try:
                codes = np.load(rerank, mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise InvalidInputError(
                    f"{owner} cannot read 'rerank' from '{rerank}': {error}. Give an .npy file."
                ) from None
        else:
            codes = np.asarray(rerank)
        if codes.ndim != 2 or codes.dtype.kind != "f" or not 1 <= codes.shape[1] <= d:
            raise InvalidInputError(
                f"{owner} takes 'rerank' as floats of shape (N, k), k from 1 to {d} (the width of the codes). Got "
                f"{codes.dtype} of shape {codes.shape}: give encoder.encode(X, k)."
            )
        if ids is None:
            return cls(codes, None, None)
        given = as_ids(ids, owner)
        if len(given) != len(codes) or len(np.unique(given)) != len(given):
            raise InvalidInputError(
                f"{owner} takes one distinct id in 'rerank_ids' for each of the {len(codes)} rows of 'rerank'. Got "
                f"{len(given)}, {len(np.unique(given))} of them distinct."
            )
        order = np.argsort(given)
        return cls(codes, order, given[order])

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """Return the codes of rows by id, in float64; raise an error for those that are missing or not finite."""
        if self.ids is None or self.order is None:
            known, places = (ids >= 0) & (ids < len(self.codes)), ids
        else:
            at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
            known, places = self.ids[at] == ids, self.order[at]
        if not known.all():
            raise InvalidInputError(
                f"CodeIndex.search found id {ids[~known][0]}, of which 'rerank' has no code: it has {len(self.codes)} "
                "rows. Give the codes of all rows, and in 'rerank_ids' their ids where these are not row numbers."
            )
        # In the order of the file, each row once: shortlists of several queries share rows.
        distinct, back = np.unique(places, return_inverse=True)
        codes = np.asarray(self.codes[distinct], dtype=np.float64)
        if not np.isfinite(codes).all():
            bad = distinct[~np.isfinite(codes).all(axis=1)][0]
            raise InvalidInputError(f"CodeIndex.search: row {bad} of 'rerank' holds NaN or infinity. Write it again.")
        found: np.ndarray = codes[back.reshape(-1)]
        return found


def reranked(
    quantizer: EmbeddedQuantizer,
    floats: FloatCodes,
    queries: np.ndarray,
    ids: np.ndarray,
    codes_of: Callable[[np.ndarray], np.ndarray],
    n: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return nearness and ids of the n best of shortlists, (m, n).

    A row's code has the coordinates of `floats`, and after them what its bytes decode to.

    Parameters
    ----------
    quantizer : EmbeddedQuantizer
    floats : FloatCodes
    queries : ndarray of float64, shape (m, k)
        Of unit norm for cosines.
    ids : ndarray of int64, shape (m, size)
    codes_of : callable
        Returns the bytes of ids.
    n : int
    """
    near = np.empty(ids.shape)
    step = max(1, _NUMBERS // (ids.shape[1] * queries.shape[1]))
    for start in range(0, len(ids), step):
        some = slice(start, start + step)
        first, codes = floats.rows(ids[some].ravel()), codes_of(ids[some].ravel())
        rows, k = quantizer.decode(codes).astype(np.float64), first.shape[1]
        # What decoding adds to codes that are centred (see the quantizer) belongs to the first coordinates, too.
        rows[:, :k] = first + (rows[:1, :k] - quantizer.embedded.restore(codes[:1])[:, :k])
        rows = rows.reshape(*ids[some].shape, -1)
        products = np.einsum("mk,msk->ms", queries[some], rows)
        if quantizer.metric != "inner_product":
            squares = np.einsum("msk,msk->ms", rows, rows)
            if quantizer.metric == "l2":
                products = 2 * products - squares
            else:
                products /= np.where(squares > 0, np.sqrt(squares), 1.0)
        near[some] = products
    return best(near, ids, n)
