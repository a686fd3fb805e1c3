"""Compiled sweep of the full-prefix cross-entropy on the CPU (docs/theory.md, 4.4).

One exp per (row, prefix, class). Logits are stored in units of log 2, so that exp is 2^t. The softmax is shifted
by the largest logit at the start of each block of prefixes, which is as accurate as the true maximum while the
logits have changed by at most `drift` binary orders since.

Where no coordinate of a block changes a logit by more than one binary order, 2^t is carried from prefix to prefix:
2^(t + z w) = 2^t 2^(z w), and the second factor is a polynomial without range reduction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from firstk._base.simd import LANES, add, exp2, exp2_small, fma, larger, load, log2, mul, splat, store, sub, sum_lanes
from firstk.losses.functional._rows_cpu import (
    CHUNK,
    DEPTH,
    LN2,
    LOG2E,
    ROWS,
    accumulate,
    jit,
    largest,
    over_rows,
    padded,
    take_group,
)

# 2^drift times the number of classes stays below the largest float, and 2^-drift keeps 24 bits above 2^-125.
_DRIFT = {"float32": 90.0, "float64": 900.0}
# Lowest 2^t that is carried: sixteen more binary orders down it is still a normal float.
_LOWEST = {"float32": -105.0, "float64": -1000.0}


def limits_of(dtype: np.dtype[Any]) -> tuple[np.floating[Any], np.floating[Any]]:
    """Return the drift that a shift allows, and the lowest power of two that is carried."""
    return dtype.type(_DRIFT[dtype.name]), dtype.type(_LOWEST[dtype.name])


@jit
def _carried_start(L, E, shift, lowest, width):
    """Write 2^(logit - shift) of four rows to the slot of E before the block."""
    low = splat(lowest)
    for r in range(ROWS):
        m = splat(shift[r, 0])
        for c in range(r * width, (r + 1) * width, LANES):
            store(E, c, exp2(larger(sub(load(L, c), m), low)))


@jit
def _carried_step(wt, E, z, s, j, jj, width, c0, c1):
    """Multiply 2^(logit - shift) of four rows by 2^(z_j w_j); keep the products in E and add their sums to s."""
    z0, z1, z2, z3 = splat(z[0, j]), splat(z[1, j]), splat(z[2, j]), splat(z[3, j])
    zero = splat(z.dtype.type(0))
    s0, s1, s2, s3 = zero, zero, zero, zero
    at_w, before = j * width, jj * ROWS * width
    at_e = before + ROWS * width
    for c in range(c0, c1, LANES):
        w = load(wt, at_w + c)
        e = mul(exp2_small(mul(z0, w)), load(E, before + c))
        store(E, at_e + c, e)
        s0 = add(s0, e)
        e = mul(exp2_small(mul(z1, w)), load(E, before + width + c))
        store(E, at_e + width + c, e)
        s1 = add(s1, e)
        e = mul(exp2_small(mul(z2, w)), load(E, before + 2 * width + c))
        store(E, at_e + 2 * width + c, e)
        s2 = add(s2, e)
        e = mul(exp2_small(mul(z3, w)), load(E, before + 3 * width + c))
        store(E, at_e + 3 * width + c, e)
        s3 = add(s3, e)
    s[0, jj] += sum_lanes(s0)
    s[1, jj] += sum_lanes(s1)
    s[2, jj] += sum_lanes(s2)
    s[3, jj] += sum_lanes(s3)


@jit
def _forward_step(L, wt, E, z, shift, s, j, jj, width, c0, c1):
    """Advance the logits of four rows to prefix j; keep 2^(logit - shift) in E and add its sum to s."""
    z0, z1, z2, z3 = splat(z[0, j]), splat(z[1, j]), splat(z[2, j]), splat(z[3, j])
    m0, m1, m2, m3 = splat(shift[0, jj]), splat(shift[1, jj]), splat(shift[2, jj]), splat(shift[3, jj])
    zero = splat(L.dtype.type(0))
    s0, s1, s2, s3 = zero, zero, zero, zero
    at_w, at_e = j * width, (jj + 1) * ROWS * width
    for c in range(c0, c1, LANES):
        w = load(wt, at_w + c)
        t = fma(z0, w, load(L, c))
        store(L, c, t)
        e = exp2(sub(t, m0))
        store(E, at_e + c, e)
        s0 = add(s0, e)
        t = fma(z1, w, load(L, width + c))
        store(L, width + c, t)
        e = exp2(sub(t, m1))
        store(E, at_e + width + c, e)
        s1 = add(s1, e)
        t = fma(z2, w, load(L, 2 * width + c))
        store(L, 2 * width + c, t)
        e = exp2(sub(t, m2))
        store(E, at_e + 2 * width + c, e)
        s2 = add(s2, e)
        t = fma(z3, w, load(L, 3 * width + c))
        store(L, 3 * width + c, t)
        e = exp2(sub(t, m3))
        store(E, at_e + 3 * width + c, e)
        s3 = add(s3, e)
    s[0, jj] += sum_lanes(s0)
    s[1, jj] += sum_lanes(s1)
    s[2, jj] += sum_lanes(s2)
    s[3, jj] += sum_lanes(s3)


@jit
def _backward_step(S, wt, E, dwt, z, share, dz, j, jj, width, c0, c1):
    """Add prefix j to the suffix sums S; take dz_j = S w_j and add S^T z_j to dw_j."""
    z0, z1, z2, z3 = splat(z[0, j]), splat(z[1, j]), splat(z[2, j]), splat(z[3, j])
    f0, f1, f2, f3 = splat(share[0, jj]), splat(share[1, jj]), splat(share[2, jj]), splat(share[3, jj])
    zero = splat(S.dtype.type(0))
    d0, d1, d2, d3 = zero, zero, zero, zero
    at_w, at_e = j * width, (jj + 1) * ROWS * width
    for c in range(c0, c1, LANES):
        w, dw = load(wt, at_w + c), load(dwt, at_w + c)
        g = fma(f0, load(E, at_e + c), load(S, c))
        store(S, c, g)
        d0, dw = fma(g, w, d0), fma(g, z0, dw)
        g = fma(f1, load(E, at_e + width + c), load(S, width + c))
        store(S, width + c, g)
        d1, dw = fma(g, w, d1), fma(g, z1, dw)
        g = fma(f2, load(E, at_e + 2 * width + c), load(S, 2 * width + c))
        store(S, 2 * width + c, g)
        d2, dw = fma(g, w, d2), fma(g, z2, dw)
        g = fma(f3, load(E, at_e + 3 * width + c), load(S, 3 * width + c))
        store(S, 3 * width + c, g)
        d3, dw = fma(g, w, d3), fma(g, z3, dw)
        store(dwt, at_w + c, dw)
    dz[0, j] += sum_lanes(d0)
    dz[1, j] += sum_lanes(d1)
    dz[2, j] += sum_lanes(d2)
    dz[3, j] += sum_lanes(d3)


@jit
def _constant_step(S, wt, dwt, z, dz, j, width, c0, c1):
    """Take dz_j = S w_j and add S^T z_j to dw_j, for a prefix without weight."""
    z0, z1, z2, z3 = splat(z[0, j]), splat(z[1, j]), splat(z[2, j]), splat(z[3, j])
    zero = splat(S.dtype.type(0))
    d0, d1, d2, d3 = zero, zero, zero, zero
    at_w = j * width
    for c in range(c0, c1, LANES):
        w, dw = load(wt, at_w + c), load(dwt, at_w + c)
        g = load(S, c)
        d0, dw = fma(g, w, d0), fma(g, z0, dw)
        g = load(S, width + c)
        d1, dw = fma(g, w, d1), fma(g, z1, dw)
        g = load(S, 2 * width + c)
        d2, dw = fma(g, w, d2), fma(g, z2, dw)
        g = load(S, 3 * width + c)
        d3, dw = fma(g, w, d3), fma(g, z3, dw)
        store(dwt, at_w + c, dw)
    dz[0, j] += sum_lanes(d0)
    dz[1, j] += sum_lanes(d1)
    dz[2, j] += sum_lanes(d2)
    dz[3, j] += sum_lanes(d3)


@jit
def _shifts(L, wt, z, w_max, j0, j1, width, drift, shift, scratch):
    """Fill `shift[r, jj]` with a number within `drift` of the largest logit of row r at prefix j0 + jj.

    Return whether no coordinate changes a logit by more than one binary order.
    """
    moved, most = z.dtype.type(0), z.dtype.type(0)
    finite = True
    for r in range(ROWS):
        row = z.dtype.type(0)
        for j in range(j0, j1):
            step = abs(z[r, j]) * w_max[j]
            row += step
            most = max(most, step)
        moved = max(moved, row)
        finite &= row <= drift  # comparisons of NaN are false: it takes the slow branch, where it stays NaN
        shift[r, :] = largest(L, r * width, width)
    if finite:
        return most <= 1
    scratch[:] = L
    for j in range(j0, j1):
        accumulate(scratch, wt, z, j, j + 1, width)
        for r in range(ROWS):
            shift[r, j - j0] = largest(scratch, r * width, width)
    return False


@jit
def _forward_block(L, wt, E, z, w_max, y, weight, j0, j1, width, limits, advance, shift, s, target, scratch, losses):
    """Sweep the prefixes j0 + 1..j1 of a group forwards and add their weighted losses to `losses`.

    With `advance`, L becomes the logits at prefix j1.
    """
    drift, lowest = limits
    carried = _shifts(L, wt, z, w_max, j0, j1, width, drift, shift, scratch)
    s[:] = 0
    for r in range(ROWS):
        t = L[r * width + y[r]]
        for j in range(j0, j1):
            t += z[r, j] * wt[j * width + y[r]]
            target[r, j - j0] = t
    if carried:
        _carried_start(L, E, shift, lowest, width)
        if advance:
            accumulate(L, wt, z, j0, j1, width)
    for c0 in range(0, width, CHUNK):
        c1 = min(c0 + CHUNK, width)
        for j in range(j0, j1):
            if carried:
                _carried_step(wt, E, z, s, j, j - j0, width, c0, c1)
            else:
                _forward_step(L, wt, E, z, shift, s, j, j - j0, width, c0, c1)
    flat = s.reshape(-1)
    for r in range(ROWS):
        store(scratch, 0, log2(load(flat, r * DEPTH)))
        for j in range(j0, j1):
            jj = j - j0
            losses[j] += weight[r] * LN2 * np.float64(scratch[jj] + (shift[r, jj] - target[r, jj]))


@jit
def _backward_block(S, wt, E, dwt, z, y, weight, omega, j0, j1, width, s, share, dz):
    """Sweep the prefixes j1..j0 + 1 of a group backwards."""
    for j in range(j0, j1):
        jj = j - j0
        for r in range(ROWS):
            E[((jj + 1) * ROWS + r) * width + y[r]] -= s[r, jj]
            share[r, jj] = omega[j] * weight[r] / s[r, jj]
    for c0 in range(0, width, CHUNK):
        for j in range(j1 - 1, j0 - 1, -1):
            _backward_step(S, wt, E, dwt, z, share, dz, j, j - j0, width, c0, min(c0 + CHUNK, width))


@jit
def _constant_block(S, wt, dwt, z, j0, j1, width, dz):
    """Sweep the prefixes j1..j0 + 1 of a group backwards, none of which has weight."""
    for c0 in range(0, width, CHUNK):
        for j in range(j1 - 1, j0 - 1, -1):
            _constant_step(S, wt, dwt, z, dz, j, width, c0, min(c0 + CHUNK, width))


@jit
def kernel(z_all, wt, bias, w_max, labels, weights, omega, limits, grad, dz_all, dwt, db, losses):
    """Sweep all groups of rows."""
    n, d = z_all.shape
    width, kind = len(bias), z_all.dtype
    blocks = (d + DEPTH - 1) // DEPTH
    starts = np.empty((blocks if grad else 1, ROWS * width), kind)
    E, S = np.empty((DEPTH + 1) * ROWS * width, kind), np.empty(ROWS * width, kind)
    scratch = np.empty(ROWS * width, kind)
    z, dz = np.empty((ROWS, d), kind), np.empty((ROWS, d), kind)
    s, target = np.empty((ROWS, DEPTH), kind), np.empty((ROWS, DEPTH), kind)
    shift, share = np.empty((ROWS, DEPTH), kind), np.empty((ROWS, DEPTH), kind)
    y, weight = np.empty(ROWS, np.int64), np.empty(ROWS, kind)
    for i in range(0, n, ROWS):
        real = take_group(z_all, i, z)
        y[:], weight[:] = 0, 0
        y[:real], weight[:real] = labels[i : i + real], weights[i : i + real]
        for r in range(ROWS):
            starts[0, r * width : (r + 1) * width] = bias
        if grad:
            for b in range(1, blocks):
                starts[b] = starts[b - 1]
                accumulate(starts[b], wt, z, (b - 1) * DEPTH, b * DEPTH, width)
        S[:], dz[:] = 0, 0
        for step in range(blocks):
            b = blocks - 1 - step if grad else step
            j0, j1 = b * DEPTH, min(b * DEPTH + DEPTH, d)
            L = starts[b if grad else 0]
            if grad and not omega[j0:j1].any():
                _constant_block(S, wt, dwt, z, j0, j1, width, dz)
                continue
            _forward_block(
                L, wt, E, z, w_max, y, weight, j0, j1, width, limits, not grad, shift, s, target, scratch, losses
            )
            if grad:
                _backward_block(S, wt, E, dwt, z, y, weight, omega, j0, j1, width, s, share, dz)
        if grad:
            for r in range(real):
                dz_all[i + r] = dz[r] * kind.type(LN2)
                db += S[r * width : (r + 1) * width]


def sweep(
    z: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the d losses and the gradients of their weighted sum, as `cross_entropy_torch.sweep` does.

    With `grad`, losses of prefixes without weight need not be computed: those of a whole block without weight are zero.
    """
    # The gradient mode is per thread, so nothing in here may require gradients.
    z, weight, row_weight = z.detach(), weight.detach(), row_weight.detach()
    (n, d), C = z.shape, len(weight)
    width = padded(C)
    wt = z.new_zeros(d, width)  # (d, C) and padding
    torch.mul(weight.t(), LOG2E, out=wt[:, :C])
    b = z.new_full((width,), -torch.inf)
    b[:C] = 0.0 if bias is None else bias * LOG2E
    w_max = wt.abs().amax(1) if d * width < 1 << 16 else torch.linalg.vector_norm(wt, float("inf"), 1)
    dz = torch.empty_like(z, memory_format=torch.contiguous_format) if grad else z.new_empty(0, d)

    def part(rows: slice) -> tuple[Tensor, Tensor, Tensor]:
        dwt, db = z.new_zeros(d if grad else 0, width), z.new_zeros(width)
        losses = torch.zeros(d, dtype=torch.float64)
        inputs = (z[rows], wt.view(-1), b, w_max, labels[rows], row_weight[rows], omega)
        outputs = (dz[rows] if grad else dz, dwt.view(-1), db, losses)
        limits = limits_of(z.numpy().dtype)
        kernel(*(t.numpy() for t in inputs), limits, grad, *(t.numpy() for t in outputs))
        return dwt, db, losses

    (dwt, db, losses), *others = over_rows(part, n, n * d * width)
    for other in others:
        dwt += other[0]
        db += other[1]
        losses += other[2]
    return losses.to(z.dtype), dz, dwt[:, :C].t(), db[:C]
