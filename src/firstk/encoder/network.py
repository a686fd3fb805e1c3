"""Networks between a vector and its code, for encoders that are not linear; trained, they run on numpy alone.

`MLP` holds the settings of a network to train, `TrainedMLP` its weights after training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from firstk._base.checks import bad_parameter, is_int, is_real
from firstk._base.rows import unit_rows
from firstk.exceptions import CorruptModelError


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron: linear, batch normalization, ReLU and dropout for each hidden layer, then linear.

    The defaults are Talukder et al. 2026 C.1 (31).

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers.
    dropout : float in [0, 1)
    normalize : bool
        Scale the whole code to unit norm, before it is cut.
    """

    hidden: Sequence[int] = (256, 256)
    dropout: float = 0.1
    normalize: bool = True

    name: ClassVar[str] = "mlp"

    def __post_init__(self) -> None:
        if isinstance(self.hidden, (list, np.ndarray)):  # equal widths make equal networks, also after saving
            object.__setattr__(self, "hidden", tuple(np.asarray(self.hidden).tolist()))

    def check(self) -> None:
        """Raise for widths or a dropout out of range."""
        several = isinstance(self.hidden, Sequence) and not isinstance(self.hidden, str)
        if not several or not all(is_int(width) and width > 0 for width in self.hidden):
            raise bad_parameter("hidden", "MLP", "a sequence of positive ints, such as (256, 256)", self.hidden)
        if not is_real(self.dropout) or not 0 <= self.dropout < 1:
            raise bad_parameter("dropout", "MLP", "a number in [0, 1)", self.dropout)


class Network(Protocol):
    """A function from centred vectors to codes, saved as `arrays` and `config`."""

    @property
    def p(self) -> int:
        """Width of the input."""

    @property
    def width(self) -> int | None:
        """Width of the output, where it is known without a forward pass."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return codes at full width."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that are saved with the model's."""

    def config(self) -> dict[str, Any]:
        """Return the JSON values that are saved."""


@dataclass(frozen=True, eq=False)
class TrainedMLP:
    """A trained MLP with batch normalization folded in: ReLU between layers, none after the last.

    Attributes
    ----------
    weights, biases : tuples of ndarrays of shape (out, in) and (out,)
    normalize : bool
        Scale codes to unit norm at full width.
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    normalize: bool

    @property
    def p(self) -> int:
        """Width of the input."""
        return int(self.weights[0].shape[1])

    @property
    def width(self) -> int:
        """Width of the output."""
        return len(self.weights[-1])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return codes at full width, in the precision of `X`."""
        last = len(self.weights) - 1
        for i, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            X = X @ W.T.astype(X.dtype) + b.astype(X.dtype)
            if i < last:
                np.maximum(X, 0, out=X)
        return unit_rows(X, out=X) if self.normalize else X

    def arrays(self) -> dict[str, np.ndarray]:
        """Return weights and biases by layer."""
        named = {f"body.{i}.weight": W for i, W in enumerate(self.weights)}
        return named | {f"body.{i}.bias": b for i, b in enumerate(self.biases)}

    def config(self) -> dict[str, Any]:
        """Return the number of layers and whether codes are normalized."""
        return {"network": "mlp", "layers": len(self.weights), "unit_code": self.normalize}


def restore_mlp(own: dict[str, np.ndarray], path: str | Path, *, layers: int, p: int, normalize: bool) -> TrainedMLP:
    """Rebuild a network from its saved arrays; raise where their shapes do not fit."""
    try:
        weights = tuple(own.pop(f"body.{i}.weight") for i in range(layers))
        biases = tuple(own.pop(f"body.{i}.bias") for i in range(layers))
    except KeyError as error:
        raise CorruptModelError(f"'{path}' lacks the array {error} of its network.") from None
    # The first layer takes vectors of width p, and each further one the output of the one before.
    widths, fitting = [p, *(b.size for b in biases)], not own and len(weights) > 0
    for W, b, width in zip(weights, biases, widths, strict=False):
        fitting &= W.dtype == b.dtype == np.float64 and b.ndim == 1 and W.shape == (b.size, width)
    if not fitting:
        raise CorruptModelError(f"'{path}': the layers of its network do not fit one another.")
    if not all(np.isfinite(part).all() for part in (*weights, *biases)):
        raise CorruptModelError(f"'{path}': its network holds NaN or infinity.")
    return TrainedMLP(weights, biases, normalize)
