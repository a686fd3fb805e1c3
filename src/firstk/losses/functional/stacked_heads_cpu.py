"""Compiled sweep of the separate heads of short prefixes on the CPU.

Head k takes k multiply-adds per logit instead of the one of a shared head, and 2 k more for its gradients; four rows
share each load of a weight. Logits are in units of log 2, so that exp is 2^t, and shifted by the largest of their row.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from firstk._base.simd import LANES, add, exp2, fma, load, log2, mul, splat, store, sub, sum_lanes
from firstk.losses.functional._rows_cpu import LN2, LOG2E, ROWS, jit, largest, over_rows, padded, take_group


@jit
def _logits(L, wt, offset, z, k, heads, width):
    """Write the logits of four rows under the head of the first k + 1 coordinates."""
    for c in range(0, width, LANES):
        l0 = load(offset, k * width + c)
        l1, l2, l3 = l0, l0, l0
        at = k * heads * width + c
        for j in range(k + 1):
            w = load(wt, at + j * width)
            l0 = fma(splat(z[0, j]), w, l0)
            l1 = fma(splat(z[1, j]), w, l1)
            l2 = fma(splat(z[2, j]), w, l2)
            l3 = fma(splat(z[3, j]), w, l3)
        store(L, c, l0)
        store(L, width + c, l1)
        store(L, 2 * width + c, l2)
        store(L, 3 * width + c, l3)


@jit
def _exponentials(L, at, width, top):
    """Replace the logits of a row by 2^(logit - top); return their sum."""
    m, s = splat(top), splat(L.dtype.type(0))
    for c in range(at, at + width, LANES):
        e = exp2(sub(load(L, c), m))
        store(L, c, e)
        s = add(s, e)
    return sum_lanes(s)


@jit
def _scale(G, at, width, factor):
    """Multiply a row by a factor."""
    f = splat(factor)
    for c in range(at, at + width, LANES):
        store(G, c, mul(f, load(G, c)))


@jit
def _add_offsets(G, db, k, width):
    """Add the residuals of four rows to the gradient of the offset of head k + 1."""
    for c in range(0, width, LANES):
        low, high = add(load(G, c), load(G, width + c)), add(load(G, 2 * width + c), load(G, 3 * width + c))
        store(db, k * width + c, add(load(db, k * width + c), add(low, high)))


@jit
def _backward(G, wt, dwt, z, dzv, j, at, width):
    """Add G w to dz_j, lane by lane, and G^T z_j to dw, for column j of one head, which starts at `at`."""
    z0, z1, z2, z3 = splat(z[0, j]), splat(z[1, j]), splat(z[2, j]), splat(z[3, j])
    to = j * ROWS * LANES
    d0, d1 = load(dzv, to), load(dzv, to + LANES)
    d2, d3 = load(dzv, to + 2 * LANES), load(dzv, to + 3 * LANES)
    for c in range(0, width, LANES):
        w, dw = load(wt, at + c), load(dwt, at + c)
        g = load(G, c)
        d0, dw = fma(g, w, d0), fma(g, z0, dw)
        g = load(G, width + c)
        d1, dw = fma(g, w, d1), fma(g, z1, dw)
        g = load(G, 2 * width + c)
        d2, dw = fma(g, w, d2), fma(g, z2, dw)
        g = load(G, 3 * width + c)
        d3, dw = fma(g, w, d3), fma(g, z3, dw)
        store(dwt, at + c, dw)
    store(dzv, to, d0)
    store(dzv, to + LANES, d1)
    store(dzv, to + 2 * LANES, d2)
    store(dzv, to + 3 * LANES, d3)


@jit
def kernel(z_all, wt, offset, labels, omega, grad, dz_all, dwt, db, losses):
    """Sweep all groups of rows."""
    n, heads = len(z_all), len(omega)
    width, kind = len(offset) // heads, z_all.dtype
    G = np.empty(ROWS * width, kind)
    z = np.empty((ROWS, heads), kind)
    dzv = np.empty(heads * ROWS * LANES, kind)  # summed over lanes at the end of a group, not once per head
    stride = (heads + LANES - 1) // LANES * LANES
    sums, logs = np.ones(ROWS * stride, kind), np.empty(stride, kind)
    y = np.zeros(ROWS, np.int64)
    for i in range(0, n, ROWS):
        real = take_group(z_all, i, z)
        y[:real] = labels[i : i + real]
        dzv[:] = 0
        for k in range(heads):
            _logits(G, wt, offset, z, k, heads, width)
            for r in range(ROWS):
                at = r * width
                top, target = largest(G, at, width), G[at + y[r]]
                s = _exponentials(G, at, width, top)
                sums[r * stride + k] = s
                if r < real:
                    losses[k] += LN2 * np.float64(top - target)
                if grad:
                    G[at + y[r]] -= s
                    _scale(G, at, width, omega[k] / s if r < real else kind.type(0))
            if grad:
                _add_offsets(G, db, k, width)
                for j in range(k + 1):
                    _backward(G, wt, dwt, z, dzv, j, (k * heads + j) * width, width)
        for r in range(real):
            for k in range(0, heads, LANES):
                store(logs, k, log2(load(sums, r * stride + k)))
            for k in range(heads):
                losses[k] += LN2 * np.float64(logs[k])
        if grad:  # weights are in units of log 2
            for r in range(real):
                for j in range(heads):
                    dz_all[i + r, j] = sum_lanes(load(dzv, (j * ROWS + r) * LANES)) * kind.type(LN2)


@jit
def in_lanes(weight, offset, wt, b):
    """Bring heads (K, C, K) and offsets (K, C) to units of log 2, classes last and padded."""
    K, C, _ = weight.shape
    kind = wt.dtype.type
    for k in range(K):
        b[k, :C] = offset[k] * kind(LOG2E)
        b[k, C:] = -1e30
        wt[k, : k + 1, C:] = 0
        for c in range(C):
            for j in range(k + 1):
                wt[k, j, c] = weight[k, c, j] * kind(LOG2E)


@jit
def as_given(dwt, dw):
    """Bring gradients of heads to the layout of the heads, with zeros past each prefix."""
    K, C, _ = dw.shape
    for k in range(K):
        for c in range(C):
            for j in range(k + 1):
                dw[k, c, j] = dwt[k, j, c]
            dw[k, c, k + 1 :] = 0


def sweep(
    z: Tensor, weight: Tensor, offset: Tensor, labels: Tensor, omega: Tensor, grad: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the K mean losses and the gradients of their weighted sum: z (n, K), weight (K, C, K)."""
    # The gradient mode is per thread, so nothing in here may require gradients.
    z, weight, offset = z.detach(), weight.detach(), offset.detach()
    n, (K, C, _) = len(z), weight.shape
    width = padded(C)
    codes, kind = z.numpy(), z.numpy().dtype
    wt, b = np.empty((K, K, width), kind), np.empty((K, width), kind)
    in_lanes(weight.numpy(), offset.numpy(), wt, b)
    y, share = labels.numpy(), omega.numpy() / kind.type(n)
    dz = np.empty((n if grad else 0, K), kind)

    def part(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        dwt, db, losses = np.zeros((K if grad else 0, K, width), kind), np.zeros((K, width), kind), np.zeros(K)
        outputs = (dz[rows] if grad else dz, dwt.reshape(-1), db.reshape(-1), losses)
        kernel(codes[rows], wt.reshape(-1), b.reshape(-1), y[rows], share, grad, *outputs)
        return dwt, db, losses

    (dwt, db, losses), *others = over_rows(part, n, n * K * width * (K + 1) // 2)
    for other in others:
        dwt += other[0]
        db += other[1]
        losses += other[2]
    dw = np.empty((K if grad else 0, C, K), kind)
    if grad:
        as_given(dwt, dw)
    found = (losses / n).astype(kind), dz, dw, np.ascontiguousarray(db[:, :C])
    return tuple(map(torch.from_numpy, found))  # type: ignore[return-value]
