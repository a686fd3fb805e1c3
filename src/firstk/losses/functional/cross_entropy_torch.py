"""Reference sweep of the full-prefix cross-entropy in plain torch, on any device (docs/theory.md, 4.4).

A block of B prefixes of R rows is one tile of R B rows: with A the codes masked to each prefix, the tile's
logits are A W^T plus those at the start of the block, and the gradients are the same two products
backwards. So three matrix products and one softmax compute B prefixes, and the suffix sums over later blocks
are accumulated in an R x C array: nothing is recomputed by subtraction.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 16
# Tiles of about this many numbers: the size of a second-level cache, and enough to fill a GPU.
_TILE = {"cpu": 1 << 17, "cuda": 1 << 24}
# Problems up to this many numbers are not split into blocks to save memory.
SMALL = 1 << 20


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


def _tile(z: Tensor, weight: Tensor, start: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return A, the softmax of a tile, and the loss of each (row, prefix) in it."""
    A = masked_codes(z)
    R, B, _ = A.shape
    logits = (A.view(R * B, B) @ weight.t()).view(R, B, -1).add_(start[:, None])  # (R, B, C)
    index = labels[:, None, None].expand(R, B, 1)
    target, top = logits.gather(2, index)[..., 0], logits.amax(2)  # (R, B)
    P = logits.softmax(2)
    # The largest probability is at least 1/C, so log-sum-exp follows from its logarithm without a second exp.
    return A, P, (top - target) - P.amax(2).log(), index


def sweep(
    z: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the d losses and, with `grad`, the gradients of their weighted sum.

    Parameters
    ----------
    z : Tensor of shape (n, d)
    weight : Tensor of shape (C, d)
    bias : Tensor of shape (C,) or None
    labels : Tensor of shape (n,), int64
    row_weight : Tensor of shape (n,)
        Factor of each row: loss_k = sum_i row_weight_i (logsumexp_c logits_ikc - logits_ik,label_i).
    omega : Tensor of shape (d,)
    grad : bool
        Without it the three gradients are empty.

    Returns
    -------
    losses, dz, dweight, dbias : Tensors of shapes (d,), (n, d), (C, d), (C,)
    """
    (n, d), C = z.shape, len(weight)
    losses = torch.zeros(d, dtype=torch.float64 if z.device.type != "mps" else z.dtype, device=z.device)
    dz = torch.empty_like(z) if grad else z.new_empty(0, d)
    dw, db = z.new_zeros(C if grad else 0, d), z.new_zeros(C)
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
            A, P, row_losses, index = _tile(zb, wb, starts[b], labels[rows])
            losses[js] += (a[:, None] * row_losses).sum(0)
            if not grad:
                continue
            share = a[:, None] * omega[js]  # (R, B)
            # The shares scale the smaller factor of each product, so that P - onehot is not copied.
            flat = P.scatter_add_(2, index, P.new_full((1, 1, 1), -1.0).expand_as(index)).flatten(0, 1)
            dA = (flat @ wb).view_as(A).tril_().mul_(share[..., None])
            torch.addmm(dA.sum(1), S, wb, out=dz[rows, js])
            dw[:, js] += flat.t() @ (A * share[..., None]).flatten(0, 1)
            dw[:, js] += S.t() @ zb
            S += (share[:, None] @ P)[:, 0]
        db += S.sum(0)
    return losses.to(z.dtype), dz, dw, db


def sparse_sweep(
    lengths: list[int],
    z: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    row_weight: Tensor,
    omega: Tensor,
    grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute `sweep` for an omega with few positive entries, at `lengths`; the losses of other prefixes stay zero.

    One matrix product updates the logits from one prefix with weight to the next, so the total cost is that of one
    full-width head plus one softmax per prefix with weight.
    """
    (n, d), C = z.shape, len(weight)
    pieces = [slice(j0, j1) for j0, j1 in zip([0, *lengths], lengths, strict=False)]
    losses = z.new_zeros(d)
    dz, dw, db = torch.zeros_like(z) if grad else z[:0], z.new_zeros(C if grad else 0, d), z.new_zeros(C)
    R = max(1, max(2 * n * C, SMALL) // (C * (len(pieces) + 3)))
    for i in range(0, n, R):
        rows = slice(i, min(i + R, n))
        zi, a, y = z[rows], row_weight[rows], labels[rows, None]
        logits = z.new_zeros(1, C) if bias is None else bias
        parts = []
        for js in pieces:
            logits = torch.addmm(logits, zi[:, js], weight[:, js].t())
            P = logits.softmax(1)
            own = (logits.amax(1) - logits.gather(1, y)[:, 0]) - P.amax(1).log()
            losses[js.stop - 1] += a @ own
            if grad:
                share = (a * omega[js.stop - 1])[:, None]
                parts.append(P.mul_(share).scatter_add_(1, y, -share))
        S = z.new_zeros(len(zi), C)
        for js in reversed(pieces if grad else []):
            S += parts.pop()
            torch.mm(S, weight[:, js], out=dz[rows, js])
            dw[:, js] += S.t() @ zi[:, js]
        db += S.sum(0)
    return losses, dz, dw, db
