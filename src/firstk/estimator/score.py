"""One number for rows: what scikit-learn's ``score`` returns, by a metric that is the same for every objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from firstk.data.task import Rows
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import check_known_labels, per_row_scores

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
