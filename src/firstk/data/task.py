"""What there is to learn from, or to be scored on: rows, pairs, or searches; and a task, which has one of each.

Every fit, metric and command takes one of these three shapes. A shape knows what its units are (rows, pairs, queries),
how many there are, and which vectors a store would hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter
from firstk._base.rows import sliceable

# A choice is made on searches for new documents alone where there are so many: fewer cannot tell codes apart.
FEWEST_NEW = 30


@dataclass(frozen=True, eq=False)
class Rows:
    """Vectors, with labels or targets where there are any.

    Attributes
    ----------
    X : array-like of shape (n, p)
    y : array-like of shape (n,) or (n, q), optional
        Labels or targets.
    weight : array-like of shape (n,), optional
        How often each row counts in a fit.
    reference : Rows, optional
        Rows to look among for neighbors, and to fit readouts on; what a store would hold.
    """

    X: ArrayLike
    y: ArrayLike | None = None
    weight: ArrayLike | None = None
    reference: Rows | None = None
    # What depends on the vectors alone and is asked for again, such as neighbors at full width.
    memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    unit: ClassVar[str] = "rows"

    @property
    def n(self) -> int:
        """How many rows there are."""
        return n_rows(self.X)

    @property
    def stored(self) -> ArrayLike:
        """The vectors that would be stored: the reference, or these where there is none."""
        return self.X if self.reference is None else self.reference.X

    @property
    def arrays(self) -> tuple[ArrayLike, ...]:
        """The arrays of vectors."""
        return (self.X,) if self.reference is None else (self.X, self.reference.X)

    @property
    def columns(self) -> dict[str, Any]:
        """The arrays that a fit takes, by name."""
        return _given({"X": self.X, "weight": self.weight, "y": self.y})

    def subset(self, rows: np.ndarray) -> Rows:
        """Return some of the rows, with the same reference."""
        y, weight = (None if part is None else np.asarray(part)[rows] for part in (self.y, self.weight))
        return Rows(sliceable(self.X)[rows], y, weight, self.reference)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Vectors that belong together, with how alike they are where that is known.

    Attributes
    ----------
    left, right : array-like of shape (n, p)
    scores : array-like of shape (n,), optional
        None, or all equal: every pair is a positive.
    documents : array-like of shape (m, p), optional
        All rows of the store that the right sides are from, where it is known: what will be encoded.
    """

    left: ArrayLike
    right: ArrayLike
    scores: ArrayLike | None = None
    documents: ArrayLike | None = None

    unit: ClassVar[str] = "pairs"

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return n_rows(self.left)

    @property
    def stored(self) -> ArrayLike:
        """The vectors that would be stored: the right sides."""
        return self.right

    @property
    def arrays(self) -> tuple[ArrayLike, ...]:
        """The arrays of vectors."""
        return self.left, self.right

    @property
    def scored(self) -> bool:
        """Whether the pairs have scores that differ."""
        return self.scores is not None and len(np.unique(np.asarray(self.scores))) > 1

    @property
    def columns(self) -> dict[str, Any]:
        """The arrays that a fit takes, by name."""
        return _given({"left": self.left, "right": self.right, "scores": self.scores})

    def subset(self, rows: np.ndarray) -> Pairs:
        """Return some of the pairs."""
        scores = None if self.scores is None else np.asarray(self.scores)[rows]
        return Pairs(sliceable(self.left)[rows], sliceable(self.right)[rows], scores, self.documents)


