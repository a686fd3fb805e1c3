"""Two embeddings of a store and the searches that compare options: by judgements, labels or the new model's neighbors.

Every option becomes a matrix of documents and one of queries, compared by cosine; the searches score it query by query.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstk import Rows, Search
from firstk._base.checks import check_matrix, check_same_length, check_weights
from firstk.exceptions import InvalidInputError
from firstk.metrics import check_judgements, nearest_neighbor_accuracy, nearest_neighbors, search_per_query

# What a query scores by judgements, as a measure of `search_per_query`, and how many documents.
BY_JUDGEMENTS, _JUDGED = "ndcg@10", ("ndcg", 10)
# Without judgements: the share of the new model's ten nearest that are found.
FIDELITY, NEIGHBORS = "neighbor_recall@10", 10
# Below this many pairs nothing can be fitted and held out.
FEWEST_PAIRS = 100
# Share of the pairs on which options are scored that need both embeddings.
HELD_OUT_SHARE = 1 / 3
# What a query scores by labels: whether the nearest row has its own.
BY_LABEL, _LABELLED = "1nn_accuracy", ("ndcg", 1)
# Where rows have labels and there are no queries: share of the pairs that become queries, and how many at most.
_QUERY_SHARE, _MOST_QUERIES = 0.2, 1000
_OWNER = "evaluate_upgrade"


@dataclass(frozen=True, eq=False)
class UpgradeData:
    """A store of old vectors, new vectors of some of its rows, and what the store is asked for.

    Attributes
    ----------
    old : ndarray of shape (N, p)
        The store, embedded by the old model.
    new : ndarray of shape (n, q)
        Rows embedded by the new model.
    rows : ndarray of int of shape (n,), optional
        The row of `old` that each row of `new` embeds; the same row if not given.
    asked : Search or Rows, optional
        Queries as the new model embeds them, and what answers them: a Search among the rows of `old` (its documents),
        or labelled Rows whose reference is `old` with its labels, where a query is answered by a row of its own label.
        A Search without relevance is of queries that nobody has judged. Without any, held-out rows are the queries.
    queries_old : ndarray of shape (m, p), optional
        The same queries by the old model; without them staying has no score.
    row_numbers : ndarray of int of shape (N,), optional
        The number of each row of `old` in the file that it was read from; counted from 0 if not given.
    """

    old: np.ndarray
    new: np.ndarray
    rows: np.ndarray | None = None
    asked: Search | Rows | None = None
    queries_old: np.ndarray | None = None
    row_numbers: np.ndarray | None = None
    paired: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("old", check_matrix(self.old, _OWNER, "old"))
        put("new", check_matrix(self.new, _OWNER, "new"))
        put("paired", _check_rows(self.rows, len(self.old), len(self.new)))
        asked = self.asked
        if len(self.new) < FEWEST_PAIRS:
            raise InvalidInputError(
                f"{len(self.new):,} pairs are too few to fit an alignment and hold a third of them out: embed at least "
                f"{FEWEST_PAIRS} rows of the store with the new model, better some thousands."
            )
        if asked is None:
            if self.queries_old is not None:
                raise InvalidInputError("The old model's queries need the new model's too: 'asked'.")
            return
        if not isinstance(asked, (Search, Rows)) or np.shape(asked.stored) != self.old.shape:
            raise InvalidInputError(
                f"'asked' of {_OWNER} is a Search among the {len(self.old):,} rows of 'old', or labelled Rows with "
                f"these as their reference. Got {type(asked).__name__}"
                + (f" among rows of shape {np.shape(asked.stored)}." if isinstance(asked, (Search, Rows)) else ".")
            )
        found: dict[str, Any] = {}
        if isinstance(asked, Rows):
            if asked.y is None or asked.reference is None or asked.reference.y is None:
                raise InvalidInputError(
                    f"Labels of {_OWNER} go together: give 'y' of the queries and of the reference."
                )
            found["X"] = queries = check_matrix(asked.X, _OWNER, "X", width=self.new.shape[1])
            check_same_length(queries, np.asarray(asked.y), "X", "y", _OWNER)
            check_same_length(self.old, np.asarray(asked.reference.y), "old", "labels of the reference", _OWNER)
        else:
            found["queries"] = queries = check_matrix(asked.queries, _OWNER, "queries", width=self.new.shape[1])
            if asked.relevance is not None:
                found["relevance"] = check_judgements(asked.relevance, len(self.old), len(queries), _OWNER)
            if (asked.query_field is None) != (asked.document_field is None):
                raise InvalidInputError("'query_field' and 'document_field' go together: give both.")
            for name, rows in (("query_field", queries), ("document_field", self.old)):
                if getattr(asked, name) is not None:
                    check_same_length(rows, getattr(asked, name), "queries" if rows is queries else "old", name, _OWNER)
        found["weight"] = check_weights(asked.weight, len(queries), _OWNER, "weight")
        put("asked", replace(asked, **found))
        if self.queries_old is not None:
            put("queries_old", check_matrix(self.queries_old, _OWNER, "queries_old", width=self.old.shape[1]))
            check_same_length(self.queries_old, queries, "queries_old", "queries of 'asked'", _OWNER)

    @classmethod
    def from_labels(
        cls,
        old: np.ndarray,
        new: np.ndarray,
        labels: np.ndarray,
        rows: np.ndarray | None = None,
        *,
        random_state: int = 0,
    ) -> UpgradeData:
        """Make queries of some pairs, whose rows leave the store: a query is answered by a row of its own label.

        A fifth of the pairs are drawn, 1,000 at most. No alignment is fitted on them.

        Parameters
        ----------
        old, new, rows
            As in the class.
        labels : ndarray of shape (N,)
            Of the rows of the store.
        random_state : int
        """
        old, new, labels = np.asarray(old), np.asarray(new), np.asarray(labels)
        if labels.shape != (len(old),):
            raise InvalidInputError(
                f"'labels' of {_OWNER} are one for each of {len(old):,} rows. Got shape {labels.shape}."
            )
        paired = _check_rows(rows, len(old), len(new))
        drawn = np.zeros(len(new), dtype=bool)
        count = min(_MOST_QUERIES, round(_QUERY_SHARE * len(new)))
        drawn[np.random.default_rng(random_state).permutation(len(new))[:count]] = True
        stored = np.setdiff1d(np.arange(len(old)), paired[drawn])
        asked = Rows(new[drawn], labels[paired[drawn]], reference=Rows(old[stored], labels[stored]))
        return cls(
            old[stored],
            new[~drawn],
            np.searchsorted(stored, paired[~drawn]),
            asked,
            old[paired[drawn]],
            row_numbers=stored,
        )

    @property
    def metric(self) -> str:
        """What a judged query scores: by labels, or by judgements."""
        return BY_LABEL if isinstance(self.asked, Rows) else BY_JUDGEMENTS

    @property
    def judged(self) -> bool:
        """Whether it is known what answers a query: by judgements or by labels."""
        return isinstance(self.asked, Rows) or (self.asked is not None and self.asked.relevance is not None)

    @property
    def stays(self) -> bool:
        """Whether staying can be scored: the old model's vectors of the queries are there."""
        return self.asked is None or self.queries_old is not None

    @property
    def complete(self) -> bool:
        """Whether both models have embedded every row, so that the file is a sample of a store."""
        return len(np.unique(self.paired)) == len(self.old)

    @cached_property
    def place_in_new(self) -> np.ndarray:
        """Row of `new` of each row of the store; -1 for rows that the new model has not embedded."""
        place = np.full(len(self.old), -1)
        place[self.paired] = np.arange(len(self.paired))
        return place


