"""The contract of a store: all of `firstk.search.stores` on one page.

A store holds rows: an id, a code, and a payload of JSON values. An engine is one table, collection or folder of one
product. It creates the table, writes, deletes, reads and searches; encoding, batches, progress, checks and resuming are
done once for all engines, in `prefix_store`.
"""

from __future__ import annotations

import json
import os
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from firstk._base.checks import check_choice, require
from firstk._base.json_records import Count, from_plain, strict_json, to_plain
from firstk._base.rows import unit_rows
from firstk.data import CodeStamp
from firstk.data.remote import blotted, shown_place
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.search.stores.filters import Condition

Id: TypeAlias = int | str
Payload: TypeAlias = dict[str, Any]
EXTRA = "stores"
# The form of the record that a store keeps of itself.
_FORMAT = "firstk-store 1"


@dataclass(frozen=True)
class StoreLayout:
    """What a store holds; kept in the store itself, as JSON, so that it can be opened and checked later.

    Attributes
    ----------
    short : int
        Length of the indexed prefix.
    full : int or None
        Length of the code to rerank by; None where there is one length.
    metric : str
        "cosine", "inner_product" or "l2": what scores are.
    unit : bool
        Whether codes are brought to unit norm at each length. They are then compared by cosine, whatever the metric.
    ids : str
        "int" or "text".
    stamp : CodeStamp
        Of the encoder, for codes of this width: a store is opened with an encoder of the same stamp.
    """

    short: Count
    full: Count | None
    metric: str
    unit: bool
    ids: str
    stamp: CodeStamp

    @property
    def width(self) -> int:
        """Length of the longest code that is stored."""
        return self.short if self.full is None else self.full

    @property
    def compared(self) -> str:
        """The metric by which an engine compares codes: prefixes of unit vectors have no unit norm, and need cosine."""
        return "cosine" if self.unit else self.metric

    def record(self) -> str:
        """Return the layout as JSON, to be kept in the store."""
        return json.dumps({"format": _FORMAT} | to_plain(self) | {"stamp": self.stamp.to_dict()})

    @classmethod
    def read(cls, text: object, place: str) -> StoreLayout:
        """Read a layout from the store's record of it; without a record, firstk did not make the store."""
        if not isinstance(text, str):
            raise foreign(place)
        try:
            facts = dict(strict_json(text))
            known = facts.pop("format") == _FORMAT and set(facts) == {one.name for one in fields(cls)}
            if known:
                return from_plain(cls, facts | {"stamp": CodeStamp.read(facts["stamp"])})
        except (ValueError, TypeError, KeyError):
            pass
        raise InvalidInputError(f"{place} has a record that this firstk cannot read. Push the rows to a new place.")


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Some rows of a store.

    Attributes
    ----------
    ids : list of int or str
    short : ndarray of shape (n, short), float32
    full : ndarray of shape (n, full), float32, or None
    payloads : list of dict
    """

    ids: list[Id]
    short: np.ndarray
    full: np.ndarray | None
    payloads: list[Payload]

    @property
    def longest(self) -> np.ndarray:
        """The longest code of each row, of which the short one is a prefix, up to its norm."""
        return self.short if self.full is None else self.full

    def __len__(self) -> int:
        return len(self.ids)

    def without(self, ids: set[Id]) -> CodedRows:
        """Return the rows that have other ids."""
        new = [i for i, key in enumerate(self.ids) if key not in ids]
        full = None if self.full is None else self.full[new]
        return CodedRows([self.ids[i] for i in new], self.short[new], full, [self.payloads[i] for i in new])


class StoredRows(NamedTuple):
    """Rows as they are read back.

    Attributes
    ----------
    ids : list of int or str
    codes : ndarray of shape (n, width), float32
        The longest code of each row.
    payloads : list of dict
    """

    ids: list[Id]
    codes: np.ndarray
    payloads: list[Payload]


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows of a table that firstk did not make: vectors with ids and payloads.

    Attributes
    ----------
    rows, width : int
        Rows, and numbers of a vector.
    vectors : str
        What the product calls the vectors.
    read : callable (size) -> iterator of StoredRows
        All rows, at most `size` at a time.
    metric : str, optional
        By which the product compares them, where it knows: "cosine", "inner_product" or "l2".
    """

    rows: int
    width: int
    vectors: str
    read: Callable[[int], Iterator[StoredRows]]
    metric: str | None = None


