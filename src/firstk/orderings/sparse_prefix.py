"""Sparse prefix: a list of prefix lengths is trained, as in Matryoshka representation learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk._base.prefix_weights import OmegaLike, PrefixWeights, resolve_omega
from firstk.contracts import Residual
from firstk.exceptions import InvalidInputError
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class SparsePrefix(Hooks):
    """Sum of the objective over the listed prefixes (Talukder et al. 2026 (2), S-MRL).

    Coordinates between two listed lengths are determined up to mixing, and the canonical form sorts them; coordinates
    past the last listed length are never trained.

    Parameters
    ----------
    prefixes : sequence of int or mapping {k: weight}
        The lengths, weighted equally, or with weights.
    estimator : {"exact", "sampled"}
    """

    prefixes: Sequence[int] | Mapping[int, float]
    estimator: str = "exact"

    name: ClassVar[str] = "sparse_prefix"
    residual: ClassVar[Residual] = "blocks"
    has_closed_form: ClassVar[bool] = True

    def check(self, d: int) -> None:
        """Raise an error for lengths outside [1, d]."""
        check_choice(self.estimator, ("exact", "sampled"), "estimator", "SparsePrefix")
        try:
            given = list(self.prefixes)
        except TypeError:
            raise bad_parameter("prefixes", "SparsePrefix", "a sequence of prefix lengths", self.prefixes) from None
        if not given:
            raise InvalidInputError("SparsePrefix needs at least one prefix length. Got none.")
        bad = [k for k in given if not is_int(k) or not 1 <= k <= d]
        if bad:
            raise bad_parameter("prefixes", "SparsePrefix", f"lengths in [1, {d}] (the width of the code)", bad[0])

    def prefix_weights(self, d: int, default: OmegaLike | None) -> PrefixWeights:
        """Return the weights of the listed prefixes."""
        listed = self.prefixes if isinstance(self.prefixes, Mapping) else dict.fromkeys(self.prefixes, 1.0)
        return resolve_omega({int(k): weight for k, weight in listed.items()}, d, "SparsePrefix")

    def blocks(self, d: int) -> tuple[int, ...]:
        """Return a block boundary at each listed length."""
        return tuple(self.prefix_weights(d, None).support.tolist())
