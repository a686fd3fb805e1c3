"""Rows in and neighbors out, the same for every engine: encoding, batches, progress, checks, resuming.

The work is divided by `contract`: an engine knows its product, and this module knows codes.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.checks import (
    bad_parameter,
    check_choice,
    check_count,
    check_matrix,
    check_prefix,
    check_verbose,
    is_int,
)
from firstk._base.progress import Verbose, progress_bar
from firstk.exceptions import InvalidInputError
from firstk.integrations import Codes, Documents, EncoderLike
from firstk.search.stores.contract import CodedRows, Engine, Id, Neighbors, Request, StoredRows, StoreLayout
from firstk.search.stores.filters import Condition, read_filter
from firstk.search.stores.incoming import Ids, Incoming, Payloads, plain_id

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from firstk.data.files import VectorTable

EXISTING = ("replace", "skip")


def push(
    encoder: EncoderLike,
    table: ArrayLike | VectorTable,
    into: Engine,
    short: int,
    full: int | None = None,
    *,
    metric: str = "auto",
    ids: Ids | None = None,
    payloads: Payloads | None = None,
    existing: str = "replace",
    batch: int = 1000,
    verbose: Verbose = "auto",
) -> PrefixStore:
    """Encode vectors and write them to a store, which is created if it is not there.

    Run it again after an interruption: rows have ids, so that none is stored twice. ``existing="skip"`` leaves rows
    that are there as they are, and goes on with the others.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
    table : array-like of shape (n, p), or a table of :func:`firstk.data.files.open_vectors`
        Raw vectors of documents; a table is read in blocks.
    into : Engine
        Such as ``Pgvector(connection, "documents")``.
    short : int
        Length of the prefix that is indexed.
    full : int, optional
        Length of the longer code that reranks a shortlist. If not given, nothing else is stored.
    metric : str
        "cosine", "inner_product" or "l2"; "auto" is cosine, which curves evaluate.
    ids : sequence of int or str, or str, optional
        Unique ids; of a table, the name of a column, "id" if not given and there is one. Without ids rows are numbered.
    payloads : sequence of dict, or of str, optional
        Of a table, names of columns; all of its other columns if not given.
    existing : {"replace", "skip"}
        What happens to rows whose id is in the store.
    batch : int
        Rows that are encoded and written at a time.
    verbose : bool or "auto"
        Whether to show progress.

    Returns
    -------
    PrefixStore
    """
    owner = "push"
    _check_engine(into, "into", owner)
    codes = Codes.of(encoder, metric, owner)
    rows = Incoming.of(Documents.of(table, codes.encoder.p, owner, "table"), ids, payloads, owner)
    layout = layout_of(codes, short, full, rows.kind, owner)
    with into.answering():
        there = into.layout()
        if there is None:
            store = PrefixStore.create(into, encoder, short, full, metric=metric, ids=layout.ids)
        else:
            check_same(into.place, there, layout)
            store = PrefixStore(into, codes, there)
    store.write(rows, existing=existing, batch=batch, verbose=verbose)
    return store


@dataclass(frozen=True, eq=False)
class PrefixStore:
    """A store of codes: the short prefix is indexed, the full code reranks. Use `push`, `create` or `open`.

    Attributes
    ----------
    engine : Engine
    codes : Codes
        The encoder, and the metric to compare its codes.
    layout : StoreLayout
    """

    engine: Engine
    codes: Codes
    layout: StoreLayout

    @classmethod
    def create(
        cls,
        engine: Engine,
        encoder: EncoderLike,
        short: int,
        full: int | None = None,
        *,
        metric: str = "auto",
        ids: str = "int",
        replace: bool = False,
    ) -> PrefixStore:
        """Create an empty store.

        Parameters
        ----------
        engine : Engine
        encoder : PrefixEncoder or FittedEncoder
        short, full, metric
            See :func:`push`.
        ids : {"int", "text"}
            What ids will be.
        replace : bool
            Delete the store that is there; otherwise it raises an error. What firstk did not make stays.
        """
        owner = "PrefixStore.create"
        _check_engine(engine, "engine", owner)
        codes = Codes.of(encoder, metric, owner)
        layout = layout_of(codes, short, full, check_choice(ids, ("int", "text"), "ids", owner), owner)
        create_empty(engine, layout, replace=replace)
        return cls(engine, codes, layout)

    @classmethod
    def open(cls, engine: Engine, encoder: EncoderLike) -> PrefixStore:
        """Open a store that is there; `encoder` is the one it was filled with."""
        _check_engine(engine, "engine", "PrefixStore.open")
        with engine.answering():
            layout = engine.layout()
        if layout is None:
            raise InvalidInputError(f"{engine.place} is not there. Create it with push or PrefixStore.create.")
        codes = Codes.of(encoder, layout.metric, "PrefixStore.open")
        if layout.width > codes.encoder.d:
            raise InvalidInputError(
                f"{engine.place} holds codes of {layout.width} coordinates, and this encoder has {codes.encoder.d}. "
                "Use the encoder it was filled with."
            )
        layout.stamp.check(codes.encoder.stamp(layout.width), _inside(engine.place), "this encoder")
        return cls(engine, codes, layout)

    def push(
        self,
        table: ArrayLike | VectorTable,
        ids: Ids | None = None,
        payloads: Payloads | None = None,
        *,
        existing: str = "replace",
        batch: int = 1000,
        verbose: Verbose = "auto",
    ) -> int:
        """Encode vectors and write them; see :func:`push`. Returns the number of rows in the store now."""
        owner = "PrefixStore.push"
        rows = Incoming.of(Documents.of(table, self.codes.encoder.p, owner, "table"), ids, payloads, owner)
        return self.write(rows, existing=existing, batch=batch, verbose=verbose)

    def write(self, rows: Incoming, *, existing: str, batch: int, verbose: Verbose) -> int:
        """Encode rows and write them with their ids and payloads; return the number of rows in the store now."""
        owner = "push"
        check_choice(existing, EXISTING, "existing", owner)
        batch, verbose = check_count(batch, "batch", owner), check_verbose(verbose, owner)
        self._check_kind(rows.kind, owner)
        odd = sorted(map(repr, (one for one in rows.names if not isinstance(one, str) or not one or "\0" in one)))
        odd += sorted(map(repr, rows.names & self.engine.reserved))
        if odd:
            raise InvalidInputError(f"{self.engine.place} cannot hold the name {odd[0]} in a payload. Rename it.")
        with self.engine.answering(), progress_bar(rows.documents.rows, "pushing", "row", verbose) as step:
            if rows.numbered and existing == "replace" and (there := self.engine.count()):
                raise InvalidInputError(
                    f"{self.engine.place} holds {there} rows, and row numbers would replace them. Pass ids; or "
                    "existing='skip', to go on with an interrupted push of the same table."
                )
            for part in rows.read(batch):
                coded = CodedRows(
                    part.ids, *cut_codes(self.codes, self.layout, part.codes, "document", owner), part.payloads
                )
                if existing == "skip":
                    coded = coded.without(self.engine.present(part.ids))
                if len(coded):
                    self.engine.upsert(coded)
                step(len(part.ids))
            self.engine.finish()
            return self.engine.count()

    def search(
        self,
        queries: ArrayLike,
        limit: int = 10,
        *,
        shortlist: int | None = None,
        filter: Mapping[str, object] | object | None = None,
        batch: int = 64,
    ) -> Neighbors:
        """Find the rows whose short code is nearest to each query, and rerank them by the full code.

        Parameters
        ----------
        queries : array-like of shape (n, p)
            Raw vectors, encoded as queries.
        limit : int
            Results per query.
        shortlist : int, optional
            Number of short codes to rerank; ten times `limit`, but at least 100, if not given.
        filter : mapping, or a filter in the store's own form, optional
            Of payloads, before the shortlist is taken: ``{"kind": "news", "year": {"gte": 2000}}``; see `filters`.
        batch : int
            Queries that are encoded and sent at a time.
        """
        owner = "PrefixStore.search"
        Q = check_matrix(queries, owner, "queries", width=self.codes.encoder.p)
        limit, batch = check_count(limit, "limit", owner), check_count(batch, "batch", owner)
        wide = limit
        if self.layout.full is not None:
            wide = max(100, 10 * limit) if shortlist is None else shortlist
            if not is_int(wide) or wide < limit:
                raise bad_parameter("shortlist", owner, f"an int of at least {limit} (the limit)", shortlist)
        elif shortlist is not None:
            raise InvalidInputError(
                f"{self.engine.place} has one length, and a shortlist is reranked by a longer one. Leave 'shortlist' "
                "out, or push with full=..."
            )
        where: tuple[Condition, ...] = read_filter(filter, owner) if isinstance(filter, Mapping) else ()
        for one in where:
            if one.kind == "text" and one.operator not in ("eq", "in") and not self.engine.orders_text:
                raise InvalidInputError(
                    f"{self.engine.place} cannot order text, which the filter of '{one.name}' asks for. Compare "
                    "numbers there, or text by 'eq' and 'in'."
                )
        native = None if isinstance(filter, Mapping) else filter
        found = Neighbors([], [], [])
        with self.engine.answering():
            for start in range(0, len(Q), batch):
                short, full = cut_codes(self.codes, self.layout, Q[start : start + batch], "query", owner)
                part = self.engine.search(Request(short, full, limit, wide, where, native))
                found.ids.extend(part.ids)
                found.scores.extend(part.scores)
                found.payloads.extend(part.payloads)
        if self.layout.compared == "cosine" and self.layout.metric == "l2":
            # Of unit vectors: |a - b|^2 = 2 - 2 cos.
            distances = [[math.sqrt(max(0.0, 2 - 2 * score)) for score in one] for one in found.scores]
            return found._replace(scores=distances)
        return found

    def delete(self, ids: Sequence[Id | uuid.UUID] | np.ndarray) -> int:
        """Delete rows by id; ids that are not there are passed over. Returns the number of rows left."""
        owner = "PrefixStore.delete"
        if isinstance(ids, (str, bytes)) or not isinstance(ids, (Sequence, np.ndarray)):
            raise bad_parameter("ids", owner, "a sequence of ids", ids)
        keys = [plain_id(key, owner) for key in ids]
        for kind in {"int" if isinstance(key, int) else "text" for key in keys}:
            self._check_kind(kind, owner)
        with self.engine.answering():
            if keys:
                self.engine.delete(keys)
            return self.engine.count()

    def count(self) -> int:
        """Return the number of rows."""
        with self.engine.answering():
            return self.engine.count()

    def rows(self, size: int = 1000) -> Iterator[StoredRows]:
        """Yield all rows, at most `size` at a time: ids, the longest codes, payloads."""
        size = check_count(size, "size", "PrefixStore.rows")
        with self.engine.answering():
            yield from self.engine.read(size)

    def close(self) -> None:
        """Let go of files and connections that the engine opened."""
        self.engine.close()

    def __enter__(self) -> PrefixStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_kind(self, kind: str, owner: str) -> None:
        if kind != self.layout.ids:
            raise InvalidInputError(
                f"{self.engine.place} has ids of kind '{self.layout.ids}', and {owner} got ids of kind '{kind}'."
            )


def create_empty(engine: Engine, layout: StoreLayout, *, replace: bool = False) -> None:
    """Create an empty store of a layout that the engine can hold; with `replace`, delete the one that is there."""
    if layout.compared not in engine.metrics:
        raise InvalidInputError(
            f"{engine.place} cannot compare by {layout.compared}; it compares by {', '.join(engine.metrics)}. "
            "Choose another metric, or another store."
        )
    engine.check(layout)
    with engine.answering():
        if engine.layout() is not None:  # which raises for what firstk did not make
            if not replace:
                raise InvalidInputError(f"{engine.place} is there already. Use PrefixStore.open, or replace=True.")
            engine.drop()
        engine.create(layout)


def _check_engine(engine: object, name: str, owner: str) -> None:
    if not hasattr(engine, "answering"):
        raise bad_parameter(name, owner, "an engine, such as Faiss(folder) or connect(address)", engine)


def layout_of(codes: Codes, short: int, full: int | None, ids: str, owner: str) -> StoreLayout:
    """Return the layout of a store of an encoder's codes, of checked lengths."""
    short = check_prefix(short, codes.encoder.d, owner)
    if full is not None:
        full = check_prefix(full, codes.encoder.d, owner)
        if full <= short:
            raise bad_parameter("full", owner, f"None or an int above {short} (the length of 'short')", full)
    return StoreLayout(short, full, codes.metric, codes.unit, ids, codes.encoder.stamp(full or short))


def cut_codes(
    codes: Codes, layout: StoreLayout, X: np.ndarray, side: str, owner: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return vectors as the short and the full codes of a store."""
    lengths = (layout.short,) if layout.full is None else (layout.short, layout.full)
    found = codes.cut(X, lengths, side=side, owner=owner)
    return found[0], found[1] if len(found) > 1 else None


def check_same(place: str, there: StoreLayout, wanted: StoreLayout) -> None:
    """Raise an error if a store holds something else than is to be pushed."""
    for name in ("short", "full", "metric", "ids"):
        if getattr(there, name) != getattr(wanted, name):
            raise InvalidInputError(
                f"{place} is there already with {name}={getattr(there, name)!r}, and asked for is "
                f"{getattr(wanted, name)!r}. Use the same, or another place."
            )
    there.stamp.check(wanted.stamp, _inside(place), "this encoder")


def _inside(place: str) -> str:
    """Return the name of a place for the middle of a sentence."""
    return place[:1].lower() + place[1:]
