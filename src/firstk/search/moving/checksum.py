"""Checksums of rows in any order: exact for ids and payloads, up to rounding for codes.

Stores return rows in orders of their own, and some bring codes to unit norm again, which changes last bits. So the
checksum of ids and payloads is a sum of hashes, and that of codes is a sum with weights,

    s_b = sum over rows i of bucket b of w_i x_i,

in which the bucket b and the weight w_i in [-1, 1) come from a hash of the id. A row that is missing, doubled, or has
the code of another changes s_b by the size of a code. Rounding changes a term by 2^-22 of its size (float32) or 2^-10
(float16) at most, in either direction: the sum by that share of the sum of |w_i x_i| at most, and, as errors of rows
are independent, by no more than eight times that share of the root of the sum of their squares. The smaller of both is
the tolerance.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from firstk._base.rows import unit_rows
from firstk.search.stores.contract import Id

_BUCKETS = 1024
_MODULUS = 1 << 128
# Of the sum of absolute terms: four roundings of float32; one of float16, and one of the norm that it changes. Numbers
# below the second are rounded as if they were of its size.
_TOLERANCE = {"float32": (2.0**-22, 0.0), "float16": (2.0**-10, 2.0**-14), "binary": (2.0**-22, 0.0)}
_DEVIATIONS = 8.0


class Checksum:
    """A checksum of rows that is being computed.

    Parameters
    ----------
    width : int
    unit : bool
        Compare directions of codes, not their norms.
    precision : {"float32", "float16", "binary"}
        In which one of the two sides keeps codes.

    Examples
    --------
    >>> X = np.eye(3, dtype=np.float32)
    >>> here, there = Checksum(3), Checksum(3)
    >>> here.add([1, 2, 3], X, [{}, {"a": 1}, {}])
    >>> there.add([3, 1], X[[2, 0]], [{}, {}])
    >>> there.add([2], X[[1]], [{"a": 1.0}])
    >>> here.difference(there) is None
    True
    """

    def __init__(self, width: int, *, unit: bool = False, precision: str = "float32"):
        self.rows, self._ids, self._payloads = 0, 0, 0
        self._unit, (self._tolerance, self._smallest) = unit, _TOLERANCE[precision]
        self._sums, self._sizes, self._squares = (np.zeros((_BUCKETS, width)) for _ in range(3))

    def add(self, ids: Sequence[Id], codes: np.ndarray, payloads: Sequence[Mapping[str, Any]]) -> None:
        """Add rows."""
        hashes = [_hash(key) for key in ids]
        self.rows += len(hashes)
        self._ids = (self._ids + sum(hashes)) % _MODULUS
        held = (_hash([key, _canonical(one)]) for key, one in zip(ids, payloads, strict=True))
        self._payloads = (self._payloads + sum(held)) % _MODULUS
        if not hashes:
            return
        weights = np.array([(one >> 32 & 0xFFFFFFFF) for one in hashes]) / 2.0**31 - 1
        buckets = np.array([one % _BUCKETS for one in hashes])
        order = np.argsort(buckets, kind="stable")
        X = codes.astype(np.float64)[order]
        X, weights = unit_rows(X) if self._unit else X, weights[order, None]
        present, starts = np.unique(buckets[order], return_index=True)
        self._sums[present] += np.add.reduceat(X * weights, starts)
        sizes = np.maximum(np.abs(X), self._smallest) * np.abs(weights)
        self._sizes[present] += np.add.reduceat(sizes, starts)
        self._squares[present] += np.add.reduceat(np.square(sizes), starts)

    def difference(self, other: Checksum) -> str | None:
        """Return how two checksums differ, in words; None where they are equal."""
        if self.rows != other.rows:
            return f"{self.rows:,} rows came in, and {other.rows:,} are there"
        if self._ids != other._ids:
            return "the ids are not the same"
        if self._payloads != other._payloads:
            return "the payloads are not the same"
        bound, spread = np.maximum(self._sizes, other._sizes), np.sqrt(np.maximum(self._squares, other._squares))
        allowed = self._tolerance * np.minimum(bound, _DEVIATIONS * spread) + 1e-30
        wrong = (np.abs(self._sums - other._sums) > allowed).any(axis=1)
        if wrong.any():
            return f"the codes are not the same (in {wrong.sum()} of {_BUCKETS} groups of rows)"
        return None

    @property
    def text(self) -> str:
        """The exact part: number of rows, ids and payloads."""
        return f"{self.rows}-{self._ids:032x}-{self._payloads:032x}"


def _hash(value: object) -> int:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "little")


def _canonical(value: Any) -> Any:
    """Return a value as all stores can give it back: 3.0 is 3, and what is None is not there."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(name): _canonical(one) for name, one in value.items() if one is not None}
    return [_canonical(one) for one in value] if isinstance(value, (list, tuple)) else value
