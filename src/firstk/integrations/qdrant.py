"""Qdrant collections of short codes, with ids and payload; where asked for, with long codes to rerank by.

With both lengths, a search finds a shortlist among the short vectors and reranks it by the full ones, in one request
(Qdrant's ``prefetch``). Codes are computed here, with the mean of each side subtracted, and stored as plain named
vectors. Needs the extra "search".
"""

from __future__ import annotations

import contextlib
import inspect
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_matrix, check_prefix, is_int, require
from firstk.data.stamp import CodeStamp
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.integrations._codes import Codes, EncoderLike
from firstk.integrations._documents import Documents
from firstk.integrations._points import Points
from firstk.integrations.stores.contract import Layout, Neighbors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from qdrant_client import QdrantClient
    from qdrant_client.models import Filter, SearchParams

    from firstk.data.files import VectorTable

_DISTANCES = {"cosine": "Cosine", "inner_product": "Dot", "l2": "Euclid"}
_PRECISIONS = ("float32", "float16")
_PURPOSE = "A Qdrant collection"
# The key of a collection's metadata under which the stamp of its codes is.
_KEY = "firstk"


@dataclass(frozen=True, eq=False)
class PrefixCollection:
    """A collection with the named vector "short", and "full" if there are two lengths.

    Use `create` for a new one, `open` for an existing one.

    Attributes
    ----------
    client : qdrant_client.QdrantClient
    name : str
    codes : Codes
        The encoder, and the metric to compare its codes.
    short : int
        Length of the indexed prefix.
    full : int or None
        Length of the prefix to rerank by; None where there is one length.
    """

    client: QdrantClient
    name: str
    codes: Codes
    short: int
    full: int | None = None

    @classmethod
    def create(
        cls,
        client: QdrantClient,
        name: str,
        encoder: EncoderLike,
        short: int,
        full: int | None = None,
        *,
        metric: str = "auto",
        precision: str = "float32",
        replace: bool = False,
        **settings: Any,
    ) -> PrefixCollection:
        """Create a collection.

        Parameters
        ----------
        client : qdrant_client.QdrantClient
            Client of a server, or in local mode: ``QdrantClient(":memory:")``, ``QdrantClient(path=...)``.
        name : str
        encoder : PrefixEncoder or FittedEncoder
        short : int
            Length of the indexed prefix.
        full : int, optional
            Length of a second, longer prefix to rerank by. If not given, nothing else is stored.
        metric : str
            "cosine", "inner_product" or "l2"; "auto" is cosine, which curves evaluate.
        precision : {"float32", "float16"}
            How Qdrant stores the numbers.
        replace : bool
            Delete an existing collection of that name; otherwise it raises an error.
        **settings
            Passed to ``client.create_collection``, such as ``quantization_config``.
        """
        models = require("qdrant_client.models", "search", _PURPOSE)
        codes = Codes.of(encoder, metric, "PrefixCollection.create")
        owner = "PrefixCollection.create"
        short = check_prefix(short, codes.encoder.d, owner)
        kind = {
            "distance": models.Distance(_DISTANCES[codes.metric]),
            "datatype": models.Datatype(check_choice(precision, _PRECISIONS, "precision", owner)),
        }
        vectors = {"short": models.VectorParams(size=short, **kind)}
        if full is not None:
            full = check_prefix(full, codes.encoder.d, owner)
            if full <= short:
                raise bad_parameter("full", owner, f"None or an int above {short} (the length of 'short')", full)
            # Full vectors are only used to rerank a shortlist: they need no graph, and may stay on disk.
            rerank_only = {"on_disk": True, "hnsw_config": models.HnswConfigDiff(m=0)}
            vectors["full"] = models.VectorParams(size=full, **kind, **rerank_only)
        with _answered(name):
            if client.collection_exists(name):
                if not replace:
                    raise InvalidInputError(
                        f"There is a collection '{name}' already. Use PrefixCollection.open, or pass replace=True."
                    )
                client.delete_collection(name)
            client.create_collection(
                name, vectors_config=vectors, **_stamped(client, codes.encoder.stamp(full or short), settings)
            )
        return cls(client, name, codes, short, full)

    @classmethod
    def open(cls, client: QdrantClient, name: str, encoder: EncoderLike) -> PrefixCollection:
        """Open an existing collection with the encoder it was created with; another raises an error that names both."""
        require("qdrant_client", "search", _PURPOSE)
        with _answered(name):
            if not client.collection_exists(name):
                raise InvalidInputError(f"There is no collection '{name}'. Create it with PrefixCollection.create.")
            config = client.get_collection(name).config
            vectors = config.params.vectors
        metrics = {distance: metric for metric, distance in _DISTANCES.items()}
        if not isinstance(vectors, Mapping) or "short" not in vectors or not set(vectors) <= {"short", "full"}:
            raise InvalidInputError(
                f"The collection '{name}' has no vectors 'short' (and 'full'): firstk did not make it."
            )
        short, longest = vectors["short"], vectors.get("full", vectors["short"])
        if short.distance != longest.distance or short.distance.value not in metrics:
            raise InvalidInputError(
                f"The collection '{name}' has vectors of unequal or unknown distance: firstk did not make it."
            )
        codes = Codes.of(encoder, metrics[short.distance.value], "PrefixCollection.open")
        if longest.size > codes.encoder.d:
            raise InvalidInputError(
                f"The collection '{name}' holds codes of {longest.size} coordinates, and this encoder has "
                f"{codes.encoder.d}. Open it with the encoder it was created with."
            )
        if (stamp := _stamp_of(config, name)) is not None:
            stamp.check(codes.encoder.stamp(longest.size), f"collection '{name}'", "this encoder")
        return cls(client, name, codes, short.size, longest.size if "full" in vectors else None)

    def upload(
        self,
        vectors: ArrayLike | VectorTable,
        ids: Sequence[int | str | uuid.UUID] | np.ndarray | str | None = None,
        payloads: Sequence[Mapping[str, Any]] | Sequence[str] | None = None,
        *,
        batch: int = 256,
        progress: bool = False,
    ) -> int:
        """Encode and store documents in batches; points with an existing id are replaced.

        Parameters
        ----------
        vectors : array-like of shape (n, p) or table
            Raw vectors; a table of :func:`firstk.data.files.open_vectors` is read in blocks.
        ids : sequence of int or UUID, or str, optional
            Unique ids; of a table, the name of a column, "id" if not given and there is one. Qdrant takes whole numbers
            and UUIDs: for other names a UUID is computed from the name, which stays in the payload. Without ids rows
            are numbered, which needs an empty collection.
        payloads : sequence of dict, or of str, optional
            Of a table, names of columns; all of its other columns if not given.
        batch : int
            Points per request.
        progress : bool
            Show a progress bar.

        Returns
        -------
        n : int
            Number of points in the collection now.
        """
        from tqdm.auto import tqdm

        owner = "PrefixCollection.upload"
        models = require("qdrant_client.models", "search", _PURPOSE)
        rows = Documents.of(vectors, self.codes.encoder.p, owner, "vectors")
        batch = _checked_count(batch, "batch", owner)
        points = Points.of(rows, ids, payloads, owner)
        if points.numbered:
            self._check_empty()
        with (
            _answered(self.name),
            tqdm(total=rows.rows, desc="uploading", unit="row", disable=None if progress else True) as bar,
        ):
            for block in rows.blocks(batch, points.columns):
                self.client.upsert(
                    self.name,
                    models.Batch(
                        ids=[points.ids[i] for i in block.rows],
                        vectors=self._named(block.vectors, side="document", owner=owner),
                        payloads=points.payloads_of(block),
                    ),
                )
                bar.update(len(block))
            return self.client.count(self.name, exact=True).count

    def search(
        self,
        queries: ArrayLike,
        limit: int = 10,
        *,
        shortlist: int | None = None,
        query_filter: Filter | None = None,
        params: SearchParams | None = None,
        batch: int = 64,
    ) -> Neighbors:
        """Find the short vectors nearest to each query, and rerank them by the full ones where there are any.

        Parameters
        ----------
        queries : array-like of shape (n, p)
            Raw vectors, encoded as queries.
        limit : int
            Number of results per query.
        shortlist : int, optional
            Number of short vectors to rerank; ten times `limit`, but at least 100, if not given.
        query_filter : qdrant_client.models.Filter, optional
            Filter of the points to search.
        params : qdrant_client.models.SearchParams, optional
            Parameters of the search among short vectors, such as ``hnsw_ef`` or ``exact``.
        batch : int
            Queries per request.
        """
        owner = "PrefixCollection.search"
        models = require("qdrant_client.models", "search", _PURPOSE)
        Q = check_matrix(queries, owner, "queries", width=self.codes.encoder.p)
        limit, batch = _checked_count(limit, "limit", owner), _checked_count(batch, "batch", owner)
        wide = self._shortlist(limit, shortlist, owner)
        first_stage = {"filter": query_filter, "params": params}
        found = Neighbors([], [], [])
        for start in range(0, len(Q), batch):
            named = self._named(Q[start : start + batch], side="query", owner=owner)
            if self.full is None:
                requests = [
                    models.QueryRequest(query=code, using="short", limit=limit, with_payload=True, **first_stage)
                    for code in named["short"]
                ]
            else:
                requests = [
                    models.QueryRequest(
                        prefetch=models.Prefetch(query=first, using="short", limit=wide, **first_stage),
                        query=last,
                        using="full",
                        limit=limit,
                        with_payload=True,
                    )
                    for first, last in zip(named["short"], named["full"], strict=True)
                ]
            with _answered(self.name):
                answers = self.client.query_batch_points(self.name, requests)
            for answer in answers:
                points: list[Any] = answer.points
                found.ids.append([point.id for point in points])
                found.scores.append([point.score for point in points])
                found.payloads.append([point.payload or {} for point in points])
        return found

    def _shortlist(self, limit: int, shortlist: int | None, owner: str) -> int:
        if shortlist is not None and self.full is None:
            raise InvalidInputError(
                f"The collection '{self.name}' has one length, and a shortlist is reranked by a longer one. Leave "
                "'shortlist' out, or create the collection with full=..."
            )
        wide = max(100, 10 * limit) if shortlist is None else shortlist
        if not is_int(wide) or wide < limit:
            raise bad_parameter("shortlist", owner, f"an int of at least {limit} (the limit)", shortlist)
        return int(wide)

    def _named(self, X: np.ndarray, *, side: str, owner: str) -> dict[str, list[list[float]]]:
        lengths = {"short": self.short} | ({} if self.full is None else {"full": self.full})
        codes = self.codes.cut(X, tuple(lengths.values()), side=side, owner=owner)
        return {name: code.tolist() for name, code in zip(lengths, codes, strict=True)}

    def _check_empty(self) -> None:
        with _answered(self.name):
            there = self.client.count(self.name, exact=True).count
        if there:
            raise InvalidInputError(
                f"The collection '{self.name}' holds {there} points, and row numbers would replace them. Pass ids."
            )


