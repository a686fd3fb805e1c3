"""Bits of cells as bytes, in the order of an allocation: the first bit is the highest of byte 0."""

from __future__ import annotations

import numpy as np

from firstk.bits.allocation import bits_of, depths_of

# Bits that are unpacked at a time, a byte each: three arrays of them are held.
_BLOCK_BITS = 1 << 22


def packed(cells: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the bytes of cells.

    Parameters
    ----------
    cells : ndarray of uint8 of shape (n, d)
        Which of its cells each coordinate is in, from below, as a number of so many bits as the coordinate has in
        `order`.
    order : ndarray of int of shape (8 * bytes,)
        The coordinate that each bit belongs to.

    Returns
    -------
    ndarray of uint8 of shape (n, bytes)

    Examples
    --------
    >>> packed(np.array([[0b101, 0b01]], dtype=np.uint8), np.array([0, 0, 1, 0, 1, 2, 2, 2]))
    array([[152]], dtype=uint8)
    """
    width = 1 + int(order.max(initial=0))
    shift = bits_of(order, width)[order] - 1 - depths_of(order)
    padded = np.pad(cells, ((0, 0), (0, max(0, width - cells.shape[1]))))
    return np.packbits((padded[:, order] >> shift.astype(np.uint8)) & 1, axis=1)


def unpacked(codes: np.ndarray, order: np.ndarray, d: int) -> np.ndarray:
    """Undo `packed`: the cell of each of d coordinates, 0 of those without bits.

    Examples
    --------
    >>> unpacked(np.array([[152]], dtype=np.uint8), np.array([0, 0, 1, 0, 1, 2, 2, 2]), 3)
    array([[5, 1, 0]], dtype=uint8)
    """
    cells = np.zeros((len(codes), d), dtype=np.uint8)
    if not len(order):
        return cells
    shift = (bits_of(order, d)[order] - 1 - depths_of(order)).astype(np.uint8)
    # Bits of one coordinate side by side, then one sum for each coordinate: no two of them share a place.
    by_coordinate = np.argsort(order, kind="stable")
    present, first = np.unique(order[by_coordinate], return_index=True)
    for start in range(0, len(codes), step := max(1, _BLOCK_BITS // len(order))):
        rows = slice(start, start + step)
        bits = np.unpackbits(codes[rows], axis=1, count=len(order)) << shift
        cells[rows, present] = np.add.reduceat(bits[:, by_coordinate], first, axis=1)
    return cells
