"""What stands between a vector and its code when the encoder is not linear; fitted, it runs on numpy alone.

`MLP` says which network to train. `Layers` is one after training: products, sums and maxima, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        Bring the whole code to unit norm, before it is cut.
    """

    hidden: Sequence[int] = (256, 256)
    dropout: float = 0.1
    normalize: bool = True

    name: ClassVar[str] = "mlp"

    def __post_init__(self) -> None:
        if isinstance(self.hidden, (list, np.ndarray)):  # equal widths make equal networks, also after saving
            object.__setattr__(self, "hidden", tuple(np.asarray(self.hidden).tolist()))

    def check(self) -> None:
        """Refuse widths or a dropout that mean nothing."""
        several = isinstance(self.hidden, Sequence) and not isinstance(self.hidden, str)
        if not several or not all(is_int(width) and width > 0 for width in self.hidden):
            raise bad_parameter("hidden", "MLP", "a sequence of positive ints, such as (256, 256)", self.hidden)
        if not is_real(self.dropout) or not 0 <= self.dropout < 1:
            raise bad_parameter("dropout", "MLP", "a number in [0, 1)", self.dropout)


class Network(Protocol):
    """From centred vectors to codes; `arrays` and `config` are what is saved of it."""

    @property
    def p(self) -> int:
        """Width of the input."""

    @property
    def width(self) -> int | None:
        """Width of the output, where it can be told without a run."""

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return codes at full width."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is saved beside the model's other arrays."""

    def config(self) -> dict[str, Any]:
        """Return plain facts that are saved."""


@dataclass(frozen=True, eq=False)
class Layers:
    """A trained MLP with batch normalization folded in: ReLU between layers, none after the last.

    Attributes
    ----------
    weights, biases : tuples of ndarrays of shape (out, in) and (out,)
    normalize : bool
        Bring codes to unit norm at full width.
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    normalize: bool

    @property
    def p(self) -> int:
        """Width of the input."""
        return self.weights[0].shape[1]

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
        if self.normalize:
            X = unit_rows(X, out=X)
        return X

    def arrays(self) -> dict[str, np.ndarray]:
        """Return weights and biases by layer."""
        named = {f"body.{i}.weight": W for i, W in enumerate(self.weights)}
        return named | {f"body.{i}.bias": b for i, b in enumerate(self.biases)}

    def config(self) -> dict[str, Any]:
        """Return the number of layers and whether codes are normalized."""
        return {"network": "mlp", "layers": len(self.weights), "unit_code": self.normalize}


def restore_layers(config: Mapping[str, Any], own: dict[str, np.ndarray], path: Any) -> Layers:
    """Rebuild a network from its saved arrays, refusing what does not fit together."""
    n = config["layers"]
    try:
        weights = tuple(own.pop(f"body.{i}.weight") for i in range(n))
        biases = tuple(own.pop(f"body.{i}.bias") for i in range(n))
    except KeyError as error:
        raise CorruptModelError(f"'{path}' lacks the array {error} of its network.") from None
    if own or not _chained(weights, biases, config["p"]):
        raise CorruptModelError(f"'{path}': the layers of its network do not fit one another.")
    if not all(np.isfinite(part).all() for part in (*weights, *biases)):
        raise CorruptModelError(f"'{path}': its network holds NaN or infinity.")
    return Layers(weights, biases, config["unit_code"])


def _chained(weights: Sequence[np.ndarray], biases: Sequence[np.ndarray], p: int) -> bool:
    """Tell whether layers take vectors of width p, and each what the one before it gives."""
    width = p
    for W, b in zip(weights, biases, strict=True):
        if W.dtype != np.float64 or b.dtype != np.float64 or b.ndim != 1 or W.shape != (len(b), width):
            return False
        width = len(b)
    return len(weights) > 0
