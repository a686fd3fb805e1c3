"""Fisher's ratio trace of every prefix from one Cholesky factor (docs/theory.md, 4.2).

loss_k = -tr((B_k Sw B_k^T)^-1 B_k Sb B_k^T) (Talukder et al. 2026 (29)). With A = B Sw B^T = L L^T and M = B Sb B^T,
the leading block of L is the factor of the leading block of A, so loss_k = -sum_{j<=k} (L^-1 M L^-T)_jj.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from firstk._base.checks import bad_parameter, check_choice, check_fraction, check_non_negative
from firstk._base.prefix_weights import OmegaLike
from firstk.exceptions import InvalidInputError
from firstk.losses.functional._inputs import (
    as_tensor,
    check_codes,
    check_not_sampled,
    check_rows,
    full_precision,
    host_reads,
    promoted,
    untraced,
    weights_of,
)
from firstk.losses.functional.once import once

_WHY_NOT_SAMPLED = "the ratio trace is not a sum over rows, so drawing a prefix per row would be biased"


def _wide(x: Tensor) -> Tensor:
    # float64: d x d algebra is cheap compared with the products before it, and Sw can have condition number 1e8.
    return x if x.device.type == "mps" else x.double()


def _whitened(A: Tensor, M: Tensor) -> tuple[Tensor, Tensor]:
    """Return L and C = L^-1 M L^-T for the within scatter A = L L^T."""
    L, info = torch.linalg.cholesky_ex(A)
    if not host_reads(A):
        L = L.where(info == 0, torch.nan)  # reading `info` would wait for the device
    elif int(info):
        raise InvalidInputError(
            "Fisher needs a positive definite within-class scatter of the code; it is singular at coordinate "
            f"{int(info)} of {len(A)}. Regularize Sw with shrinkage=0.01, or use fewer coordinates."
        )
    left = torch.linalg.solve_triangular(L, M, upper=False)
    return L, torch.linalg.solve_triangular(L, left.t(), upper=False)


def _ratio_trace(A: Tensor, M: Tensor, cum: Tensor, *, grad: bool) -> tuple[Tensor, ...]:
    """Return sum_j cum_j C_jj and, with `grad`, its gradients by A and M.

    dM = L^-T diag(cum) L^-1 and dA = -L^-T (cum_max(i,j) C_ij) L^-1: the differential of the Cholesky factor
    keeps the lower triangle of L^-1 dA L^-T, which turns cum_i into cum_max(i,j).
    """
    L, C = _whitened(A, M)
    value = C.diagonal() @ cum
    if not grad:
        return value, A.new_empty(0), M.new_empty(0)
    inner = torch.stack([-torch.minimum(cum[:, None], cum) * C, torch.diag(cum)])  # (2, d, d)
    right = torch.linalg.solve_triangular(L.t(), inner, upper=True)
    dA, dM = torch.linalg.solve_triangular(L.t(), right.mT, upper=True)
    return value, dA, dM


def _ratio_trace_of_encoder(
    B: Tensor, Sw: Tensor, Sb: Tensor, cum: Tensor, *, shrinkage: float, code_eps: float, grad: bool
) -> tuple[Tensor, ...]:
    """Return the same as a function of the encoder B; the gradient uses B Sw and B Sb again."""
    BW, BS = _shrunk_product(B, Sw, shrinkage), B @ Sb  # (d, p)
    A, M = _wide(BW @ B.t()), _wide(BS @ B.t())
    A.diagonal().add_(code_eps)
    value, dA, dM = _ratio_trace(A, M, cum, grad=grad)
    return value.to(B.dtype), torch.addmm(dA.to(BW) @ BW, dM.to(BW), BS).mul_(2) if grad else dA


def _shrunk_product(B: Tensor, Sw: Tensor, shrinkage: float) -> Tensor:
    """Return B ((1 - a) Sw + a tr(Sw)/p I) without forming the regularized matrix."""
    BW = B @ Sw
    return BW if shrinkage == 0 else BW.mul_(1 - shrinkage).add_(B * (Sw.trace() * (shrinkage / len(Sw))))


def _checked(components: Tensor, Sw: Tensor, Sb: Tensor, owner: str) -> tuple[Tensor, ...]:
    check_codes(components, owner, "components")
    p = components.shape[1]
    for S, name in ((Sw, "Sw"), (Sb, "Sb")):
        check_codes(S, owner, name, width=p)
        if len(S) != p:
            raise InvalidInputError(f"{owner} needs '{name}' of shape {(p, p)}. Got {tuple(S.shape)}.")
        if S.requires_grad:
            raise InvalidInputError(
                f"{owner} differentiates with respect to 'components' only, and '{name}' requires grad. "
                "Detach it, or use fisher_from_codes for a trained network."
            )
    return promoted(components, Sw, Sb)


@untraced
def fisher(
    components: Tensor,
    Sw: Tensor,
    Sb: Tensor,
    *,
    omega: OmegaLike | Tensor = "uniform",
    shrinkage: float | None = None,
    code_eps: float = 0.0,
    estimator: str = "exact",
) -> Tensor:
    """Return -sum_k omega_k tr((B_k Sw B_k^T)^-1 B_k Sb B_k^T) for a linear encoder B.

    Parameters
    ----------
    components : Tensor of shape (d, p)
        Encoder B.
    Sw, Sb : Tensors of shape (p, p)
        Within- and between-class scatter, divided by n (Talukder et al. 2026 (26), (27)).
    omega : as in `cross_entropy`
    shrinkage : float in [0, 1], optional
        Replaces Sw by (1 - a) Sw + a tr(Sw)/p I. Applied in input space, where it preserves every invariance.
    code_eps : float
        eps of Talukder et al. 2026 (29), added to the scatter of the code. For reproduction only: its effect vanishes
        as B is scaled up, so the loss has no minimizer.
    estimator : "exact"
        "sampled" raises an error: the ratio trace is not a sum over rows.
    """
    owner = "fisher"
    check_not_sampled(estimator, owner, _WHY_NOT_SAMPLED)
    B, Sw, Sb = _checked(components, Sw, Sb, owner)
    a = 0.0 if shrinkage is None else check_fraction(shrinkage, "shrinkage", owner)
    eps = check_non_negative(code_eps, "code_eps", owner)
    cum = as_tensor(weights_of(omega, len(B), owner).cum, _wide(B))
    with full_precision(B.device):
        return -once(partial(_ratio_trace_of_encoder, shrinkage=a, code_eps=eps), B, Sw, Sb, cum)


@untraced
@torch.no_grad()
def fisher_per_prefix(
    components: Tensor, Sw: Tensor, Sb: Tensor, *, shrinkage: float | None = None, code_eps: float = 0.0
) -> Tensor:
    """Return the d separate losses, (d,), for logging, without gradient. Parameters as in `fisher`."""
    owner = "fisher_per_prefix"
    B, Sw, Sb = _checked(components, Sw, Sb, owner)
    a = 0.0 if shrinkage is None else check_fraction(shrinkage, "shrinkage", owner)
    with full_precision(B.device):
        A, M = _wide(_shrunk_product(B, Sw, a) @ B.t()), _wide(B @ Sb @ B.t())
        A.diagonal().add_(check_non_negative(code_eps, "code_eps", owner))
        return -_whitened(A, M)[1].diagonal().cumsum(0).to(B.dtype)


def class_scatters(z: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the within- and between-class scatter of codes, divided by n, (d, d) each; differentiable."""
    n, d = z.shape
    _, classes, counts = labels.unique(return_inverse=True, return_counts=True)
    size = counts.to(z.dtype)
    means = z.new_zeros(len(counts), d).index_add(0, classes, z) / size[:, None]  # (C, d)
    within, between = z - means[classes], means - z.mean(0)
    return within.t() @ within / n, (between * (size / n)[:, None]).t() @ between


