"""Vectors in a file of faiss: an index that keeps them as floats, with ids or numbered."""

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
    from firstk.search.stores.faiss import Faiss


def open_rows(engine: Faiss, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a file that ``faiss.write_index`` wrote; there are no payloads."""
    folder = shown_place(engine.folder)
    faiss: Any = require("faiss", EXTRA, "A faiss index")
    if not Path(engine.folder).is_file():
        raise InvalidInputError(f"There is no faiss store and no faiss file '{folder}'. Check the name.")
    owner = faiss.read_index(str(engine.folder))  # must live as long as what it is seen as
    index = faiss.downcast_index(owner)
    keys = np.arange(index.ntotal)
    if hasattr(index, "id_map"):
        keys, index = faiss.vector_to_array(index.id_map), faiss.downcast_index(index.index)
    kind = type(index).__name__
    if "Flat" not in kind:
        raise InvalidInputError(
            f"'{folder}' is an {kind}, which keeps rounded vectors. Move the vectors that it was built from."
        )
    if hasattr(index, "make_direct_map"):
        index.make_direct_map()

    def read(size: int) -> Iterator[StoredRows]:
        for start in range(0, owner.ntotal, size):
            part = np.arange(start, min(start + size, owner.ntotal))
            yield stored(keys[part].tolist(), index.reconstruct_batch(part), [{}] * len(part))

    metric = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "inner_product"}.get(index.metric_type)
    return ForeignRows(int(index.ntotal), int(index.d), "vectors", read, metric)