def _stamped(client: QdrantClient, stamp: CodeStamp, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a collection with the stamp of its codes; clients before 1.16 have no room for one."""
    if "metadata" not in inspect.signature(client.create_collection).parameters:
        return settings
    return settings | {"metadata": dict(settings.get("metadata") or {}) | {_KEY: stamp.to_dict()}}


def _stamp_of(config: Any, name: str) -> CodeStamp | None:
    """Return the stamp of a collection; None where it has none."""
    found = (getattr(config, "metadata", None) or {}).get(_KEY)
    if isinstance(found, str):  # of a collection that `stores.Qdrant` made
        return Layout.read(found, f"The collection '{name}'").stamp
    try:
        return None if found is None else CodeStamp.read(found)
    except (ValueError, TypeError):
        raise InvalidInputError(
            f"The metadata of collection '{name}' say that firstk made it, and not with what: they are damaged."
        ) from None


def _checked_count(value: int, name: str, owner: str) -> int:
    if not is_int(value) or value < 1:
        raise bad_parameter(name, owner, "a positive int", value)
    return int(value)


@contextlib.contextmanager
def _answered(name: str) -> Iterator[None]:
    """Convert errors of Qdrant, and of the connection to it, to InvalidInputError."""
    from qdrant_client.http.exceptions import ApiException

    try:
        yield
    except FirstkError:
        raise
    except (ApiException, ValueError, OSError) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InvalidInputError(f"Qdrant failed on collection '{name}': {said}") from None
