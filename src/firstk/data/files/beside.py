"""Columns that stand in a file of their own, beside the vectors: labels, targets, pairs.

Such a file need not hold vectors. It has any of the formats, or is plain text with an entry a line (``.txt``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firstk._checks import InvalidInput
from firstk.data.files.choosing import PLAIN_NAME, missing_column
from firstk.data.files.contract import Loaded, reading
from firstk.data.files.formats import format_of
from firstk.data.files.opening import find_files


def load_columns(path: Any) -> Mapping[str, np.ndarray]:
    """Return the columns of a file or of its shards, each read when it is asked for."""
    parts = [_load(one) for one in find_files(path)]
    return Loaded(tuple(parts[0]), lambda name: np.concatenate([part[name] for part in parts]))


def load_column(path: Any, name: str | None = None) -> np.ndarray:
    """Return one column; without a name, the only one there is."""
    held = load_columns(path)
    if name is None:
        if len(held) != 1:
            names = ", ".join(repr(other) for other in list(held)[:20])
            raise InvalidInput(f"'{path}' has {len(held)} columns: {names}. Name one: {path}:{next(iter(held))}")
        name = next(iter(held))
    if name not in held:
        raise missing_column(path, name, list(held))
    return held[name]


def _load(path: Path) -> Mapping[str, np.ndarray]:
    if path.suffix.lower() == ".txt":
        with reading(path, "text", (OSError, ValueError)):
            lines = np.array(path.read_text(encoding="utf-8-sig").splitlines())
        return Loaded((PLAIN_NAME,), lambda _: lines)
    return format_of(path).load(path)
