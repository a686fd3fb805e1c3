"""Non-uniform l2: weight penalties that increase with k, so that the first axes explain the most variance."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstk._base.checks import bad_parameter, check_choice
from firstk.contracts import Residual, View
from firstk.exceptions import InvalidInputError, RankWarning
from firstk.orderings._conditioning import best_conditioned
from firstk.orderings._hooks import Hooks, weighted_squares

SCHEDULES = ("spectral", "mnist", "synthetic", "conditioned")


@dataclass(frozen=True)
class NonuniformL2(Hooks):
    """Penalty ``sum_k lambda_k (|b_k|^2 + |a_k|^2)`` with increasing lambda.

    Talukder et al. 2026 (15), Bao et al. 2020 (3).

    The optimum is ``B = A^T = (I - Lambda S^-2)^(1/2) U^T``, S^2 the spectrum (Bao et al. 2020 theorem 3); an axis with
    lambda_k >= sigma_k^2 is exactly zero, and the fit warns of it.

    Parameters
    ----------
    lam : str or sequence of float
        "spectral": evenly from sigma_d^2/18 to sigma_d^2/2 (Talukder et al. 2026 table 1). "mnist": sqrt(lambda) evenly
        from 0.1 to 0.9 (Bao et al. 2020 H.1). "synthetic": sqrt(lambda) evenly from 0.1 to 10 (Bao et al. 2020 H.2).
        "conditioned": minimizes the condition number of the Hessian at the optimum (Bao et al. 2020 section 4.3,
        corrected). Or d numbers.
    """

    lam: str | Sequence[float] = "spectral"

    name: ClassVar[str] = "nonuniform_l2"
    residual: ClassVar[Residual] = "signs"
    acts_on_weights: ClassVar[bool] = True
    penalizes_scale: ClassVar[bool] = True
    needs_linear_encoder: ClassVar[bool] = True

    def check(self, d: int) -> None:
        """Raise an error for penalties that are not positive and increasing."""
        if isinstance(self.lam, str):
            check_choice(self.lam, SCHEDULES, "lam", "NonuniformL2")
            return
        try:
            values = np.asarray(self.lam, dtype=float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (d,) or not (np.isfinite(values).all() and (values > 0).all()):
            raise bad_parameter("lam", "NonuniformL2", f"one of {SCHEDULES}, or {d} positive numbers", self.lam)
        if (np.diff(values) <= 0).any():
            raise InvalidInputError("The 'lam' of NonuniformL2 must increase with k; otherwise the axes have no order.")

    def lambdas(self, spectrum: np.ndarray, d: int) -> np.ndarray:
        """Return lambda_1..lambda_d for data with this spectrum (eigenvalues, descending)."""
        if not isinstance(self.lam, str):
            return np.asarray(self.lam, dtype=float)
        if self.lam in ("mnist", "synthetic"):
            return np.linspace(0.1, 0.9 if self.lam == "mnist" else 10.0, d) ** 2
        if self.lam == "conditioned":
            return best_conditioned(spectrum[:d])
        return np.linspace(spectrum[d - 1] / 18, spectrum[d - 1] / 2, d)

    def penalty(self, view: View) -> Any:
        """Return ``sum_k lambda_k (|b_k|^2 + |a_k|^2)``."""
        return weighted_squares(view, view.once("lambda", lambda: self._tensor(view)))

    def _tensor(self, view: View) -> Any:
        import torch

        C = view.model.encoder.weight
        assert view.gram is not None
        spectrum = np.linalg.eigvalsh(view.gram.cpu().numpy())[::-1]
        lam = self.lambdas(spectrum, len(C))
        gone = np.flatnonzero(lam >= spectrum[: len(lam)]) + 1
        A = view.model.decoder
        if len(gone) and A is not None and len(A) == C.shape[1]:  # theorem 3 holds for reconstruction only
            warnings.warn(
                f"lambda_k >= sigma_k^2 for k = {gone.tolist()[:10]}: these axes are exactly zero at the optimum. "
                "Use lam='spectral', which stays below sigma_d^2, or fewer components.",
                RankWarning,
                stacklevel=2,
            )
        return torch.tensor(lam, dtype=C.dtype, device=C.device)
