"""Denoising: the code of a noisy vector that best reconstructs the clean vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from firstk._base.checks import bad_parameter
from firstk.contracts import Conventions, Pencil, Quadratic, Supervision
from firstk.moments.statistics import Statistics
from firstk.objectives._common import LeastSquaresObjective, rows_of
from firstk.objectives.noise import GaussianNoise, Masking


@dataclass(frozen=True)
class Denoising(LeastSquaresObjective):
    """Minimum squared error of clean vectors reconstructed from codes of noisy ones: pencil (S S^T, G).

    Balestriero and LeCun 2024 theorem 3.

    Parameters
    ----------
    noise : GaussianNoise or Masking
        By default half of the coordinates are masked, independently. Gaussian noise gives the same order of subspaces
        as reconstruction and so cannot improve a downstream task (Balestriero and LeCun 2024 corollary 3.1); masking
        can.
    """

    noise: GaussianNoise | Masking = field(default_factory=Masking)

    name: ClassVar[str] = "denoising"
    supervision: ClassVar[Supervision] = "rows"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", False, "uniform", "readback_variance")

    @property
    def rotation_free(self) -> bool:
        """Whether the solution rotates with the data: not with masking, which acts on coordinates."""
        return self.noise.rotation_free

    def check(self) -> None:
        """Raise an error for a noise without known moments."""
        if not isinstance(self.noise, (GaussianNoise, Masking)):
            raise bad_parameter("noise", "Denoising", "GaussianNoise(...) or Masking(...)", self.noise)
        self.noise.check()

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return (S S^T, G)."""
        G, S = self.noise.second_moments(rows_of(statistics).St)
        return Pencil(M=S @ S.T, N=G)

    def decoder(self, statistics: Statistics, components: np.ndarray) -> np.ndarray:
        """Return the optimal decoder of noisy codes: S^T B^T, as the code is orthonormal in G."""
        _, S = self.noise.second_moments(rows_of(statistics).St)
        return S.T @ components.T

    def quadratic(self, statistics: Statistics) -> Quadratic:
        """Return (tr St, S, G): the input is the noisy vector, the target the clean one."""
        St = rows_of(statistics).St
        G, S = self.noise.second_moments(St)
        return Quadratic(float(np.trace(St)), S, G)
