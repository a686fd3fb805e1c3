"""Denoising: the code of a damaged vector from which the clean one can best be rebuilt."""

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
    """Least squared error of clean vectors rebuilt from codes of noisy ones: pencil (S S^T, G).

    Balestriero and LeCun 2024 theorem 3.

    Parameters
    ----------
    noise : GaussianNoise or Masking
        Half of the coordinates masked, independently, unless told otherwise. Gaussian noise leaves the order of the
        subspaces as it is in reconstruction and so cannot help a later task (Balestriero and LeCun 2024 corollary 3.1);
        masking can.
    """

    noise: GaussianNoise | Masking = field(default_factory=Masking)

    name: ClassVar[str] = "denoising"
    supervision: ClassVar[Supervision] = "rows"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", False, "uniform", "readback_variance")

    @property
    def rotation_free(self) -> bool:
        """Masking acts on coordinates, so it is not; Gaussian noise is."""
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
        """Return (tr St, S, G): the code sees the noisy vector, the target is the clean one."""
        St = rows_of(statistics).St
        G, S = self.noise.second_moments(St)
        return Quadratic(float(np.trace(St)), S, G)
