"""What scikit-learn asks of an estimator: one number for rows, by a metric that is the same for every objective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk.data.task import Rows
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS, check_known_labels, per_row_scores

# Metrics that answer rows by reference rows, or by a readout fitted on them.
_AMONG_OTHERS = ("1nn_accuracy", "probe_accuracy", "r2", "readback_variance")


def score_of_rows(encoder: FittedEncoder, data: Rows, metric: str, k: int) -> float:
    """Score prefix k on rows, weighted; rows that need others to be answered by are dealt into parts.

    Parameters
    ----------
    encoder : FittedEncoder
    data : Rows
        Checked; `weight` is what each row counts.
    metric : str
        "auto" goes by `y` alone: floats and several columns are targets, all else are labels.
    k : int
    """
    y: np.ndarray | None = data.y  # type: ignore[assignment]
    if metric == "auto":
        targets = y is not None and (y.ndim > 1 or y.dtype.kind == "f")
        metric = "recall@10" if y is None else "r2" if targets else "1nn_accuracy"
    if metric == "head_accuracy":
        check_known_labels(encoder, data)
    if metric not in _AMONG_OTHERS:
        return _score(encoder, data, metric, k)
    parts = [replace(data.subset(held), reference=data.subset(kept)) for kept, held in _parts(data.n, metric)]
    counts = [float(part.n if part.weight is None else np.sum(part.weight)) for part in parts]
    scores = [_score(encoder, part, metric, k) if count else 0.0 for part, count in zip(parts, counts, strict=True)]
    return float(np.average(scores, weights=counts))


def _score(encoder: FittedEncoder, data: Rows, metric: str, k: int) -> float:
    rows = per_row_scores(encoder, data, metric, np.array([k]))
    if data.weight is None:
        return float(rows.score()[0])
    weight = np.asarray(data.weight)
    # A draw in which each row occurs as often as it counts; draws have as many rows as there are.
    return float(rows.resampled((weight * (len(weight) / weight.sum()))[:, None])[0, 0])


def _parts(n: int, metric: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Deal rows out to five parts (two, if rows are few); return what each is answered by, and the part."""
    if n < 4:
        raise InvalidInputError(
            f"The metric '{metric}' is scored among the rows given and needs at least four. Got {n}: pass more, or "
            "use curve(X, y, reference=(X_train, y_train))."
        )
    number = np.arange(n) % (5 if n >= 50 else 2)
    return [(np.flatnonzero(number != part), np.flatnonzero(number == part)) for part in range(number.max() + 1)]


@dataclass(frozen=True)
class PrefixScorer:
    """What `make_scorer` returns: a function of a fitted encoder, or of a pipeline that ends in one, and rows."""

    metric: str
    k: int | None = None

    def __call__(self, estimator: Any, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Return the score of the first k coordinates."""
        encoder, rows = estimator, X
        if hasattr(estimator, "steps"):
            encoder = estimator.steps[-1][1]
            rows = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
        if not hasattr(encoder, "encoder_"):
            raise InvalidInputError(
                f"make_scorer({self.metric!r}) scores codes: a PrefixEncoder, or a pipeline that ends in one. Got "
                f"{type(encoder).__name__}: to score what follows an encoder, use a scoring of scikit-learn's, such as "
                "'accuracy'."
            )
        k = None if self.k is None else min(self.k, encoder.n_components_)
        return float(encoder.score(rows, y, metric=self.metric, k=k))


def make_scorer(metric: str, k: int | None = None) -> PrefixScorer:
    """Return a scorer for ``scoring=`` in ``GridSearchCV``, ``cross_val_score`` and the like.

    Without one, encoders are scored by ``PrefixEncoder.score``: objectives have different metrics, and the width of
    the code decides with them. A scorer compares all of them by one metric, in as many coordinates.

    Parameters
    ----------
    metric : str
        A metric of rows in :data:`firstk.metrics.METRICS`: "1nn_accuracy", "probe_accuracy", "r2", "recall@10",
        "readback_variance", or one that needs a head or a decoder ("head_accuracy", "explained_variance").
    k : int, optional
        Prefix length; codes that are shorter are scored as they are. None scores the whole code.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from firstk import PrefixEncoder
    >>> from firstk.data import load_digits
    >>> from firstk.metrics import make_scorer
    >>> digits = load_digits()
    >>> grid = {"objective": ["reconstruction", "fisher"]}
    >>> search = GridSearchCV(PrefixEncoder(), grid, scoring=make_scorer("1nn_accuracy", k=8), cv=3)
    >>> search.fit(digits.X_train, digits.y_train).best_params_
    {'objective': 'fisher'}
    """
    check_choice(
        metric, [name for name, each in METRICS.items() if issubclass(Rows, each.takes)], "metric", "make_scorer"
    )
    if k is not None and (not is_int(k) or k < 1):
        raise bad_parameter("k", "make_scorer", "a positive int, or None for the whole code", k)
    return PrefixScorer(metric, k)