def _check_rows(rows: np.ndarray | None, n_old: int, n_new: int) -> np.ndarray:
    if rows is None:
        if n_old != n_new:
            raise InvalidInputError(
                f"'old' has {n_old:,} rows and 'new' {n_new:,}: say with 'rows' which row of 'old' each row of 'new' "
                "embeds."
            )
        return np.arange(n_new)
    rows = np.asarray(rows)
    if rows.shape != (n_new,) or rows.dtype.kind not in "iu" or (rows < 0).any() or (rows >= n_old).any():
        raise InvalidInputError(f"'rows' are {n_new:,} ints from 0 to {n_old - 1:,}. Got {rows.dtype} {rows.shape}.")
    if len(np.unique(rows)) < n_new:
        raise InvalidInputError(f"{n_new - len(np.unique(rows)):,} rows of 'old' are paired twice: keep one pair each.")
    return rows.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Searches:
    """Queries and the rows of the store that they look among.

    Attributes
    ----------
    data : UpgradeData
    rows : ndarray of shape (r,)
        Rows of the store that are candidates.
    queries : ndarray of shape (m,)
        Rows of the queries; places in `rows`, where rows themselves are the queries.
    task : Search or Rows
        These queries as the new model embeds them, among these rows as the old one does.
    measure : str
    at : int
    """

    data: UpgradeData
    rows: np.ndarray
    queries: np.ndarray
    task: Search | Rows
    measure: str
    at: int

    def query_vectors(self, model: str) -> np.ndarray:
        """Return the queries as the "old" or the "new" model embeds them."""
        if model == "new":
            return np.asarray(self.task.X if isinstance(self.task, Rows) else self.task.queries)
        if self.data.asked is None:
            return self.document_vectors("old")[self.queries]
        assert self.data.queries_old is not None
        return self.data.queries_old[self.queries]

    def document_vectors(self, model: str) -> np.ndarray:
        """Return the candidates as the "old" or, where all are paired, the "new" model embeds them."""
        return np.asarray(self.task.stored) if model == "old" else self.data.new[self.data.place_in_new[self.rows]]

    @property
    def weights(self) -> np.ndarray | None:
        """What each query counts; None where all count the same."""
        return None if self.task.weight is None else np.asarray(self.task.weight)

    def part(self, some: np.ndarray) -> Searches:
        """Return the searches of some queries, given by their places, ascending."""
        return replace(self, queries=self.queries[some], task=self.task.subset(some))

    def scores(self, documents: np.ndarray, queries: np.ndarray, ks: list[int] | None = None) -> np.ndarray:
        """Return what each query scores, shape (m, len(ks)): at the full width, if no lengths are given."""
        task, ks = self.task, ks or [documents.shape[1]]
        if isinstance(task, Rows):  # whether the nearest row of each query has its label
            assert task.reference is not None
            labels = np.asarray(task.reference.y), np.asarray(task.y)
            hits = nearest_neighbor_accuracy(documents, labels[0], queries, labels[1], ks=ks, per_row=True)
            return hits.astype(np.float64)
        _, values = search_per_query(
            documents, queries, np.asarray(task.relevance), self.measure, at=self.at, ks=ks,
            query_rows=task.query_rows, query_field=task.query_field, document_field=task.document_field,
        )  # fmt: skip
        return values


