"""Argument checks that several metrics share: labels, prefix lengths and pairs of codes.

They are one file so that the same mistake reads the same in every metric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_matrix, is_int
from firstk.exceptions import InvalidInputError


def check_codes(Z_ref: ArrayLike, Z: ArrayLike, owner: str, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Return two codes of equal width in their common floating type."""
    Z_ref = check_matrix(Z_ref, owner, names[0])
    Z = check_matrix(Z, owner, names[1], width=Z_ref.shape[1])
    dtype = np.result_type(Z_ref, Z)
    return Z_ref.astype(dtype, copy=False), Z.astype(dtype, copy=False)


def check_lengths(ks: ArrayLike | None, d: int, owner: str) -> np.ndarray:
    """Return prefix lengths as increasing ints in [1, d]; None means every k from 1 to d."""
    if ks is None:
        return np.arange(1, d + 1)
    lengths = list(np.asarray(ks).ravel())
    if not lengths or not all(is_int(k) and 1 <= k <= d for k in lengths) or (np.diff(lengths) <= 0).any():
        raise bad_parameter("ks", owner, f"strictly increasing ints in [1, {d}], or None for all of them", ks)
    return np.asarray(lengths, dtype=np.int64)


def check_labels(y: ArrayLike, n: int, owner: str, name: str) -> np.ndarray:
    """Return one label per row as a vector."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"{owner} takes one label per row: '{name}' must have shape ({n},). Got {labels.shape}."
        )
    if np.issubdtype(labels.dtype, np.floating) and np.isnan(labels).any():
        raise InvalidInputError(
            f"{owner} takes labels without gaps; '{name}' has NaN in {int(np.isnan(labels).sum())} of {n} "
            "rows. Drop those rows, or give them a label of their own."
        )
    return labels


def check_label_pair(
    y_ref: ArrayLike, y: ArrayLike, sizes: tuple[int, int], owner: str, names: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return two label vectors that can be compared: both of numbers or both of text."""
    first, second = (check_labels(v, n, owner, name) for v, n, name in zip((y_ref, y), sizes, names, strict=True))
    # numpy compares text with numbers as never equal, which would read as an accuracy of 0.
    if {first.dtype.kind, second.dtype.kind} & set("US") and first.dtype.kind != second.dtype.kind:
        raise InvalidInputError(
            f"{owner} needs labels of one type. '{names[0]}' is {first.dtype} and '{names[1]}' is "
            f"{second.dtype}: convert both to text or both to numbers."
        )
    return first, second


def check_count(value: int, name: str, owner: str, *, most: int | None = None) -> int:
    """Return `value` as an int of at least 1, and of at most `most`."""
    if not is_int(value) or value < 1 or (most is not None and value > most):
        raise bad_parameter(name, owner, f"an int in [1, {most}]" if most else "an int of at least 1", value)
    return int(value)


def check_rows(rows: ArrayLike, n: int, owner: str, name: str) -> np.ndarray:
    """Return row numbers as int64, each in [0, n)."""
    rows = np.asarray(rows)
    if not np.issubdtype(rows.dtype, np.integer):
        raise InvalidInputError(f"{owner} takes row numbers in '{name}': ints, not {rows.dtype}.")
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        raise InvalidInputError(
            f"{owner} takes row numbers from 0 to {n - 1} in '{name}'. Got values from {rows.min()} to {rows.max()}."
        )
    return rows.astype(np.int64)
