"""Squared error of every prefix under one shared linear decoder, from batches or from moments alone.

xhat_k = c + sum_{j<=k} z_j a_j (Talukder et al. 2026 (9)), loss_k = mean_i |x_i - xhat_ik|^2: summed over features,
averaged
over rows (Talukder et al. 2026 sums over rows too, Bao et al. 2020 halves). Regression with a shared head is the same
formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from firstk._base.prefix_weights import OmegaLike, PrefixWeights
from firstk.exceptions import InvalidInputError
from firstk.losses.functional._inputs import (
    check_codes,
    check_estimator,
    check_not_sampled,
    check_rows,
    full_precision,
    host_reads,
    promoted,
    untraced,
    weights_of,
    working_dtype,
)
from firstk.losses.functional.once import once
from firstk.losses.functional.sampling import cut, draw_prefixes

_OWNER = "reconstruction"
# If a smaller share of |x|^2 than this is left at full width, expanding around zero would lose over five digits.
_CANCELS = 0.02


class _Tables(NamedTuple):
    """Weights of coordinates and of pairs of coordinates, as tensors.

    `cum[j]` is the total weight of the prefixes that contain j, `late[j]` of those that do not; `both` is cum at
    max(i, j), `neither` is late at min(i, j), and `only[i, j]` is the weight of the prefixes with j and without i.
    """

    cum: Tensor
    late: Tensor
    both: Tensor
    neither: Tensor
    only: Tensor


@lru_cache(maxsize=16)
def _tables(weights: PrefixWeights, dtype: torch.dtype, device: torch.device) -> _Tables:
    # late is a prefix sum instead of 1 - cum, which loses digits where omega is small.
    cum, late = weights.cum, np.cumsum(np.r_[0.0, weights.omega[:-1]])
    arrays = (
        cum,
        late,
        np.minimum(cum[:, None], cum),
        np.minimum(late[:, None], late),
        np.maximum(cum - cum[:, None], 0.0),
    )
    return _Tables(*(torch.tensor(array, dtype=dtype, device=device) for array in arrays))


def _tables_like(weights: PrefixWeights, like: Tensor) -> _Tables:
    make = _tables if type(like) is Tensor else _tables.__wrapped__  # a fake tensor must not outlive its mode
    return make(weights, like.dtype, like.device)


def _residual(x: Tensor, z: Tensor, decoder: Tensor) -> Tensor:
    """Return x minus its reconstruction at full width, (n, p)."""
    return torch.addmm(x, z, decoder.t(), alpha=-1)


class _Step(NamedTuple):
    """n times the weighted loss, and the gradients that are needed."""

    loss: Tensor
    dx: Tensor | None
    dz: Tensor | None
    decoder: Tensor | None


def _around_zero(x: Tensor, z: Tensor, A: Tensor, tables: _Tables, needed: Sequence[bool]) -> _Step | None:
    """Expand |x - xhat_k|^2 around zero: two products with x, one fewer than the plain loss.

    Talukder et al. 2026 appendix B.

    n loss = |x|^2 - 2 sum_j cum_j (x A . z)_j + sum_ij both_ij GA_ij GZ_ij. Returns None if digits cancel.
    """
    cum, _, both, _, _ = tables
    scale, flat = 2 / len(x), x.reshape(-1)
    XA, GA, GZ = x @ A, A.t() @ A, z.t() @ z
    total, H, shared = flat @ flat, (XA * z).sum(0), GA * GZ
    loss = total - 2 * (H @ cum) + (both * shared).sum()
    # Written so that NaN, from x = 0, counts as cancellation.
    if not 1 - (2 * H.sum() - shared.sum()) / total > _CANCELS:
        return None
    dx = dz = dA = None
    if needed[0]:
        dx = torch.addmm(x, z * cum, A.t(), alpha=-scale, beta=scale)
    if needed[1]:
        dz = torch.addmm(XA.mul_(cum), z, both * GA, alpha=scale, beta=-scale)
    if needed[2]:
        dA = torch.addmm((x.t() @ z).mul_(cum), A, both * GZ, alpha=scale, beta=-scale)
    return _Step(loss, dx, dz, dA)


def _around_residual(x: Tensor, z: Tensor, A: Tensor, tables: _Tables, needed: Sequence[bool]) -> _Step:
    """Expand around the residual R at full width; that of prefix k is R plus the tail sum_{j>k} z_j a_j^T.

    n loss = |R|^2 + 2 sum_j late_j (R A . z)_j + sum_ij neither_ij GA_ij GZ_ij: nothing of the size of |x|^2
    is subtracted, so the loss stays accurate when the residual is small.
    """
    cum, late, _, neither, only = tables
    R = _residual(x, z, A)
    scale, flat = 2 / len(x), R.view(-1)
    RA, GA, GZ = R @ A, A.t() @ A, z.t() @ z
    loss = flat @ flat + 2 * ((RA * z).sum(0) @ late) + (neither * GA * GZ).sum()
    dx = dz = dA = None
    if needed[1]:
        dz = torch.addmm(RA.mul_(cum), z, only * GA, alpha=-scale, beta=-scale)
    if needed[2]:
        dA = torch.addmm((R.t() @ z).mul_(cum), A, only * GZ, alpha=-scale, beta=-scale)
    if needed[0]:
        dx = torch.addmm(R, z * late, A.t(), alpha=scale, beta=scale)
    return _Step(loss, dx, dz, dA)


def _step(
    x: Tensor, z: Tensor, decoder: Tensor, *, tables: _Tables, needed: Sequence[bool], grad: bool
) -> tuple[Tensor, ...]:
    """Return the weighted loss and the needed gradients, which are computed while the large arrays are in memory."""
    step, needed = None, needed if grad else (False, False, False)
    # Elsewhere the test for cancellation would wait for the device.
    if host_reads(x):
        step = _around_zero(x, z, decoder, tables, needed)
    if step is None:
        step = _around_residual(x, z, decoder, tables, needed)
    return step.loss / len(x), *(x.new_empty(0) if part is None else part for part in step[1:])


def _checked(x: Tensor, z: Tensor, decoder: Tensor, offset: Tensor | None, owner: str) -> tuple[Tensor, Tensor, Tensor]:
    """Check the shapes, convert to the working dtype and subtract the offset from x."""
    check_codes(x, owner, "x")
    check_codes(z, owner)
    check_rows(x, z, "x", "z", owner)
    check_codes(decoder, owner, "decoder", width=z.shape[1])
    if len(x) == 0:
        raise InvalidInputError(f"{owner} needs at least one row. Got shape {tuple(x.shape)}.")
    if len(decoder) != x.shape[1] or (offset is not None and offset.shape != (x.shape[1],)):
        raise InvalidInputError(
            f"{owner} needs one row of 'decoder' and one entry of 'offset' for each of the {x.shape[1]} "
            f"columns of 'x'. Got {len(decoder)} and {'none' if offset is None else tuple(offset.shape)}."
        )
    dtype = working_dtype(x, z, decoder)
    x = x.to(dtype) if offset is None else x.to(dtype) - offset.to(dtype)
    return x, z.to(dtype), decoder.to(dtype)


@untraced
def reconstruction(
    x: Tensor,
    z: Tensor,
    decoder: Tensor,
    offset: Tensor | None = None,
    *,
    omega: OmegaLike | Tensor = "uniform",
    estimator: str = "exact",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return sum_k omega_k mean_i |x_i - offset - sum_{j<=k} z_ij a_j|^2 (Talukder et al. 2026 (9) over n sum omega).

    Parameters
    ----------
    x : Tensor of shape (n, p)
    z : Tensor of shape (n, d)
        Codes, from any encoder.
    decoder : Tensor of shape (p, d)
        Column j is a_j; `nn.Linear(d, p).weight` has this shape.
    offset : Tensor of shape (p,), optional
    omega, estimator, generator
        As in `cross_entropy`.

    Examples
    --------
    >>> x = torch.tensor([[3.0, 4.0]])
    >>> reconstruction(x, x, torch.eye(2)).item()  # (16 + 0) / 2
    8.0
    """
    x, z, decoder = _checked(x, z, decoder, offset, _OWNER)
    weights = weights_of(omega, z.shape[1], _OWNER)
    with full_precision(z.device):
        if check_estimator(estimator, _OWNER):
            k = draw_prefixes(weights, len(z), z.device, generator)
            return _residual(x, cut(z, k), decoder).square().sum() / len(x)
        needed = [part.requires_grad for part in (x, z, decoder)]
        return once(partial(_step, tables=_tables_like(weights, z), needed=needed), x, z, decoder)


