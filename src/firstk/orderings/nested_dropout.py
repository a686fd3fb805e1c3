"""Nested dropout: each row is truncated to a random prefix length, or the expectation over it is taken."""

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
    """Truncation to the first b coordinates, b drawn from a prior, or its expectation (Bao et al. 2020 (6)).

    Bao et al. 2020 section 5.

    It is `FullPrefix` with the prior as omega, sampled, or exact with `expected`. Bao et al. 2020 (6) use the factor
    1/2n, so their loss is half of this one.

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
        """Estimator of the sum over prefixes: sampled, unless `expected` is set."""
        return "exact" if self.expected else "sampled"

    def check(self, d: int) -> None:
        """Raise an error for an invalid prior."""
        if not is_real(self.rho) or not 0 < self.rho < 1:
            raise bad_parameter("rho", "NestedDropout", "a number in (0, 1)", self.rho)
        self.prefix_weights(d, None)
        check_flag(self.expected, "expected", "NestedDropout")

    def prefix_weights(self, d: int, default: OmegaLike | None) -> PrefixWeights:
        """Return the probability of each prefix."""
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
        """Return a block boundary at every length."""
        return tuple(self.prefix_weights(d, None).support.tolist())
