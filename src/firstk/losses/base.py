"""PrefixLoss: the base of all full-prefix modules.

It stores the weights of the prefixes and how their losses are summed.
"""

from __future__ import annotations

import torch
from torch import nn

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk._base.prefix_weights import OmegaLike, PrefixWeights
from firstk.losses.functional._inputs import ESTIMATORS, weights_of


class PrefixLoss(nn.Module):
    """Base of all full-prefix losses: the weights of the prefixes and how their losses are summed.

    Parameters
    ----------
    omega : str, mapping or array-like
        "uniform", "harmonic", "reverse_harmonic", one weight per prefix, or {k: weight} (sparse MRL); divided
        by its sum, so that a loss is a mean over prefixes (MatryoshkaLoss of sentence-transformers is a sum).
    estimator : "exact" or "sampled"
        All prefixes of all rows, or one prefix per row, drawn with probability omega: unbiased, at the cost
        of one ordinary loss.
    generator : torch.Generator, optional
        Source of the draws; torch's own if None.
    start : int, optional
        Shortest prefix with weight, where omega is a name; without it every prefix has weight.
    """

    def __init__(self, omega: OmegaLike, estimator: str, generator: torch.Generator | None, start: int | None = None):
        super().__init__()
        owner = type(self).__name__
        if start is not None and not (is_int(start) and start >= 1):
            raise bad_parameter("start", owner, "an int of at least 1 (the shortest prefix with weight)", start)
        self.omega = omega
        self.start = start
        self.estimator = check_choice(estimator, ESTIMATORS, "estimator", owner)
        self.generator = generator
        self._resolved: dict[int, PrefixWeights] = {}

    def weights(self, d: int) -> PrefixWeights:
        """Return omega for codes of width d."""
        if d not in self._resolved:
            self._resolved[d] = weights_of(self.omega, d, type(self).__name__, self.start or 1)
        return self._resolved[d]

    def extra_repr(self) -> str:
        """Return the weights and the estimator, for `repr`."""
        start = "" if self.start is None else f", start={self.start}"
        return f"omega={self.omega!r}, estimator={self.estimator!r}{start}"
