"""What an encoder is called wherever people read it: by the words of ``firstk fit`` that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Objectives that similarity stands for, by what it keeps or learns from.
_SIMILARITY = ("pairs", "neighbors", "dot_products", "projections")


def objective_name(config: Mapping[str, Any]) -> str:
    """Return the name of an encoder's objective: as ``--objective`` takes it, then what it keeps or learns from.

    Parameters
    ----------
    config : mapping
        The encoder's, with "objective" and perhaps "solver".

    Examples
    --------
    >>> objective_name({"objective": "pairs", "solver": "gradient"})
    'similarity, pairs, gradient'
    >>> objective_name({"objective": "reconstruction", "solver": "closed_form"})
    'reconstruction'
    """
    name = str(config.get("objective", ""))
    if name not in _SIMILARITY:
        return name
    return f"similarity, {name}" + (", gradient" if config.get("solver") == "gradient" else "")


def learned_from(config: Mapping[str, Any]) -> str:
    """Return what an encoder was fitted on: "pair" or "row"."""
    return "pair" if config.get("objective") == "pairs" else "row"
