"""The closed-form solver: whiten in N, diagonalize M, and order the null space of M by variance.

One mechanism serves every objective that has a pencil (M, N). Directions below the numerical rank of the data are
dropped; directions on which the objective has no preference are ordered by their N-variance per unit length.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import null_space

from firstk._base.checks import check_choice
from firstk._base.linalg import (
    FEW,
    leading_eigh,
    ordered_eigh,
    rank_tolerance,
    signed,
    single_eigh,
    symmetrised,
    whitener,
)
from firstk.contracts import FitRequest, MomentObjective, Objective, Ordering, Pencil, Solution, Width
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.encoder.record import FitRecord
from firstk.exceptions import IllegalCombinationError, InvalidInputError, RankWarning

# What keeps results that several pencils need: `Statistics.shared`.
Shared = Callable[[Hashable, Callable[[], Any]], Any]

# Default widths of WIDE coordinates and more are multiples of MULTIPLE, as product quantizers and vector instructions
# divide a code, where the coordinates that this drops hold no more than this share of the sum of gamma.
MULTIPLE = 8
WIDE = 64
DROPPED_SHARE = 1e-3
NO_SIGNAL = (
    "every column is constant, or the labels or targets are unrelated to the data. Check the columns and the labels."
)


@dataclass(frozen=True)
class ClosedForm:
    """Solve the objective's pencil exactly, from moments.

    Parameters
    ----------
    precision : {"auto", "float64"}
        Precision of the products behind the moments of float32 data; see :class:`firstk.moments.moments.Moments`.
    extends : FittedEncoder or PrefixEncoder, optional
        An encoder whose axes (and means) are the first of the new one: those after them are the best that can be added,
        so that stored codes grow by columns. For objectives that have no head, and no decoder or that of orthonormal
        axes: reconstruction and similarity. Cut it to keep fewer: ``old[:64]``.
    """

    precision: str = "auto"
    extends: Any = None

    name: ClassVar[str] = "closed_form"
    trains: ClassVar[bool] = False

    @property
    def shows_coordinates(self) -> bool:
        """Whether axes must be in the coordinates that were given: those of an old encoder are."""
        return self.extends is not None

    def check(self) -> None:
        """Raise an error for an unknown precision, or for something to extend that is no linear encoder."""
        check_choice(self.precision, ("auto", "float64"), "precision", "ClosedForm")
        if self.extends is not None and check_fitted(self.extends, "ClosedForm", "extends").network is not None:
            raise InvalidInputError(
                "ClosedForm(extends=...) takes a linear encoder: a network has no axes to add others to."
            )

    def check_combination(self, objective: Objective, ordering: Ordering, network: object) -> None:
        """Raise an error if there is no closed form: for a network, or an objective or ordering that needs training."""
        if network != "linear":
            raise IllegalCombinationError(
                f"network={network!r} with solver 'closed_form'",
                "closed forms exist for linear encoders only",
                "network='linear', or solver='gradient'",
            )
        if not objective.exact or not ordering.has_closed_form:
            what = f"objective '{objective.name}'" if not objective.exact else f"ordering '{ordering.name}'"
            other = "quasi_newton" if isinstance(objective, MomentObjective) else "gradient"
            raise IllegalCombinationError(
                f"{what} with solver 'closed_form'", "it has no closed form", f"solver='{other}' or 'auto'"
            )

    def check_streamable(self, objective: Objective, ordering: Ordering, network: object, what: str) -> None:
        """Accept every combination: a pencil needs statistics only."""

    def solve(self, request: FitRequest) -> FittedEncoder:
        """Return the encoder with the axes of the request's pencil as rows."""
        if self.extends is not None:
            return extended(request, check_fitted(self.extends, "ClosedForm", "extends"))
        return fitted_encoder(request, pencil_axes(request))


def fitted_encoder(request: FitRequest, solution: Solution, record: FitRecord | None = None) -> FittedEncoder:
    """Return the linear encoder with these axes as rows, and the objective's readouts of its codes."""
    objective = request.objective
    return FittedEncoder(
        components=solution.components,
        spectrum=solution.spectrum,
        mean=request.mean,
        query_mean=request.query_mean,
        decoder=objective.decoder(request.statistics, solution.components),
        head=objective.head(request.statistics, solution.components),
        normalized=objective.conventions.normalized,
        pinned=solution.pinned,
        record=record or FitRecord(),
    )


