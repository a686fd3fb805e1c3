"""Squared weights of encoder and decoder per coordinate, for orderings that penalize them."""

from __future__ import annotations

from typing import Any

from firstk.contracts import View


def weighted_squares(view: View, lam: Any) -> Any:
    """Return ``sum_k lam_k (|b_k|^2 + |a_k|^2)``; without a decoder, for the encoder only.

    Talukder et al. 2026 (15), Bao et al. 2020 (3).
    """
    total = (lam * view.model.encoder.weight.square().sum(1)).sum()
    A = view.model.decoder
    return total if A is None else total + (lam * A.square().sum(0)).sum()
