"""Codes in Qdrant: the named vectors "short" and "full", found and reranked in one request (``prefetch``).

Qdrant's ids are whole numbers and UUIDs. For other text a UUID is computed, and the text is kept in the payload. Needs
the extra "stores".
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import require
from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import (
    EXTRA,
    CodedRows,
    Engine,
    Hits,
    Id,
    NamedRows,
    Request,
    StoredRows,
    StoreLayout,
    explained,
)
from firstk.search.stores.filters import Condition
from firstk.search.stores.named_columns import chosen_vectors, stored

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.models import SearchParams

# From which the UUID of a name is computed, the same everywhere.
_NAMESPACE = uuid.NAMESPACE_OID
_DISTANCES = {"cosine": "Cosine", "inner_product": "Dot", "l2": "Euclid"}
# Under which the payload keeps an id that Qdrant does not take.
_NAME = "_id"
# Points per request.
_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Qdrant(Engine):
    """A collection of Qdrant.

    Attributes
    ----------
    client : qdrant_client.QdrantClient
        Of a server, or in local mode.
    collection : str
    precision : {"float32", "float16"}
        How Qdrant stores the numbers of a collection that it creates.
    params : qdrant_client.models.SearchParams, optional
        Of the search among short vectors, such as ``SearchParams(exact=True)``. Default: an `hnsw_ef` of the shortlist,
        and at least 64.
    settings : mapping
        Passed to ``client.create_collection``, such as ``{"quantization_config": ...}``.
    owned : bool
        Whether `close` closes the client.
    address : str
        Where `connect` found it: its credentials are blotted out of messages.
    """

    client: QdrantClient
    collection: str = "documents"
    precision: str = "float32"
    params: SearchParams | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    owned: bool = False
    address: str = field(default="", repr=False)

    name = "qdrant"
    purpose = "A collection of Qdrant"
    packages = ("qdrant_client",)
    raises = ("qdrant_client.http.exceptions:ApiException", ValueError, OSError, sqlite3.Error)
    precisions = ("float32", "float16")
    reserved = frozenset((_NAME,))
    filters = ("qdrant_client.models:Filter", "a qdrant_client.models.Filter")
    orders_text = False
    secret = "QDRANT_API_KEY"

    @classmethod
    def connect(cls, address: str, name: str = "documents", **settings: Any) -> Qdrant:
        """Open a folder or ":memory:", or a server by its URL; its API key is from QDRANT_API_KEY."""
        qdrant_client = require("qdrant_client", EXTRA, cls.purpose)
        key = os.environ.get(cls.secret)
        with explained("The connection to Qdrant", (Exception,), address, [key or ""]):
            if address.startswith(("http:", "https:")):
                client = qdrant_client.QdrantClient(url=address, api_key=key)
            elif address == ":memory:":
                client = qdrant_client.QdrantClient(address)
            else:
                client = qdrant_client.QdrantClient(path=str(Path(address)))
        return cls(client, name, owned=True, address=address, **settings)

    def precision_of(self, layout: StoreLayout) -> str:
        """In which precision codes are kept: all of them, and not only in an index."""
        return self.precision

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is in the metadata of the collection."""
        if not self.client.collection_exists(self.collection):
            return None
        record = (self.client.get_collection(self.collection).config.metadata or {}).get("firstk")
        return StoreLayout.read(record, self.place)

    def create(self, layout: StoreLayout) -> None:
        """Create the collection; a graph on short vectors, and none on full ones."""
        from qdrant_client import models

        kind: dict[str, Any] = {
            "distance": models.Distance(_DISTANCES[layout.compared]),
            "datatype": models.Datatype(self.precision),
        }
        vectors = {"short": models.VectorParams(size=layout.short, **kind)}
        if layout.full is not None:
            rerank_only: dict[str, Any] = {"on_disk": True, "hnsw_config": models.HnswConfigDiff(m=0)}
            vectors["full"] = models.VectorParams(size=layout.full, **kind, **rerank_only)
        settings = dict(self.settings)
        settings["metadata"] = dict(settings.get("metadata") or {}) | {"firstk": layout.record()}
        with explained(self.place, (AssertionError, TypeError)):  # of the client, for settings it does not know
            self.client.create_collection(self.collection, vectors_config=vectors, **settings)

    def drop(self) -> None:
        """Delete the collection."""
        if self.client.collection_exists(self.collection):
            self.client.delete_collection(self.collection)

    def upsert(self, rows: CodedRows) -> None:
        """Write rows, some hundred in a request."""
        from qdrant_client import models

        for start in range(0, len(rows), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            vectors: Any = {"short": rows.short[part].tolist()}
            if rows.full is not None:
                vectors["full"] = rows.full[part].tolist()
            points: list[Any] = [_point(key) for key in rows.ids[part]]
            payloads = [
                one if point == key else one | {_NAME: key}
                for key, point, one in zip(rows.ids[part], points, rows.payloads[part], strict=True)
            ]
            batch = models.Batch(ids=points, vectors=vectors, payloads=payloads)
            self.client.upsert(self.collection, batch, wait=True)

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows."""
        from qdrant_client import models

        self.client.delete(self.collection, models.PointIdsList(points=[_point(key) for key in ids]), wait=True)

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        found = self.client.retrieve(self.collection, [_point(key) for key in ids], with_payload=[_NAME])
        return {_id(point) for point in found}

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.client.count(self.collection, exact=True).count)

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield rows in the order of their ids in Qdrant."""
        for found in self._scrolled(size, True):
            codes = np.array([point.vector.get("full", point.vector["short"]) for point in found], np.float32)
            yield StoredRows([_id(point) for point in found], codes, [_payload(point) for point in found])

    def _scrolled(self, size: int, vectors: Any) -> Iterator[list[Any]]:
        after: Any = None
        while True:
            found, after = self.client.scroll(
                self.collection, limit=size, offset=after, with_payload=True, with_vectors=vectors
            )
            if found:
                yield list(found)
            if after is None:
                return

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a collection: its only vectors, or those of a name."""
        held: Any = self.client.get_collection(self.collection).config.params.vectors
        named = isinstance(held, Mapping)
        which = chosen_vectors(self.place, vectors, list(held), list(held)) if named else ""
        facts = held[which] if named else held

        def read(size: int) -> Iterator[StoredRows]:
            for found in self._scrolled(size, [which] if named else True):
                codes = [(point.vector or {}).get(which) if named else point.vector for point in found]
                lacking = [point.id for point, code in zip(found, codes, strict=True) if code is None]
                if lacking:
                    raise InvalidInputError(
                        f"{self.place} has no vector {which!r} for point {lacking[0]!r}: all rows need one."
                    )
                yield stored([p.id for p in found], np.array(codes, np.float32), [p.payload or {} for p in found])

        metric = {name: metric for metric, name in _DISTANCES.items()}.get(facts.distance.value)
        return NamedRows(self.count(), int(facts.size), which or "vector", read, metric)

    def hits(self, request: Request, layout: StoreLayout) -> Iterator[Hits]:
        """Find and rerank in one request."""
        from qdrant_client import models

        params = self.params or models.SearchParams(hnsw_ef=max(64, request.shortlist))
        where: Any = request.native  # a Filter of the client, or our own conditions
        if where is None and request.where:
            where = models.Filter(must=[_condition(one) for one in request.where])
        first: dict[str, Any] = {"filter": where, "params": params}
        requests = []
        for i, short in enumerate(request.short.tolist()):
            if request.full is None:
                requests.append(
                    models.QueryRequest(query=short, using="short", limit=request.limit, with_payload=True, **first)
                )
                continue
            prefetch = models.Prefetch(query=short, using="short", limit=request.shortlist, **first)
            requests.append(
                models.QueryRequest(
                    prefetch=prefetch,
                    query=request.full[i].tolist(),
                    using="full",
                    limit=request.limit,
                    with_payload=True,
                )
            )
        for answer in self.client.query_batch_points(self.collection, requests):
            points = answer.points
            yield [_id(one) for one in points], [one.score for one in points], [_payload(one) for one in points]


def _point(key: Id) -> Id:
    """Return an id as Qdrant takes it; UUIDs in the spelling that it returns."""
    if isinstance(key, int):
        return key
    with contextlib.suppress(ValueError):
        found = uuid.UUID(key)
        # One of version 5 may be that of another text, and gets one of its own, too.
        if str(found) == key and found.version != 5:
            return key
    return str(uuid.uuid5(_NAMESPACE, key))


def _id(point: Any) -> Id:
    found: Id = (point.payload or {}).get(_NAME, point.id)
    return found


def _payload(point: Any) -> dict[str, Any]:
    return {name: value for name, value in (point.payload or {}).items() if name != _NAME}


def _condition(one: Condition) -> Any:
    from qdrant_client import models

    name = one.name if one.name.isidentifier() else f'"{one.name}"'  # a path of JSON: other names are quoted
    if one.kind == "number":
        # Ranges hold for numbers with and without a fraction, and a match for whole numbers only.
        spans = (
            [{"gte": float(value), "lte": float(value)} for value in one.values]
            if one.operator in ("eq", "in")
            else [{one.operator: float(one.value)}]
        )
        return models.Filter(should=[models.FieldCondition(key=name, range=models.Range(**span)) for span in spans])
    if one.kind == "bool" and one.operator == "in":
        matches = [models.MatchValue(value=value) for value in one.value]
        return models.Filter(should=[models.FieldCondition(key=name, match=match) for match in matches])
    match = models.MatchAny(any=list(one.value)) if one.operator == "in" else models.MatchValue(value=one.value)
    return models.FieldCondition(key=name, match=match)
