"""Folds on which objectives are tried: what each is fitted on, and the held-out data on which it is evaluated.

A hash of the vector (of the right side, for scored pairs) decides in which fold a row is held out; judged queries that
share relevant documents are held out together. So folds depend on the data alone, and copies of a vector are never on
both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from firstk._base.checks import bad_parameter, check_matrix, check_matrix_pair, check_same_length
from firstk._base.linalg import ordered_eigh
from firstk.advice.evaluate import told_apart
from firstk.advice.judgements import as_search
from firstk.data.task import FEWEST_NEW, Data, Pairs, Rows, Search
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import check_metric
from firstk.metrics.ranking import check_scores
from firstk.moments.fingerprint import document_hashes, row_hashes
from firstk.moments.statistics import RowSample, sample_of_documents

# What a code is fitted for: labels, targets, scored pairs, judged documents, or the vectors themselves.
Purpose = Literal["labels", "targets", "pairs", "judgements", "none"]
# A quarter is held out at a time; folds are added until this many rows, pairs or queries have been evaluated.
N_FOLDS, ENOUGH = 4, 2048
# Rows, pairs or judged queries that are looked at; and documents that are searched, the judged ones always among them.
MOST_ROWS, MOST_DOCUMENTS = 10_240, 20_000
# With fewer, there is nothing to compare on.
FEWEST = 40
# Vectors are compared along this many directions at most; the variance beyond them is negligible.
WIDEST = 1024
OWNER = "diagnose"


@dataclass(frozen=True, eq=False)
class Fold:
    """One split: what is fitted, and what is held out.

    Attributes
    ----------
    rows : Rows
        To fit on, maybe with labels or targets.
    pairs : Pairs or None
        To fit on, where there are any.
    data : Rows, Pairs or Search
        Held-out data; of searches, `seen` tells where a document that is relevant to the query is in `pairs`.
    queries : RowSample, optional
        Queries without judgements to fit on.
    """

    rows: Rows
    pairs: Pairs | None
    data: Data
    queries: RowSample | None = None

    @property
    def n(self) -> int:
        """Number of rows, pairs or queries that are held out."""
        return self.data.n


@dataclass(frozen=True, eq=False)
class Trials:
    """A task with its folds: everything that objectives are compared on.

    Attributes
    ----------
    task : {"labels", "targets", "pairs", "judgements", "none"}
    metric : str
        A name in `firstk.metrics.curve.METRICS`.
    folds : tuple of Fold
    known : int
        Number of held-out queries of which a relevant document is learned from with another query.
    known_share : float
        How many such there are among queries like those given: the share that has a relevant document in common with
        others.
    """

    task: Purpose
    metric: str
    folds: tuple[Fold, ...]
    known: int = 0
    known_share: float = 0.0

    @property
    def on_new(self) -> bool:
        """Whether objectives are ranked on searches for new documents alone, and there are others."""
        return self.known > 0 and self.n - self.known >= FEWEST_NEW

    @property
    def width(self) -> int:
        """Number of columns of the vectors."""
        return int(np.shape(self.folds[0].rows.X)[1])

    @property
    def n(self) -> int:
        """Number of held-out rows, pairs or queries."""
        return sum(fold.n for fold in self.folds)


def trials_of(
    X: ArrayLike | None, pairs: Sequence[ArrayLike] | None, search: Search | None
) -> tuple[np.ndarray, Trials]:
    """Return the vectors, and the folds of pairs or judgements, that arguments of a diagnosis describe.

    Parameters
    ----------
    X : array-like of shape (n, p), or None
        Vectors to fit on without pairs; if not given, the documents, or both sides of the pairs.
    pairs : sequence of array-like, or None
        (left, right) or (left, right, scores).
    search : Search or None
    """
    sides: Pairs | None = None
    if pairs is not None:
        if len(pairs) not in (2, 3):
            raise bad_parameter("pairs", OWNER, "(left, right) or (left, right, scores)", f"{len(pairs)} parts")
        left, right = check_matrix_pair(pairs[0], pairs[1], OWNER, ("left", "right"))
        check_same_length(left, right, "left", "right", OWNER)
        scores = np.asarray(pairs[2] if len(pairs) == 3 else ())
        differ = scores.size and (scores.ndim != 1 or scores.min() < scores.max())  # equal scores say no more than none
        sides = Pairs(left, right, check_scores(scores, len(left), OWNER) if differ else None)
    rows = None if X is None else check_matrix(X, OWNER)
    if search is not None and search.relevance is None:
        trials = log_trials(search)
        return np.asarray(search.documents) if rows is None else rows, trials
    if search is not None:
        check_metric("ndcg@10", search)
        sides_of_search = (search.documents, search.queries)
        documents, queries = check_matrix_pair(*sides_of_search, OWNER, ("documents", "queries"))
        search = replace(search, documents=documents, queries=queries, relevance=np.asarray(search.relevance))
        return documents if rows is None else rows, judged_trials(search, sides)
    assert sides is not None
    both = np.concatenate([left, right]) if rows is None else rows
    if sides.scores is not None:
        return both, pair_trials(both, left, right, np.asarray(sides.scores))
    return both, judged_trials(as_search(left, right, rows))


def row_trials(X: np.ndarray, y: np.ndarray | None, task: Purpose) -> Trials:
    """Return folds of rows with labels, with targets, or with neither.

    Labels are scored by 1-NN accuracy among the rows that were fitted, targets by R² of the best linear readout,
    vectors alone by the share of their ten full-width neighbors that are found (fidelity).
    """
    metric = {"labels": "1nn_accuracy", "targets": "r2", "none": "recall@10"}[task]
    _check_enough(len(X), "rows")
    if min(X.shape) > WIDEST:  # along the first singular vectors
        rows = X.astype(np.float64)
        X = (X @ ordered_eigh(rows.T @ rows)[1][:, :WIDEST]).astype(X.dtype)
    if y is not None and task == "labels":
        y = np.unique(y, return_inverse=True)[1]  # numbers of classes, so that no objective takes labels for targets
    whole, folds = Rows(X, None if task == "none" else y), []
    for fit, held in _splits(_fold_numbers(X)):
        kept = whole.subset(fit)
        folds.append(Fold(kept, None, replace(whole.subset(held), reference=kept)))
    return Trials(task, metric, tuple(folds))


def log_trials(search: Search) -> Trials:
    """Return folds of queries without judgements, scored by the full-width neighbors that they find."""
    documents, queries = check_matrix_pair(search.documents, search.queries, OWNER, ("documents", "queries"))
    _check_enough(len(queries), "queries")
    documents, queries = documents[_thinned(len(documents), MOST_ROWS)], queries[_thinned(len(queries), ENOUGH)]
    folds = tuple(
        Fold(Rows(documents), None, Search(queries[held], documents), sample_of_documents(queries[fit]))
        for fit, held in _splits(_fold_numbers(queries))
    )
    return Trials("none", "recall@10", folds)


def pair_trials(X: np.ndarray, left: np.ndarray, right: np.ndarray, scores: np.ndarray) -> Trials:
    """Return folds of scored pairs, by their right sides; objectives without pairs are fitted on `X`."""
    _check_enough(len(left), "pairs")
    chosen = _thinned(len(left), MOST_ROWS)
    pairs = Pairs(left[chosen], right[chosen], np.asarray(scores)[chosen])
    rows = Rows(X[_thinned(len(X), MOST_ROWS)])
    splits = _splits(_fold_numbers(right[chosen]))
    folds = tuple(Fold(rows, pairs.subset(fit), pairs.subset(held)) for fit, held in splits)
    return Trials("pairs", "spearman", folds)


def judged_trials(search: Search, pairs: Pairs | None = None) -> Trials:
    """Return folds of judged queries, searched among the documents.

    A query is *seen* where a document that is relevant to it is learned from with another query. Codes that learn from
    pairs know such documents by heart, and the documents of tomorrow are not among them. So queries that share relevant
    documents, directly or through others, are held out together, and every query is unseen in one fold: objectives are
    ranked on those. An eighth of the other queries is held out as well, and tells what becomes of seen ones.

    Parameters
    ----------
    search : Search
        Of arrays.
    pairs : Pairs, optional
        Pairs to learn from in every fold. Without them, an objective learns from the relevant
        documents of the queries that are not held out.
    """
    search = _with_fewer_documents(search)
    documents, queries, relevance = (np.asarray(part) for part in (search.documents, search.queries, search.relevance))
    asked = np.unique(relevance[:, 0])
    _check_enough(len(asked), "judged queries")
    asked = asked[_thinned(len(asked), MOST_ROWS)]
    rows = Rows(documents[_thinned(len(documents), MOST_ROWS)])
    positives = relevance[np.isin(relevance[:, 0], asked) & (relevance[:, 2] > 0)]
    edges = np.unique(np.column_stack([np.searchsorted(asked, positives[:, 0]), positives[:, 1]]), axis=0)
    folds = []
    for fit, held in _search_splits(queries[asked], edges if pairs is None else None):
        learned = positives[np.isin(positives[:, 0], asked[fit])]
        known = Pairs(queries[learned[:, 0]], documents[learned[:, 1]]) if pairs is None else pairs
        data = replace(search.subset(asked[held]), seen=None)
        folds.append(Fold(rows, known, told_apart(data, document_hashes(np.asarray(known.right)))))
    count = sum(int(np.sum(np.asarray(fold.data.seen))) for fold in folds if isinstance(fold.data, Search))
    share = float(_taught(edges, len(asked), 1).mean()) if pairs is None else count / len(asked)
    return Trials("judgements", "ndcg@10", tuple(folds), count, share)


def _taught(edges: np.ndarray, n: int, others: int = 0, by: np.ndarray | None = None) -> np.ndarray:
    """Return which of n queries have a relevant document that more than `others` of the queries `by` (all) have too.

    `edges` are pairs of a query and a document that is relevant to it, each once.
    """
    count = np.bincount(
        edges[:, 1] if by is None else edges[by[edges[:, 0]], 1], minlength=edges[:, 1].max(initial=-1) + 1
    )
    taught = np.zeros(n, dtype=bool)
    taught[edges[count[edges[:, 1]] > others, 0]] = True
    return taught


def _search_splits(queries: np.ndarray, edges: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the queries of each fold that are learned from and held out.

    Groups of queries that share documents are held out whole, so that each query is new in one fold; and beside them an
    eighth of the others, those that what is left has taught a document of. Where one group is most of all queries, or
    nothing is to be learned from them (`edges` is None), a fold is a quarter of the queries.
    """
    n, hashes = len(queries), _spread_hashes(queries)
    if edges is None or not len(edges):
        return _splits(_fold_numbers(queries), every=True)
    # Documents connect queries, and so do equal hashes, which copies of a query have.
    document = n + np.unique(edges[:, 1], return_inverse=True)[1].ravel()
    copies = document.max() + 1 + np.unique(hashes, return_inverse=True)[1].ravel()
    query, other = np.concatenate([edges[:, 0], np.arange(n)]), np.concatenate([document, copies])
    size = int(other.max()) + 1
    graph = coo_array((np.ones(len(query)), (query, other)), shape=(size, size))
    groups = np.asarray(connected_components(graph, directed=False)[1][:n])
    if 2 * np.bincount(groups).max() > n:
        return _splits(_fold_numbers(queries), every=True)
    least = np.full(groups.max() + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, groups, hashes)  # one hash a group, whatever the order of its queries
    number = least.argsort().argsort()[groups] % N_FOLDS
    folds = []
    for fold in range(N_FOLDS):
        new, beside = number == fold, (number != fold) & (hashes >> np.uint64(61) == fold)
        beside &= _taught(edges, n, by=~new & ~beside)
        if new.any() and not (new | beside).all():
            folds.append((np.flatnonzero(~new & ~beside), np.flatnonzero(new | beside)))
    return folds


