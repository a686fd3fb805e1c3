"""Which way of translating is recommended, of all that were scored: method and form.

Held-out pairs have chosen a method before any judged query was looked at. Another one, or another form, takes its place
where judged queries clearly prefer it: where it is the best, and ahead by more than chance would have it.

What is chosen by queries scores too well on the same queries. So the gain over staying that a verdict goes by is
cross-fitted: each half of the queries is scored by what the other half chose.
"""

from __future__ import annotations

import numpy as np

# Standard errors by which the best is ahead of what held-out pairs chose. docs/decisions.md says how it was set.
CLEAR = 2.0
# Means that differ by less are equal: the last digits of a sum are the processor's own.
ROUNDING = 1e-9


def preferred(values: np.ndarray, weights: np.ndarray | None = None) -> int:
    """Return the column to recommend: the first, unless the best one is clearly ahead of it.

    Parameters
    ----------
    values : ndarray of shape (m, c)
        What each query scores by each translation; the first is the one that held-out pairs chose.
    weights : ndarray of shape (m,), optional
        What each query counts in the mean.

    Examples
    --------
    >>> preferred(np.array([[0.5, 0.6], [0.4, 0.6], [0.5, 0.7], [0.3, 0.4]]))
    1
    >>> preferred(np.array([[0.5, 0.6], [0.4, 0.1], [0.5, 0.9], [0.3, 0.2]]))
    0
    """
    if not len(values) or (weights is not None and not weights.any()):
        return 0
    share = np.full(len(values), 1.0 / len(values)) if weights is None else weights / weights.sum()
    ahead = values - values[:, :1]
    means = share @ ahead
    best = int(np.argmax(means >= means.max() - ROUNDING))
    error = float(np.sqrt(np.square(share) @ np.square(ahead[:, best] - means[best])))
    return best if means[best] > CLEAR * error + ROUNDING else 0


def cross_fitted(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return what each query scores by the translation that the other half of the queries prefers, shape (m,)."""
    parts = [np.arange(start, len(values), 2) for start in (0, 1)]
    made = np.empty(len(values))
    for part, other in (parts, parts[::-1]):
        made[part] = values[part, preferred(values[other], None if weights is None else weights[other])]
    return made
