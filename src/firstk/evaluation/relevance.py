"""Estimated relevance: which of several encoders finds what belongs together, where nobody has judged it.

Fidelity (recall@10) asks whether a code finds the full-width neighbors; it cannot tell a code that is better than the
full width from one that is worse. The estimate mines partners by a half-whitened cosine (`metrics.mined`) and scores
the ranks at which a code finds them. It serves to compare encoders; it is no forecast of nDCG by judgements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from firstk.encoder.curve import PrefixCurve
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS, EvaluationData, prefix_curve
from firstk.metrics.mined import mined_judgements

METRIC = "mined_ndcg@10"


def estimate_relevance(
    encoders: Mapping[str, FittedEncoder],
    documents: ArrayLike,
    *,
    queries: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
    ks: ArrayLike | None = None,
    confidence: float | None = 0.95,
) -> dict[str, PrefixCurve]:
    """Estimate the relevance of several encoders over one store, without judgements.

    With a sample of queries, each query's relevant document is mined among the documents, and the score is nDCG@10.
    Without, rows that were held out of the fits look for their mutual partners among the documents. Queries are the
    better witness, as documents differ from them.

    Parameters
    ----------
    encoders : mapping of str to FittedEncoder or fitted PrefixEncoder
        Those to compare, by name.
    documents : array-like of shape (n, p)
        The store, on which the encoders may have been fitted.
    queries : array-like of shape (m, p), optional
        A sample of queries, without judgements.
    held_out : array-like of shape (h, p), optional
        Rows of the store that no encoder was fitted on. Not used if there are queries.
    ks : sequence of int, optional
        Prefix lengths; all if not given. Each encoder is scored at those that it has.
    confidence : float in (0, 1), optional
        Of the bootstrap interval of every score; None for no intervals.

    Returns
    -------
    curves : dict of str to PrefixCurve
        With the metric "mined_ndcg@10". All encoders see the same partners and the same draws of the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from firstk import PrefixEncoder
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) @ np.random.default_rng(1).normal(size=(3, 12))
    >>> encoders = {"PCA": PrefixEncoder(objective="reconstruction").fit(X[:150])}
    >>> curves = estimate_relevance(encoders, X[:150], held_out=X[150:], ks=[1, 3])
    >>> best_encoder(curves, 3)
    'PCA'
    """
    fitted = {name: check_fitted(encoder, "estimate_relevance") for name, encoder in encoders.items()}
    if not fitted:
        raise InvalidInputError("estimate_relevance compares encoders. Got none; give at least one, by name.")
    data, metric = _mined_data(next(iter(fitted.values())), documents, queries, held_out)
    curves = {
        name: prefix_curve(encoder, data, metric, _lengths(ks, encoder.d), confidence=confidence)
        for name, encoder in fitted.items()
    }
    return {name: replace(curve, metric=METRIC) for name, curve in curves.items()}


def best_encoder(curves: Mapping[str, PrefixCurve], k: int) -> str:
    """Return the name of the curve with the highest score at `k`; of equal scores, the first.

    Parameters
    ----------
    curves : mapping of str to PrefixCurve
        What `estimate_relevance` returns.
    k : int
        A prefix length at which at least one of them was scored.

    Returns
    -------
    name : str
    """
    scores = {name: curve.at(k) for name, curve in curves.items() if k in curve.k}
    if not scores:
        raise InvalidInputError(f"best_encoder has no score at k = {k}: add it to 'ks' of estimate_relevance.")
    return max(scores, key=lambda name: scores[name])


def _mined_data(
    encoder: FittedEncoder, documents: ArrayLike, queries: ArrayLike | None, held_out: ArrayLike | None
) -> tuple[EvaluationData, str]:
    """Return the data with what is mined from them, once for all encoders, and the metric that scores it."""
    if queries is not None:
        judgements = mined_judgements(queries, documents)
        return EvaluationData(queries=queries, documents=documents, relevance=judgements), "ndcg@10"
    if held_out is None:
        raise InvalidInputError(
            "estimate_relevance needs rows that the encoders were not fitted on. Give a sample of queries=, or rows "
            "that were held out of the fits as held_out=."
        )
    return METRICS[METRIC].prepare(encoder, EvaluationData(X=held_out, X_ref=documents)), METRIC


def _lengths(ks: ArrayLike | None, d: int) -> list[int] | None:
    """Return the lengths that an encoder of width d has; `prefix_curve` checks them."""
    if ks is None:
        return None
    lengths: list[int] = [k for k in np.atleast_1d(np.asarray(ks)).tolist() if k <= d]
    if not lengths:
        raise InvalidInputError(f"estimate_relevance has no prefix length to score: 'ks' exceeds the width {d}.")
    return lengths
