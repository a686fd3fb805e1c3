"""Nested dropout: a prefix length is drawn for each row and what is past it dropped; or the expectation of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstk._base.checks import bad_parameter, check_flag, is_real
from firstk._base.prefix_weights import OmegaLike, PrefixWeights, resolve_omega
from firstk.contracts import Residual
from firstk.exceptions import InvalidInputError
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class NestedDropout(Hooks):
    """Draw b from a prior and keep the first b coordinates, or take the expectation (Bao et al. 2020 (6)).

    Bao et al. 2020 section 5.

    It is full prefix with omega the prior, sampled; with `expected`, exactly. Bao et al. 2020 (6) carries 1/2n, so its
    loss is half of ours.

    Parameters
    ----------
    rho : float in (0, 1)
        Geometric prior of Bao et al. 2020 H.1: p(b) proportional to rho^b for b < d, the rest of the mass at d.
    prior : sequence of float, optional
        Any other prior, d weights.
    expected : bool
        Take the expectation over the draws (deterministic nested dropout).
    """

    rho: float = 0.9
    prior: Sequence[float] | None = None
    expected: bool = False

    name: ClassVar[str] = "nested_dropout"
    residual: ClassVar[Residual] = "axes"

    @property
    def estimator(self) -> str:
        """Sampled, unless the expectation is asked for."""
        return "exact" if self.expected else "sampled"

    def check(self, d: int) -> None:
        """Raise an error for numbers that are no prior."""
        if not is_real(self.rho) or not 0 < self.rho < 1:
            raise bad_parameter("rho", "NestedDropout", "a number in (0, 1)", self.rho)
        self.prefix_weights(d, None)
        check_flag(self.expected, "expected", "NestedDropout")

    def prefix_weights(self, d: int, default: OmegaLike | None) -> PrefixWeights:
        """Weigh each prefix by its probability."""
        if self.prior is not None:
            try:
                return resolve_omega(self.prior, d, "NestedDropout")
            except InvalidInputError:
                raise bad_parameter(
                    "prior", "NestedDropout", f"{d} numbers that are not negative, or None", self.prior
                ) from None
        p = self.rho ** np.arange(1, d + 1) * (1 - self.rho)
        p[-1] = 1 - p[:-1].sum()
        return resolve_omega(p, d, "NestedDropout")

    def blocks(self, d: int) -> tuple[int, ...]:
        """Fix every axis."""
        return tuple(self.prefix_weights(d, None).support.tolist())
