"""Two embeddings of a store and the searches that compare options: judged ones, or by the new model's neighbors.

Every option becomes a matrix of documents and one of queries, compared by cosine; the searches score it query by query.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from firstk._base.checks import check_choice, check_matrix, check_same_length, check_weights
from firstk.exceptions import InvalidInputError
from firstk.metrics.neighbors import nearest_neighbors
from firstk.metrics.search import check_judgements, search_per_query

# What each metric looks at: a measure of `search_per_query`, and how many documents.
METRICS = {
    "ndcg@10": ("ndcg", 10),
    "mrr@10": ("mrr", 10),
    "relevant_recall@100": ("recall", 100),
    "1nn_accuracy": ("ndcg", 1),
}
# Without judgements: the share of the new model's ten nearest that are found.
FIDELITY, NEIGHBORS = "neighbor_recall@10", 10
# Below this many pairs nothing can be fitted and held out.
FEWEST_PAIRS = 100
# Share of the pairs on which options are scored that need both embeddings.
HELD_OUT_SHARE = 1 / 3
_OWNER = "evaluate_upgrade"


@dataclass(frozen=True, eq=False)
class UpgradeData:
    """A store of old vectors, new vectors of some of its rows, and queries.

    Attributes
    ----------
    old : ndarray of shape (N, p)
        The store, embedded by the old model.
    new : ndarray of shape (n, q)
        Rows embedded by the new model.
    rows : ndarray of int of shape (n,), optional
        The row of `old` that each row of `new` embeds; the same row if not given.
    queries_old, queries_new : ndarray of shape (m, p) and (m, q), optional
        The same queries by both models. Without new ones, held-out rows are the queries; without old ones, staying
        has no score.
    relevance : ndarray of int of shape (j, 3), optional
        Judgements: query row, row of `old`, grade.
    query_weight : ndarray of shape (m,), optional
        What each query counts in the mean.
    query_field, document_field : ndarray of shape (m,) and (N,), optional
        A query looks among the documents that have its own value.
    metric : {"ndcg@10", "mrr@10", "relevant_recall@100", "1nn_accuracy"}
        Of judged searches.
    """

    old: np.ndarray
    new: np.ndarray
    rows: np.ndarray | None = None
    queries_old: np.ndarray | None = None
    queries_new: np.ndarray | None = None
    relevance: np.ndarray | None = None
    query_weight: np.ndarray | None = None
    query_field: np.ndarray | None = None
    document_field: np.ndarray | None = None
    metric: str = "ndcg@10"
    paired: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("old", check_matrix(self.old, _OWNER, "old"))
        put("new", check_matrix(self.new, _OWNER, "new"))
        put("paired", _check_rows(self.rows, len(self.old), len(self.new)))
        check_choice(self.metric, METRICS, "metric", _OWNER)
        if len(self.new) < FEWEST_PAIRS:
            raise InvalidInputError(
                f"{len(self.new):,} pairs are too few to fit an alignment and hold a third of them out: embed at least "
                f"{FEWEST_PAIRS} rows of the store with the new model, better some thousands."
            )
        if self.relevance is not None and self.queries_new is None:
            raise InvalidInputError("Judgements need the queries embedded by the new model: 'queries_new'.")
        for name, width in (("queries_old", self.old.shape[1]), ("queries_new", self.new.shape[1])):
            if getattr(self, name) is not None:
                put(name, check_matrix(getattr(self, name), _OWNER, name, width=width))
        if self.queries_old is not None:
            if self.queries_new is None:
                raise InvalidInputError("The old model's queries need the new model's too: 'queries_new'.")
            check_same_length(self.queries_old, self.queries_new, "queries_old", "queries_new", _OWNER)
        if self.relevance is not None and self.queries_new is not None:
            put("relevance", check_judgements(self.relevance, len(self.old), len(self.queries_new), _OWNER))
        if self.query_weight is not None and self.queries_new is not None:
            put("query_weight", check_weights(self.query_weight, len(self.queries_new), _OWNER, "query_weight"))
        self._check_fields()

    def _check_fields(self) -> None:
        """Raise an error for values to look among that are not one for each query and each row of the store."""
        fields = (("query_field", self.queries_new), ("document_field", self.old))
        if (self.query_field is None) != (self.document_field is None):
            raise InvalidInputError("'query_field' and 'document_field' go together: give both.")
        for name, rows in fields:
            found = getattr(self, name)
            if found is not None and (rows is None or np.shape(found) != (len(rows),)):
                expected = "queries: 'queries_new'" if rows is None else f"shape ({len(rows):,},)"
                raise InvalidInputError(f"'{name}' of {_OWNER} needs {expected}. Got shape {np.shape(found)}.")

    @property
    def judged(self) -> bool:
        """Whether relevance was judged."""
        return self.relevance is not None

    @property
    def stays(self) -> bool:
        """Whether staying can be scored: the old model's vectors of the queries are there."""
        return self.queries_new is None or self.queries_old is not None

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
    asked : ndarray of shape (m,)
        Rows of the queries; places in `rows`, where rows themselves are the queries.
    judgements : ndarray of int of shape (j, 3)
        Place in `asked`, place in `rows`, grade.
    measure : str
    at : int
    """

    data: UpgradeData
    rows: np.ndarray
    asked: np.ndarray
    judgements: np.ndarray
    measure: str
    at: int

    @property
    def own(self) -> bool:
        """Whether rows of the store are the queries."""
        return self.data.queries_new is None

    def query_vectors(self, model: str) -> np.ndarray:
        """Return the queries as the "old" or the "new" model embeds them."""
        queries = self.data.queries_old if model == "old" else self.data.queries_new
        return self.document_vectors(model)[self.asked] if self.own else queries[self.asked]  # type: ignore[index]

    def document_vectors(self, model: str) -> np.ndarray:
        """Return the candidates as the "old" or, where all are paired, the "new" model embeds them."""
        return self.data.old[self.rows] if model == "old" else self.data.new[self.data.place_in_new[self.rows]]

    @property
    def weights(self) -> np.ndarray | None:
        """What each query counts; None where all count the same."""
        return None if self.data.query_weight is None or self.own else self.data.query_weight[self.asked]

    def scores(
        self, documents: np.ndarray, queries: np.ndarray, ks: list[int] | None = None, part: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each query scores, shape (m, len(ks)): at the full width, if no lengths are given.

        `part` are places in `asked`, ascending, if not all are to be searched.
        """
        data, asked, table = self.data, self.asked, self.judgements
        if part is not None:
            table = table[np.isin(table[:, 0], part)]
            table = np.column_stack([np.searchsorted(part, table[:, 0]), table[:, 1:]])
            asked, queries = asked[part], queries[part]
        fields = {}
        if data.document_field is not None and data.query_field is not None and not self.own:
            fields = {"query_field": data.query_field[asked], "document_field": data.document_field[self.rows]}
        _, values = search_per_query(
            documents, queries, table, self.measure, at=self.at, ks=ks or [documents.shape[1]],
            query_rows=asked if self.own else None, **fields,
        )  # fmt: skip
        return values


