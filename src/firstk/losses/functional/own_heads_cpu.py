"""Loss and gradients of `own_heads` for a batch in one compiled call, for training steps of a hundred rows.

There the calls around the two sums over prefixes (layouts, checks, autograd) take as long as the sums themselves.
"""

from __future__ import annotations

import numpy as np

from firstk.losses.functional import cross_entropy_cpu, stacked_heads_cpu
from firstk.losses.functional._rows_cpu import LOG2E, jit, padded

_padded = jit(padded)
_shared_sweep, _own_sweep = cross_entropy_cpu.kernel, stacked_heads_cpu.kernel
_own_in_lanes, _own_as_given = stacked_heads_cpu.in_lanes, stacked_heads_cpu.as_given


@jit
def _add_shared(z, weight, bias, labels, omega, limits, dz, dw, db, losses):
    """Write the losses and gradients of the prefixes under the shared head."""
    (n, d), C, kind = z.shape, len(weight), z.dtype
    width = _padded(C)
    wt, dwt = np.zeros((d, width), kind), np.zeros((d, width), kind)
    b, db_padded = np.full(width, -1e30).astype(kind), np.zeros(width, kind)
    largest = np.zeros(d, kind)
    for c in range(C):
        b[c] = bias[c] * kind.type(LOG2E)
        for j in range(d):
            wt[j, c] = weight[c, j] * kind.type(LOG2E)
            largest[j] = max(largest[j], abs(wt[j, c]))
    share = np.full(n, 1 / n).astype(kind)
    flat, found = wt.reshape(-1), dwt.reshape(-1)
    _shared_sweep(z, flat, b, largest, labels, share, omega, limits, True, dz, found, db_padded, losses)
    for c in range(C):
        db[c] = db_padded[c]
        for j in range(d):
            dw[c, j] = dwt[j, c]


@jit
def _add_own(z, weight, offset, labels, omega, dz, dw, db, losses):
    """Write the losses and gradients of the first prefixes under heads of their own, and add to those of codes."""
    n, (K, C, _), kind = len(z), weight.shape, z.dtype
    width = _padded(C)
    wt, b = np.empty((K, K, width), kind), np.empty((K, width), kind)
    dwt, db_padded = np.zeros((K, K, width), kind), np.zeros((K, width), kind)
    dz_own, found = np.empty((n, K), kind), np.zeros(K)
    _own_in_lanes(weight, offset, wt, b)
    share = omega / kind.type(n)
    outputs = dwt.reshape(-1), db_padded.reshape(-1)
    _own_sweep(z[:, :K], wt.reshape(-1), b.reshape(-1), labels, share, True, dz_own, outputs[0], outputs[1], found)
    _own_as_given(dwt, dw)
    for k in range(K):
        losses[k] = found[k] / n
        for c in range(C):
            db[k, c] = db_padded[k, c]
    for i in range(n):
        for k in range(K):
            dz[i, k] += dz_own[i, k]


@jit
def _gradients(z, heads, labels, omega, rest, limits, dz, found):
    weight, bias, own_weight, own_offset = heads
    dw, db, dw_own, db_own = found
    losses = np.zeros(len(omega))
    _add_shared(z, weight, bias, labels, rest, limits, dz, dw, db, losses)
    _add_own(z, own_weight, own_offset, labels, omega[: len(own_weight)], dz, dw_own, db_own, losses)
    total = 0.0
    for k in range(len(omega)):
        total += omega[k] * losses[k]
    return total


def gradients(
    z: np.ndarray,
    heads: tuple[np.ndarray, ...],
    labels: np.ndarray,
    omega: np.ndarray,
    rest: np.ndarray,
    dz: np.ndarray,
    found: tuple[np.ndarray, ...],
) -> float:
    """Write the gradients of `own_heads.cross_entropy_own_heads` and return its value, on one thread.

    Parameters
    ----------
    z : ndarray of shape (n, d)
    heads : tuple of ndarrays
        Shared weight (C, d) and bias (C,), separate weights (K, C, K) and offsets (K, C).
    labels : ndarray of int64 of shape (n,)
        In [0, C - 1]; not checked.
    omega, rest : ndarray of shape (d,)
        Prefix weights, used without normalization; and those of the prefixes past K, with zeros before them.
    dz : ndarray of shape (n, d)
        Where the gradient of the codes is written.
    found : tuple of ndarrays
        Where the gradients of the heads are written.
    """
    return float(_gradients(z, heads, labels, omega, rest, cross_entropy_cpu.limits_of(z.dtype), dz, found))