@dataclass(frozen=True, eq=False)
class Request:
    """A search, with the queries encoded.

    Attributes
    ----------
    short : ndarray of shape (m, short), float32
    full : ndarray of shape (m, full), float32, or None
    limit : int
        Results per query.
    shortlist : int
        Rows that the short code finds, to be reranked by the full one; equal to `limit` where there is one length.
    where : tuple of Condition
        All of them hold for every result.
    native : object
        A filter in the engine's own form; None where there is none.
    """

    short: np.ndarray
    full: np.ndarray | None
    limit: int
    shortlist: int
    where: tuple[Condition, ...] = ()
    native: object = None


class Neighbors(NamedTuple):
    """Results of a search: a list for each query, best first.

    Attributes
    ----------
    ids : list of lists of int or str
    scores : list of lists of float
        Cosine or inner product (higher is better), or Euclidean distance (lower is better).
    payloads : list of lists of dict
    """

    ids: list[list[Id]]
    scores: list[list[float]]
    payloads: list[list[Payload]]


# Ids, scores and payloads of one query, best first; no score where an engine has none.
Hits: TypeAlias = tuple[Sequence[Id], Sequence[float | None], Sequence[Mapping[str, Any]]]


class Engine(ABC):
    """One table, collection or folder of one product; it need not exist yet. What most products share is here.

    An engine is a dataclass: its first field is a path, or what the caller opened; its second is the name of the table.
    A batch of `upsert` is written row by row or as a whole, but a row never in part: a row whose id is `present` is
    complete. A row with an id that is there is replaced.
    """

    name: ClassVar[str]
    # What error messages call a store of this kind, such as "A table of DuckDB", and the packages that it needs.
    purpose: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    # What it raises where it fails, or where what it holds was damaged: types, or their names as "module:name".
    raises: ClassVar[tuple[type[BaseException] | str, ...]]
    # The environment variable of its key or token.
    secret: ClassVar[str] = ""
    # Which metrics it can compare by, which a layout must be one of.
    metrics: ClassVar[tuple[str, ...]] = ("cosine", "inner_product", "l2")
    # In which precisions it can index short codes; where there are several, its `precision` says which.
    precisions: ClassVar[tuple[str, ...]] = ("float32",)
    # Names that a payload cannot have here.
    reserved: ClassVar[frozenset[str]] = frozenset()
    # What a filter in the product's own form is, and what messages call that.
    filters: ClassVar[tuple[type | str, str]] = (str, "SQL text")
    # Whether a filter can ask for text that comes before or after another.
    orders_text: ClassVar[bool] = True
    # Rows that one search finds at most; None for any number.
    most: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        for package in self.packages:
            require(package, EXTRA, self.purpose)
        check_choice(getattr(self, "precision", "float32"), self.precisions, "precision", type(self).__name__)

    @classmethod
    def connect(cls, address: str, name: str = "documents", **settings: Any) -> Engine:
        """Open a place; credentials that are not in its address are from the environment."""
        return cls(address, name, **settings)  # type: ignore[call-arg]

    def precision_of(self, layout: StoreLayout) -> str:
        """In which precision codes are kept, and read back: "float32", "float16" or "binary" (signs)."""
        return "float32"

    @property
    def _where_and_name(self) -> tuple[Any, str]:
        where, name = (getattr(self, one.name) for one in fields(self)[:2])  # type: ignore[arg-type]
        return where, name

    @property
    def place(self) -> str:
        """What error messages call it, without credentials: "The table 'documents' of DuckDB"."""
        (where, name), (_, kind, _, product) = self._where_and_name, self.purpose.split(" ", 3)
        return f"The {kind} '{name}' of " + (f"'{shown_place(where)}'" if isinstance(where, (str, Path)) else product)

    @property
    def errors(self) -> tuple[type[BaseException], ...]:
        """The types of `raises`."""
        return tuple(pkgutil.resolve_name(one) if isinstance(one, str) else one for one in self.raises)

    def answering(self) -> AbstractContextManager[None]:
        """Turn errors of the product into InvalidInputError that names the place."""
        where = self._where_and_name[0]
        address = where if isinstance(where, (str, Path)) else getattr(self, "address", "")
        return explained(self.place, self.errors, address, [os.environ.get(self.secret, "")])

    def check(self, layout: StoreLayout) -> None:  # noqa: B027
        """Raise an error for a layout that the engine cannot hold, such as one that is too wide."""

    @abstractmethod
    def layout(self) -> StoreLayout | None:
        """Return what it holds; None where there is nothing yet. Raise an error if firstk did not make it."""

    @abstractmethod
    def create(self, layout: StoreLayout) -> None:
        """Create it, empty."""

    @abstractmethod
    def drop(self) -> None:
        """Delete it, if it is there."""

    @abstractmethod
    def upsert(self, rows: CodedRows) -> None:
        """Write rows."""

    def finish(self) -> None:  # noqa: B027
        """Do what is best done once after many rows, such as building an index. May be called again."""

    @abstractmethod
    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows; ids that are not there are passed over."""

    @abstractmethod
    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return those of the ids that are there."""

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield all rows, at most `size` at a time, in an order that does not change while nothing is written."""

    @abstractmethod
    def read_columns(self, vectors: str | None, ids: str | None) -> NamedRows:
        """Open a table that firstk did not make, by the names of its columns of vectors and ids where it has several.

        All other columns are the payload. Nothing is written there.
        """

    def shortlists(self, request: Request, layout: StoreLayout) -> Iterator[StoredRows]:
        """Yield for each query the rows nearest by the short code, with the codes that rerank them.

        For products that cannot rerank; others have `hits` of their own.
        """
        raise NotImplementedError

    def hits(self, request: Request, layout: StoreLayout) -> Iterator[Hits]:
        """Yield for each query the rows nearest by the short code, reranked by the full one.

        Scores are those of `StoreLayout.compared`.
        """
        queries = request.short if request.full is None else request.full
        for query, rows in zip(queries, self.shortlists(request, layout), strict=True):
            if not len(rows.ids):
                yield [], [], []
                continue
            scores = scores_of(np.asarray(rows.codes, dtype=np.float32), query, layout.compared)
            best = best_first(scores, layout.compared, request.limit)
            yield [rows.ids[i] for i in best], scores[best].tolist(), [rows.payloads[i] for i in best]

    def search(self, request: Request) -> Neighbors:
        """Return what `hits` finds; the score of a code of zeros, which has no cosine, is 0."""
        layout, (kind, form) = self.layout(), self.filters
        assert layout is not None
        kind = pkgutil.resolve_name(kind) if isinstance(kind, str) else kind
        if request.native is not None and not isinstance(request.native, kind):
            raise InvalidInputError(
                f"A filter for {self.purpose.rpartition(' ')[2]} is a mapping, or {form}. Got "
                f"{type(request.native).__name__}."
            )
        if self.most is not None and request.shortlist > self.most:
            raise InvalidInputError(f"{self.place} finds at most {self.most} rows at once. Got {request.shortlist}.")
        found = Neighbors([], [], [])
        for ids, scores, payloads in self.hits(request, layout):
            found.ids.append(list(ids))
            found.scores.append([0.0 if score is None or score != score else float(score) for score in scores])
            found.payloads.append([dict(one) for one in payloads])
        return found

    def close(self) -> None:
        """Let go of files and connections that the engine itself opened.

        What `connect` opened it `owned`; what a path became is the cached `connection`.
        """
        where = self._where_and_name[0]
        opened: Any = self.__dict__.pop("connection", None) if isinstance(where, (str, Path)) else None
        opened = where if getattr(self, "owned", False) else opened
        if hasattr(opened, "close"):
            opened.close()


def scores_of(codes: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    """Return cosines or inner products (higher is better) or distances (lower is better), in float64."""
    Z, q = codes.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return np.asarray(np.linalg.norm(Z - q, axis=1))
    if metric == "cosine":
        Z, q = unit_rows(Z), unit_rows(q[None])[0]
    return np.asarray(Z @ q)


def best_first(scores: np.ndarray, metric: str, limit: int) -> np.ndarray:
    """Return the places of the best scores, best first, ties in the order given."""
    return np.argsort(scores if metric == "l2" else -scores, kind="stable")[:limit]


@contextmanager
def explained(
    place: str, errors: tuple[type[BaseException], ...], address: object = "", secrets: Sequence[str] = ()
) -> Iterator[None]:
    """Turn errors of a product into InvalidInputError that names the place, without credentials."""
    try:
        yield
    except FirstkError:
        raise
    except errors as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InvalidInputError(f"{place} failed: {blotted(said, str(address), secrets)[:300]}") from None


def check_ascending(keys: Sequence[Any], after: Any = None) -> None:
    """Raise InvalidInputError for keys of a page that do not ascend, as in a damaged file: pages would never end."""
    every = [*([] if after is None else [after]), *keys]
    if any(not a < b for a, b in pairwise(every)):
        raise InvalidInputError(
            f"The rows of a store are out of order near {after!r}: its file is damaged. Push the rows to a new place."
        )


class ForeignStoreError(InvalidInputError):
    """A table that firstk did not make: it can be read by `Engine.read_columns`, and is not written to."""


def foreign(place: str) -> ForeignStoreError:
    """Build the error for a table that firstk did not make."""
    return ForeignStoreError(
        f"{place} is there already, and firstk.search.stores did not make it: it has no record of its codes. "
        "Name another place."
    )
