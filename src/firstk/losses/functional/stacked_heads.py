"""Cross-entropy of the first K prefixes, each with a separate head, with all heads in one array.

Head k uses the first k columns of its slice of an array (K, C, K), so that one product gives all logits. Rows are
processed in tiles together with their gradients: memory does not grow with the number of rows.
"""

from __future__ import annotations

from functools import lru_cache, partial

import torch
from torch import Tensor

from firstk.losses.functional._inputs import use_compiled
from firstk.losses.functional.once import weighted

# Number of logits held at a time.
_TILE = 1 << 20


@lru_cache(maxsize=8)
def _below(K: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the mask of the columns that each head uses, (K, 1, K)."""
    return torch.ones(K, K, dtype=dtype, device=device).tril_()[:, None]


def _tile(z: Tensor, own: Tensor, offset: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probabilities (rows, K, C), the index of each label in them, and the summed loss of each head."""
    K, C, _ = own.shape
    log_p = torch.addmm(offset.flatten(), z, own.flatten(0, 1).t()).view(-1, K, C).log_softmax(2)
    index = labels[:, None, None].expand(-1, K, 1)
    losses = (smoothing - 1) * log_p.gather(2, index)[..., 0].sum(0)
    return log_p, index, losses - smoothing * log_p.mean(2).sum(0) if smoothing else losses


def sweep(
    z: Tensor, weight: Tensor, offset: Tensor, labels: Tensor, omega: Tensor, *, grad: bool, smoothing: float = 0.0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the K losses and, with `grad`, the gradients of their weighted sum: z[:, :K], weight, offset."""
    if grad and not smoothing and use_compiled("auto", z, "stacked_heads"):
        from firstk.losses.functional import stacked_heads_cpu

        return stacked_heads_cpu.sweep(z[:, : len(weight)], weight, offset, labels, omega, grad)
    return _torch_sweep(z[:, : len(weight)], weight, offset, labels, omega, smoothing, grad)


def _torch_sweep(
    z: Tensor, weight: Tensor, offset: Tensor, labels: Tensor, omega: Tensor, smoothing: float, grad: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    n, (K, C, _) = len(z), weight.shape
    below = _below(K, weight.dtype, weight.device)
    own, share = weight * below, (omega / n)[:, None, None]
    shared = (own * share).flatten(0, 1)  # scales the smaller factor, so that probabilities are not copied
    losses = z.new_zeros(K)
    dz, dw, db = (part.new_zeros(part.shape) if grad else part[:0] for part in (z, weight, offset))
    for start in range(0, n, rows := max(1, _TILE // (K * C))):
        tile = slice(start, start + rows)
        log_p, index, found = _tile(z[tile], own, offset, labels[tile], smoothing)
        losses += found
        if grad:
            residual = log_p.exp_().scatter_add_(2, index, log_p.new_full((1, 1, 1), smoothing - 1).expand_as(index))
            flat = (residual.sub_(smoothing / C) if smoothing else residual).flatten(1)
            dz[tile] = flat @ shared
            dw.view(K * C, K).addmm_(flat.t(), z[tile])
            db += flat.sum(0).view(K, C)
    return (losses / n, dz, dw.mul_(below * share), db.mul_(share[..., 0])) if grad else (losses / n, dz, dw, db)


def _padded_sweep(z: Tensor, *inputs: Tensor, smoothing: float, grad: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sweep codes that may be longer than the heads."""
    losses, dz, dw, db = sweep(z, *inputs, grad=grad, smoothing=smoothing)
    return losses, torch.nn.functional.pad(dz, (0, z.shape[1] - dz.shape[1])), dw, db


def stacked_heads(
    z: Tensor, weight: Tensor, offset: Tensor, labels: Tensor, omega: Tensor, label_smoothing: float = 0.0
) -> Tensor:
    """Return sum_{k<=K} omega_k CE(b_k + W_k z_{1..k}, labels), the mean over rows; differentiable once.

    Parameters
    ----------
    z : Tensor of shape (n, d)
    weight : Tensor of shape (K, C, K)
        Entry k - 1 is the head of prefix k and uses its first k columns; the others are ignored.
    offset : Tensor of shape (K, C)
    labels : Tensor of shape (n,), integer
    omega : Tensor of shape (K,)
        Prefix weights, used without normalization.
    label_smoothing : float
        As in `torch.nn.functional.cross_entropy`.
    """
    return weighted(partial(_padded_sweep, smoothing=label_smoothing), z, weight, offset, labels, omega)


@torch.no_grad()
def stacked_heads_per_prefix(z: Tensor, weight: Tensor, offset: Tensor, labels: Tensor) -> Tensor:
    """Return the K separate losses, (K,), for logging, without gradient. Parameters as in `stacked_heads`."""
    return sweep(z, weight, offset, labels, z.new_zeros(len(weight)), grad=False)[0]
