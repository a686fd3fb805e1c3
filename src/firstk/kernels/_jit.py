"""Whether numba is there to compile; asked before any compiled module is imported."""

from __future__ import annotations

import importlib.util

from firstk._checks import IllegalCombination, MissingExtra, require

HAS_NUMBA = importlib.util.find_spec("numba") is not None


def can_compile() -> bool:
    """Tell whether numba is installed and compiles, which NUMBA_DISABLE_JIT=1 switches off.

    The compiled paths are made of vector instructions: as plain Python they cannot run.
    """
    return HAS_NUMBA and not require("numba", "torch", "A compiled path").config.DISABLE_JIT


def check_can_compile(asked: str, extra: str, instead: str) -> None:
    """Raise an error that names the way out where a compiled path was asked for and cannot be had."""
    if not HAS_NUMBA:
        raise MissingExtra("numba", extra, asked)
    if not can_compile():
        why = "numba compiles nothing, as NUMBA_DISABLE_JIT is set to 1"
        raise IllegalCombination(asked, why, f"{instead}, or NUMBA_DISABLE_JIT=0")