def _after(gains: Tensor) -> Tensor:
    """Return the sum of the entries after each position."""
    return torch.cat([gains.flip(0).cumsum(0).flip(0)[1:], gains.new_zeros(1)])


@untraced
@torch.no_grad()
def reconstruction_per_prefix(x: Tensor, z: Tensor, decoder: Tensor, offset: Tensor | None = None) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `reconstruction`."""
    x, z, decoder = _checked(x, z, decoder, offset, "reconstruction_per_prefix")
    with full_precision(z.device):
        R = _residual(x, z, decoder)
        T = (decoder.t() @ decoder) * (z.t() @ z)
        gains = 2 * ((R @ decoder) * z).sum(0) + 2 * T.triu(1).sum(1) + T.diagonal()
        return (R.square().sum() + _after(gains)) / len(x)


def _checked_moments(St: Tensor, components: Tensor, decoder: Tensor, owner: str) -> tuple[Tensor, ...]:
    check_codes(components, owner, "components")
    d, p = components.shape
    check_codes(St, owner, "St", width=p)
    check_codes(decoder, owner, "decoder", width=d)
    if len(St) != p or len(decoder) != p:
        raise InvalidInputError(
            f"{owner} needs 'St' of shape {(p, p)} and 'decoder' of shape {(p, d)} for 'components' of shape "
            f"{(d, p)}. Got {tuple(St.shape)} and {tuple(decoder.shape)}."
        )
    return promoted(St, components, decoder)


@untraced
def reconstruction_from_moments(
    St: Tensor,
    components: Tensor,
    decoder: Tensor,
    *,
    omega: OmegaLike | Tensor = "uniform",
    estimator: str = "exact",
) -> Tensor:
    """Return the same loss for a linear encoder from the scatter alone, in O(p^2 d) independent of n.

    cum_1 tr St - 2 sum_i cum_i H_ii + sum_ij cum_max(i,j) GA_ij GZ_ij, with H = A^T St B^T, GA = A^T A,
    GZ = B St B^T (Talukder et al. 2026 appendix B, docs/theory.md, 4.1).

    Parameters
    ----------
    St : Tensor of shape (p, p)
        Total scatter divided by n, of centered data.
    components : Tensor of shape (d, p)
        Encoder B.
    decoder : Tensor of shape (p, d)
        Decoder A.
    omega : as in `cross_entropy`
    estimator : "exact"
        "sampled" raises an error: moments have no rows to draw for.
    """
    owner = "reconstruction_from_moments"
    check_not_sampled(estimator, owner, "moments have no rows for which a prefix could be drawn")
    St, B, A = _checked_moments(St, components, decoder, owner)
    tables = _tables_like(weights_of(omega, len(B), owner), B)
    with full_precision(B.device):
        BS = B @ St  # (d, p)
        H = (BS * A.t()).sum(1)
        return St.trace() - 2 * (H @ tables.cum) + (tables.both * (A.t() @ A) * (BS @ B.t())).sum()


@untraced
@torch.no_grad()
def reconstruction_from_moments_per_prefix(St: Tensor, components: Tensor, decoder: Tensor) -> Tensor:
    """Return the d separate losses, (d,), for logging. Parameters as in `reconstruction_from_moments`."""
    St, B, A = _checked_moments(St, components, decoder, "reconstruction_from_moments_per_prefix")
    with full_precision(B.device):
        BS = B @ St
        T = (A.t() @ A) * (BS @ B.t())
        gains = 2 * T.tril(-1).sum(1) + T.diagonal() - 2 * (BS * A.t()).sum(1)
        return St.trace() + gains.cumsum(0)
