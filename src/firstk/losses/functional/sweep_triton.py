"""Sweeps of full-prefix cross-entropy and InfoNCE as Triton kernels: `sweep_torch.sweep` with its sums in registers.

One program holds the logits of a tile of rows and columns and adds z_j w_j prefix by prefix. A first kernel keeps the
largest logit and the sum of exponentials of every row and prefix; a second one, with these, runs through the prefixes
again from the last to the first and adds up the gradients, once for rows and once for columns, so that no two programs
write to one place and results do not depend on their order. Logits at every 16th prefix are kept, and those between are
added up from there: nothing is recomputed by subtraction.

No GPU was at hand: the kernels are tested in Triton's interpreter, and their speed is not known.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from firstk.losses.functional.sweep_torch import LEFT_OUT, Norms, through_norms

DEPTH = 16  # prefixes between two kept tiles
ROWS, COLUMNS = 32, 64  # of a tile: 2,048 logits in the registers of four warps
# Programs of the second kernel, each of which keeps d / 16 tiles: half a megabyte at 1,024 coordinates.
_PROGRAMS = 512
_jit: Any = triton.jit


@_jit
def _tile(n, C, bias, mask, labels, i, c, ROWS: tl.constexpr, COLUMNS: tl.constexpr, MASKED: tl.constexpr):
    """Return the rows and columns of a tile, their logits before the first prefix, which count, and which are right."""
    rows, columns = i * ROWS + tl.arange(0, ROWS), c * COLUMNS + tl.arange(0, COLUMNS)
    real, counted = rows < n, columns < C
    first = tl.load(bias + columns, mask=counted, other=0.0)
    keep = real[:, None] & counted[None, :]
    if MASKED:
        out = tl.load(mask + rows[:, None] * C + columns[None, :], mask=keep, other=0)
        keep = keep & (out == 0)
    own = columns[None, :] == tl.load(labels + rows, mask=real, other=-1)[:, None]
    start = tl.zeros([ROWS, COLUMNS], dtype=first.dtype) + first[None, :]
    return rows, columns, real, counted, start, keep, own


@_jit
def _at(table, j, size, places, valid):
    """Return the entries of one prefix of a table (d, size)."""
    return tl.load(table + j * size + places, mask=valid, other=0.0)


@_jit
def _log_sums(
    zt, wt, bias, of_rows, of_columns, mask, labels, top, total, target, n, C, d,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, COSINE: tl.constexpr, MASKED: tl.constexpr, LOW: tl.constexpr,
):  # fmt: skip
    """Write the largest logit, the sum of exponentials below it, and the right logit, (d, n) each."""
    for c in range(tl.cdiv(C, COLUMNS)):
        rows, columns, real, counted, t_sum, keep, own = _tile(
            n, C, bias, mask, labels, tl.program_id(0), c, ROWS, COLUMNS, MASKED
        )
        for j in range(d):
            t_sum += _at(zt, j, n, rows, real)[:, None] * _at(wt, j, C, columns, counted)[None, :]
            t = t_sum
            if COSINE:
                t = t * _at(of_rows, j, n, rows, real)[:, None] * _at(of_columns, j, C, columns, counted)[None, :]
            t = tl.where(keep, t, LOW)
            at = j * n + rows
            before = tl.load(top + at, mask=real, other=LOW)
            now = tl.maximum(before, tl.max(t, axis=1))
            below = tl.sum(tl.exp(t - now[:, None]), axis=1)
            tl.store(total + at, tl.load(total + at, mask=real, other=0.0) * tl.exp(before - now) + below, mask=real)
            right = tl.load(target + at, mask=real, other=0.0) + tl.sum(tl.where(own, t, 0.0), axis=1)
            tl.store(target + at, right, mask=real)
            tl.store(top + at, now, mask=real)
        tl.debug_barrier()  # the next tile reads what this one wrote


@_jit
def _back(
    S, t, z, w, j, keep, own, rows, columns, real, counted, of_rows, of_columns, log_sum, weights, omega, found, term,
    n, C, OF_ROWS: tl.constexpr, COSINE: tl.constexpr,
):  # fmt: skip
    """Add prefix j to the suffix sums S, and S times the other side to the gradient of one side; return S."""
    share = tl.load(weights + rows, mask=real, other=0.0) * tl.load(omega + j)
    if COSINE:
        factor = _at(of_rows, j, n, rows, real)[:, None] * _at(of_columns, j, C, columns, counted)[None, :]
        t = t * factor
    P = tl.exp(tl.where(keep, t - _at(log_sum, j, n, rows, real)[:, None], -float("inf")))
    G = share[:, None] * (P - tl.where(own, 1.0, 0.0))
    if OF_ROWS:
        at, valid = j * n + rows, real
    else:
        at, valid = j * C + columns, counted
    if COSINE:
        through = tl.sum(G * t, axis=1 if OF_ROWS else 0)
        tl.store(term + at, tl.load(term + at, mask=valid, other=0.0) + through, mask=valid)
        G = G * factor
    S += G
    step = tl.sum(S * w[None, :], axis=1) if OF_ROWS else tl.sum(S * z[:, None], axis=0)
    tl.store(found + at, tl.load(found + at, mask=valid, other=0.0) + step, mask=valid)
    return S


@_jit
def _gradients(
    zt, wt, bias, of_rows, of_columns, mask, labels, log_sum, weights, omega, kept, found, term, last, n, C, blocks,
    OF_ROWS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, COSINE: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Write the gradient of the codes, (d, n), or of the columns, (d, C), and for cosines the term of their norms."""
    size: tl.constexpr = ROWS * COLUMNS
    inner = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tiles = kept + tl.program_id(0) * blocks * size
    if OF_ROWS:
        mine, others = tl.cdiv(n, ROWS), tl.cdiv(C, COLUMNS)
    else:
        mine, others = tl.cdiv(C, COLUMNS), tl.cdiv(n, ROWS)
    for own_tile in range(tl.program_id(0), mine, tl.num_programs(0)):
        for other in range(others):
            i, c = (own_tile, other) if OF_ROWS else (other, own_tile)
            rows, columns, real, counted, t, keep, own = _tile(n, C, bias, mask, labels, i, c, ROWS, COLUMNS, MASKED)
            for b in range(blocks):
                tl.store(tiles + b * size + inner, t)
                for j in range(b * DEPTH, (b + 1) * DEPTH):
                    t += _at(zt, j, n, rows, real)[:, None] * _at(wt, j, C, columns, counted)[None, :]
            tl.debug_barrier()
            S = tl.zeros([ROWS, COLUMNS], dtype=t.dtype)
            for step in range(blocks * (DEPTH // 4)):
                # Four prefixes at a time, from the last: their logits are added up and stay in registers.
                j = blocks * DEPTH - 4 * step - 4
                b = j // DEPTH
                t = tl.load(tiles + b * size + inner)
                for before in range(b * DEPTH, j):
                    t += _at(zt, before, n, rows, real)[:, None] * _at(wt, before, C, columns, counted)[None, :]
                z0, w0 = _at(zt, j, n, rows, real), _at(wt, j, C, columns, counted)
                z1, w1 = _at(zt, j + 1, n, rows, real), _at(wt, j + 1, C, columns, counted)
                z2, w2 = _at(zt, j + 2, n, rows, real), _at(wt, j + 2, C, columns, counted)
                z3, w3 = _at(zt, j + 3, n, rows, real), _at(wt, j + 3, C, columns, counted)
                t0 = t + z0[:, None] * w0[None, :]
                t1 = t0 + z1[:, None] * w1[None, :]
                t2 = t1 + z2[:, None] * w2[None, :]
                t3 = t2 + z3[:, None] * w3[None, :]
                S = _back(S, t3, z3, w3, j + 3, keep, own, rows, columns, real, counted, of_rows, of_columns, log_sum,
                          weights, omega, found, term, n, C, OF_ROWS, COSINE)  # fmt: skip
                S = _back(S, t2, z2, w2, j + 2, keep, own, rows, columns, real, counted, of_rows, of_columns, log_sum,
                          weights, omega, found, term, n, C, OF_ROWS, COSINE)  # fmt: skip
                S = _back(S, t1, z1, w1, j + 1, keep, own, rows, columns, real, counted, of_rows, of_columns, log_sum,
                          weights, omega, found, term, n, C, OF_ROWS, COSINE)  # fmt: skip
                S = _back(S, t0, z0, w0, j, keep, own, rows, columns, real, counted, of_rows, of_columns, log_sum,
                          weights, omega, found, term, n, C, OF_ROWS, COSINE)  # fmt: skip
            if not OF_ROWS:
                ends = tl.load(last + columns, mask=counted, other=0.0) + tl.sum(S, axis=0)
                tl.store(last + columns, ends, mask=counted)
            tl.debug_barrier()


def sweep(
    z: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    grad: bool,
    norms: Norms | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what `sweep_torch.sweep` does."""
    (n, d), C = z.shape, len(weight)
    blocks = triton.cdiv(d, DEPTH)

    def by_prefix(x: Tensor) -> Tensor:  # (d, rows), with prefixes without weight up to a whole block
        return F.pad(x.detach().t(), (0, 0, 0, blocks * DEPTH - d)).contiguous()

    zt, wt, b = by_prefix(z), by_prefix(weight), z.new_zeros(C) if bias is None else bias.detach().contiguous()
    factors = (by_prefix(norms.of_rows * norms.scale), by_prefix(norms.of_columns)) if norms else (zt, wt)
    out = labels if mask is None else mask.contiguous().view(torch.uint8)
    inputs, labels = (zt, wt, b, *factors, out), labels.contiguous()
    known: dict[str, Any] = {"COSINE": norms is not None, "MASKED": mask is not None, "ROWS": ROWS, "COLUMNS": COLUMNS}
    top, total, target = torch.full_like(zt, LEFT_OUT), torch.zeros_like(zt), torch.zeros_like(zt)
    with torch.cuda.device_of(z):
        _log_sums[triton.cdiv(n, ROWS),](
            *inputs, labels, top, total, target, n, C, blocks * DEPTH, LOW=LEFT_OUT, **known
        )
        log_sum = top + total.log()
        losses = ((log_sum - target)[:d].double() @ row_weight.double()).to(z.dtype)
        if not grad:
            return losses, z[:0], weight[:0], z.new_zeros(C if norms is None else ())
        om, last = F.pad(omega, (0, blocks * DEPTH - d)), z.new_zeros(C)
        found, terms = [], []
        for side, tiles in ((True, triton.cdiv(n, ROWS)), (False, triton.cdiv(C, COLUMNS))):
            programs = min(tiles, _PROGRAMS)
            kept = z.new_empty(programs * blocks * ROWS * COLUMNS)
            found.append(torch.zeros_like(zt if side else wt))
            terms.append(torch.zeros_like(found[-1]) if norms else found[-1])
            outputs = (log_sum, row_weight.contiguous(), om, kept, found[-1], terms[-1], last)
            _gradients[programs,](*inputs, labels, *outputs, n, C, blocks, OF_ROWS=side, DEPTH=DEPTH, **known)
    dz, dw = (part[:d].t().contiguous() for part in found)
    if norms is None:
        return losses, dz, dw, last
    of_rows, of_columns = (part[:d].t() for part in terms)
    through_norms(dz, z.detach(), norms.of_rows, of_rows)
    through_norms(dw, weight.detach(), norms.of_columns, of_columns)
    return losses, dz, dw, of_rows.sum() / norms.scale