@dataclass(frozen=True, eq=False)
class Search:
    """Queries, the documents that they search, and which documents are relevant to which query, where that is known.

    Attributes
    ----------
    queries, documents : array-like of shape (m, p) and (n, p)
        All documents are candidates for every query.
    relevance : array-like of int of shape (j, 3), optional
        Rows (query row, document row, relevance), as `firstk.metrics.ndcg` takes them. None: queries of a log, which
        nobody has judged. Codes are scored by the neighbors of the full vectors that these queries find (recall@10).
    weight : array-like of shape (m,), optional
        What each query counts in the mean; one of weight 0 is left out.
    query_rows : array-like of int of shape (m,), optional
        The document that each query is, which is no answer to itself; -1 for one that is none of them.
    query_field, document_field : array-like of shape (m,) and (n,), optional
        A filter: each query looks among the documents that have its own value of a field.
    seen : array-like of bool of shape (m,), optional
        Whether the fit has learned from a document that is relevant to the query.
    """

    queries: ArrayLike
    documents: ArrayLike
    relevance: ArrayLike | None = None
    weight: ArrayLike | None = None
    query_rows: ArrayLike | None = None
    query_field: ArrayLike | None = None
    document_field: ArrayLike | None = None
    seen: ArrayLike | None = None
    # As in Rows.
    memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    unit: ClassVar[str] = "queries"

    @property
    def n(self) -> int:
        """How many queries there are."""
        return n_rows(self.queries)

    @property
    def stored(self) -> ArrayLike:
        """The vectors that would be stored: the documents."""
        return self.documents

    @property
    def arrays(self) -> tuple[ArrayLike, ...]:
        """The arrays of vectors."""
        return self.queries, self.documents

    @property
    def parts(self) -> Mapping[str, np.ndarray]:
        """Which queries ask for documents that the fit has learned from ("known"), and which for "new" ones only.

        Queries that do not count, and those without a relevant document, are in neither; empty where `seen` is unknown.
        """
        if self.seen is None or self.relevance is None:
            return {}
        seen, relevance = np.asarray(self.seen), np.asarray(self.relevance)
        if seen.dtype != bool or seen.shape != (self.n,):
            allowed = f"{self.n} booleans, one for each query"
            raise bad_parameter("seen", "Search", allowed, f"{seen.dtype} of shape {seen.shape}")
        counts = np.zeros(self.n, dtype=bool)
        counts[relevance[relevance[:, 2] > 0, 0]] = True
        if self.weight is not None:
            counts &= np.asarray(self.weight) > 0
        return {"known": seen & counts, "new": ~seen & counts}

    @property
    def new(self) -> Search | None:
        """The searches for new documents, none of which was learned from.

        A store grows, and a code that learned from judgements has memorized the documents of its pairs: only these
        searches tell what it will keep. None where nothing was learned from judgements, or fewer than 30 ask for new
        documents.
        """
        parts = self.parts
        if not parts or not parts["known"].any() or parts["new"].sum() < FEWEST_NEW:
            return None
        return self.only(~np.asarray(self.seen))

    def only(self, chosen: np.ndarray) -> Search:
        """Return the searches of some queries, given as a mask; the others stay, without judgements.

        Where nothing is judged, they go.
        """
        if self.relevance is None:
            return self.subset(chosen)
        relevance = np.asarray(self.relevance)
        return replace(self, relevance=relevance[chosen[relevance[:, 0]]])

    def subset(self, queries: np.ndarray) -> Search:
        """Return the searches of some queries, given by their rows, ascending, or as a mask."""
        queries = np.flatnonzero(queries) if np.asarray(queries).dtype == bool else np.asarray(queries)
        if (np.diff(queries) <= 0).any():
            raise bad_parameter("queries", "Search.subset", "rows in ascending order, each once", queries)
        given = {name: getattr(self, name) for name in ("queries", "weight", "query_rows", "query_field", "seen")}
        parts: dict[str, Any] = {name: np.asarray(part)[queries] for name, part in given.items() if part is not None}
        if self.relevance is not None:
            relevance = np.asarray(self.relevance)
            kept = relevance[np.isin(relevance[:, 0], queries)]
            parts["relevance"] = np.column_stack([np.searchsorted(queries, kept[:, 0]), kept[:, 1:]])
        return replace(self, **parts)

    @property
    def positives(self) -> Pairs:
        """The pairs of a query and a document that is relevant to it."""
        relevance = np.empty((0, 3), dtype=np.int64) if self.relevance is None else np.asarray(self.relevance)
        rows = relevance[relevance[:, 2] > 0]
        return Pairs(np.asarray(self.queries)[rows[:, 0]], np.asarray(self.documents)[rows[:, 1]])


Data = Rows | Pairs | Search


class Task:
    """Data to learn from, and data to be scored on.

    Parameters
    ----------
    train : Rows, Pairs, Search or Stream
        What ``PrefixEncoder.fit`` takes.
    held_out : Rows, Pairs or Search, or a function that returns one
        What :func:`firstk.evaluate` takes; of rows, with the reference that they are looked up among. Rows of a stream
        are there once it has been read, so a function gives them. None: nothing is held out.
    files : object, optional
        Where it was read from; None of arrays.
    """

    def __init__(self, train: Any, held_out: Data | Callable[[], Data | None] | None, files: Any = None):
        self.train, self._held_out, self.files = train, held_out, files

    @property
    def held_out(self) -> Data | None:
        """What the fit does not see; None where nothing is held out."""
        return self._held_out() if callable(self._held_out) else self._held_out

    def __repr__(self) -> str:
        return f"Task({type(self.train).__name__}): .train to fit on, .held_out to evaluate"


def of_columns(columns: Mapping[str, Any]) -> Rows | Pairs:
    """Return the rows or pairs whose `columns` these are."""
    return Pairs(**columns) if "left" in columns else Rows(**columns)


def _given(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in columns.items() if part is not None}


def n_rows(rows: ArrayLike) -> int:
    """Return the number of rows of an array, a list or a sparse matrix."""
    shape: tuple[int, ...] = np.shape(rows)
    return shape[0]
