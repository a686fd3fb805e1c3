"""Types that the studies share: settings, cells and what they gave are JSON objects, read by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]
JsonDict: TypeAlias = dict[str, Any]
# Each cell of an experiment with what its study measured.
Results: TypeAlias = Sequence[tuple[JsonObject, JsonObject]]
