"""Full-prefix losses whose prefixes share second moments: reconstruction, regression, Fisher.

The formulas are in the modules of `firstk.losses.functional` with the same names.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from firstk._base.prefix_weights import OmegaLike
from firstk.exceptions import InvalidInputError
from firstk.losses.base import PrefixLoss
from firstk.losses.functional import fisher, reconstruction, regression
from firstk.losses.functional._inputs import check_given, check_not_sampled, one_node


class FullPrefixReconstruction(PrefixLoss):
    """Squared error of every prefix under one shared decoder (`functional.reconstruction`)."""

    def __init__(
        self,
        omega: OmegaLike = "uniform",
        estimator: str = "exact",
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__(omega, estimator, generator=generator)

    @one_node
    def forward(self, x: Tensor, z: Tensor, decoder: Tensor | None = None, offset: Tensor | None = None) -> Tensor:
        """Return the weighted loss of data (n, p) with codes (n, d) and a decoder (p, d), which must be given."""
        decoder = check_given(decoder, "decoder", type(self).__name__, "loss(x, z, decoder.weight, decoder.bias)")
        omega, estimator = self.settled(self.weights(z.shape[-1]), z, 1)
        options: dict[str, Any] = {"estimator": estimator, "generator": self.generator}
        return reconstruction.reconstruction(x, z, decoder, offset, omega=omega, **options)

    @one_node
    def from_moments(self, St: Tensor, components: Tensor, decoder: Tensor) -> Tensor:
        """Return the same for a linear encoder (d, p) from the scatter (p, p) alone; exact only."""
        omega = self.weights(len(components))
        return reconstruction.reconstruction_from_moments(
            St, components, decoder, omega=omega, estimator=self.estimator
        )

    def per_prefix(self, x: Tensor, z: Tensor, decoder: Tensor, offset: Tensor | None = None) -> Tensor:
        """Return the d separate losses, without gradient."""
        return reconstruction.reconstruction_per_prefix(x, z, decoder, offset)

    def per_prefix_from_moments(self, St: Tensor, components: Tensor, decoder: Tensor) -> Tensor:
        """Return the d separate losses from the scatter alone, without gradient."""
        return reconstruction.reconstruction_from_moments_per_prefix(St, components, decoder)


class FullPrefixRegression(PrefixLoss):
    """Squared error of every prefix under one shared linear head (`functional.regression.regression`)."""

    def __init__(
        self,
        omega: OmegaLike = "harmonic",
        estimator: str = "exact",
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__(omega, estimator, generator=generator)

    @one_node
    def forward(self, z: Tensor, weight: Tensor, targets: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """Return the weighted loss of codes (n, d) under a head (q, d), targets (n, q) or (n,), which must be given."""
        targets = check_given(targets, "targets", type(self).__name__, "loss(z, head.weight, targets, head.bias)")
        omega, estimator = self.settled(self.weights(z.shape[-1]), z, 1)
        options: dict[str, Any] = {"estimator": estimator, "generator": self.generator}
        return regression.regression(z, weight, targets, bias, omega=omega, **options)

    def per_prefix(self, z: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the d separate losses, without gradient."""
        return regression.regression_per_prefix(z, weight, targets, bias)


class FullPrefixFreeHeadRegression(PrefixLoss):
    """Squared error of the best linear probe of every prefix, from one QR: it needs no head."""

    def __init__(self, omega: OmegaLike = "harmonic", estimator: str = "exact"):
        super().__init__(omega, estimator)
        check_not_sampled(estimator, type(self).__name__, "the best head of a prefix depends on all rows at once")

    @one_node
    def forward(self, z: Tensor, targets: Tensor) -> Tensor:
        """Return the weighted loss of codes (n, d) for targets (n, q) or (n,)."""
        return regression.regression_free_head(z, targets, omega=self.weights(z.shape[-1]))

    def per_prefix(self, z: Tensor, targets: Tensor) -> Tensor:
        """Return the d separate losses, without gradient."""
        return regression.regression_free_head_per_prefix(z, targets)


class FullPrefixFisher(PrefixLoss):
    """Minus Fisher's ratio trace of every prefix, from one Cholesky factor (`functional.fisher`).

    Parameters
    ----------
    omega : as in `FullPrefixCrossEntropy`
    estimator : "exact"
        "sampled" is an error: the ratio trace is not a sum over rows.
    shrinkage : float in [0, 1], optional
        Of Sw, in input space.
    code_eps : float
        eps of Talukder et al. 2026 (29), in code space; for reproduction only.
    """

    def __init__(
        self,
        omega: OmegaLike = "uniform",
        estimator: str = "exact",
        *,
        shrinkage: float | None = None,
        code_eps: float = 0.0,
    ):
        super().__init__(omega, estimator)
        check_not_sampled(estimator, type(self).__name__, "the ratio trace is not a sum over rows")
        self.shrinkage = shrinkage
        self.code_eps = code_eps

    @one_node
    def forward(self, components: Tensor, Sw: Tensor, Sb: Tensor) -> Tensor:
        """Return the weighted loss of a linear encoder (d, p) with scatters (p, p)."""
        omega = self.weights(len(components))
        return fisher.fisher(components, Sw, Sb, omega=omega, shrinkage=self.shrinkage, code_eps=self.code_eps)

    @one_node
    def from_codes(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return the weighted loss of codes (n, d) of any network; `shrinkage` has no input space here."""
        if self.shrinkage is not None:
            raise InvalidInputError(
                "FullPrefixFisher.from_codes has no input space to shrink Sw in. Got "
                f"shrinkage={self.shrinkage}; use code_eps, or the form with scatters."
            )
        return fisher.fisher_from_codes(z, labels, omega=self.weights(z.shape[-1]), code_eps=self.code_eps)

    def per_prefix(self, components: Tensor, Sw: Tensor, Sb: Tensor) -> Tensor:
        """Return the d separate losses, without gradient."""
        return fisher.fisher_per_prefix(components, Sw, Sb, shrinkage=self.shrinkage, code_eps=self.code_eps)