def extended(request: FitRequest, old: FittedEncoder) -> FittedEncoder:
    """Return the best encoder whose first axes and means are those of an old one."""
    objective, statistics, p = request.objective, request.statistics, request.statistics.moments.p
    if old.p != p or old.normalized != objective.conventions.normalized:
        unit = "codes of unit norm" if old.normalized else "codes that are not normalized"
        raise InvalidInputError(
            f"An encoder of {old.p} columns with {unit} cannot be extended by objective '{objective.name}' on {p} "
            "columns: take the vectors and the objective that it was fitted with."
        )
    if isinstance(request.n_components, int) and request.n_components <= old.d:
        raise InvalidInputError(
            f"n_components={request.n_components} adds nothing to an encoder of {old.d} coordinates. Ask for more, or "
            f"extend a part of it: extends=old[:{max(1, request.n_components - 1)}]."
        )
    solution = extended_axes(request.pencil, old.components, request.n_components, statistics.moments.eps)
    request.ordering.check(len(solution.components))
    B = solution.components
    decoder = objective.decoder(statistics, B)
    oblique = not np.allclose(B @ B.T, np.eye(len(B)), atol=1e-6)
    if objective.head(statistics, B) is not None or (decoder is not None and oblique):
        raise IllegalCombinationError(
            f"ClosedForm(extends=...) with objective '{objective.name}' and an encoder of objective "
            f"'{old.record.objective}'",
            "a head or decoder is shared by all prefixes only where one fit has found all axes",
            "objective 'reconstruction' or 'similarity', and an encoder that was fitted with the same",
        )
    return FittedEncoder(
        components=solution.components,
        spectrum=solution.spectrum,
        mean=old.mean,
        query_mean=old.query_mean,
        decoder=decoder,
        normalized=objective.conventions.normalized,
        pinned=solution.pinned,
    )


def extended_axes(pencil: Pencil, old: np.ndarray, n_components: Width, eps: float) -> Solution:
    r"""Return old axes (k, p), and after them the best further axes of a pencil.

    Axes v that are added are N-orthogonal to the old ones B, so that the ratio trace of all of them is that of the old
    ones and :math:`\sum v^\top M v / v^\top N v`. With E an orthonormal basis of the complement of :math:`N B^\top`
    they are the axes of the pencil :math:`(E^\top M E, E^\top N E)`, in the coordinates of E.
    """
    k, N = len(old), pencil.N
    metric = old.T if N is None else N @ old.T  # (p, k)
    E = null_space(metric.T)
    if not E.shape[1]:
        raise InvalidInputError(f"An encoder of {k} coordinates of {len(E)} columns leaves nothing to add.")
    inside = Pencil(
        M=None if pencil.M is None else symmetrised(E.T @ pencil.M @ E),
        factor=None if pencil.factor is None else E.T @ pencil.factor,
        N=None if N is None else symmetrised(E.T @ N @ E),
        most=pencil.most,
        power=pencil.power,
    )
    wanted = n_components - k if isinstance(n_components, int) else n_components
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_components=", RankWarning)  # it would count the added axes alone
        added = solve_pencil(inside, wanted, eps)
    if isinstance(n_components, int) and (found := k + len(added.components)) < n_components:
        warnings.warn(
            f"n_components={n_components} was requested, but the data have no more than {found - k} directions to add "
            f"to {k}: {found} components are kept. Pass n_components={found} or None to silence this.",
            RankWarning,
            stacklevel=2,
        )
    M = pencil.formed()
    size = np.einsum("kp,kp->k", old @ (np.eye(len(M)) if N is None else N), old)
    gamma = np.einsum("kp,kp->k", old @ M, old) / np.maximum(size, np.finfo(float).tiny)
    components = added.components @ E.T
    components *= signed(components)[:, None]
    return Solution(np.vstack([old, components]), np.concatenate([gamma, added.spectrum]), k + added.pinned)


def pencil_axes(request: FitRequest) -> Solution:
    """Return the axes of the request's pencil, and check the ordering against their number."""
    statistics = request.statistics
    # Only folds are solved for several candidates: what is fitted on all rows does not depend on what was tried before.
    shared = None if statistics.part_of is None else statistics.shared
    solution = solve_pencil(request.pencil, request.n_components, statistics.moments.eps, shared)
    request.ordering.check(len(solution.components))
    return solution


