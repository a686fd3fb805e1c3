"""Hashes of rows, and a fingerprint of all rows seen: the same for any batches, any partition and any order of them.

A row's words (the bits of its numbers, as they were given) are multiplied by fixed odd numbers and summed, the sum is
mixed, and the mixed sums of all rows are added; all modulo 2^64, where addition has neither order nor rounding. It
tells whether two models saw the same rows, and is no defence against someone who wants two sets of rows to look alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse

from firstk._base.rows import Rows, as_dense, is_sparse, sliceable

# The finaliser of splitmix64 (Steele, Lea and Flood, 2014): every input bit moves every output bit.
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_WHOLE = 2**64
# Each column has multipliers of its own, so that a label is not mistaken for a number of the vector.
_COLUMNS = ("X", "y", "weight", "left", "right", "scores")
_BLOCK_ROWS = 4096
# Hashes of rows that a model keeps.
MOST_TAUGHT = 8192
# Few enough that they stay in the cache.
_PRIORITY_ROWS = 256


@dataclass(frozen=True)
class Fingerprint:
    """Number of rows and the sum of their hashes; the sum of two fingerprints is that of all rows together.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> Fingerprint.of({"X": X}) == Fingerprint.of({"X": X[5:]}) + Fingerprint.of({"X": X[:5]})
    True
    >>> print(Fingerprint.of({"X": X}))
    10 rows, c153913c973589ec
    """

    rows: int = 0
    total: int = 0

    @classmethod
    def of(cls, columns: Mapping[str, Rows | None]) -> Fingerprint:
        """Return the fingerprint of rows ("X", with "y" or "weight") or pairs ("left", "right", "scores")."""
        parts = {name: _table(part) for name, part in columns.items() if part is not None}
        n = next(iter(parts.values())).shape[0]
        total = 0
        for start in range(0, n, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            sums = np.ones(min(_BLOCK_ROWS, n - start), dtype=np.uint64)  # a row of zeros counts too
            for name, part in parts.items():
                sums += _word_sums(part[rows], _COLUMNS.index(name))
            total += int(_mixed(sums).sum(dtype=np.uint64))
        return cls(n, total % _WHOLE)

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows + other.rows, (self.total + other.total) % _WHOLE)

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.total:016x}"


def row_hashes(block: Mapping[str, Rows]) -> np.ndarray:
    """Hash each row by the values of its numbers, with its text after them, whatever the columns are called.

    Unlike in a fingerprint, numbers of any type are equal where their values are, and so are zeros of both signs.
    """
    parts = sorted((as_dense(part) for part in block.values()), key=lambda part: part.dtype.kind not in "fiub")
    words = np.ascontiguousarray(np.hstack([_numbers(part) for part in parts]) + 0.0).view(np.uint64)
    return _mixed(_sums(words ^ (words >> np.uint64(32)), _odd_numbers(-1, words.shape[1])))


def row_priorities(columns: Mapping[str, Rows | None]) -> np.ndarray:
    """Hash each row by its numbers as float32: in one pass, for samples of streams whose objective needs no rows.

    As in `row_hashes`, numbers of any type are equal where their values are, zeros of both signs are equal, and so are
    sparse and dense rows. Numbers that differ beyond float32 only are taken for equal.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.5, 0.0], [2.0, 1.0]])
    >>> rows = sparse.csr_matrix(X.astype(np.float32))
    >>> bool((row_priorities({"X": X}) == row_priorities({"X": rows})).all())
    True
    """
    return fingerprint_and_priorities(columns)[1]


def fingerprint_and_priorities(columns: Mapping[str, Rows | None]) -> tuple[Fingerprint, np.ndarray]:
    """Return ``Fingerprint.of(columns)`` and ``row_priorities(columns)`` from one pass: of float32 both sum one thing.

    Examples
    --------
    >>> import numpy as np
    >>> columns = {"X": np.array([[1.5, -0.0], [2.0, 1.0]])}
    >>> fingerprint_and_priorities(columns)[0] == Fingerprint.of(columns)
    True
    """
    parts = {name: _table(part) for name, part in columns.items() if part is not None}
    n = next(iter(parts.values())).shape[0]
    hashes, total = np.empty(n, dtype=np.uint64), 0
    for start in range(0, n, _PRIORITY_ROWS):
        rows = slice(start, start + _PRIORITY_ROWS)
        sums, own = np.ones((2, min(_PRIORITY_ROWS, n - start)), dtype=np.uint64)
        for name, part in parts.items():
            given, column = part[rows], _COLUMNS.index(name)
            added = _word_sums(given, column)
            own += added
            # As whole numbers, the bits of a negative zero are the lowest there is.
            plain = not is_sparse(given) and given.dtype == np.float32 and given.flags.c_contiguous and given.size
            if not plain or given.view(np.int32).min() == np.iinfo(np.int32).min:
                with np.errstate(over="ignore"):  # as float32, without negative zeros
                    zero = np.float32(0)
                    single = (
                        given.astype(np.float32) + zero
                        if is_sparse(given)
                        else np.add(given, zero, dtype=np.float32, casting="same_kind")
                    )
                added = _word_sums(single, column)
            sums += added
        hashes[rows] = _mixed(sums)
        total += int(_mixed(own).sum(dtype=np.uint64))
    return Fingerprint(n, total % _WHOLE), hashes


def document_hashes(documents: Rows) -> np.ndarray:
    """Return the distinct `row_priorities` of documents, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.5, 0.0], [2.0, 1.0], [1.5, 0.0]])
    >>> learned = document_hashes(X)
    >>> len(learned), bool(np.isin(row_priorities({"X": X}), learned).all())
    (2, True)
    """
    return np.unique(row_priorities({"X": documents}))


def taught_hashes(X: Rows, hashes: np.ndarray | None = None) -> np.ndarray:
    """Return the lowest distinct hashes of vectors, by which a model knows rows that it has learned from: all of few.

    `hashes` are `row_priorities` of the vectors alone, where they are at hand.
    """
    return np.unique(row_priorities({"X": X}) if hashes is None else hashes)[:MOST_TAUGHT]


def taught_rows(X: Rows, taught: np.ndarray) -> tuple[np.ndarray, float]:
    """Tell which rows a model has learned from, and how large a share of them that is.

    Parameters
    ----------
    X : array-like of shape (n, p)
    taught : ndarray of uint64
        The `taught_hashes` of the model. Where they are only a part of all, the share is that of the rows whose hashes
        are low enough to be among them.

    Returns
    -------
    known : ndarray of bool of shape (n,)
    share : float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> known, share = taught_rows(X, taught_hashes(X[:3]))
    >>> known.tolist(), share
    ([True, True, True, False, False, False], 0.5)
    """
    hashes = row_priorities({"X": X})
    known = np.isin(hashes, taught)
    low = hashes <= taught[-1] if len(taught) >= MOST_TAUGHT else np.ones(len(hashes), dtype=bool)
    return known, float(known[low].mean()) if low.any() else 0.0


def pair_hashes(pairs: Mapping[str, Rows]) -> np.ndarray:
    """Return the hashes of all documents (right sides) and queries (left sides) of pairs, distinct and ascending.

    By them a model knows what it has learned from. A left side is hashed as one, so that no document is taken for it.
    """
    return np.union1d(document_hashes(pairs["right"]), query_hashes(pairs["left"]))


def query_hashes(queries: Rows) -> np.ndarray:
    """Hash queries as left sides of pairs, one hash for each row."""
    return row_priorities({"left": queries})


def joined_hashes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Hash pairs of hashes: those of rows, and of their labels."""
    with np.errstate(over="ignore"):
        return _mixed(first * np.uint64(0x9E3779B97F4A7C15) + second)


