"""Unordered: the objective at full width only, so that coordinates have no order. The baseline for all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firstk.contracts import Residual
from firstk.orderings._hooks import Hooks


@dataclass(frozen=True)
class Unordered(Hooks):
    """Loss of the full code only; it is invariant to invertible mixing of the coordinates.

    Talukder et al. 2026 (7).
    """

    name: ClassVar[str] = "unordered"
    residual: ClassVar[Residual] = "none"
