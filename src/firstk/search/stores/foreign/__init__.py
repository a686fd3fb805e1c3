"""Rows that other programs stored: vectors with ids and payloads, read in batches from tables firstk did not make.

A product is one file with a function `open_rows(engine, vectors, ids)`. Nothing is written here. Needs the extra
"stores".
"""

from __future__ import annotations

import importlib

from firstk.search.stores.contract import Engine
from firstk.search.stores.foreign._rows import ForeignRows

__all__ = ["ForeignRows", "open_foreign"]


def open_foreign(engine: Engine, vectors: str | None = None, ids: str | None = None) -> ForeignRows:
    """Open what an engine's table holds, whoever made it.

    Parameters
    ----------
    engine : Engine
    vectors, ids : str, optional
        Names of the column of vectors, where there are several, and of that of ids.
    """
    module = importlib.import_module(f"{__name__}.{engine.name}")
    with engine.answering():
        found: ForeignRows = module.open_rows(engine, vectors, ids)
    return found
