"""A low-rank affine map, trained: an adapter of Drift-Adapter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firstk._base.checks import bad_parameter, is_int, require
from firstk.contracts import AlignmentRows
from firstk.encoder import AffineMap
from firstk.moments import CrossMoments
from firstk.upgrade.methods._training import TrainedMethod, fit_module, numbers, scales

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class LowRankAffine(TrainedMethod):
    """``b = U V^T a + t`` with U and V of r columns, trained on squared errors (Drift-Adapter, arXiv 2509.23471).

    Its optimum is reduced-rank regression (:class:`ReducedRank`), a closed form; here training and early stopping
    take the place of a ridge. Needs the extra "torch".

    Parameters
    ----------
    rank : int
        r.
    epochs, batch_size : int
    learning_rate : float
    patience : int
        Epochs without progress on one pair in ten, held out, after which training stops.
    """

    rank: int = 64
    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 3e-3
    patience: int = 10

    name: ClassVar[str] = "low_rank_affine"

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range."""
        super().check()
        if not is_int(self.rank) or self.rank < 1:
            raise bad_parameter("rank", "LowRankAffine", "a positive int", self.rank)

    def trained(self, moments: CrossMoments, rows: AlignmentRows) -> AffineMap:
        """Train the map from old vectors to new ones."""
        torch = require("torch", "torch", f"Alignment by '{self.name}'")
        rank = min(self.rank, moments.p, moments.q)

        def build() -> nn.Module:
            layers = torch.nn
            made: nn.Module = layers.Sequential(
                layers.Linear(moments.p, rank, bias=False), layers.Linear(rank, moments.q)
            )
            return made

        module: Any = fit_module(build, moments, rows, self)
        old_scale, new_scale = scales(moments)
        weight = numbers(module[1].weight) @ numbers(module[0].weight) * (new_scale / old_scale)
        return AffineMap(moments.old_mean, weight, moments.new_mean + new_scale * numbers(module[1].bias))
