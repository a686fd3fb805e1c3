"""Reference sweep of full-prefix cross-entropy and InfoNCE in plain torch, on any device (docs/theory.md, 4.4 and 4.5).

A block of B prefixes of R rows is one tile of R B rows: with A the codes masked to each prefix, the tile's
logits are A W^T plus those at the start of the block, and the gradients are the same two products
backwards. So three matrix products and one softmax compute B prefixes, and the suffix sums over later blocks
are accumulated in an R x C array: nothing is recomputed by subtraction. Cosines are the same logits, rescaled by
cumulative norms, which are stored; the gradient through them is a separate suffix sum.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 16
# Tiles of about this many numbers: the size of a second-level cache, and enough to fill a GPU.
_TILE = {"cpu": 1 << 17, "cuda": 1 << 24}
# Problems up to this many numbers are not split into blocks to save memory.
SMALL = 1 << 20
# Logit of a column that is left out: its exponential is 0, and its product with that is 0, not NaN.
LEFT_OUT = -1e30


class Norms(NamedTuple):
    """What makes a dot product a scaled cosine: inverse norms of every prefix, (n, d) and (C, d), and a scale, ()."""

    of_rows: Tensor
    of_columns: Tensor
    scale: Tensor


def suffix_sums(x: Tensor, dim: int) -> Tensor:
    """Return the sums from each position to the end along `dim`."""
    return x.flip(dim).cumsum(dim).flip(dim)


def through_norms(gradient: Tensor, x: Tensor, inverse_norms: Tensor, term: Tensor) -> None:
    """Subtract, in place, the gradient through the cumulative norms, which is a suffix sum."""
    gradient -= x * suffix_sums(term * inverse_norms.square(), 1)


def rows_per_tile(n: int, d: int, columns: int, device: torch.device) -> int:
    """Choose R so that two tiles and the block starts fit into 3 n C numbers and into a cache."""
    per_row = columns * (2 * BLOCK + -(-d // BLOCK))
    budget = min(max(3 * n * columns, SMALL), 2 * _TILE.get(device.type, 1 << 22))
    return max(1, min(n, budget // per_row))


def block_starts(z: Tensor, columns: Tensor, first: Tensor) -> Tensor:
    """Return the running sums at the start of each block of prefixes, (blocks, R, C).

    Parameters
    ----------
    z : Tensor of shape (R, d)
    columns : Tensor of shape (C, d)
    first : Tensor of shape (C,)
        The sum before the first prefix.
    """
    d = z.shape[1]
    starts = z.new_empty(-(-d // BLOCK), len(z), len(columns))
    starts[0] = first
    for b in range(1, len(starts)):
        j0, j1 = (b - 1) * BLOCK, b * BLOCK
        torch.addmm(starts[b - 1], z[:, j0:j1], columns[:, j0:j1].t(), out=starts[b])
    return starts


def masked_codes(z: Tensor) -> Tensor:
    """Return each code cut to each prefix of its block, (R, B, B): entry (i, k, j) is z_ij for j <= k."""
    B = z.shape[1]
    return z.contiguous()[:, None, :] * torch.ones(B, B, dtype=z.dtype, device=z.device).tril_()


def _residuals(
    t: Tensor,
    labels: Tensor,
    a: Tensor,
    omega: Tensor,
    norms: Norms | None,
    mask: Tensor | None,
    rows: slice,
    js: slice,
    of_rows: Tensor,
    of_columns: Tensor,
    grad: bool,
) -> tuple[Tensor, Tensor]:
    """Return the losses of B prefixes and their gradients by the dot products, (R, B, C); t is used up.

    Terms of the norms are written to `of_rows`, (n, d), and added to `of_columns`, (d, C).
    """
    if norms:
        factors = (norms.of_rows[rows, js] * norms.scale)[..., None], norms.of_columns[:, js].t()
        t.mul_(factors[0]).mul_(factors[1])
    if mask is not None:
        t.masked_fill_(mask[rows, None], LEFT_OUT)
    index = labels[:, None, None].expand(*t.shape[:2], 1)
    target, top, P = t.gather(2, index)[..., 0], t.amax(2), t.softmax(2)
    # The largest probability is at least 1/C, so log-sum-exp follows from its logarithm without a second exp.
    losses = (a[:, None] * (top - target - P.amax(2).log())).sum(0)
    if not grad:
        return losses, P
    share = (a[:, None] * omega)[..., None]  # (R, B, 1)
    G = P.mul_(share).scatter_add_(2, index, -share)
    if norms:
        through = t.mul_(G)
        of_rows[rows, js] = through.sum(2)
        of_columns[js] += through.sum(0)
        G.mul_(factors[0]).mul_(factors[1])
    return losses, G


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
    """Return the d losses and, with `grad`, the gradients of their weighted sum.

    loss_k = sum_i row_weight_i (logsumexp_c t_ikc - t_ik,label_i), with t_ikc = b_c + <z_i, w_c>_k, or with norms
    scale r_ik r_ck <z_i, w_c>_k.

    Parameters
    ----------
    z : Tensor of shape (n, d)
    weight : Tensor of shape (C, d)
    bias : Tensor of shape (C,) or None
    labels : Tensor of shape (n,), int64
    row_weight : Tensor of shape (n,)
    omega : Tensor of shape (d,)
    grad : bool
        Without it the gradients are empty.
    norms : Norms, optional
        For cosines; zero for prefixes that are zero.
    mask : Tensor of shape (n, C), bool, optional
        Columns that are left out of the sum of a row.

    Returns
    -------
    losses, dz, dweight, dbias : Tensors of shapes (d,), (n, d), (C, d), (C,)
        With norms the derivative by the scale, (), in the place of dbias.
    """
    (n, d), C = z.shape, len(weight)
    losses = torch.zeros(d, dtype=torch.float64 if z.device.type != "mps" else z.dtype, device=z.device)
    dz = torch.empty_like(z) if grad else z.new_empty(0, d)
    dw, db = z.new_zeros(C if grad else 0, d), z.new_zeros(C)
    of_rows, of_columns = (z.new_zeros(n, d), z.new_zeros(d, C)) if norms else (dz, dw)
    first = z.new_zeros(C) if bias is None else bias
    R = rows_per_tile(n, d, C, z.device)
    for i in range(0, n, R):
        rows = slice(i, min(i + R, n))
        zi, a = z[rows], row_weight[rows]
        starts = block_starts(zi, weight, first)
        S = z.new_zeros(len(zi), C)
        for b in range(len(starts) - 1, -1, -1):
            js = slice(b * BLOCK, min((b + 1) * BLOCK, d))
            zb, wb = zi[:, js], weight[:, js]
            A = masked_codes(zb)
            t = (A.flatten(0, 1) @ wb.t()).view(*A.shape[:2], C).add_(starts[b][:, None])  # (R, B, C)
            part, G = _residuals(t, labels[rows], a, omega[js], norms, mask, rows, js, of_rows, of_columns, grad)
            losses[js] += part
            if not grad:
                continue
            dA = (G.flatten(0, 1) @ wb).view_as(A).tril_()
            torch.addmm(dA.sum(1), S, wb, out=dz[rows, js])
            dw[:, js] += G.flatten(0, 1).t() @ A.flatten(0, 1)
            dw[:, js] += S.t() @ zb
            S += G.sum(1)
        db += S.sum(0)
    return losses.to(z.dtype), dz, dw, _finished(z, weight, dz, dw, db, norms, of_rows, of_columns.t(), grad)


def row_losses(
    z: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, row_weight: Tensor, omega: Tensor
) -> Tensor:
    """Return row_weight_i sum_k omega_k (logsumexp_c t_ikc - t_ik,label_i), (n,): `sweep` without its sum over rows."""
    total, C = torch.zeros_like(row_weight), len(weight)
    R = rows_per_tile(len(z), z.shape[1], C, z.device)
    for i in range(0, len(z), R):
        rows = slice(i, min(i + R, len(z)))
        starts = block_starts(z[rows], weight, z.new_zeros(C) if bias is None else bias)
        for b, start in enumerate(starts):
            js = slice(b * BLOCK, min((b + 1) * BLOCK, z.shape[1]))
            A = masked_codes(z[rows, js])
            t = (A.flatten(0, 1) @ weight[:, js].t()).view(*A.shape[:2], C).add_(start[:, None])
            own = t.gather(2, labels[rows, None, None].expand(*A.shape[:2], 1))[..., 0]
            total[rows] += (t.logsumexp(2) - own) @ omega[js]
    return total * row_weight


def _finished(
    z: Tensor,
    weight: Tensor,
    dz: Tensor,
    dw: Tensor,
    db: Tensor,
    norms: Norms | None,
    of_rows: Tensor,
    of_columns: Tensor,
    grad: bool,
) -> Tensor:
    """Add what flows through the norms, in place; return the gradient by the bias, or by the scale."""
    if not norms or not grad:
        return db
    through_norms(dz, z, norms.of_rows, of_rows)
    through_norms(dw, weight, norms.of_columns, of_columns)
    return of_rows.sum() / norms.scale


def sparse_sweep(
    lengths: list[int],
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
    """Compute `sweep` for an omega with few positive entries, at `lengths`; the losses of other prefixes stay zero.

    One matrix product updates the logits from one prefix with weight to the next, so the total cost is that of one
    full-width head plus one softmax per prefix with weight.
    """
    (n, d), C = z.shape, len(weight)
    pieces = [slice(j0, j1) for j0, j1 in zip([0, *lengths], lengths, strict=False)]
    losses, of_rows, of_columns = z.new_zeros(d), torch.zeros_like(z), z.new_zeros(d, C)
    dz, dw = (torch.zeros_like(z), torch.zeros_like(weight)) if grad else (z[:0], weight[:0])
    db = z.new_zeros(C)
    R = max(1, max(2 * n * C, SMALL) // (C * (len(pieces) + 4)))
    for i in range(0, n, R):
        rows = slice(i, min(i + R, n))
        zi, a = z[rows], row_weight[rows]
        gram, parts = z.new_zeros(1, C) if bias is None else bias, []
        for js in pieces:
            k = slice(js.stop - 1, js.stop)
            gram = torch.addmm(gram, zi[:, js], weight[:, js].t())
            # The products go on from here, so cosines take a copy.
            t = gram[:, None].clone() if norms or mask is not None else gram[:, None]  # (R, 1, C)
            part, G = _residuals(t, labels[rows], a, omega[k], norms, mask, rows, k, of_rows, of_columns, grad)
            losses[k] += part
            parts += [G[:, 0]] if grad else []
        S = z.new_zeros(len(zi), C)
        for js in reversed(pieces if grad else []):
            S += parts.pop()
            torch.mm(S, weight[:, js], out=dz[rows, js])
            dw[:, js] += S.t() @ zi[:, js]
        db += S.sum(0)
    return losses, dz, dw, _finished(z, weight, dz, dw, db, norms, of_rows, of_columns.t(), grad)
