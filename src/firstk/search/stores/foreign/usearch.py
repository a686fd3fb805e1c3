"""Vectors in a file of usearch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import require
from firstk._base.remote import shown_place
from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import EXTRA, StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, stored

if TYPE_CHECKING:
    from firstk.search.stores.usearch import USearch

_METRICS = {"cos": "cosine", "ip": "inner_product", "l2sq": "l2"}
_FLOATS = ("f64", "f32", "f16", "bf16")


def open_rows(engine: USearch, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a file that ``Index.save`` wrote; there are no payloads."""
    folder = shown_place(engine.folder)
    usearch: Any = require("usearch.index", EXTRA, "A usearch index")
    if not Path(engine.folder).is_file():
        raise InvalidInputError(f"There is no usearch store and no usearch file '{folder}'. Check the name.")
    index = usearch.Index.restore(str(engine.folder), view=True)
    kind = str(index.dtype).rpartition(".")[2].lower()
    if kind not in _FLOATS:
        raise InvalidInputError(
            f"'{folder}' keeps vectors as {kind}, rounded. Move the vectors that it was built from."
        )

    def read(size: int) -> Iterator[StoredRows]:
        for start in range(0, len(index), size):
            part = np.asarray(index.keys[start : start + size], np.uint64)
            yield stored(part.tolist(), np.asarray(index.get(part, np.float32)), [{}] * len(part))

    metric = str(getattr(index.metric_kind, "name", index.metric_kind)).lower()
    return ForeignRows(len(index), int(index.ndim), "vectors", read, _METRICS.get(metric))
