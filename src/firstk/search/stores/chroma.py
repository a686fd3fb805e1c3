"""Codes in Chroma: a collection of short codes with the payloads, one of full codes, and reranking in numpy.

A record of Chroma has one vector, so the full codes have a collection of their own, written first: a row that is found
is complete. Chroma's metadata is flat; what it cannot hold is refused. Needs the extra "stores".
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import require
from firstk.data.remote import shown
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
from firstk.search.stores.filters import Condition, kind_of
from firstk.search.stores.named_columns import stored

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_SPACES = {"cosine": "cosine", "inner_product": "ip", "l2": "l2"}
# The graph returns no more than its ef, which is set when a collection is made: the longest shortlist.
_EF = 1000
# A record without metadata is none to Chroma.
_MARK = "_firstk"
# In the metadata of a collection of full codes: the name of the collection that it belongs to.
_BELONGS = "firstk_full_codes_of"
_RESERVED = ("$", "#")
# Chroma's own limits of a query.
_QUERIES = 100


@dataclass(frozen=True, eq=False)
class Chroma(Engine):
    """A collection of Chroma, and a second one for full codes.

    Attributes
    ----------
    client : path, or a client of chromadb
        A path is opened by ``chromadb.PersistentClient``, without telemetry.
    collection : str
    """

    client: str | Path | ClientAPI
    collection: str = "documents"

    name = "chroma"
    purpose = "A collection of Chroma"
    packages = ("chromadb",)
    raises = ("chromadb.errors:ChromaError", ValueError, TypeError, OSError)
    reserved = frozenset((_MARK, "chroma:document"))
    filters = (list, "a list of Chroma's own 'where' mappings")
    orders_text = False
    secret = "CHROMA_TOKEN"
    most = _EF

    @classmethod
    def connect(cls, address: str, name: str = "documents", **settings: Any) -> Chroma:
        """Open a folder, or a server by its URL; the token of a server is from CHROMA_TOKEN."""
        chromadb = require("chromadb", EXTRA, cls.purpose)
        if not address.startswith(("http:", "https:")):
            return cls(address, name, **settings)
        from urllib.parse import urlsplit

        token = os.environ.get(cls.secret, "")
        with explained("The connection to Chroma", (Exception,), address, [token]):
            parts = urlsplit(shown(address))  # a port that is no number is a ValueError
            client = chromadb.HttpClient(
                parts.hostname or "localhost",
                parts.port or 8000,
                ssl=parts.scheme == "https",
                headers={"Authorization": f"Bearer {token}"} if token else None,
            )
        return cls(client, name, **settings)

    @cached_property
    def connection(self) -> ClientAPI:
        """The client."""
        import chromadb
        from chromadb.config import Settings

        if not isinstance(self.client, (str, Path)):
            return self.client
        with self.answering():
            return chromadb.PersistentClient(str(self.client), Settings(anonymized_telemetry=False))

    def opened(self, name: str) -> Collection:
        """Return a collection that is there."""
        return self.connection.get_collection(name, embedding_function=None)

    def _found(self, name: str) -> Collection | None:
        from chromadb.errors import NotFoundError

        with contextlib.suppress(NotFoundError):
            return self.opened(name)
        return None

    @property
    def _full_name(self) -> str:
        return f"{self.collection}-full"

    def _full_codes(self) -> Collection | None:
        """Return the collection of full codes, if there is one; something else may have its name."""
        there = self._found(self._full_name)
        ours = there is not None and (there.metadata or {}).get(_BELONGS) == self.collection
        return there if ours else None

    def layout(self) -> StoreLayout | None:
        """Return the layout, which is in the metadata of the collection."""
        there = self._found(self.collection)
        return None if there is None else StoreLayout.read((there.metadata or {}).get("firstk"), self.place)

    def create(self, layout: StoreLayout) -> None:
        """Create the collections, the one that tells of both last."""
        hnsw = {"space": _SPACES[layout.compared], "ef_search": _EF}
        settings: Any = {"configuration": {"hnsw": hnsw}, "embedding_function": None}
        if layout.full is not None:
            if self._full_codes() is not None:  # left by a create that was interrupted
                self.connection.delete_collection(self._full_name)
            elif self._found(self._full_name) is not None:
                raise InvalidInputError(
                    f"{self.place} needs the name '{self._full_name}' for full codes, and something else has it. Name "
                    "another place."
                )
            self.connection.create_collection(self._full_name, metadata={_BELONGS: self.collection}, **settings)
        self.connection.create_collection(self.collection, metadata={"firstk": layout.record()}, **settings)

    def drop(self) -> None:
        """Delete the collections."""
        for there in (self._found(self.collection), self._full_codes()):
            if there is not None:
                self.connection.delete_collection(there.name)

    def upsert(self, rows: CodedRows) -> None:
        """Write the full codes, then the short ones with the payloads."""
        ids = [str(key) for key in rows.ids]
        payloads: list[Any] = [_metadata(one) for one in rows.payloads]
        short = self.opened(self.collection)
        there = set(short.get(ids=ids, include=[])["ids"])
        if there:  # an update of Chroma merges metadata: a name that is gone would stay
            short.delete(ids=sorted(there))
        at_once = self.connection.get_max_batch_size()
        for start in range(0, len(ids), at_once):
            part = slice(start, start + at_once)
            if rows.full is not None:
                self.opened(self._full_name).upsert(ids[part], rows.full[part])
            short.upsert(ids[part], rows.short[part], payloads[part])

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows, the short codes first."""
        keys = [str(key) for key in ids]
        for there in (self._found(self.collection), self._full_codes()):
            if there is not None and (found := there.get(ids=keys, include=[])["ids"]):
                there.delete(ids=found)

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return ids that are there."""
        found = self.opened(self.collection).get(ids=[str(key) for key in ids], include=[])["ids"]
        return set(_ids(found, self.layout()))

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.opened(self.collection).count())

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield rows in the order of Chroma."""
        layout, short, full = self.layout(), self.opened(self.collection), self._full_codes()
        for part in _pages(short, size, ["metadatas", "embeddings"]):
            yield _stored(part["ids"], part["embeddings"], part["metadatas"], full, layout)

    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a collection; metadata are the payload, with the document under 'document'."""
        collection = self.opened(self.collection)
        first = collection.get(limit=1, include=["embeddings"])["embeddings"]
        width = len(first[0]) if first is not None and len(first) else 0

        def read(size: int) -> Iterator[StoredRows]:
            for part in _pages(collection, size, ["metadatas", "embeddings", "documents"]):
                texts = part["documents"] or [None for _ in part["ids"]]
                payloads = [
                    dict(one or {}) | ({} if text is None else {"document": text})
                    for one, text in zip(part["metadatas"] or [], texts, strict=True)
                ]
                yield stored(part["ids"], part["embeddings"], payloads)

        space = ((collection.configuration_json or {}).get("hnsw") or {}).get("space", "l2")
        metric = {name: metric for metric, name in _SPACES.items()}.get(space)
        return NamedRows(int(collection.count()), width, "embeddings", read, metric)

    def shortlists(self, request: Request, layout: StoreLayout) -> Iterator[StoredRows]:
        """Find by the short codes."""
        short, full = self.opened(self.collection), self._full_codes()
        parts: list[Any] = list(request.native or map(_condition, request.where))  # type: ignore[call-overload]
        where = None if not parts else parts[0] if len(parts) == 1 else {"$and": parts}
        for start in range(0, len(request.short), _QUERIES):
            part = short.query(
                query_embeddings=request.short[start : start + _QUERIES],
                n_results=request.shortlist,
                where=where,
                include=["metadatas", "embeddings"],
            )
            for i, names in enumerate(part["ids"]):
                yield _stored(names, (part["embeddings"] or [])[i], (part["metadatas"] or [])[i], full, layout)


def _stored(names: Sequence[str], short: Any, held: Any, full: Collection | None, layout: StoreLayout | None) -> Any:
    """Return rows with their longest codes; those of `full` come in an order of Chroma's own."""
    codes = np.asarray(short, np.float32)
    if full is not None and names:
        found: Any = full.get(ids=list(names), include=["embeddings"])
        at = {name: i for i, name in enumerate(found["ids"])}
        codes = np.asarray(found["embeddings"], np.float32)[[at[name] for name in names]]
    payloads = [{name: value for name, value in (one or {}).items() if name != _MARK} for one in held or []]
    return StoredRows(_ids(names, layout), codes, payloads)


