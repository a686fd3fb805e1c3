"""Evaluation of an estimator: curves of quality against k, and scikit-learn's single score."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.fitted import FittedEncoder
from firstk.metrics.curve import EvaluationData, pair_metric, prefix_curve
from firstk.metrics.judgements import Qrels, judgement_rows
from firstk.moments.targets import one_column


class Evaluated:
    """Curves and score of an estimator that has an `encoder_` and checks its input."""

    @property
    def encoder_(self) -> FittedEncoder:
        """The fitted encoder."""
        raise NotImplementedError

    def _checked_input(self, X: Any, *, reset: bool = False) -> Any:
        raise NotImplementedError

    def curve(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        reference: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
        metric: str = "auto",
        ks: ArrayLike | None = None,
        confidence: float | None = None,
    ) -> PrefixCurve:
        """Score every prefix from one encode.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows to evaluate on; held-out rows, for an honest answer.
        y : array-like, optional
            Their labels or targets, where the metric needs them.
        reference : array-like or tuple (X, y), optional
            Rows among which neighbors are looked for, or on which readouts are fitted.
        metric : str
            "auto": the objective's own. Others: see :data:`firstk.metrics.curve.METRICS`.
        ks : sequence of int, optional
            Prefix lengths; all if not given.
        confidence : float in (0, 1), optional
            Of the bootstrap intervals over rows that the curve then has: 0.95, say.
        """
        if isinstance(reference, tuple) and len(reference) != 2:
            raise bad_parameter("reference", "PrefixEncoder.curve", "X or (X, y)", f"a tuple of {len(reference)}")
        X_ref, y_ref = reference if isinstance(reference, tuple) else (reference, None)
        encoder = self.encoder_
        rows, X_ref = (None if part is None else self._checked_input(part) for part in (X, X_ref))
        data = EvaluationData(X=rows, y=one_column(y), X_ref=X_ref, y_ref=one_column(y_ref))
        return prefix_curve(encoder, data, metric, ks, confidence=confidence)

    def curve_pairs(
        self,
        left: ArrayLike,
        right: ArrayLike,
        scores: ArrayLike | None = None,
        *,
        metric: str = "auto",
        ks: ArrayLike | None = None,
        confidence: float | None = None,
    ) -> PrefixCurve:
        """Score every prefix on pairs: Spearman when scores differ, recall@10 of partners when they are positives."""
        data = EvaluationData(left=left, right=right, scores=scores)
        metric = pair_metric(data) if metric == "auto" else metric
        return prefix_curve(self.encoder_, data, metric, ks, confidence=confidence)

    def curve_search(
        self,
        queries: ArrayLike,
        documents: ArrayLike,
        relevance: ArrayLike | Qrels,
        *,
        query_ids: ArrayLike | None = None,
        document_ids: ArrayLike | None = None,
        metric: str = "ndcg@10",
        query_weight: ArrayLike | None = None,
        query_field: ArrayLike | None = None,
        document_field: ArrayLike | None = None,
        ks: ArrayLike | None = None,
        confidence: float | None = None,
    ) -> PrefixCurve:
        """Score every prefix by judged searches among all documents.

        Parameters
        ----------
        queries, documents : array-like of shape (m, p) and (n, p)
        relevance : array-like of shape (j, 3), or mapping
            Rows (query, document, relevance), or of each query a mapping from documents to relevance.
        query_ids, document_ids : array-like of shape (m,) and (n,), optional
            The ids by which `relevance` names queries and documents; without them it names rows.
        metric : {"ndcg@10", "mrr@10", "relevant_recall@100"}
        query_weight : array-like of shape (m,), optional
            What each query counts in the mean.
        query_field, document_field : array-like of shape (m,) and (n,), optional
            A filter: each query looks among the documents that have its own value of a field.
        ks, confidence
            As in `curve`.
        """
        data = EvaluationData(
            queries=queries,
            documents=documents,
            relevance=judgement_rows(relevance, query_ids, document_ids),
            query_weight=query_weight,
            query_field=query_field,
            document_field=document_field,
        )
        return prefix_curve(self.encoder_, data, metric, ks, confidence=confidence)

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Return the objective's metric at full width. Metrics that need references look for them in X itself."""
        own = self.encoder_.config["metric"]
        metric = {"1nn_accuracy": "head_accuracy", "pair_agreement": "recall@10"}.get(own, own)
        return self.curve(X, y, metric=metric, ks=[self.encoder_.d]).full
