"""Qdrant collections with two vectors per document: a short prefix for the index, and the full code for reranking.

A search finds a shortlist among the short vectors and reranks it by the full ones, in one request (Qdrant's
``prefetch``). Codes are computed here, with the mean of each side subtracted, and stored as plain named vectors. Needs
the extra "search".
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from firstk._base.checks import bad_parameter, check_matrix, check_prefix, check_same_length, is_int, require
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.integrations._codes import Codes, EncoderLike
from firstk.integrations._documents import Documents

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from qdrant_client import QdrantClient
    from qdrant_client.models import Filter, SearchParams

    from firstk.data.files import VectorTable

_DISTANCES = {"cosine": "Cosine", "inner_product": "Dot", "l2": "Euclid"}
_PURPOSE = "A Qdrant collection"


class Neighbors(NamedTuple):
    """Results of a search: a list for each query, best first.

    Attributes
    ----------
    ids : list of lists of int or str
    scores : list of lists of float
        Cosine or inner product (higher is better), or Euclidean distance (lower is better).
    payloads : list of lists of dict
    """

    ids: list[list[int | str | uuid.UUID]]
    scores: list[list[float]]
    payloads: list[list[dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class PrefixCollection:
    """A collection with the named vectors "short" and "full". Use `create` for a new one, `open` for an existing one.

    Attributes
    ----------
    client : qdrant_client.QdrantClient
    name : str
    codes : Codes
        The encoder, and the metric to compare its codes.
    short, full : int
        Lengths of the two prefixes.
    """

    client: QdrantClient
    name: str
    codes: Codes
    short: int
    full: int

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
        short, full : int
            Length of the indexed prefix, and of the prefix used for reranking (the full width if not given).
        metric : str
            "auto" (cosine for normalized codes, inner product for ``keep="dot_products"``, else l2), or one of these.
        replace : bool
            Delete an existing collection of that name; otherwise it raises an error.
        **settings
            Passed to ``client.create_collection``, such as ``quantization_config``.
        """
        models = require("qdrant_client.models", "search", _PURPOSE)
        codes = Codes.of(encoder, metric, "PrefixCollection.create")
        full = check_prefix(full, codes.encoder.d, "PrefixCollection.create")
        if not is_int(short) or not 1 <= short < full:
            raise bad_parameter("short", "PrefixCollection.create", f"an int in [1, {full - 1}] (below 'full')", short)
        distance = models.Distance(_DISTANCES[codes.metric])
        # Full vectors are only used to rerank a shortlist: they need no graph, and may stay on disk.
        rerank_only = {"on_disk": True, "hnsw_config": models.HnswConfigDiff(m=0)}
        vectors = {
            "short": models.VectorParams(size=int(short), distance=distance),
            "full": models.VectorParams(size=full, distance=distance, **rerank_only),
        }
        with _answered(name):
            if client.collection_exists(name):
                if not replace:
                    raise InvalidInputError(
                        f"There is a collection '{name}' already. Use PrefixCollection.open, or pass replace=True."
                    )
                client.delete_collection(name)
            client.create_collection(name, vectors_config=vectors, **settings)
        return cls(client, name, codes, int(short), full)

    @classmethod
    def open(cls, client: QdrantClient, name: str, encoder: EncoderLike) -> PrefixCollection:
        """Open an existing collection; `encoder` is the one it was created with."""
        require("qdrant_client", "search", _PURPOSE)
        with _answered(name):
            if not client.collection_exists(name):
                raise InvalidInputError(f"There is no collection '{name}'. Create it with PrefixCollection.create.")
            vectors = client.get_collection(name).config.params.vectors
        metrics = {distance: metric for metric, distance in _DISTANCES.items()}
        if not isinstance(vectors, Mapping) or not {"short", "full"} <= set(vectors):
            raise InvalidInputError(
                f"The collection '{name}' has no vectors 'short' and 'full': firstk did not make it."
            )
        short, full = vectors["short"], vectors["full"]
        if short.distance != full.distance or full.distance.value not in metrics:
            raise InvalidInputError(
                f"The collection '{name}' has vectors of unequal or unknown distance: firstk did not make it."
            )
        codes = Codes.of(encoder, metrics[full.distance.value], "PrefixCollection.open")
        if full.size > codes.encoder.d:
            raise InvalidInputError(
                f"The collection '{name}' holds codes of {full.size} coordinates, and this encoder has "
                f"{codes.encoder.d}. Open it with the encoder it was created with."
            )
        return cls(client, name, codes, short.size, full.size)

    def upload(
        self,
        vectors: ArrayLike | VectorTable,
        ids: Sequence[int | str | uuid.UUID] | np.ndarray | None = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
        *,
        batch: int = 256,
        progress: bool = False,
    ) -> int:
        """Encode and store documents in batches; points with an existing id are replaced.

        Parameters
        ----------
        vectors : array-like of shape (n, p) or table
            Raw vectors; a table of :func:`firstk.data.files.open_vectors` is read in blocks.
        ids : sequence of int or UUID, optional
            Unique ids. Row numbers if not given, which needs an empty collection.
        payloads : sequence of dict, optional
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
        keys = self._new_ids(rows.rows) if ids is None else checked_ids(ids, rows.rows, owner)
        checked = None if payloads is None else _checked_payloads(payloads, rows.rows, owner)
        with (
            _answered(self.name),
            tqdm(total=rows.rows, desc="uploading", unit="row", disable=None if progress else True) as bar,
        ):
            for X, numbers in rows.blocks(batch):
                self.client.upsert(
                    self.name,
                    models.Batch(
                        ids=[keys[i] for i in numbers],
                        vectors=self._named(X, side="document", owner=owner),
                        payloads=None if checked is None else [checked[i] for i in numbers],
                    ),
                )
                bar.update(len(X))
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
        """Find the short vectors nearest to each query, and rerank them by the full ones.

        Parameters
        ----------
        queries : array-like of shape (n, p)
            Raw vectors, encoded as queries.
        limit : int
            Number of results per query.
        shortlist : int, optional
            Number of short vectors to find; ten times `limit`, but at least 100, if not given.
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
        wide = max(100, 10 * limit) if shortlist is None else shortlist
        if not is_int(wide) or wide < limit:
            raise bad_parameter("shortlist", owner, f"an int of at least {limit} (the limit)", shortlist)
        first_stage = {"filter": query_filter, "params": params}
        found = Neighbors([], [], [])
        for start in range(0, len(Q), batch):
            named = self._named(Q[start : start + batch], side="query", owner=owner)
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
                found.ids.append([point.id for point in answer.points])
                found.scores.append([point.score for point in answer.points])
                found.payloads.append([point.payload or {} for point in answer.points])
        return found

    def _named(self, X: np.ndarray, *, side: str, owner: str) -> dict[str, list[list[float]]]:
        short, full = self.codes.cut(X, (self.short, self.full), side=side, owner=owner)
        return {"short": short.tolist(), "full": full.tolist()}

    def _new_ids(self, n: int) -> list[int | str]:
        with _answered(self.name):
            there = self.client.count(self.name, exact=True).count
        if there:
            raise InvalidInputError(
                f"The collection '{self.name}' holds {there} points, and row numbers would replace them. Pass ids."
            )
        return list(range(n))


