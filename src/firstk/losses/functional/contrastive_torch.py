"""Reference sweep of the full-prefix InfoNCE with cosines in plain torch, on any device (docs/theory.md, 4.5).

Uses the tiles of `cross_entropy_torch`, rescaled by cumulative norms. The norms are stored, never recomputed by
subtraction, and the gradient through them is a separate suffix sum.
"""

from __future__ import annotations

import torch
from torch import Tensor

from firstk.losses.functional.cross_entropy_torch import BLOCK, SMALL, block_starts, masked_codes, rows_per_tile

# Logit of a document that is left out: its exponential is 0, and its product with that is 0, not NaN.
LEFT_OUT = -1e30


def suffix_sums(x: Tensor, dim: int) -> Tensor:
    """Return the sums from each position to the end along `dim`."""
    return x.flip(dim).cumsum(dim).flip(dim)


def _tile(q: Tensor, p: Tensor, start: Tensor, of_row: Tensor, of_column: Tensor) -> tuple[Tensor, Tensor]:
    """Return the masked codes of a block, (R, B, B), and its scaled cosines, (R, B, m)."""
    A = masked_codes(q)
    t = (A.flatten(0, 1) @ p.t()).view(*A.shape[:2], len(p)).add_(start[:, None])
    return A, t.mul_(of_row).mul_(of_column)


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
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the d losses and, with `grad`, the gradients of their weighted sum.

    loss_k = sum_i row_weight_i (logsumexp_c t_ikc - t_ik,target_i), t_ikc = scale rq_ik rp_ck <q_i, p_c>_k.

    Parameters
    ----------
    q, p : Tensors of shapes (n, d), (m, d)
        Queries and documents, scaled so that squares neither overflow nor vanish.
    rq, rp : Tensors of shapes (n, d), (m, d)
        Inverse norms of every prefix, zero for prefixes that are zero.
    scale : Tensor of shape ()
        Inverse temperature.
    targets : Tensor of shape (n,), int64
        The document that belongs to each query.
    row_weight, omega : Tensors of shapes (n,), (d,)
    grad : bool
        Without it the gradients are empty.
    mask : Tensor of shape (n, m), bool, optional
        Documents that are left out of the sum of a query.

    Returns
    -------
    losses, dq, dp, dscale : Tensors of shapes (d,), (n, d), (m, d), ()
    """
    (n, d), m = q.shape, len(p)
    losses = torch.zeros(d, dtype=torch.float64 if q.device.type != "mps" else q.dtype, device=q.device)
    dq, rows_term = torch.empty_like(q) if grad else q.new_empty(0, d), torch.zeros_like(q)
    dp, columns = q.new_zeros(m if grad else 0, d), q.new_zeros(d, m)
    R = rows_per_tile(n, d, m, q.device)
    for i in range(0, n, R):
        rows = slice(i, min(i + R, n))
        qi, a = q[rows], row_weight[rows]
        starts = block_starts(qi, p, q.new_zeros(m))
        S = q.new_zeros(len(qi), m)
        for b in range(len(starts) - 1, -1, -1):
            js = slice(b * BLOCK, min((b + 1) * BLOCK, d))
            qb, pb, factor = qi[:, js], p[:, js], ((rq[rows, js] * scale)[..., None], rp[:, js].t())
            A, t = _tile(qb, pb, starts[b], *factor)
            if mask is not None:
                t.masked_fill_(mask[rows, None], LEFT_OUT)
            index = targets[rows, None, None].expand(*A.shape[:2], 1)
            target, P = t.gather(2, index), t.softmax(2)
            losses[js] += (a[:, None] * (t.amax(2) - target[..., 0] - P.amax(2).log())).sum(0)
            if not grad:
                continue
            share = (a[:, None] * omega[js])[..., None]  # (R, B, 1)
            P.mul_(share).scatter_add_(2, index, -share)
            through = t.mul_(P)
            rows_term[rows, js] = through.sum(2)
            columns[js] += through.sum(0)
            H = P.mul_(factor[0]).mul_(factor[1])
            dA = (H.flatten(0, 1) @ pb).view_as(A).tril_()
            torch.addmm(dA.sum(1), S, pb, out=dq[rows, js])
            dp[:, js] += H.flatten(0, 1).t() @ A.flatten(0, 1)
            dp[:, js] += S.t() @ qb
            S += H.sum(1)
    if grad:
        _through_norms(dq, q, rq, rows_term)
        _through_norms(dp, p, rp, columns.t())
    return losses.to(q.dtype), dq, dp, rows_term.sum() / scale


def _through_norms(gradient: Tensor, x: Tensor, inverse_norms: Tensor, term: Tensor) -> None:
    """Subtract, in place, the gradient through the cumulative norms, which is a suffix sum."""
    gradient -= x * suffix_sums(term * inverse_norms.square(), 1)


def sparse_sweep(
    lengths: list[int],
    q: Tensor,
    p: Tensor,
    rq: Tensor,
    rp: Tensor,
    scale: Tensor,
    targets: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    grad: bool,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute `sweep` for an omega with few positive entries, at `lengths`: one product per interval between them."""
    (n, d), m = q.shape, len(p)
    pieces = [slice(j0, j1) for j0, j1 in zip([0, *lengths], lengths, strict=False)]
    losses, rows_term, columns = q.new_zeros(d), torch.zeros_like(q), torch.zeros_like(p)
    dq, dp = (torch.zeros_like(q), torch.zeros_like(p)) if grad else (q[:0], p[:0])
    R = max(1, max(2 * n * m, SMALL) // (m * (len(pieces) + 4)))
    for i in range(0, n, R):
        rows = slice(i, min(i + R, n))
        qi, a, y = q[rows], row_weight[rows], targets[rows, None]
        gram, parts = q.new_zeros(1, m), []
        for js in pieces:
            k = js.stop - 1
            gram = torch.addmm(gram, qi[:, js], p[:, js].t())
            factor = (rq[rows, k, None] * scale) * rp[:, k]  # (R, m)
            t = gram * factor
            if mask is not None:
                t.masked_fill_(mask[rows], LEFT_OUT)
            P = t.softmax(1)
            losses[k] += a @ ((t.amax(1) - t.gather(1, y)[:, 0]) - P.amax(1).log())
            if grad:
                share = (a * omega[k])[:, None]
                through = t.mul_(P.mul_(share).scatter_add_(1, y, -share))
                rows_term[rows, k] = through.sum(1)
                columns[:, k] += through.sum(0)
                parts.append(P.mul_(factor))
        S = q.new_zeros(len(qi), m)
        for js in reversed(pieces if grad else []):
            S += parts.pop()
            torch.mm(S, p[:, js], out=dq[rows, js])
            dp[:, js] += S.t() @ qi[:, js]
    if grad:
        _through_norms(dq, q, rq, rows_term)
        _through_norms(dp, p, rp, columns)
    return losses, dq, dp, rows_term.sum() / scale