def solve_pencil(pencil: Pencil, n_components: Width, eps: float, shared: Shared | None = None) -> Solution:
    """Return the first `n_components` axes of the pencil.

    Parameters
    ----------
    pencil : Pencil
    n_components : int, "rank" or None
        "rank" keeps the axes with nonzero gamma; None keeps a multiple of 8 of them, where that costs next to nothing.
    eps : float
        Precision of the products behind the pencil.
    shared : callable, optional
        `Statistics.shared`, where several pencils of the same statistics are solved.

    Returns
    -------
    Solution
        Axes orthonormal in N and divided by ``gamma^(power / 2)``, gamma descending, signs by convention.
    """
    R, U, gamma = _leading(pencil, n_components, eps) or _diagonalised(pencil, eps, shared)
    tolerance = _tolerance(pencil, len(gamma), eps) * np.abs(gamma).max(initial=0.0)
    pinned = min(int(np.sum(gamma > tolerance)), pencil.most or len(gamma))
    available = pinned if R is None else R.shape[1]
    wanted = pinned
    if n_components is None:
        # Of C classes or q targets each direction tells something: a small gamma may still separate two classes.
        counted, rounded = pencil.most is not None or pencil.factor is not None, pinned - pinned % MULTIPLE
        told = gamma[:pinned]
        if not counted and pinned >= WIDE and told[rounded:].sum() <= DROPPED_SHARE * told.sum():
            wanted = rounded
    elif n_components != "rank":
        wanted = n_components
    # Without N, directions of negative gamma count as missing: only an objective of the user's own has both.
    d = chosen_width(wanted, pinned, available, lowering=R is None and bool((gamma < -tolerance).any()))
    vectors = U if R is None else R @ U
    if d > pinned:
        assert R is not None
        assert pencil.N is not None
        lowering = gamma < -tolerance
        if np.any(lowering):
            warnings.warn(
                f"Only the first {pinned} coordinates increase the agreement of similar vectors (gamma > 0); later "
                f"ones decrease it. Pass n_components={pinned} or less, or None.",
                RankWarning,
                stacklevel=2,
            )
        raising = np.arange(len(gamma)) < pinned
        # Axes N-orthogonal to the `decided` ones, by descending v^T N v / v^T v, with v^T N v = 1, as columns. Where
        # the objective has no preference (Fisher beyond C - 1 axes, pairs where gamma is zero), the remaining axes are
        # N-orthogonal to the decided ones and carry the most of the remaining variance in N. They are eigenvectors of N
        # on the complement of N times the decided axes, largest first. The smallest eigenvectors of R^T R are the same
        # in exact arithmetic, but lose digits when a column is nearly constant.
        decided = vectors[:, raising | lowering]
        E = np.eye(len(pencil.N)) if R.shape[1] == len(pencil.N) else np.linalg.qr(R)[0]
        E[~R.any(axis=1)] = 0.0  # weights of constant columns are exactly zero
        if decided.shape[1]:
            E = E @ np.linalg.qr(E.T @ (pencil.N @ decided), mode="complete")[0][:, decided.shape[1] :]
        V = E @ ordered_eigh(symmetrised(E.T @ pencil.N @ E))[1]
        norms = np.sqrt(np.maximum(((pencil.N @ V) * V).sum(axis=0), np.finfo(float).tiny))
        free = V / norms
        vectors = np.hstack([vectors[:, raising], free, vectors[:, lowering]])
        gamma = np.concatenate([gamma[raising], np.zeros(free.shape[1]), gamma[lowering]])
    components = np.ascontiguousarray(vectors[:, :d].T)
    if pencil.power:
        components *= whitening(gamma[:d], pencil.power)[:, None]
    return Solution(components * signed(components)[:, None], gamma[:d].copy(), min(pinned, d))


def whitening(gamma: np.ndarray, power: float) -> np.ndarray:
    """Return ``gamma^(-power / 2)``; 1 where gamma is not positive, as there is nothing to divide by."""
    return np.where(gamma > 0, gamma, 1.0) ** (-power / 2)


