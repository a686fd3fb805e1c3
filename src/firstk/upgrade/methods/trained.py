"""Maps from old to new vectors that PyTorch trains, the adapters of Drift-Adapter (arXiv 2509.23471).

AdamW on squared errors, stopped early on held-out pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from firstk._base.checks import bad_parameter, is_int, is_real, require
from firstk._base.progress import progress_bar
from firstk.contracts import AlignmentRows, AlignmentSolution
from firstk.encoder import AffineMap, TrainedMLP
from firstk.exceptions import TrainingWarning
from firstk.moments import CrossMoments
from firstk.upgrade.methods._linear import as_they_are, with_shared_code
from firstk.upgrade.methods.procrustes import scaled_rotation

if TYPE_CHECKING:
    from torch import Tensor, nn

# One pair in ten is held out to stop early by.
_HELD_OUT = 10


class TrainedMethod:
    """Defaults of :class:`firstk.contracts.AlignmentMethod` for methods that train a map in either direction."""

    name: ClassVar[str]
    trains: ClassVar[bool] = True
    epochs: int
    batch_size: int
    learning_rate: float
    patience: int

    def check(self) -> None:
        """Raise InvalidInputError for settings out of range."""
        for name in ("epochs", "batch_size", "patience"):
            if not is_int(getattr(self, name)) or getattr(self, name) < 1:
                raise bad_parameter(name, type(self).__name__, "a positive int", getattr(self, name))
        if not is_real(self.learning_rate) or self.learning_rate <= 0:
            raise bad_parameter("learning_rate", type(self).__name__, "a positive number", self.learning_rate)

    def candidates(self) -> list[Self]:
        """Return itself: nothing is left to "auto"."""
        return [self]

    def trained(self, moments: CrossMoments, rows: AlignmentRows) -> AffineMap:
        """Train the map from old vectors to new ones."""
        raise NotImplementedError

    def solve(self, moments: CrossMoments, rows: AlignmentRows | None = None) -> AlignmentSolution:
        """Train in both directions; the shared code is that of old to new."""
        assert rows is not None
        to_new = self.trained(moments, rows)
        back = AlignmentRows(rows.new, rows.old, rows.weight, rows.seed, rows.verbose)
        to_old = self.trained(moments.exchanged(), back)
        weight = np.ones(len(rows.old)) if rows.weight is None else rows.weight
        translated = np.asarray(to_new(rows.old, self.name), dtype=np.float64) * (weight / weight.sum())[:, None]
        return with_shared_code(to_new, to_old, translated.T @ np.asarray(rows.new, dtype=np.float64))

    def comparing(self, moments: CrossMoments, rows: AlignmentRows | None = None) -> tuple[AffineMap, AffineMap]:
        """Train one direction, and leave new vectors as they are."""
        return self.translating(moments, rows), as_they_are(moments.q)

    def translating(self, moments: CrossMoments, rows: AlignmentRows | None = None) -> AffineMap:
        """Train the translation of old vectors."""
        assert rows is not None
        return self.trained(moments, rows)


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


def fit_module(
    build: Callable[[], nn.Module], moments: CrossMoments, rows: AlignmentRows, method: TrainedMethod
) -> nn.Module:
    """Train a module from centred, scaled old vectors to centred, scaled new ones; return its best state.

    Vectors of either side are divided by the root of their mean squared norm. A stop by Ctrl-C keeps the best so far.
    """
    torch = require("torch", "torch", f"Alignment by '{method.name}'")
    generator = torch.Generator().manual_seed(rows.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rows.seed)
        module = build()
    A, B, weight = _tensors(torch, moments, rows)
    order = torch.randperm(len(A), generator=generator)
    held, rest = order[: max(1, len(A) // _HELD_OUT)], order[max(1, len(A) // _HELD_OUT) :]
    optimizer = torch.optim.AdamW(module.parameters(), lr=method.learning_rate)
    best, state, since = np.inf, _copied(module), 0
    try:
        with progress_bar(method.epochs, f"training {method.name}", "epoch", rows.verbose) as done:
            for _ in range(method.epochs):
                shuffled = rest[torch.randperm(len(rest), generator=generator)]
                for chosen in shuffled.split(method.batch_size):
                    optimizer.zero_grad()
                    _loss(module, A[chosen], B[chosen], weight[chosen]).backward()
                    optimizer.step()
                with torch.no_grad():
                    error = float(_loss(module, A[held], B[held], weight[held]))
                done(1, error=f"{error:.4f}")
                if error < best:
                    best, state, since = error, _copied(module), 0
                else:
                    since += 1
                if since >= method.patience:
                    break
    except KeyboardInterrupt:
        warnings.warn(
            f"Training of '{method.name}' was stopped; the best map so far is kept.", TrainingWarning, stacklevel=2
        )
    module.load_state_dict(state)
    return module


def scales(moments: CrossMoments) -> tuple[float, float]:
    """Return the roots of the mean squared norms of centred vectors of either side."""
    return tuple(float(np.sqrt(max(np.trace(S), 1e-300))) for S in (moments.old_scatter, moments.new_scatter))  # type: ignore[return-value]


def numbers(part: Tensor) -> np.ndarray:
    """Return a tensor as float64."""
    return np.asarray(part.detach().cpu().numpy(), dtype=np.float64)


def _tensors(torch: Any, moments: CrossMoments, rows: AlignmentRows) -> tuple[Tensor, Tensor, Tensor]:
    sides = zip((rows.old, rows.new), (moments.old_mean, moments.new_mean), scales(moments), strict=True)
    A, B = (torch.tensor(((side - mean) / scale).astype(np.float32)) for side, mean, scale in sides)
    weight = np.ones(len(rows.old)) if rows.weight is None else rows.weight / rows.weight.mean()
    return A, B, torch.tensor(weight.astype(np.float32))


def _loss(module: nn.Module, A: Tensor, B: Tensor, weight: Tensor) -> Tensor:
    error: Tensor = (weight * (module(A) - B).square().sum(dim=1)).mean()
    return error


def _copied(module: nn.Module) -> dict[str, Tensor]:
    return {name: part.detach().clone() for name, part in module.state_dict().items()}
