"""Unordered: the objective at full width alone, so that coordinates have no order. The baseline of every other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firstk.contracts import Residual
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class Unordered(Hooks):
    """Train the whole code; any invertible mixing of its coordinates is as good, so none is singled out.

    Talukder et al. 2026 (7).
    """

    name: ClassVar[str] = "unordered"
    residual: ClassVar[Residual] = "none"
