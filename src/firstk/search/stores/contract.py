"""The contract of a store: all of `firstk.search.stores` on one page.

A store holds rows: an id, a code, and a payload of JSON values. An engine is one table, collection or folder of one
product. It creates the table, writes, deletes, reads and searches; encoding, batches, progress, checks and resuming are
done once for all engines, in `prefix_store`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from firstk._base.json_records import Count, from_plain, strict_json, to_plain
from firstk._base.remote import blotted
from firstk.data import CodeStamp
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.search.stores.filters import Condition

Id: TypeAlias = int | str
Payload: TypeAlias = dict[str, Any]
EXTRA = "stores"
# The form of the record that a store keeps of itself.
_FORMAT = "firstk-store 1"


@dataclass(frozen=True)
class Layout:
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
    def read(cls, text: str, place: str) -> Layout:
        """Read a layout from the store; raise an error if firstk did not write it."""
        try:
            facts = dict(strict_json(text))
            known = facts.pop("format") == _FORMAT and set(facts) == {one.name for one in fields(cls)}
            if known:
                return from_plain(cls, facts | {"stamp": CodeStamp.read(facts["stamp"])})
        except (ValueError, TypeError, KeyError):
            pass
        raise InvalidInputError(f"{place} has a record that this firstk cannot read. Push the rows to a new place.")


@dataclass(frozen=True, eq=False)
class Rows:
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


class Engine(Protocol):
    """One table, collection or folder of one product; it need not exist yet.

    A batch of `upsert` is written row by row or as a whole, but a row never in part: a row whose id is `present` is
    complete. A row with an id that is there is replaced.
    """

    name: ClassVar[str]
    # Which metrics it can compare by, which a layout must be one of.
    metrics: ClassVar[tuple[str, ...]]
    # In which precisions it can index short codes; where there are several, its `precision` says which.
    precisions: ClassVar[tuple[str, ...]]
    # Names that a payload cannot have here.
    reserved: ClassVar[frozenset[str]]
    # Whether a filter can ask for text that comes before or after another.
    orders_text: ClassVar[bool]

    @property
    def code_precision(self) -> str:
        """In which precision codes are kept, and read back: "float32" or "float16"."""

    @property
    def place(self) -> str:
        """What error messages call it, without credentials: "The table 'documents' of PostgreSQL"."""

    def answering(self) -> AbstractContextManager[None]:
        """Turn errors of the product into InvalidInputError."""

    def check(self, layout: Layout) -> None:
        """Raise an error for a layout that the engine cannot hold, such as one that is too wide."""

    def layout(self) -> Layout | None:
        """Return what it holds; None where there is nothing yet. Raise an error if firstk did not make it."""

    def create(self, layout: Layout) -> None:
        """Create it, empty."""

    def drop(self) -> None:
        """Delete it, if it is there."""

    def upsert(self, rows: Rows) -> None:
        """Write rows."""

    def finish(self) -> None:
        """Do what is best done once after many rows, such as building an index. May be called again."""

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete rows; ids that are not there are passed over."""

    def present(self, ids: Sequence[Id]) -> set[Id]:
        """Return those of the ids that are there."""

    def count(self) -> int:
        """Return the number of rows."""

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield all rows, at most `size` at a time, in an order that does not change while nothing is written."""

    def search(self, request: Request) -> Neighbors:
        """Find the rows nearest by the short code and rerank them by the full one; scores by `Layout.compared`."""

    def close(self) -> None:
        """Let go of files and connections that the engine itself opened."""


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
    """A table that firstk did not make: it can be read by `foreign`, and is not written to."""


def foreign(place: str) -> ForeignStoreError:
    """Build the error for a table that firstk did not make."""
    return ForeignStoreError(
        f"{place} is there already, and firstk.search.stores did not make it: it has no record of its codes. "
        "Name another place."
    )


@dataclass(eq=False)
class Gathered:
    """Results that are being collected, query by query."""

    found: Neighbors = field(default_factory=lambda: Neighbors([], [], []))

    def add(self, ids: Sequence[Id], scores: Sequence[float], payloads: Sequence[Mapping[str, Any]]) -> None:
        """Add the results of the next query; the score of a code of zeros, which has no cosine, is 0."""
        self.found.ids.append(list(ids))
        self.found.scores.append([0.0 if score is None or score != score else float(score) for score in scores])
        self.found.payloads.append([dict(one) for one in payloads])
