"""A scorer for scikit-learn's searches: one metric at one prefix length, whatever the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk.data.task import Rows
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import METRICS


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
