"""The shortlists that a FunnelIndex chose, in the words of stores: SQL, Qdrant's prefetch, k and num_candidates.

A store ranks a prefix as a vector of its own (by cosine, its norm left out), which a funnel does not; so the recall is
measured again, the way the store ranks. It is that of exact search at each stage: a graph may lose some more.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from firstk._base.checks import check_count
from firstk._base.rows import unit_rows
from firstk.exceptions import InvalidInputError
from firstk.search.funnel.index import FunnelIndex
from firstk.search.funnel.schedule import Stage
from firstk.search.stores.pgvector_sql import OPERATORS, quoted

__all__ = ["Shortlists"]

# Rows that serve as queries, at most, and how many of them are ranked at once.
_QUERIES, _BLOCK = 512, 32
# Lucene takes no more candidates a shard.
_MOST_CANDIDATES = 10_000


@dataclass(frozen=True)
class Shortlists:
    """Prefixes and shortlists of a search, and the recall that they gave.

    Attributes
    ----------
    stages : tuple of Stage
        Prefix lengths and shortlists, first to last; the last shortlist is ranked by the full code.
    full : int
        Width of the full code.
    limit : int
        Results per query.
    metric : str
    rows : int
        Rows in the index; shortlists grow with them.
    recall : float
        Measured on rows as queries, each stage ranked as a store ranks it.
    asked : float or None
        The recall that the schedule was chosen for.
    """

    stages: tuple[Stage, ...]
    full: int
    limit: int
    metric: str
    rows: int
    recall: float
    asked: float | None = None

    @classmethod
    def of(cls, index: FunnelIndex, limit: int | None = None, *, random_state: int = 0) -> Shortlists:
        """Read the shortlists off an index, and measure its recall.

        Parameters
        ----------
        index : FunnelIndex
            Its cells, if it has any, are left out: a store has an index of its own.
        limit : int, optional
            Results per query; the number of neighbors that the index was fitted for, if not given.
        random_state : int
            Seed of the rows that serve as queries.
        """
        owner = "Shortlists.of"
        if not isinstance(index, FunnelIndex):
            raise InvalidInputError(f"{owner} takes a FunnelIndex. Got {type(index).__name__}.")
        if len(index) < 2:
            raise InvalidInputError(f"{owner} measures recall on rows, and this index holds {len(index)}. Add some.")
        most = min(len(index) - 1, index.schedule.n_neighbors)
        limit = check_count(most if limit is None else limit, "limit", owner, most=most)
        sizes = index.schedule.sizes(len(index), limit)
        stages = tuple(
            Stage(stage.k, size) for stage, size in zip(index.schedule.stages, sizes, strict=True) if stage.k < index.d
        )
        recall = measured_recall(index.codes, stages, limit, index.metric, random_state)
        return cls(stages, index.d, limit, index.metric, len(index), recall, index.schedule.recall)

    def sql(self, table: str = "documents", *, code: str = "code", key: str = "id") -> str:
        """Return a search with pgvector: a subquery with ORDER BY and LIMIT for each shortlist."""
        column, ident, given = quoted(code), quoted(key), f"%(query)s::vector({self.full})"
        sign = OPERATORS[self.metric][0]
        source = quoted(table)
        for stage in self.stages:
            cut = f"subvector({{}}, 1, {stage.k})::vector({stage.k})"
            near = f"{cut.format(column)} {sign} {cut.format(given)}"
            inner = source.replace("\n", "\n    ")
            chosen = f"SELECT {ident}, {column} FROM {inner}\n    ORDER BY {near}\n    LIMIT {stage.size}"
            source = f"(\n    {chosen}\n) AS k{stage.k}"
        return f"SELECT {ident} FROM {source}\nORDER BY {column} {sign} {given}\nLIMIT {self.limit}"

    def qdrant(self) -> dict[str, Any]:
        """Return the body of ``POST /collections/NAME/points/query``, without the vectors.

        The vectors of each length are named ``k8``, ``k32``, ... and ``full``; put the codes of a query in the place
        of the names in ``query``.
        """
        body: dict[str, Any] = {}
        for stage in self.stages:
            name = f"k{stage.k}"
            body = {"query": name, "using": name, "limit": stage.size} | ({"prefetch": body} if body else {})
        last = {"query": "full", "using": "full", "limit": self.limit}
        return last | ({"prefetch": body} if body else {})

    def lucene(self) -> dict[str, Any]:
        """Return the body of an Elasticsearch search, with the names of codes in the place of query vectors.

        ``num_candidates`` is what each shard looks at: half as many again as it returns.
        """
        if not self.stages:
            return {"size": self.limit, "query": _scored("full", self.metric)}
        first = self.stages[0]
        if first.size > _MOST_CANDIDATES:
            raise InvalidInputError(
                f"Lucene takes at most {_MOST_CANDIDATES} candidates, and the first shortlist is one of {first.size}. "
                "Ask the index for a smaller recall, or for longer prefixes."
            )
        candidates = min(_MOST_CANDIDATES, -(-3 * first.size // 2))
        name = f"k{first.k}"
        knn = {"field": name, "query_vector": name, "k": first.size, "num_candidates": candidates}
        windows = [(f"k{stage.k}", before.size) for before, stage in pairwise(self.stages)]
        windows.append(("full", self.stages[-1].size))
        rescore = [
            {
                "window_size": size,
                "query": {"rescore_query": _scored(field, self.metric), "query_weight": 0, "rescore_query_weight": 1},
            }
            for field, size in windows
        ]
        return {"size": self.limit, "knn": knn, "rescore": rescore}

    def __str__(self) -> str:
        lists = ", then ".join(f"{stage.size} rows by the first {stage.k} of {self.full}" for stage in self.stages)
        asked = "" if self.asked is None else f" (asked for {self.asked:g})"
        return (
            f"{lists or 'all rows'}, then {self.limit} by the full code: recall@{self.limit} {self.recall:.3f}{asked}, "
            f"measured on rows of {self.rows:,} as queries"
        )


def _scored(field: str, metric: str) -> dict[str, Any]:
    """Return a query of Elasticsearch that scores every document by one of its vectors; scores are never negative."""
    functions = {
        "cosine": f"cosineSimilarity(params.query, '{field}') + 1.0",
        "inner_product": f"sigmoid(1, Math.E, -dotProduct(params.query, '{field}'))",
        "l2": f"1 / (1 + l2norm(params.query, '{field}'))",
    }
    script = {"source": functions[metric], "params": {"query": field}}
    return {"script_score": {"query": {"match_all": {}}, "script": script}}


def measured_recall(
    codes: np.ndarray, stages: tuple[Stage, ...], limit: int, metric: str, random_state: int = 0
) -> float:
    """Return the share of the true nearest rows that shortlists keep, for sampled rows as queries.

    Each stage ranks a prefix as a vector of its own. A row is no neighbor of itself.
    """
    n = len(codes)
    rng = np.random.default_rng(random_state)
    asked = np.sort(rng.choice(n, min(_QUERIES, n), replace=False))
    kept = 0
    for start in range(0, len(asked), _BLOCK):
        rows = asked[start : start + _BLOCK]
        ranked = [_closeness(codes, rows, k, metric) for k in (*(stage.k for stage in stages), codes.shape[1])]
        for i in range(len(rows)):
            truth = np.argsort(-ranked[-1][i], kind="stable")[:limit]
            left = np.arange(n)
            for near, stage in zip(ranked, stages, strict=False):
                left = left[np.argsort(-near[i, left], kind="stable")[: stage.size]]
            kept += np.isin(truth, left).sum()
    return float(kept / (len(asked) * limit))


def _closeness(codes: np.ndarray, rows: np.ndarray, k: int, metric: str) -> np.ndarray:
    """Return how close all rows are to some of them by their first k coordinates; their own place is last."""
    Z = unit_rows(codes[:, :k]) if metric == "cosine" else codes[:, :k]
    near = Z[rows] @ Z.T
    if metric == "l2":
        near = near - 0.5 * np.einsum("ij,ij->i", Z, Z)
    near[np.arange(len(rows)), rows] = -np.inf
    return near
