"""Full prefix: every prefix length counts, weighted by omega."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from firstk._checks import check_choice
from firstk.omega import resolve_omega


@dataclass(frozen=True)
class FullPrefix:
    """Sum the objective over all prefixes (000 (4)).

    Where one code is optimal for all prefixes at once, as in every closed form, omega does not matter as long as it is
    positive; it is checked and recorded, and weighs the curve when something is left to "auto".

    Parameters
    ----------
    omega : str, array-like, mapping or None
        "uniform", "harmonic", "reverse_harmonic", weights for k = 1..d, or {k: weight}. None: the objective's default.
    estimator : {"auto", "exact", "sampled"}
        How a gradient fit estimates the sum.
    """

    omega: str | Sequence[float] | Mapping[int, float] | None = None
    estimator: str = "auto"

    name: ClassVar[str] = "full_prefix"

    def check(self, d: int) -> None:
        """Refuse weights that do not fit a code of width d."""
        check_choice(self.estimator, ("auto", "exact", "sampled"), "estimator", "FullPrefix")
        if self.omega is not None:
            resolve_omega(self.omega, d)