def _numbers(part: np.ndarray) -> np.ndarray:
    """Return a column as float64; text by its characters, padded with zeros, which hash to nothing."""
    n = len(part)
    if part.dtype.kind not in "fiub":
        part = np.ascontiguousarray(np.asarray(part, dtype=str)).view(np.uint32)
    return np.asarray(part, dtype=np.float64).reshape(n, -1)


def _mixed(hashed: np.ndarray) -> np.ndarray:
    """Spread the bits of 64-bit sums over all 64 bits."""
    with np.errstate(over="ignore"):
        for shift, factor in _MIX:
            hashed = (hashed ^ (hashed >> np.uint64(shift))) * np.uint64(factor)
    return hashed ^ (hashed >> np.uint64(31))


def _table(part: Rows) -> np.ndarray | sparse.csr_matrix:
    """Return a column whose rows can be cut off: floats as they are, all else as float64."""
    part = sliceable(part)
    if is_sparse(part):
        return part
    return part if part.ndim == 2 and part.dtype in (np.float32, np.float64) else _numbers(part)


def _word_sums(block: np.ndarray | sparse.csr_matrix, column: int) -> np.ndarray:
    """Sum the words of each row, each times the odd number of its place; float32 columns go two to a word."""
    if is_sparse(block) and block.dtype in (np.float32, np.float64):
        # Do what `_word_sums` does from the nonzero numbers alone: zeros add nothing.
        block = block.copy()
        block.sum_duplicates()
        per_word = 8 // block.dtype.itemsize
        bits = (block.data + block.dtype.type(0)).view(f"uint{64 // per_word}").astype(np.uint64)  # no negative zeros
        shift = (32 * (block.indices % per_word)).astype(np.uint64)
        odd = _odd_numbers(column, -(-block.shape[1] // per_word))[block.indices // per_word]
        with np.errstate(over="ignore"):
            sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((bits << shift) * odd, dtype=np.uint64)])
            return sums[block.indptr[1:]] - sums[block.indptr[:-1]]
    block = np.ascontiguousarray(as_dense(block))
    per_word = 8 // block.itemsize
    if block.shape[1] % per_word:
        block = np.hstack([block, np.zeros((len(block), 1), dtype=block.dtype)])
    words = block.view(np.uint64)
    return _sums(words, _odd_numbers(column, words.shape[1]))


def _sums(words: np.ndarray, odd: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.einsum("ij,j->i", words, odd)


@lru_cache(maxsize=16)
def _odd_numbers(column: int, count: int) -> np.ndarray:
    """Return fixed odd numbers of a column, -1 for whole rows; the first of them are the same for any count."""
    drawn = np.random.default_rng(column + 1).integers(0, 2**63, count, dtype=np.uint64)
    return drawn * np.uint64(2) + np.uint64(1)
