"""Engines people already run, beside the library: moments over dask partitions, training under torch.distributed.

Data of an engine are recognised by protocol, so that nothing is imported for those who do not use it.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any


def engine_of(*data: Any) -> ModuleType | None:
    """Return the engine whose data these are: modules with `measure`, `like` and `encode`; None for data in memory."""
    if not any(hasattr(part, "__dask_graph__") for part in data):
        return None
    from firstk.engines import dask

    return dask
