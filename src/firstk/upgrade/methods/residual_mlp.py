"""A rotation with a small network beside it, trained: the residual MLP of Drift-Adapter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from firstk._base.checks import bad_parameter, is_int, require
from firstk.contracts import AlignmentRows
from firstk.encoder import AffineMap, TrainedMLP
from firstk.moments import CrossMoments
from firstk.upgrade.methods._training import TrainedMethod, fit_module, numbers, scales
from firstk.upgrade.methods.procrustes_ridge import scaled_rotation

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ResidualMLP(TrainedMethod):
    """``b = s R a + W_2 relu(W_1 a + b_1) + b_2``, trained on squared errors (Drift-Adapter, arXiv 2509.23471).

    The residual connection is the scaled Procrustes rotation, which also takes care of different widths, and W_2 starts
    at zero: training starts from Procrustes. Needs the extra "torch".

    Parameters
    ----------
    hidden : int
        Width of the hidden layer.
    epochs, batch_size : int
    learning_rate : float
    patience : int
        Epochs without progress on one pair in ten, held out, after which training stops.
    """

    hidden: int = 256
    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    patience: int = 10

    name: ClassVar[str] = "residual_mlp"

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range."""
        super().check()
        if not is_int(self.hidden) or self.hidden < 1:
            raise bad_parameter("hidden", "ResidualMLP", "a positive int", self.hidden)

    def trained(self, moments: CrossMoments, rows: AlignmentRows) -> AffineMap:
        """Train the network beside the rotation."""
        torch = require("torch", "torch", f"Alignment by '{self.name}'")
        old_scale, new_scale = scales(moments)
        straight = scaled_rotation(moments).T
        skip = torch.tensor((straight * (old_scale / new_scale)).astype(np.float32))
        layers = torch.nn

        class Residual(layers.Module):  # type: ignore[name-defined]
            def __init__(self, hidden: int) -> None:
                super().__init__()
                self.first = layers.Linear(moments.p, hidden)
                self.last = layers.Linear(hidden, moments.q)
                layers.init.zeros_(self.last.weight)
                layers.init.zeros_(self.last.bias)

            def forward(self, x: Any) -> Any:
                return x @ skip.T + self.last(torch.relu(self.first(x)))

        def build() -> nn.Module:
            made: nn.Module = Residual(self.hidden)
            return made

        module: Any = fit_module(build, moments, rows, self)
        network = TrainedMLP(
            (numbers(module.first.weight) / old_scale, numbers(module.last.weight) * new_scale),
            (numbers(module.first.bias), numbers(module.last.bias) * new_scale),
            normalize=False,
        )
        return AffineMap(moments.old_mean, straight, moments.new_mean, network)
