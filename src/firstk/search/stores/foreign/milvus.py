"""Vectors in a collection of Milvus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from firstk.search.stores.contract import StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, chosen, chosen_vectors, stored

if TYPE_CHECKING:
    from firstk.search.stores.milvus import Milvus

_METRICS = {"COSINE": "cosine", "IP": "inner_product", "L2": "l2"}


def open_rows(engine: Milvus, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a collection; ids are its primary field, and all other fields the payload."""
    from pymilvus import DataType

    client, name = engine.client, engine.collection
    fields = {one["name"]: one for one in client.describe_collection(name)["fields"]}
    possible = [key for key, one in fields.items() if one["type"] == DataType.FLOAT_VECTOR]
    vector = chosen_vectors(engine.place, vectors, possible, list(fields))
    primary = [key for key, one in fields.items() if one.get("is_primary")]
    key = chosen(engine.place, "ids", "ids=... (--id)", ids, primary, list(fields))
    client.load_collection(name)

    def read(size: int) -> Iterator[StoredRows]:
        pages = client.query_iterator(name, batch_size=size, output_fields=["*"])
        try:
            while found := pages.next():
                for start in range(0, len(found), size):
                    part = [dict(row) for row in found[start : start + size]]
                    codes = np.array([row.pop(vector) for row in part], np.float32)
                    keys = [row.pop(key) for row in part]
                    yield stored(keys, codes, part)
        finally:
            pages.close()

    metrics = {
        found.get("field_name"): _METRICS.get(found.get("metric_type", ""))
        for found in (client.describe_index(name, one) or {} for one in client.list_indexes(name))
    }
    return ForeignRows(engine.count(), int(fields[vector]["params"]["dim"]), vector, read, metrics.get(vector))