def split_pairs(n: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the pairs that are fitted and of those that are held out, each ascending."""
    order = np.random.default_rng(random_state).permutation(n)
    held = round(HELD_OUT_SHARE * n)
    return np.sort(order[held:]), np.sort(order[:held])


def searches_in(data: UpgradeData, rows: np.ndarray) -> Searches | None:
    """Return the searches among rows of the store; None where no query has a relevant document there.

    Judged searches are those of queries with a relevant document, or one of their label, among the rows. Without
    judgements, the relevant ones are the nearest by the new model, which must have embedded all of the rows.
    """
    asked, documents = data.asked, data.old[rows]
    if isinstance(asked, Rows):
        assert asked.reference is not None
        labels = np.asarray(asked.reference.y)[rows]
        answered = np.flatnonzero(np.isin(np.asarray(asked.y), labels))
        task = replace(asked.subset(answered), reference=Rows(documents, labels))
        return Searches(data, rows, answered, task, *_LABELLED) if len(answered) else None
    if asked is None or asked.relevance is None:
        new, n = data.new[data.place_in_new[rows]], min(NEIGHBORS, len(rows) - 1)
        queries = new if asked is None else np.asarray(asked.queries)
        found = nearest_neighbors(new, queries, n, exclude_self=asked is None)
        every = np.arange(len(queries))
        table = np.column_stack([np.repeat(every, n), found.ravel(), np.ones(found.size, dtype=np.int64)])
        own = every if asked is None else None
        search = Search(queries, documents, table, None if asked is None else asked.weight, query_rows=own)
        return Searches(data, rows, every, search, "recall", n)
    place = np.full(len(data.old), -1)
    place[rows] = np.arange(len(rows))
    query, document, grade = np.asarray(asked.relevance).T
    there, field = place[document] >= 0, None
    if asked.query_field is not None:
        field = np.asarray(asked.document_field)
        there &= np.asarray(asked.query_field)[query] == field[document]
    answered = np.unique(query[there & (grade > 0)])
    table = np.column_stack([query, place[document], grade])[there]
    within = replace(asked, documents=documents, relevance=table, document_field=None if field is None else field[rows])
    return Searches(data, rows, answered, within.subset(answered), *_JUDGED) if len(answered) else None