def _ids(names: Sequence[str], layout: StoreLayout | None) -> list[Id]:
    """Return ids as they were given: Chroma's are text."""
    return [int(name) for name in names] if layout is not None and layout.ids == "int" else list(names)


def _pages(collection: Collection, size: int, include: Any) -> Iterator[Any]:
    for start in range(0, collection.count(), size):
        yield collection.get(limit=size, offset=start, include=include)


def _metadata(payload: dict[str, Any]) -> dict[str, Any]:
    for name, value in payload.items():
        if name.startswith(_RESERVED):
            raise InvalidInputError(f"Chroma takes no names in a payload that begin with $ or #. Got '{name}'.")
        if value is not None and kind_of(value) == "other":
            raise InvalidInputError(
                f"Chroma holds text, numbers and truth values in a payload, and '{name}' is a {type(value).__name__}. "
                "Convert it to text (json.dumps), or leave it out."
            )
    return {_MARK: 1} | {name: value for name, value in payload.items() if value is not None}


def _condition(one: Condition) -> dict[str, Any]:
    if one.kind != "number":
        return {one.name: {f"${one.operator}": list(one.value) if one.operator == "in" else one.value}}
    # To Chroma 3 and 3.0 are different values: a number that is both is compared as both.
    how = "$eq" if one.operator == "in" else f"${one.operator}"
    forms = [form for value in one.values for form in ([int(value)] if value == int(value) else []) + [float(value)]]
    either = [{one.name: {how: form}} for form in forms]
    return either[0] if len(either) == 1 else {"$or": either}
