"""PrefixLoss: the base of all full-prefix modules.

It stores the weights of the prefixes and how their losses are summed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk._base.prefix_weights import OmegaLike, PrefixWeights, for_pairs
from firstk.losses.functional._inputs import ALL_ESTIMATORS, settled_estimator, weights_of
from firstk.losses.functional.sampling import draw_weights


class PrefixLoss(nn.Module):
    """Base of all full-prefix losses: the weights of the prefixes and how their losses are summed.

    Parameters
    ----------
    omega : str, mapping or array-like
        "uniform", "harmonic", "reverse_harmonic", one weight per prefix, or {k: weight} (sparse MRL); divided
        by its sum, so that a loss is a mean over prefixes (MatryoshkaLoss of sentence-transformers is a sum).
        "auto" for pairs: 70 % for the full width (two parts) and its four halvings, the rest harmonic from a
        sixteenth of the width on, at most from 12.
    estimator : str
        "exact": all prefixes of all rows. "drawn": `draws` lengths, drawn anew at each call with probability omega and
        shared by all rows. "sampled": one prefix per row, at the cost of one ordinary loss, with a larger variance.
        Both are unbiased. "auto": exact, or drawn where the exact sum would take long.
    generator : torch.Generator, optional
        Source of the draws; torch's own if None, with different draws in each process of torch.distributed.
    start : int, optional
        Shortest prefix with weight, where omega is a name; without it every prefix has weight.
    draws : int
        How many lengths are drawn.
    """

    def __init__(
        self,
        omega: OmegaLike = "auto",
        estimator: str = "exact",
        *,
        generator: torch.Generator | None = None,
        start: int | None = None,
        draws: int = 8,
    ):
        super().__init__()
        owner = type(self).__name__
        if start is not None and not (is_int(start) and start >= 1):
            raise bad_parameter("start", owner, "an int of at least 1 (the shortest prefix with weight)", start)
        self.omega = omega
        self.start = start
        self.estimator = check_choice(estimator, ALL_ESTIMATORS, "estimator", owner)
        if not is_int(draws) or draws < 1:
            raise bad_parameter("draws", owner, "an int of at least 1", draws)
        self.generator = generator
        self.draws = draws
        self._resolved: dict[int, PrefixWeights] = {}

    def weights(self, d: int) -> PrefixWeights:
        """Return omega for codes of width d."""
        if d not in self._resolved:
            if isinstance(self.omega, str) and self.omega == "auto":
                self._resolved[d] = for_pairs(d, self.start)
            else:
                self._resolved[d] = weights_of(self.omega, d, type(self).__name__, self.start or 1)
        return self._resolved[d]

    def settled(self, weights: PrefixWeights, z: Tensor, columns: int, after: int = 0) -> tuple[PrefixWeights, str]:
        """Return the weights of this call and "exact" or "sampled": drawn lengths are an exact sum over fewer.

        Parameters
        ----------
        weights : PrefixWeights
        z : Tensor of shape (n, d)
        columns : int
            Logits per row and prefix.
        after : int
            Prefixes up to this length are not drawn.
        """
        estimator = settled_estimator(self.estimator, z, columns)
        if estimator == "drawn":
            return draw_weights(weights, self.draws, self.generator, after), "exact"
        return weights, estimator

    def extra_repr(self) -> str:
        """Return the weights and the estimator, for `repr`."""
        start = "" if self.start is None else f", start={self.start}"
        return f"omega={self.omega!r}, estimator={self.estimator!r}{start}"
