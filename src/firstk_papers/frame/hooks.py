"""What the hooks of an ordering see and give, for studies that call them outside a fit.

The one module here that knows the contract of orderings; studies train and check by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from firstk.contracts import Ordering, View

if TYPE_CHECKING:
    from torch import Tensor


class Diagonal:
    """A diagonal matrix where a full one is expected: products from the right scale columns, exactly and cheaply."""

    def __init__(self, values: Tensor):
        self.values = values

    def __rmatmul__(self, other: Tensor) -> Tensor:
        return other * self.values

    def cpu(self) -> Diagonal:
        """Return a copy that numpy can read."""
        return Diagonal(self.values.cpu())

    def numpy(self) -> np.ndarray:
        """Return the full matrix."""
        return np.diag(self.values.numpy())


def step_view(
    B: Tensor,
    A: Tensor,
    St: Tensor | Diagonal | None,
    *,
    code: Tensor | None = None,
    extras: Mapping[str, Tensor] | None = None,
) -> View:
    """Return what an ordering's hooks see, for tensors B (d, p), A (p, d) and the scatter St."""
    encoder = SimpleNamespace(C=B, weight=B)
    return View(
        SimpleNamespace(encoder=encoder, decoder=A, extras=extras or {}), code, cast("Tensor | None", St), None
    )  # a Diagonal multiplies as a tensor does


class Weights(NamedTuple):
    """Weights of the prefixes 1..d: `omega`, which sum to 1, and `cum`, the sums from k to d."""

    omega: np.ndarray
    cum: np.ndarray


def prefix_weights(ordering: Ordering, d: int) -> Weights:
    """Return the weights that an ordering gives the prefixes; uniform ones where it leaves them to the objective."""
    weights = ordering.prefix_weights(d, "uniform")
    return Weights(weights.omega, weights.cum)