def checked_ids(ids: Sequence[int | str | uuid.UUID] | np.ndarray, n: int, owner: str) -> list[int | str]:
    """Return unique ids in the form that Qdrant accepts: ints in [0, 2^64) or UUIDs."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, (Sequence, np.ndarray)):
        raise bad_parameter("ids", owner, "a sequence of ints or UUIDs", ids)
    keys = [_checked_id(key, owner) for key in ids]
    if len(keys) != n:
        raise InvalidInputError(f"{owner} needs as many 'ids' as rows in 'vectors'. Got {len(keys)} and {n}.")
    seen: set[int | str] = set()
    twice = [key for key in keys if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
    if twice:
        raise InvalidInputError(
            f"The 'ids' of {owner} must be unique: {len(set(twice))} occur more than once, the first {twice[0]!r}. "
            "Only the last would be kept; drop the rows that were replaced."
        )
    return keys


def _checked_id(key: object, owner: str) -> int | str:
    if isinstance(key, (int, np.integer)) and is_int(key) and 0 <= int(key) < 2**64:
        return int(key)
    if isinstance(key, (str, uuid.UUID)):
        with contextlib.suppress(ValueError):
            return str(uuid.UUID(str(key)))
    raise InvalidInputError(
        f"Qdrant takes ids that are ints in [0, 2^64) or UUIDs. {owner} got {key!r}. For other names use "
        "uuid.uuid5(namespace, name), and keep the name in the payload."
    )


def _checked_payloads(payloads: Sequence[Mapping[str, Any]], n: int, owner: str) -> list[dict[str, Any]]:
    if not isinstance(payloads, Sequence) or not all(isinstance(one, Mapping) for one in payloads):
        raise InvalidInputError(f"The 'payloads' of {owner} must be a list of dicts, one for each row.")
    check_same_length(payloads, range(n), "payloads", "vectors", owner)
    return [dict(one) for one in payloads]


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
