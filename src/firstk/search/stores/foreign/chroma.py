"""Vectors in a collection of Chroma."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from firstk.search.stores.contract import StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, stored

if TYPE_CHECKING:
    from firstk.search.stores.chroma import Chroma

_METRICS = {"cosine": "cosine", "ip": "inner_product", "l2": "l2"}


def open_rows(engine: Chroma, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a collection; metadata are the payload, with the document under 'document'."""
    collection = engine.opened(engine.collection)
    first = collection.get(limit=1, include=["embeddings"])["embeddings"]
    width = len(first[0]) if first is not None and len(first) else 0

    def read(size: int) -> Iterator[StoredRows]:
        for start in range(0, collection.count(), size):
            part = collection.get(limit=size, offset=start, include=["metadatas", "embeddings", "documents"])
            metadatas = part["metadatas"] or []
            texts: Sequence[str | None] = part["documents"] or [None for _ in part["ids"]]
            payloads = [
                dict(one or {}) | ({} if text is None else {"document": text})
                for one, text in zip(metadatas, texts, strict=True)
            ]
            yield stored(part["ids"], part["embeddings"], payloads)

    configured = (collection.configuration_json or {}).get("hnsw") or {}
    return ForeignRows(int(collection.count()), width, "embeddings", read, _METRICS.get(configured.get("space", "l2")))
