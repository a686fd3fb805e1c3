"""Codes in Milvus, or in Milvus Lite, which is a file: two vector fields, and reranking in numpy.

Payloads are dynamic fields. Milvus Lite does not tell 1 from true in a filter. Needs the extra "stores".
"""

from __future__ import annotations

import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from firstk._base.checks import require
from firstk.exceptions import InvalidInputError
from firstk.search.stores.contract import (
    EXTRA,
    CodedRows,
    Engine,
    Id,
    NamedRows,
    Request,
    StoredRows,
    StoreLayout,
    explained,
)
from firstk.search.stores.filters import Condition
from firstk.search.stores.named_columns import chosen_ids, chosen_vectors, stored

if TYPE_CHECKING:
    from pymilvus import MilvusClient

_METRICS = {"cosine": "COSINE", "inner_product": "IP", "l2": "L2"}
_COMPARED = {"eq": "==", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_OWN = ("id", "short", "full")
# Rows the walk through the graph holds at least. Milvus Lite filters the rows it meets, so that a walk of 64 with a
# filter that one row in fifteen meets ends before the nearest are found.
_WALK, _FILTERED_WALK = 64, 1024
# What has each file of Milvus Lite open. Its server is in this process, keeps the file locked, and outlives a client.
_OPEN: defaultdict[str, WeakSet[Milvus]] = defaultdict(WeakSet)


@dataclass(frozen=True, eq=False)
class Milvus(Engine):
    """A collection of Milvus.

    Attributes
    ----------
    client : pymilvus.MilvusClient
    collection : str
    owned : bool
        Whether `close` closes the client.
    file : str, optional
        The file of Milvus Lite, which `close` lets other processes open where nothing else here has it open.
    address : str
        Where `connect` found it: its credentials are blotted out of messages.
    """

    client: MilvusClient
    collection: str = "documents"
    owned: bool = False
    file: str | None = None
    address: str = field(default="", repr=False)

    name = "milvus"
    purpose = "A collection of Milvus"
    packages = ("pymilvus",)
    raises = ("pymilvus.exceptions:MilvusException", OSError)
    reserved = frozenset((*_OWN, "$meta"))
    filters = (str, "an expression as text")
    secret = "MILVUS_TOKEN"
    # What one search of Milvus returns at most.
    most = 16384

    @classmethod
    def connect(cls, address: str, name: str = "documents", **settings: Any) -> Milvus:
        """Open a file of Milvus Lite (its name ends in .db), or a server by its URL; its token is from MILVUS_TOKEN."""
        pymilvus = require("pymilvus", EXTRA, cls.purpose)
        token = os.environ.get(cls.secret, "")
        if address.startswith(("http:", "https:")):
            file = None
        else:
            require("milvus_lite", EXTRA, "A file of Milvus Lite")
            file = os.path.abspath(address)
        with _silent_log(), explained("The connection to Milvus", (Exception,), address, [token]):
            client = pymilvus.MilvusClient(address, token=token)
        made = cls(client, name, owned=True, file=file, address=address, **settings)
        if file is not None:
            _OPEN[file].add(made)
        return made

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Turn errors of Milvus into InvalidInputError, which its client would log as well."""
        with _silent_log(), super().answering():
            yield

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is a property of the collection."""
        if not self.client.has_collection(self.collection):
            return None
        record = (self.client.describe_collection(self.collection).get("properties") or {}).get("firstk")
        layout = StoreLayout.read(record, self.place)
        self.client.load_collection(self.collection)
        return layout

    def create(self, layout: StoreLayout) -> None:
        """Create the collection; a graph on short codes, and none on full ones."""
        from pymilvus import DataType

        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=True)
        if layout.ids == "int":
            schema.add_field("id", DataType.INT64, is_primary=True)
        else:
            schema.add_field("id", DataType.VARCHAR, max_length=512, is_primary=True)
        metric, index = _METRICS[layout.compared], self.client.prepare_index_params()
        schema.add_field("short", DataType.FLOAT_VECTOR, dim=layout.short)
        index.add_index("short", index_type="HNSW", metric_type=metric, params={"M": 16, "efConstruction": 200})
        if layout.full is not None:
            schema.add_field("full", DataType.FLOAT_VECTOR, dim=layout.full)
            index.add_index("full", index_type="FLAT", metric_type=metric)
        self.client.create_collection(
            self.collection,
            schema=schema,
            index_params=index,
            properties={"firstk": layout.record()},
            consistency_level="Strong",
        )

    def drop(self) -> None:
        """Delete the collection."""
        if self.client.has_collection(self.collection):
            self.client.drop_collection(self.collection)

    def upsert(self, rows: CodedRows) -> None:
        """Write rows in one request."""
        odd = [key for key in rows.ids if isinstance(key, str) and (set(key) & {'"', "\\"} or not key.isprintable())]
        if odd:
            raise InvalidInputError(
                f"Milvus reads rows by expressions, in which ids with double quotes, backslashes or control characters "
                f"fail. Got {odd[0]!r}."
            )
        entities = []
        for i, (key, payload) in enumerate(zip(rows.ids, rows.payloads, strict=True)):
            entity = payload | {"id": key, "short": rows.short[i]}
            if rows.full is not None:
                entity["full"] = rows.full[i]
            entities.append(entity)
        self.client.upsert(self.collection, entities)

    def finish(self) -> None:
        """Make rows durable."""
        self.client.flush(self.collection)

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows."""
        # With ids=, the client writes text between quotes as it is: an id with a quote could name other rows.
        self.client.delete(self.collection, filter=f"id in {_literal(list(ids))}")

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        found = self.client.query(self.collection, filter=f"id in {_literal(list(ids))}", output_fields=["id"])
        return {row["id"] for row in found}

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.client.query(self.collection, filter="", output_fields=["count(*)"])[0]["count(*)"])

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield rows in the order of their ids."""
        self.layout()  # which loads the collection
        yield from map(_rows, self._pages(size))

    def _pages(self, size: int) -> Iterator[list[dict[str, Any]]]:
        pages = self.client.query_iterator(self.collection, batch_size=size, output_fields=["*"])
        try:
            while found := pages.next():
                for start in range(0, len(found), size):
                    yield [dict(row) for row in found[start : start + size]]
        finally:
            pages.close()

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a collection; ids are its primary field, and all other fields the payload."""
        from pymilvus import DataType

        client, name = self.client, self.collection
        fields = {one["name"]: one for one in client.describe_collection(name)["fields"]}
        possible = [key for key, one in fields.items() if one["type"] == DataType.FLOAT_VECTOR]
        vector = chosen_vectors(self.place, vectors, possible, list(fields))
        key = chosen_ids(self.place, ids, [key for key, one in fields.items() if one.get("is_primary")], list(fields))
        client.load_collection(name)

        def read(size: int) -> Iterator[StoredRows]:
            return (_rows(part, vector, key, ()) for part in self._pages(size))

        indexes = [client.describe_index(name, one) or {} for one in client.list_indexes(name)]
        kinds = {found.get("field_name"): found.get("metric_type") for found in indexes}
        metric = {kind: metric for metric, kind in _METRICS.items()}.get(kinds.get(vector) or "")
        return NamedRows(self.count(), int(fields[vector]["params"]["dim"]), vector, read, metric)

    def shortlists(self, request: Request, layout: StoreLayout) -> Iterator[StoredRows]:
        """Find by the short codes."""
        where = str(request.native or " and ".join(map(_condition, request.where)))
        walk = max(request.shortlist, _FILTERED_WALK if where else _WALK)
        found = self.client.search(
            self.collection,
            data=list(request.short),
            anns_field="short",
            limit=request.shortlist,
            filter=where,
            output_fields=["*"],
            search_params={"params": {"ef": walk}},
        )
        yield from (_rows([dict(hit["entity"]) | {"id": hit["id"]} for hit in hits]) for hits in found)

    def close(self) -> None:
        """Close the client, if `connect` opened it."""
        super().close()
        if not self.owned or self.file is None:
            return
        _OPEN[self.file].discard(self)
        if not _OPEN[self.file]:
            from milvus_lite.server_manager import server_manager_instance

            server_manager_instance.release_server(self.file)


@contextmanager
def _silent_log() -> Iterator[None]:
    """Keep the client from logging errors that our messages tell, with addresses that they do not."""
    log = logging.getLogger("pymilvus")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


def _rows(
    rows: list[dict[str, Any]], vector: str | None = None, key: str = "id", own: Sequence[str] = _OWN
) -> StoredRows:
    """Return rows by the names of their vectors and ids: of our own, with the longest codes."""
    name = vector or ("full" if rows and "full" in rows[0] else "short")
    codes = np.array([row[name] for row in rows], np.float32)
    without = {name, key, *own}
    held = [{one: value for one, value in row.items() if one not in without} for row in rows]
    return stored([row[key] for row in rows], codes, held)


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _condition(one: Condition) -> str:
    name = f"$meta[{_literal(one.name)}]"
    if one.operator == "in":  # of dynamic fields, Milvus Lite does not know "in"
        return "(" + " or ".join(f"{name} == {_literal(value)}" for value in one.value) + ")"
    return f"({name} {_COMPARED[one.operator]} {_literal(one.value)})"
