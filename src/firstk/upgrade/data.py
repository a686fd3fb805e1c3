"""Two embeddings of a store and the searches that compare options: by judgements, labels or the new model's neighbors.

Every option becomes a matrix of documents and one of queries, compared by cosine; the searches score it query by query.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from firstk._base.checks import check_choice, check_matrix, check_same_length, check_weights
from firstk.exceptions import InvalidInputError
from firstk.metrics import check_judgements, nearest_neighbors, search_per_query

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
# What a query scores by labels: whether the nearest row has its own.
BY_LABEL = "1nn_accuracy"
# Where rows have labels and there are no queries: share of the pairs that become queries, and how many at most.
_QUERY_SHARE, _MOST_QUERIES = 0.2, 1000
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
    metric : {"ndcg@10", "mrr@10", "relevant_recall@100", "1nn_accuracy"}, optional
        Of judged searches; "ndcg@10" if not given, and always "1nn_accuracy" with labels.
    query_label, document_label : ndarray of shape (m,) and (N,), optional
        In place of judgements: a query is answered by a row of its own label.
    row_numbers : ndarray of int of shape (N,), optional
        The number of each row of `old` in the file that it was read from; counted from 0 if not given.
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
    metric: str | None = None
    query_label: np.ndarray | None = None
    document_label: np.ndarray | None = None
    row_numbers: np.ndarray | None = None
    paired: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("old", check_matrix(self.old, _OWNER, "old"))
        put("new", check_matrix(self.new, _OWNER, "new"))
        put("paired", _check_rows(self.rows, len(self.old), len(self.new)))
        usual = BY_LABEL if self.labelled else "ndcg@10"
        put("metric", check_choice(self.metric or usual, METRICS, "metric", _OWNER))
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
        self._check_both_sides("field")
        self._check_both_sides("label")
        if self.labelled and (self.relevance is not None or self.document_field is not None):
            raise InvalidInputError("Labels take the place of judgements: leave 'relevance' and fields out, or labels.")
        if self.labelled and self.metric != BY_LABEL:
            raise InvalidInputError(f"Labels are scored by '{BY_LABEL}'. Got metric='{self.metric}': leave it out.")

    def _check_both_sides(self, kind: str) -> None:
        """Raise an error for fields or labels that are not one for each query and each row of the store."""
        names = f"query_{kind}", f"document_{kind}"
        if (getattr(self, names[0]) is None) != (getattr(self, names[1]) is None):
            raise InvalidInputError(f"'{names[0]}' and '{names[1]}' go together: give both.")
        for name, rows in zip(names, (self.queries_new, self.old), strict=True):
            found = getattr(self, name)
            if found is not None and (rows is None or np.shape(found) != (len(rows),)):
                expected = "queries: 'queries_new'" if rows is None else f"shape ({len(rows):,},)"
                raise InvalidInputError(f"'{name}' of {_OWNER} needs {expected}. Got shape {np.shape(found)}.")

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
        asked = np.zeros(len(new), dtype=bool)
        count = min(_MOST_QUERIES, round(_QUERY_SHARE * len(new)))
        asked[np.random.default_rng(random_state).permutation(len(new))[:count]] = True
        stored = np.setdiff1d(np.arange(len(old)), paired[asked])
        return cls(
            old[stored],
            new[~asked],
            np.searchsorted(stored, paired[~asked]),
            queries_old=old[paired[asked]],
            queries_new=new[asked],
            query_label=labels[paired[asked]],
            document_label=labels[stored],
            row_numbers=stored,
        )

    @property
    def labelled(self) -> bool:
        """Whether labels say what answers a query."""
        return self.document_label is not None

    @property
    def judged(self) -> bool:
        """Whether it is known what answers a query: by judgements or by labels."""
        return self.relevance is not None or self.labelled

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
        data, asked, table, ks = self.data, self.asked, self.judgements, ks or [documents.shape[1]]
        if data.labelled:  # whether the nearest row of each query has its label
            kept = slice(None) if part is None else part
            stored, wanted = data.document_label[self.rows], data.query_label[asked][kept]  # type: ignore[index]
            nearest = (nearest_neighbors(documents[:, :k], queries[kept][:, :k], 1)[:, 0] for k in ks)
            return np.column_stack([stored[rows] == wanted for rows in nearest]).astype(np.float64)
        if part is not None:
            table = table[np.isin(table[:, 0], part)]
            table = np.column_stack([np.searchsorted(part, table[:, 0]), table[:, 1:]])
            asked, queries = asked[part], queries[part]
        fields = {}
        if data.document_field is not None and data.query_field is not None and not self.own:
            fields = {"query_field": data.query_field[asked], "document_field": data.document_field[self.rows]}
        _, values = search_per_query(
            documents, queries, table, self.measure, at=self.at, ks=ks,
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

    Judged searches are those of queries with a relevant document, or one of their label, among the rows. Without
    judgements, the relevant ones are the nearest by the new model, which must have embedded all of the rows.
    """
    own = data.queries_new is None
    if data.labelled:
        answered = np.flatnonzero(np.isin(data.query_label, data.document_label[rows]))  # type: ignore[arg-type, index]
        empty = np.empty((0, 3), dtype=np.int64)
        return Searches(data, rows, answered, empty, *METRICS[BY_LABEL]) if len(answered) else None
    if data.relevance is None:
        asked = np.arange(len(rows) if own else len(data.queries_new))  # type: ignore[arg-type]
        n = min(NEIGHBORS, len(rows) - 1)
        searches = Searches(data, rows, asked, np.empty((0, 3), dtype=np.int64), "recall", n)
        documents, queries = searches.document_vectors("new"), searches.query_vectors("new")
        found = nearest_neighbors(documents, queries, n, exclude_self=own)
        ones = np.ones(found.size, dtype=np.int64)
        return replace(searches, judgements=np.column_stack([np.repeat(asked, n), found.ravel(), ones]))
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
    return Searches(data, rows, answered, table, *METRICS[str(data.metric)])
