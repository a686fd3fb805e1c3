"""Compiled sweep of the full-prefix InfoNCE with cosines on the CPU (docs/theory.md, 4.5).

It differs from the cross-entropy sweep in two ways: the running sums are dot products, rescaled at every
prefix by the inverse norms of both sides, and the gradient has a term through those norms.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from firstk._base.simd import LANES, add, exp2, fma, larger, load, log2, max_lanes, mul, splat, store, sub, sum_lanes
from firstk.losses.functional._rows_cpu import DEPTH, LN2, LOG2E, ROWS, accumulate, jit, over_rows, padded, take_group


@jit
def _similarities(G, pt, rpt, pad, T, q, rs, top, j, jj, width):
    """Advance the dot products of four rows to prefix j and keep the scaled cosines in T."""
    q0, q1, q2, q3 = splat(q[0, j]), splat(q[1, j]), splat(q[2, j]), splat(q[3, j])
    r0, r1, r2, r3 = splat(rs[0, j]), splat(rs[1, j]), splat(rs[2, j]), splat(rs[3, j])
    low = splat(G.dtype.type(-1e30))
    m0, m1, m2, m3 = low, low, low, low
    at_p, at_t = j * width, jj * ROWS * width
    for c in range(0, width, LANES):
        p, rp, mask = load(pt, at_p + c), load(rpt, at_p + c), load(pad, c)
        g = fma(q0, p, load(G, c))
        store(G, c, g)
        t = fma(mul(g, r0), rp, mask)
        store(T, at_t + c, t)
        m0 = larger(m0, t)
        g = fma(q1, p, load(G, width + c))
        store(G, width + c, g)
        t = fma(mul(g, r1), rp, mask)
        store(T, at_t + width + c, t)
        m1 = larger(m1, t)
        g = fma(q2, p, load(G, 2 * width + c))
        store(G, 2 * width + c, g)
        t = fma(mul(g, r2), rp, mask)
        store(T, at_t + 2 * width + c, t)
        m2 = larger(m2, t)
        g = fma(q3, p, load(G, 3 * width + c))
        store(G, 3 * width + c, g)
        t = fma(mul(g, r3), rp, mask)
        store(T, at_t + 3 * width + c, t)
        m3 = larger(m3, t)
    top[0, jj], top[1, jj] = max_lanes(m0), max_lanes(m1)
    top[2, jj], top[3, jj] = max_lanes(m2), max_lanes(m3)


@jit
def _exponentials(T, E, at, width, top):
    """Write 2^(T - top) to E for one row; return its sum and that of its product with T."""
    m = splat(top)
    s = splat(T.dtype.type(0))
    u = s
    for c in range(at, at + width, LANES):
        t = load(T, c)
        e = exp2(sub(t, m))
        store(E, c, e)
        s, u = add(s, e), fma(e, t, u)
    return sum_lanes(s), sum_lanes(u)


@jit
def _backward_step(S, pt, rpt, E, T, dpt, columns, q, share, rq, dq, j, jj, width):
    """Add prefix j to the suffix sums S; take dq_j = S p_j; add S^T q_j to dp_j, P T to the column term."""
    q0, q1, q2, q3 = splat(q[0, j]), splat(q[1, j]), splat(q[2, j]), splat(q[3, j])
    f0, f1, f2, f3 = splat(share[0, jj]), splat(share[1, jj]), splat(share[2, jj]), splat(share[3, jj])
    h0, h1, h2, h3 = splat(rq[0, j]), splat(rq[1, j]), splat(rq[2, j]), splat(rq[3, j])
    zero = splat(S.dtype.type(0))
    d0, d1, d2, d3 = zero, zero, zero, zero
    at_p, at_e = j * width, jj * ROWS * width
    for c in range(0, width, LANES):
        p, rp = load(pt, at_p + c), load(rpt, at_p + c)
        dp, column = load(dpt, at_p + c), load(columns, at_p + c)
        a = mul(f0, load(E, at_e + c))
        column = fma(a, load(T, at_e + c), column)
        g = fma(mul(a, h0), rp, load(S, c))
        store(S, c, g)
        d0, dp = fma(g, p, d0), fma(g, q0, dp)
        a = mul(f1, load(E, at_e + width + c))
        column = fma(a, load(T, at_e + width + c), column)
        g = fma(mul(a, h1), rp, load(S, width + c))
        store(S, width + c, g)
        d1, dp = fma(g, p, d1), fma(g, q1, dp)
        a = mul(f2, load(E, at_e + 2 * width + c))
        column = fma(a, load(T, at_e + 2 * width + c), column)
        g = fma(mul(a, h2), rp, load(S, 2 * width + c))
        store(S, 2 * width + c, g)
        d2, dp = fma(g, p, d2), fma(g, q2, dp)
        a = mul(f3, load(E, at_e + 3 * width + c))
        column = fma(a, load(T, at_e + 3 * width + c), column)
        g = fma(mul(a, h3), rp, load(S, 3 * width + c))
        store(S, 3 * width + c, g)
        d3, dp = fma(g, p, d3), fma(g, q3, dp)
        store(dpt, at_p + c, dp)
        store(columns, at_p + c, column)
    dq[0, j], dq[1, j] = sum_lanes(d0), sum_lanes(d1)
    dq[2, j], dq[3, j] = sum_lanes(d2), sum_lanes(d3)


@jit
def _forward_block(G, pt, rpt, pad, T, E, q, rs, y, weight, j0, j1, width, top, s, mean, logs, losses):
    """Sweep the prefixes j0 + 1..j1 of a group forwards and add their weighted losses to `losses`.

    `mean[r, jj]` becomes the derivative of the loss of row r with respect to the log of its scale.
    """
    for j in range(j0, j1):
        jj = j - j0
        _similarities(G, pt, rpt, pad, T, q, rs, top, j, jj, width)
        for r in range(ROWS):
            at = (jj * ROWS + r) * width
            s[r, jj], u = _exponentials(T, E, at, width, top[r, jj])
            mean[r, jj] = u / s[r, jj] - T[at + y[r]]
    flat = s.reshape(-1)
    for r in range(ROWS):
        store(logs, 0, log2(load(flat, r * DEPTH)))
        for j in range(j0, j1):
            jj = j - j0
            target = T[(jj * ROWS + r) * width + y[r]]
            losses[j] += weight[r] * LN2 * np.float64(logs[jj] + (top[r, jj] - target))


@jit
def _backward_block(
    S, pt, rpt, E, T, dpt, columns, q, rq, scale, y, weight, omega, j0, j1, width,
    s, mean, share, hs, norm, dq,
):  # fmt: skip
    """Sweep the prefixes j1..j0 + 1 of a group backwards; `norm` accumulates the row term; return its total."""
    total = 0.0
    for j in range(j1 - 1, j0 - 1, -1):
        jj = j - j0
        for r in range(ROWS):
            E[(jj * ROWS + r) * width + y[r]] -= s[r, jj]
            share[r, jj] = omega[j] * weight[r] / s[r, jj]
            hs[r, j] = rq[r, j] * scale
        _backward_step(S, pt, rpt, E, T, dpt, columns, q, share, hs, dq, j, jj, width)
        for r in range(ROWS):
            through_scale = np.float64(omega[j] * weight[r]) * mean[r, jj] * LN2
            total += through_scale
            norm[r] += through_scale * np.float64(rq[r, j]) * rq[r, j]
            dq[r, j] -= q[r, j] * norm[r]
    return total


@jit
def _sweep(q_all, rq_all, pt, rpt, pad, targets, weights, omega, scale, grad, dq_all, dpt, columns, losses):
    """Sweep all groups of rows; return the derivative with respect to the log of the scale."""
    n, d = q_all.shape
    width, kind = len(pad), q_all.dtype
    blocks = (d + DEPTH - 1) // DEPTH
    starts = np.empty((blocks if grad else 1, ROWS * width), kind)
    E, T = np.empty(DEPTH * ROWS * width, kind), np.empty(DEPTH * ROWS * width, kind)
    S, logs = np.empty(ROWS * width, kind), np.empty(DEPTH, kind)
    q, dq = np.empty((ROWS, d), kind), np.empty((ROWS, d), kind)
    rq, rs, hs = np.empty((ROWS, d), kind), np.empty((ROWS, d), kind), np.empty((ROWS, d), kind)
    s, top = np.ones((ROWS, DEPTH), kind), np.empty((ROWS, DEPTH), kind)
    mean, share = np.empty((ROWS, DEPTH), kind), np.empty((ROWS, DEPTH), kind)
    y, weight, norm = np.empty(ROWS, np.int64), np.empty(ROWS, kind), np.empty(ROWS)
    total = 0.0
    for i in range(0, n, ROWS):
        real = take_group(q_all, i, q)
        take_group(rq_all, i, rq)
        rs[:] = rq * kind.type(scale * LOG2E)
        y[:], weight[:], norm[:] = 0, 0, 0
        y[:real], weight[:real] = targets[i : i + real], weights[i : i + real]
        starts[0], S[:] = 0, 0
        if grad:
            for b in range(1, blocks):
                starts[b] = starts[b - 1]
                accumulate(starts[b], pt, q, (b - 1) * DEPTH, b * DEPTH, width)
        for step in range(blocks):
            b = blocks - 1 - step if grad else step
            j0, j1 = b * DEPTH, min(b * DEPTH + DEPTH, d)
            G = starts[b if grad else 0]
            _forward_block(G, pt, rpt, pad, T, E, q, rs, y, weight, j0, j1, width, top, s, mean, logs, losses)
            if grad:
                total += _backward_block(
                    S, pt, rpt, E, T, dpt, columns, q, rq, scale, y, weight, omega, j0, j1, width, s, mean,
                    share, hs, norm, dq,
                )  # fmt: skip
        if grad:
            dq_all[i : i + real] = dq[:real]
    return total


def _padded_columns(table: Tensor, width: int) -> Tensor:
    columns = table.new_zeros(table.shape[1], width)  # (d, m) and padding
    columns[:, : len(table)] = table.t()
    return columns


def sweep(
    q: Tensor,
    p: Tensor,
    rq: Tensor,
    rp: Tensor,
    scale: Tensor,
    targets: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the d losses and the gradients of their weighted sum, as `contrastive_torch.sweep` does."""
    # The gradient mode is per thread, so nothing in here may require gradients.
    q, p, rq, rp = q.detach(), p.detach(), rq.detach(), rp.detach()
    (n, d), m = q.shape, len(p)
    width, inverse_temperature = padded(m), float(scale)
    pt, rpt = _padded_columns(p, width), _padded_columns(rp, width)
    pad = q.new_full((width,), -1e30)
    pad[:m] = 0.0
    dq = torch.empty_like(q, memory_format=torch.contiguous_format) if grad else q.new_empty(0, d)

    def part(rows: slice) -> tuple[Tensor, Tensor, Tensor, float]:
        dpt, columns = q.new_zeros(2, d if grad else 0, width)
        losses = torch.zeros(d, dtype=torch.float64)
        inputs = (q[rows], rq[rows], pt.view(-1), rpt.view(-1), pad, targets[rows], row_weight[rows], omega)
        outputs = (dq[rows] if grad else dq, dpt.view(-1), columns.view(-1), losses)
        arrays = [t.numpy() for t in inputs]
        kind = q.numpy().dtype.type
        total = _sweep(*arrays, kind(inverse_temperature), grad, *(t.numpy() for t in outputs))
        return dpt, columns, losses, total

    (dpt, columns, losses, total), *others = over_rows(part, n, n * d * width)
    for other in others:
        dpt += other[0]
        columns += other[1]
        losses += other[2]
        total += other[3]
    if grad:
        dpt -= pt * columns.mul_(LN2).mul_(rpt.square()).flip(0).cumsum(0).flip(0)
    return losses.to(q.dtype), dq, dpt[:, :m].t(), q.new_tensor(total / inverse_temperature)