def split_pairs(n: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the pairs that are fitted and of those that are held out, each ascending."""
    order = np.random.default_rng(random_state).permutation(n)
    held = round(HELD_OUT_SHARE * n)
    return np.sort(order[held:]), np.sort(order[:held])


def searches_in(data: UpgradeData, rows: np.ndarray) -> Searches | None:
    """Return the searches among rows of the store; None where no query has a relevant document there.

    Judged searches are those of queries with a relevant document among the rows. Without judgements, the relevant ones
    are the nearest by the new model, which must have embedded all of the rows.
    """
    return _judged(data, rows) if data.judged else _by_neighbors(data, rows)


def _judged(data: UpgradeData, rows: np.ndarray) -> Searches | None:
    assert data.relevance is not None
    place = np.full(len(data.old), -1)
    place[rows] = np.arange(len(rows))
    query, document, grade = data.relevance.T
    there = place[document] >= 0
    if data.query_field is not None and data.document_field is not None:
        there &= data.query_field[query] == data.document_field[document]
    answered = np.unique(query[there & (grade > 0)])
    kept = there & np.isin(query, answered)
    if not len(answered):
        return None
    table = np.column_stack([np.searchsorted(answered, query[kept]), place[document[kept]], grade[kept]])
    return Searches(data, rows, answered, table, *METRICS[data.metric])


def _by_neighbors(data: UpgradeData, rows: np.ndarray) -> Searches:
    own = data.queries_new is None
    asked = np.arange(len(rows) if own else len(data.queries_new))  # type: ignore[arg-type]
    empty = Searches(data, rows, asked, np.empty((0, 3), dtype=np.int64), "recall", NEIGHBORS)
    n = min(NEIGHBORS, len(rows) - 1)
    found = nearest_neighbors(empty.document_vectors("new"), empty.query_vectors("new"), n, exclude_self=own)
    table = np.column_stack([np.repeat(asked, n), found.ravel(), np.ones(found.size, dtype=np.int64)])
    return replace(empty, judgements=table, at=n)
