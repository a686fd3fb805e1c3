"""Judged searches divided by query: pairs to learn from, queries to evaluate on, and what training has seen of those.

A query is *seen* when one of its relevant documents was learned from with another query, and *unseen* when none was:
scores of seen queries are partly memory, and only those of unseen ones tell how new documents will fare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.fit_files import MOST_REFERENCE, draw_groups
from firstk.evaluation.judged_pairs import JudgedPairs
from firstk.evaluation.new_documents import with_seen
from firstk.evaluation.overlap import HELD_OUT, seed_of
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import EvaluationData
from firstk.moments.fingerprint import Fingerprint, document_hashes


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


def split_of_training(encoder: FittedEncoder, judged: JudgedPairs) -> QuerySplit | None:
    """Return how judgements were divided when the model was fitted on them; None where it was fitted on something else.

    The model holds the fingerprint of its pairs, their number and the seed. So the draw is made again, and it was of
    these judgements if what is left over has that fingerprint.
    """
    recorded, rows = encoder.config.get("data_fingerprint"), encoder.config.get("rows")
    if recorded is None or rows is None:
        return None
    seed = seed_of(encoder.config)
    for share in _shares(judged, int(rows), seed):
        split = QuerySplit.by_query(judged, share, seed)
        pairs = judged.to_learn(split.learned)
        if "scores" in pairs:  # as fits take them
            pairs["scores"] = pairs["scores"].astype(np.float64)
        if len(pairs["left"]) == rows and str(Fingerprint.of(pairs)) == recorded:
            return split
    return None


def _shares(judged: JudgedPairs, rows: int, seed: int) -> list[float]:
    """Return the shares of held-out queries that leave so many relevant pairs to learn from."""
    queries, which = np.unique(judged.pairs[:, 0], return_inverse=True)
    n = len(queries)
    if n > MOST_REFERENCE:  # other shares draw in another order
        return [HELD_OUT, 0.0]
    order = np.random.default_rng(seed).choice(n, size=n, replace=False)
    relevant = np.bincount(which.ravel(), weights=judged.grades > 0, minlength=n)
    left = relevant.sum() - np.concatenate([[0], np.cumsum(relevant[order])])
    return [int(held) / n for held in np.flatnonzero(left == rows) if held < n]
