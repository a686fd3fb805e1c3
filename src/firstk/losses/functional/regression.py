"""Squared error of every prefix in predicting targets: one shared head, or the best head of each prefix.

The shared head is `reconstruction` with the targets in place of the data. The best head is never computed: one QR
factorization of the codes gives the error of the best linear probe of every prefix (docs/theory.md, 4.3).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from firstk._base.prefix_weights import OmegaLike
from firstk.losses.functional._inputs import (
    as_tensor,
    check_codes,
    check_not_sampled,
    check_rows,
    full_precision,
    promoted,
    untraced,
    weights_of,
)
from firstk.losses.functional.once import once
from firstk.losses.functional.reconstruction import reconstruction, reconstruction_per_prefix

# Ridge relative to the mean squared column norm, so that dependent codes give finite gradients.
_RANK_GUARD = 1e-12
_WHY_NOT_SAMPLED = "the best head of a prefix depends on all rows at once, so rows cannot differ in k"


def _columns(targets: Tensor) -> Tensor:
    return targets[:, None] if targets.ndim == 1 else targets


def regression(
    z: Tensor,
    weight: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    omega: OmegaLike | Tensor = "harmonic",
    estimator: str = "exact",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return sum_k omega_k mean_i |y_i - b - sum_{j<=k} z_ij w_j|^2, summed over targets, one shared head.

    Parameters
    ----------
    z : Tensor of shape (n, d)
    weight : Tensor of shape (q, d)
        Head, as `nn.Linear` stores it.
    targets : Tensor of shape (n, q) or (n,)
    bias : Tensor of shape (q,), optional
    omega, estimator, generator
        As in `cross_entropy`.
    """
    options: dict[str, Any] = {"omega": omega, "estimator": estimator, "generator": generator}
    return reconstruction(_columns(targets), z, weight, bias, **options)


def regression_per_prefix(z: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `regression`."""
    return reconstruction_per_prefix(_columns(targets), z, weight, bias)


def _orthogonalised(z: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q and R with z = Q R and R^T R = z^T z + guard I.

    Guard rows appended to z make R invertible: a coordinate that depends linearly on earlier ones then contributes
    nothing instead of a random direction.
    """
    d = z.shape[1]
    size = z.square().mean().detach() * len(z)
    guard = torch.where(size > 0, size * _RANK_GUARD, torch.ones_like(size)).sqrt()
    Q, R = torch.linalg.qr(torch.cat([z, guard * torch.eye(d, dtype=z.dtype, device=z.device)]))
    return Q[: len(z)], R


def _best_probe(z: Tensor, y: Tensor, cum: Tensor, *, grad: bool) -> tuple[Tensor, ...]:
    """Return (|Y|^2 - sum_j cum_j |q_j^T Y|^2) / n and, with `grad`, its gradients by Z and Y.

    With V = Q^T Y: dZ = 2 (Q (cum_max(i,j) (V V^T)_ij) - Y V^T diag(cum)) R^-T and
    dY = 2 (Y - Q diag(cum) V); the derivation is that of the ratio trace with A = Z^T Z and M = Z^T Y Y^T Z.
    """
    Q, R = _orthogonalised(z)
    V, scale = Q.t() @ y, 2 / len(z)  # V: (d, q)
    value = (y.square().sum() - V.square().sum(1) @ cum) / len(z)
    if not grad:
        return value, z.new_empty(0), y.new_empty(0)
    both = torch.minimum(cum[:, None], cum) * (V @ V.t())
    inner = Q @ both - y @ (V.t() * cum)
    dz = torch.linalg.solve_triangular(R.t(), inner * scale, upper=False, left=False)
    return value, dz, (y - Q @ (V * cum[:, None])) * scale


def _centred(z: Tensor, targets: Tensor, owner: str) -> tuple[Tensor, Tensor]:
    check_codes(z, owner)
    targets = check_codes(_columns(targets), owner, "targets")
    check_rows(z, targets, "z", "targets", owner)
    z, y = promoted(z, targets)
    if z.device.type != "mps":
        z, y = z.double(), y.double()
    return z - z.mean(0), y - y.mean(0)


@untraced
def regression_free_head(
    z: Tensor, targets: Tensor, *, omega: OmegaLike | Tensor = "harmonic", estimator: str = "exact"
) -> Tensor:
    """Return sum_k omega_k min_{W, b} mean_i |y_i - b - W z_{i,1..k}|^2: the best probe of every prefix.

    Z and Y centered, Z = Q R: SSE_k = |Y|^2 - sum_{j<=k} |q_j^T Y|^2. With one-hot targets this is a
    classification loss that needs no head. Computed in float64.

    Parameters
    ----------
    z : Tensor of shape (n, d)
    targets : Tensor of shape (n, q) or (n,)
    omega : as in `cross_entropy`
    estimator : "exact"
        "sampled" raises an error: the best head of a prefix depends on all rows at once.
    """
    owner = "regression_free_head"
    check_not_sampled(estimator, owner, _WHY_NOT_SAMPLED)
    dtype = promoted(z)[0].dtype
    with full_precision(z.device):
        z, y = _centred(z, targets, owner)
        cum = as_tensor(weights_of(omega, z.shape[1], owner).cum, z)
        return once(_best_probe, z, y, cum).to(dtype)


@untraced
@torch.no_grad()
def regression_free_head_per_prefix(z: Tensor, targets: Tensor) -> Tensor:
    """Return the d separate losses, (d,), for logging. Parameters as in `regression_free_head`."""
    dtype = promoted(z)[0].dtype
    with full_precision(z.device):
        z, y = _centred(z, targets, "regression_free_head_per_prefix")
        gains = (_orthogonalised(z)[0].t() @ y).square().sum(1)
        return ((y.square().sum() - gains.cumsum(0)) / len(z)).to(dtype)
