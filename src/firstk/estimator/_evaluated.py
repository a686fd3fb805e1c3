"""Evaluation of an estimator: curves of quality against k, and scikit-learn's single score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_prefix
from firstk._base.progress import Verbose
from firstk.data.task import Pairs, Rows, Search
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.profile import RowProfile
from firstk.estimator.checking import TOLERANCE, CheckReport, NewRows, check_rows, rows_and_labels
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import pair_metric, prefix_curve, prefix_scores
from firstk.metrics.judgements import Qrels, judgement_rows
from firstk.metrics.scorers import check_known_labels
from firstk.moments.targets import one_column
from firstk.quality.curve import PrefixCurve


class Evaluated:
    """Curves and score of an estimator that has an `encoder_` and checks its input."""

    verbose: Verbose

    @property
    def encoder_(self) -> FittedEncoder:
        """The fitted encoder."""
        raise NotImplementedError

    def _checked_input(self, X: Any, *, reset: bool = False) -> Any:
        raise NotImplementedError

    def _profile(self, held_out: Any = None) -> RowProfile | None:
        """Return the profile of the rows of the fit, or of held-out rows where there are enough."""
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
        among = None if X_ref is None else Rows(self._checked_input(X_ref), one_column(y_ref))
        data = Rows(self._checked_input(X), one_column(y), reference=among)
        return prefix_curve(encoder, data, metric, ks, confidence=confidence, verbose=self.verbose)

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
        data = Pairs(left, right, scores)
        metric = pair_metric(data) if metric == "auto" else metric
        return prefix_curve(self.encoder_, data, metric, ks, confidence=confidence, verbose=self.verbose)

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
        data = Search(
            queries,
            documents,
            judgement_rows(relevance, query_ids, document_ids),
            weight=query_weight,
            query_field=query_field,
            document_field=document_field,
        )
        return prefix_curve(self.encoder_, data, metric, ks, confidence=confidence, verbose=self.verbose)

    def check(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        k: int | None = None,
        against: ArrayLike | tuple[ArrayLike, ArrayLike | None] | None = None,
        tolerance: float = TOLERANCE,
        confidence: float = 0.95,
    ) -> CheckReport:
        """Tell whether the first k coordinates still keep of new rows what they kept at the fit.

        The verdict goes by the quality that is lost at k, with its interval: recall@10 against the full vectors, and
        with `y` the objective's own score. Drift of mean and scatter is reported with a test beside it.

        Parameters
        ----------
        X : array-like of shape (n, p)
            New rows, 64 or more.
        y : array-like, optional
            Their labels or targets.
        k : int, optional
            The prefix length in use; the recommended one if not given.
        against : array-like of shape (n, p) or tuple (X, y), optional
            Rows of the time of the fit, best some that it has not seen. If not given, the profile that was saved with
            the model, or that of rows of the fit.
        tolerance : float in (0, 1)
            Share of the quality at the fit that may be lost.
        confidence : float in (0, 1)
            Of the intervals.

        Returns
        -------
        report : CheckReport
            `report.verdict` is "fine", "unclear" or "refit"; ``print(report)`` says why.

        Examples
        --------
        >>> from firstk import PrefixEncoder
        >>> from firstk.data import load_digits
        >>> digits = load_digits()
        >>> enc = PrefixEncoder().fit(digits.X_train)
        >>> enc.check(digits.X_test[:, ::-1], k=8).verdict
        'refit'
        """
        encoder, target = self.encoder_, one_column(y)
        rows = NewRows(encoder).update(self._checked_input(X), target)
        if against is None:
            then = self._profile()
        else:
            X_then, y_then = rows_and_labels(against, "against", "check")
            found = NewRows(encoder).update(self._checked_input(X_then), one_column(y_then))
            then = found.profile()
        return check_rows(rows, then, k=k, tolerance=tolerance, confidence=confidence)

    def score(self, X: ArrayLike, y: ArrayLike | None = None, *, metric: str = "auto", k: int | None = None) -> float:
        """Return one number for the first k coordinates, by a metric that is the same for every objective.

        So that objectives can be compared, as a search does, the metric does not depend on them. Metrics that look for
        neighbors or fit a readout do so among the rows given: these are dealt into parts, and each part is answered by
        the others.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like, optional
            Labels or targets, where the metric needs them.
        metric : str
            A metric of rows in :data:`firstk.metrics.METRICS`. "auto" goes by `y` alone: "1nn_accuracy" for labels,
            "r2" for targets (floats, or several columns), "recall@10" without `y`. "head_accuracy" is the accuracy of
            ``predict``, for "fisher" and "classification"; "explained_variance" that of "reconstruction".
        k : int, optional
            Prefix length; the full width if not given.
        """
        encoder, target = self.encoder_, one_column(y)
        name = _metric_for(target) if metric == "auto" else metric
        ks = np.array([check_prefix(k, encoder.d, "PrefixEncoder.score")])
        data = Rows(self._checked_input(X), target)
        if name == "head_accuracy":
            check_known_labels(encoder, data)
        if name not in _AMONG_OTHERS:
            return float(prefix_scores(encoder, data, name, ks)[0])
        scores, sizes = [], []
        for kept, held in _parts(data.n, name):
            part = replace(data.subset(held), reference=data.subset(kept))
            scores.append(prefix_scores(encoder, part, name, ks)[0])
            sizes.append(len(held))
        return float(np.average(scores, weights=sizes))


# Metrics that answer rows by reference rows, or by a readout fitted on them.
_AMONG_OTHERS = ("1nn_accuracy", "probe_accuracy", "r2", "readback_variance")


def _metric_for(y: np.ndarray | None) -> str:
    """Return the metric that compares objectives on such data: floats are targets, all else are labels."""
    if y is None:
        return "recall@10"
    return "r2" if y.ndim > 1 or y.dtype.kind == "f" else "1nn_accuracy"


def _parts(n: int, metric: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Deal rows out to five parts (two, if rows are few); return what each is answered by, and the part."""
    if n < 4:
        raise InvalidInputError(
            f"The metric '{metric}' is scored among the rows given and needs at least four. Got {n}: pass more, or "
            "use curve(X, y, reference=(X_train, y_train))."
        )
    number = np.arange(n) % (5 if n >= 50 else 2)
    return [(np.flatnonzero(number != part), np.flatnonzero(number == part)) for part in range(number.max() + 1)]