def _leading(pencil: Pencil, n_components: Width, eps: float) -> tuple[None, np.ndarray, np.ndarray] | None:
    """Return the axes that are asked for alone, where they are few, all raise the objective, and N is the identity.

    What `_diagonalised` returns, cut off; None where it takes all axes to know.
    """
    M = pencil.M
    if M is None or pencil.N is not None or pencil.factor is not None or not isinstance(n_components, int):
        return None
    if not 0 < n_components <= min(len(M) // FEW, pencil.most or len(M)) or not np.isfinite(M).all():
        return None
    gamma, U = leading_eigh(M, n_components)
    # No eigenvalue is larger than the Frobenius norm.
    clear = gamma[-1] > _tolerance(pencil, len(M), eps) * np.linalg.norm(M)
    return (None, U, gamma) if clear else None


def _diagonalised(
    pencil: Pencil, eps: float, shared: Shared | None = None
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Whiten in N and diagonalize M; raise an error if products of very large numbers overflow."""
    given = [part for part in (pencil.M, pencil.N, pencil.factor) if part is not None]
    try:
        if not all(np.isfinite(part).all() for part in given):
            raise np.linalg.LinAlgError("their products overflow")
        family = None if shared is None else _in_family(pencil, eps, shared)
        if family is not None:
            return family
        R = None if pencil.N is None else whitener(pencil.N, eps)
        if R is not None and R.shape[1] == 0:
            raise InvalidInputError(f"The data do not vary: {NO_SIGNAL}")
        # The solutions u in whitened coordinates (v = R u), as columns, and gamma, descending.
        if pencil.factor is not None:
            U, s, _ = np.linalg.svd(pencil.factor if R is None else R.T @ pencil.factor, full_matrices=False)
            return R, U, s**2
        assert pencil.M is not None
        gamma, U = ordered_eigh(pencil.M if R is None else symmetrised(R.T @ pencil.M @ R))
        return R, U, gamma
    except np.linalg.LinAlgError as error:
        largest = max(float(np.abs(part).max(initial=0.0)) for part in given)
        raise InvalidInputError(
            f"The moments are too large for the closed form ({error}): the largest is {largest:.3g}. Scale the columns "
            "down and compute the moments again."
        ) from None


def _in_family(pencil: Pencil, eps: float, shared: Shared) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Do the work of `_diagonalised` for a shrunk N by the eigenvectors of its scatter, which all shrinkages share.

    With ``S = V diag(l) V^T``, ``R = V diag(scale l + ridge)^(-1/2)`` whitens N, and ``R^T M R`` is ``V^T M V`` with
    rows and columns scaled: what is left for each shrinkage is one eigenproblem. Where moments are in single precision,
    so is that: its axes are compared on held-out rows, and not kept. None where N is no such matrix, or so little
    shrunk that directions below the numerical rank might count.
    """
    family = share_family(pencil, eps, shared)
    if family is None:
        return None
    V, size, turned = family
    if pencil.factor is not None:
        U, s, _ = np.linalg.svd(size[:, None] * turned, full_matrices=False)
        return V * size, U, s**2
    gamma, U = (single_eigh if _is_single(pencil, eps) else ordered_eigh)(size[:, None] * turned * size)
    return (V * size).astype(U.dtype), U, gamma


def share_family(pencil: Pencil, eps: float, shared: Shared) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return V, the scales of its columns and ``V^T M V`` of `_in_family`; `shared` keeps what other pencils need."""
    parts = pencil.shrunk
    if parts is None or pencil.N is None or not np.array_equal(parts.formed(), pencil.N):
        return None
    if not np.isfinite(parts.S).all():
        return None
    # A key by address is good as long as the array lives, so the results hold it.
    values, V, _ = shared(("eigenvectors", id(parts.S)), lambda: (*ordered_eigh(parts.S), parts.S))
    variances = parts.scale * np.maximum(values, 0.0) + parts.ridge
    if variances[-1] <= rank_tolerance(len(values), eps) * variances[0]:
        return None
    given = pencil.M if pencil.factor is None else pencil.factor
    assert given is not None

    def turned() -> tuple[np.ndarray, np.ndarray]:
        """Return M, or its factor, in the coordinates of V; where moments are single, by products in that precision."""
        if pencil.factor is not None:
            return V.T @ given, given
        if not _is_single(pencil, eps):
            return symmetrised(V.T @ given @ V), given
        size, W = float(np.abs(given).max(initial=0.0)) or 1.0, V.astype(np.float32)
        return size * symmetrised(W.T @ (given / size).astype(np.float32) @ W).astype(np.float64), given

    return V, 1.0 / np.sqrt(variances), shared(("turned", id(parts.S), id(given)), turned)[0]


def _is_single(pencil: Pencil, eps: float) -> bool:
    """Tell whether the moments behind a pencil are in single precision, and it has no factor."""
    return pencil.factor is None and bool(eps >= np.finfo(np.float32).eps)


def _tolerance(pencil: Pencil, size: int, eps: float) -> float:
    """Return the relative size below which a gamma (a singular value, where F is known) is rounding error."""
    tolerance = rank_tolerance(size, eps)
    return tolerance**2 if pencil.factor is not None else tolerance


def chosen_width(wanted: int, pinned: int, available: int, *, lowering: bool = False) -> int:
    """Return the number of axes to keep, at most as many as there are."""
    d = min(wanted, available)
    if d == 0 or pinned == 0:
        raise InvalidInputError(f"The objective prefers no direction: {NO_SIGNAL}")
    if wanted > d:
        why = (
            f"only {d} directions raise the objective (gamma > 0; its M is indefinite, and the others lower it)"
            if lowering
            else f"the data have numerical rank {d}"
        )
        warnings.warn(
            f"n_components={wanted} was requested, but {why}: {d} components are kept. Pass n_components={d} or "
            "None to silence this.",
            RankWarning,
            stacklevel=2,
        )
    return d
