"""Which searches advice is given on: those for new documents, of which the fit has learned from none.

A code that learns from judgements knows the documents of its pairs by heart. A store grows, and what is asked for
tomorrow is mostly not among them: only queries whose relevant documents were not learned from tell what a code will
keep. So choices are made on those, and scores of all queries are told beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstk._base.checks import bad_parameter
from firstk._base.rows import is_sparse
from firstk.encoder.recommendation import FEWEST_NEW
from firstk.metrics.curve import EvaluationData
from firstk.metrics.scorers import n_rows
from firstk.moments.fingerprint import row_priorities


@dataclass(frozen=True, eq=False)
class Population:
    """The searches that a choice is made on.

    Attributes
    ----------
    data : EvaluationData
        Those for new documents where there are enough; else all.
    whole : EvaluationData
        All of them.
    n_known, n_new : int
        How many queries ask for a document that was learned from, and for new ones only; 0 where nothing was learned
        from judgements, or that is not known.
    """

    data: EvaluationData
    whole: EvaluationData
    n_known: int = 0
    n_new: int = 0

    @property
    def on_new(self) -> bool:
        """Whether the choice is made on searches for new documents alone, and there are others."""
        return self.n_known > 0 and self.n_new >= FEWEST_NEW

    @property
    def sentence(self) -> str:
        """What is evaluated of the queries, where it is not all of them."""
        if not self.on_new:
            return ""
        return (
            f"Scores are of the {self.n_new:,} of these queries that ask for new documents: none that is relevant to "
            "them was learned from. The choice is by these; a baseline that is behind over all queries must be clearly "
            "ahead on them."
        )


def population_of(data: EvaluationData) -> Population:
    """Return the searches that a choice is made on: by `query_seen`, where the data have it."""
    parts = parts_by_seen(data)
    found = Population(data, data, *(_queries(parts.get(name)) for name in ("seen", "unseen")))
    return replace(found, data=parts["unseen"]) if found.on_new else found


def with_seen(data: EvaluationData, learned: np.ndarray | None) -> EvaluationData:
    """Tell searches apart by whether a document that is relevant to the query is among those learned from.

    Parameters
    ----------
    data : EvaluationData
        Returned as it is where it has no judgements, or has `query_seen` already.
    learned : ndarray of uint64 or None
        `FittedEncoder.learned`.
    """
    if data.relevance is None or learned is None or data.query_seen is not None:
        return data
    documents = data.documents if is_sparse(data.documents) else np.asarray(data.documents)
    relevance, known = np.asarray(data.relevance), np.isin(row_priorities({"X": documents}), learned)
    seen = np.zeros(n_rows(data.queries), dtype=bool)
    seen[relevance[known[relevance[:, 1]] & (relevance[:, 2] > 0), 0]] = True
    return replace(data, query_seen=seen)


def parts_by_seen(data: EvaluationData) -> dict[str, EvaluationData]:
    """Return the searches of "seen" queries, of which a relevant document was learned from, and of "unseen" ones.

    A part without queries is left out; both are where `data` does not tell them apart.
    """
    if data.query_seen is None or data.relevance is None:
        return {}
    seen, relevance = np.asarray(data.query_seen), np.asarray(data.relevance)
    if seen.dtype != bool or seen.shape != (n_rows(data.queries),):
        allowed = f"{n_rows(data.queries)} booleans, one for each query"
        raise bad_parameter("query_seen", "EvaluationData", allowed, f"{seen.dtype} of shape {seen.shape}")
    counts = np.ones(len(seen), dtype=bool) if data.query_weight is None else np.asarray(data.query_weight) > 0
    parts = {
        "seen": relevance[(seen & counts)[relevance[:, 0]]],
        "unseen": relevance[(~seen & counts)[relevance[:, 0]]],
    }
    return {name: replace(data, relevance=part) for name, part in parts.items() if len(part)}


def _queries(part: EvaluationData | None) -> int:
    """Count the queries of a part that have something to find."""
    if part is None:
        return 0
    relevance = np.asarray(part.relevance)
    return len(np.unique(relevance[relevance[:, 2] > 0, 0]))
