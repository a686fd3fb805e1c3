"""Vectors in a collection of Qdrant: its only ones, or those of a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import StoredRows
from firstk.search.stores.foreign._rows import ForeignRows, chosen, stored

if TYPE_CHECKING:
    from firstk.search.stores.qdrant import Qdrant

_METRICS = {"Cosine": "cosine", "Dot": "inner_product", "Euclid": "l2"}


def open_rows(engine: Qdrant, vectors: str | None, ids: str | None) -> ForeignRows:
    """Open a collection."""
    client, name = engine.client, engine.collection
    config = client.get_collection(name).config
    if (config.metadata or {}).get("firstk"):
        raise InvalidInputError(
            f"{engine.place} holds codes that an earlier firstk wrote, which cannot be taken for vectors. "
            "Push the vectors themselves."
        )
    held: Any = config.params.vectors
    named = isinstance(held, Mapping)
    which = chosen(engine.place, "vectors", "vectors=... (--vectors)", vectors, list(held), list(held)) if named else ""
    facts = held[which] if named else held

    def read(size: int) -> Iterator[StoredRows]:
        after: Any = None
        while True:
            found, after = client.scroll(
                name, limit=size, offset=after, with_payload=True, with_vectors=[which] if named else True
            )
            if found:
                codes: list[Any] = [_vector(engine.place, point, which) for point in found]
                yield stored([p.id for p in found], np.array(codes, np.float32), [p.payload or {} for p in found])
            if after is None:
                return

    return ForeignRows(engine.count(), int(facts.size), which or "vector", read, _METRICS.get(facts.distance.value))


def _vector(place: str, point: Any, which: str) -> Any:
    found = (point.vector or {}).get(which) if which else point.vector
    if found is None:
        raise InvalidInputError(f"{place} has no vector {which!r} for point {point.id!r}: all rows need one.")
    return found
