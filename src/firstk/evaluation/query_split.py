"""Judged searches divided by query: pairs to learn from, queries to evaluate on, and what training has seen of those.

A query is *seen* when one of its relevant documents was learned from with another query, and *unseen* when none was:
scores of seen queries are partly memory, and only those of unseen ones tell how new documents will fare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import draw_groups
from firstk.evaluation.judged_pairs import JudgedPairs
from firstk.evaluation.new_documents import with_seen
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import EvaluationData
from firstk.moments.fingerprint import document_hashes, query_hashes


@dataclass(frozen=True, eq=False)
class QuerySplit:
    """Judged searches, divided by query.

    Attributes
    ----------
    judged : JudgedPairs
    learned : ndarray of int
        Numbers of the pairs to learn from; none where the objective does not look at them.
    held : ndarray of int
        Numbers of the pairs of held-out queries.
    """

    judged: JudgedPairs
    learned: np.ndarray
    held: np.ndarray

    @classmethod
    def by_query(cls, judged: JudgedPairs, share: float, seed: int) -> QuerySplit:
        """Hold out a share of the queries, with all their pairs."""
        queries = np.unique(judged.pairs[:, 0], return_inverse=True)[1].ravel()
        held = draw_groups(queries, share, seed).held
        return cls(judged, np.setdiff1d(np.arange(len(queries)), held), held)

    @property
    def evaluation(self) -> EvaluationData:
        """The held-out queries among all documents; seen and unseen, where others were learned from."""
        data = self.judged.evaluation(self.held)
        if not len(self.learned):
            return data
        return with_seen(data, document_hashes(self.judged.to_learn(self.learned)["right"]))

    def positives(self) -> dict[str, np.ndarray]:
        """Return the positive pairs to learn from."""
        pairs = self.judged.to_learn(self.learned)
        if not len(pairs["left"]):
            raise InvalidInputError(
                f"No judgement of {self.judged.names[0]} calls a document relevant, so there is nothing to learn from. "
                "Relevant documents have a grade above 0."
            )
        return pairs


def pairs_of_new_queries(encoder: FittedEncoder, judged: JudgedPairs) -> np.ndarray:
    """Return the numbers of the pairs whose queries, or left sides, the model has not learned from.

    The model holds the hash of every query that taught it, so that files with more judgements than those of the fit, or
    with others, are told apart query by query.
    """
    if encoder.learned is None:
        return np.arange(len(judged.pairs))
    taught = np.isin(query_hashes(judged.queries), encoder.learned)
    return np.flatnonzero(~taught[judged.pairs[:, 0]])
