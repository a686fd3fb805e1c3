"""The five hooks as they are when an ordering does not fill them: the identity.

Traits say what an ordering asks of the rest, so that nobody asks which ordering it is:
"weights" (it looks at the weights themselves, so they may not be written in other coordinates), "codes" (it needs
the codes of rows, not only moments), "linear" (a linear encoder), "decoder" (a decoder of the vectors), "plain" (plain
gradient steps: momentum at most), "tied" (starts with the decoder the transpose of the encoder), "scale" (it weighs
the size of codes or weights, which means nothing where the objective is blind to size), "row_sums" (losses that are
sums over rows).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from firstk._base.prefix_weights import PrefixWeights, resolve_omega
from firstk.contracts import View

Residual = Literal["axes", "blocks", "signs", "permutation", "none"]


class Hooks:
    """An ordering that does nothing: the loss of the whole code, and no more."""

    residual: ClassVar[Residual] = "none"
    traits: ClassVar[frozenset[str]] = frozenset()
    # Whether the axes of a pencil answer this ordering, so that nothing need be trained.
    has_closed_form: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # Tuples, whatever came: equal settings make equal orderings, also after saving and loading.
        for name, value in list(vars(self).items()):
            value = value.omega if isinstance(value, PrefixWeights) else value
            if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim):
                object.__setattr__(self, name, tuple(value if isinstance(value, list) else value.tolist()))

    def check(self, d: int) -> None:
        """Accept: there is nothing to set."""

    @property
    def estimator(self) -> str:
        """How the weighted sum over prefixes is found."""
        return "exact"

    def measure(self, d: int, default: Any) -> PrefixWeights:
        """Weigh the whole code alone."""
        return resolve_omega({d: 1.0}, d)

    def perturb(self, view: View) -> Any:
        """Leave the code as it is."""
        return view.code

    def penalty(self, view: View) -> Any:
        """Add nothing."""
        return 0.0

    def correct(self, view: View) -> None:
        """Leave the gradients as they are."""

    def retract(self, view: View) -> None:
        """Leave the parameters as they are."""

    def extras(self, d: int) -> dict[str, np.ndarray]:
        """Train nothing of its own."""
        return {}

    def blocks(self, d: int) -> tuple[int, ...]:
        """Fix the order at every length: what training leaves open, the canonical form sorts."""
        return tuple(range(1, d + 1))