def lengths_for(width: int) -> tuple[int, ...]:
    """Return the prefix lengths of a comparison: 8, 16, 32 and 64 below the width; of narrow vectors, fractions.

    Examples
    --------
    >>> lengths_for(384), lengths_for(64), lengths_for(10)
    ((8, 16, 32, 64), (8, 16, 32), (2, 5))
    """
    found = tuple(k for k in (8, 16, 32, 64) if k < width)
    return found if len(found) > 1 else tuple(sorted({max(min(2, width), width // 4), max(1, width // 2)}))


def _fold_numbers(X: np.ndarray) -> np.ndarray:
    """Return the fold in which each row is held out: bits of a product, as rows of low hash are all that was kept."""
    return (_spread_hashes(X) >> np.uint64(62)).astype(np.intp)


def _spread_hashes(X: np.ndarray) -> np.ndarray:
    """Return hashes of rows of which the leading bits are as good as random."""
    with np.errstate(over="ignore"):
        return np.asarray(row_hashes({"X": X}) * np.uint64(0x9E3779B97F4A7C15))


def _splits(number: np.ndarray, *, every: bool = False) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows of each fold that are fitted and held out; fewer folds where one has rows enough."""
    found, seen = [], 0
    for fold in range(N_FOLDS):
        held = np.flatnonzero(number == fold)
        if (seen >= ENOUGH and not every) or len(held) == 0 or len(held) == len(number):
            continue
        found.append((np.flatnonzero(number != fold), held))
        seen += len(held)
    if not found:
        raise InvalidInputError("all rows are copies of one vector; nothing can be held out.")
    return found


def _with_fewer_documents(search: Search) -> Search:
    """Return searches among at most MOST_DOCUMENTS documents, and those with judgements or that queries are."""
    documents, relevance = np.asarray(search.documents), np.asarray(search.relevance)
    if len(documents) <= MOST_DOCUMENTS:
        return search
    own = search.query_rows
    named = relevance[:, 1] if own is None else np.concatenate([relevance[:, 1], np.asarray(own)])
    kept = np.union1d(named[named >= 0], _thinned(len(documents), MOST_DOCUMENTS))
    moved = np.column_stack([relevance[:, 0], np.searchsorted(kept, relevance[:, 1]), relevance[:, 2]])
    beside: dict[str, Any] = {}
    if own is not None:
        beside["query_rows"] = np.where(np.asarray(own) < 0, -1, np.searchsorted(kept, own))
    if (field := search.document_field) is not None:
        beside["document_field"] = np.asarray(field)[kept]
    return replace(search, documents=documents[kept], relevance=moved, **beside)


def _thinned(n: int, most: int) -> np.ndarray:
    """Return at most `most` of n row numbers, drawn with a fixed seed, ascending."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _check_enough(n: int, what: str) -> None:
    if n < FEWEST:
        raise InvalidInputError(f"comparing objectives needs {FEWEST} {what}, and there are {n}.")
