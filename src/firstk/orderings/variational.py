"""Variational: a linear autoencoder with separate noise on every coordinate, which breaks rotation symmetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstk._base.checks import bad_parameter, check_flag, is_real
from firstk.contracts import Residual, View
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class Variational(Hooks):
    """The linear VAE with diagonal covariance: q(z|x) = N(B x, D), p(x|z) = N(A z, sigma^2 I).

    Bao et al. 2020 appendix F.

    2 sigma^2 times the negative evidence bound is the squared error plus
    ``tr(A^T A D) + sigma^2 (tr D - log det D + E|z|^2 - d)``; D is trained jointly. Axes whose eigenvalue is at most
    sigma^2 collapse to zero, and the others are unordered until they are sorted.

    Parameters
    ----------
    noise : float
        sigma^2, the variance of the observation noise, in units of the data's variance.
    sampled : bool
        Draw z instead of taking the expectation, as is usual for VAEs.
    """

    noise: float = 0.1
    sampled: bool = False

    name: ClassVar[str] = "variational"
    residual: ClassVar[Residual] = "permutation"
    acts_on_weights: ClassVar[bool] = True
    penalizes_scale: ClassVar[bool] = True
    needs_linear_encoder: ClassVar[bool] = True
    needs_decoder: ClassVar[bool] = True

    @property
    def estimator(self) -> str:
        """Estimator of the sum over prefixes: sampled if z is drawn, because moments have no rows to draw for."""
        return "sampled" if self.sampled else "exact"

    def check(self, d: int) -> None:
        """Raise an error for a noise that is not positive."""
        if not is_real(self.noise) or self.noise <= 0:
            raise bad_parameter("noise", "Variational", "a positive number", self.noise)
        check_flag(self.sampled, "sampled", "Variational")

    def extras(self, d: int) -> dict[str, np.ndarray]:
        """Start with D = I: log variances of zero."""
        return {"log_variance": np.zeros(d)}

    def perturb(self, view: View) -> Any:
        """Add noise of variance D to the code if z is drawn."""
        if not self.sampled or view.code is None:
            return view.code
        from firstk.losses.functional.sampling import normal_like

        z, log_d = view.code, view.model.extras["log_variance"]
        return z + normal_like(z, view.generator) * (log_d / 2).exp()

    def penalty(self, view: View) -> Any:
        """Return the divergence from N(0, I) and, in expectation, the squared error due to the noise on z."""
        log_d = view.model.extras["log_variance"]
        D = log_d.exp()
        divergence = self.noise * (D.sum() - log_d.sum() + view.second_moment().trace() - len(D))
        if self.sampled and view.code is not None:
            return divergence
        return divergence + (D * view.model.decoder.square().sum(0)).sum()