def _code_scatters(z: Tensor, labels: Tensor, code_eps: float, owner: str) -> tuple[Tensor, Tensor]:
    check_codes(z, owner)
    check_rows(z, labels, "z", "labels", owner)
    if labels.ndim != 1 or labels.dtype.is_floating_point:
        raise bad_parameter("labels", owner, "one class index per row", str(labels.dtype))
    A, M = class_scatters(_wide(promoted(z)[0]), labels)
    eps = check_non_negative(code_eps, "code_eps", owner)
    return A + eps * torch.eye(len(A), dtype=A.dtype, device=A.device) if eps else A, M


@untraced
def fisher_from_codes(
    z: Tensor,
    labels: Tensor,
    *,
    omega: OmegaLike | Tensor = "uniform",
    code_eps: float = 0.0,
    estimator: str = "exact",
    against: str = "within",
) -> Tensor:
    """Return the loss of `fisher` for the codes of any network, from the scatters of the batch.

    Parameters
    ----------
    z : Tensor of shape (n, d)
        Needs more rows than coordinates plus classes; otherwise the within-class scatter is singular.
    labels : Tensor of shape (n,), integer
    omega, code_eps, estimator
        As in `fisher`. There is no input space to regularize in: with `code_eps=0` the loss is invariant to scale,
        otherwise it is Talukder et al. 2026 (29).
    against : {"within", "total"}
        Scatter in the denominator of the ratio. A nonlinear network can make the within-class scatter of a batch
        arbitrarily small, so that the loss is unbounded; with the total scatter, Sw + Sb, the loss of prefix k is at
        least -k. For linear codes both choices have the same optimal axes.
    """
    owner = "fisher_from_codes"
    check_not_sampled(estimator, owner, _WHY_NOT_SAMPLED)
    check_choice(against, ("within", "total"), "against", owner)
    with full_precision(z.device):
        A, M = _code_scatters(z, labels, code_eps, owner)
        A = A + M if against == "total" else A
        cum = as_tensor(weights_of(omega, len(A), owner).cum, A)
        return -once(_ratio_trace, A, M, cum).to(promoted(z)[0].dtype)
