"""Data as users give them, checked against an estimator: arrays, sparse matrices, data frames, dask collections."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from firstk._base.array_types import MatrixLike, SparseMatrix
from firstk._base.checks import bad_parameter, check_weights, is_int
from firstk.data.task import Pairs, Rows
from firstk.estimator.problem import Problem
from firstk.exceptions import InvalidInputError
from firstk.moments.pairs import check_pairs
from firstk.moments.statistics import Statistics
from firstk.moments.targets import check_target


def checked_rows(estimator: BaseEstimator, X: MatrixLike, *, reset: bool = False) -> np.ndarray | SparseMatrix:
    """Check type, shape and column names; numbers are checked for NaN where they are first summed or used.

    Parameters
    ----------
    estimator : BaseEstimator
    X : array-like, sparse matrix or data frame
    reset : bool
        Whether the estimator takes over width and names of the columns; otherwise they are compared with its own.
    """
    if engine_of(X) is not None:
        raise InvalidInputError(
            "This takes data in memory, where a dask collection may not fit. Take a part of it: X[:n].compute()."
        )
    settings: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": False}
    frame = _frame_rows(X)
    if frame is not None and frame[1]:
        validate_data(estimator, X, reset=reset, skip_check_array=True)  # the names of the columns
        return check_array(frame[0], estimator=estimator, **settings)
    sparse = {} if frame is not None else {"accept_sparse": "csr"}
    with config_context(array_api_dispatch=False):  # arrays of other libraries become numpy's
        checked: np.ndarray | SparseMatrix = validate_data(
            estimator, X if frame is None else frame[0], reset=reset, **sparse, **settings
        )
        return checked


def checked_data(estimator: Any, problem: Problem, data: Rows | Pairs, *, reset: bool) -> dict[str, Any] | Statistics:
    """Return checked rows or pairs by name; of dask collections their statistics, which their workers accumulated.

    Parameters
    ----------
    estimator : PrefixEncoder
    problem : Problem
        That the data are for.
    data : Rows or Pairs
    reset : bool
        As in :func:`checked_rows`.
    """
    if isinstance(data, Pairs):
        given: dict[str, Any] = {"left": data.left, "right": data.right, "scores": data.scores}
    else:
        given = {"X": data.X, "y": data.y, "weight": data.weight}
    if (engine := engine_of(*given.values())) is not None:
        statistics: Statistics = engine.accumulate_collections(problem, given)
        note_columns(estimator, engine.like(next(iter(given.values())), statistics.n_features), reset=reset)
        return statistics
    if isinstance(data, Pairs):
        # What carries the names of the columns, and the rows: a frame of one column of vectors has no names for them.
        frames = [_frame_rows(side) for side in (data.left, data.right)]
        L, R = (side if rows is None else rows[0] for side, rows in zip((data.left, data.right), frames, strict=True))
        left, right, scores = check_pairs(L, R, data.scores, "PrefixEncoder.fit_pairs")
        for side, rows, first in zip((data.left, data.right), frames, (reset, False), strict=True):
            columns = side if rows is None or rows[1] else rows[0]
            validate_data(estimator, columns, reset=first, skip_check_array=True)
        _check_width(estimator, left.shape[1])
        return {"left": left, "right": right, "scores": scores}
    X = checked_rows(estimator, data.X, reset=reset)
    n, p = X.shape
    _check_width(estimator, p)
    found = {"X": X, "weight": check_weights(data.weight, n, type(estimator).__name__)}
    if problem.objective.supervision != "rows":
        found["y"] = check_target(data.y, problem.objective, n)
    return found


def note_columns(estimator: Any, like: Any, *, reset: bool) -> None:
    """Take over width and names of the columns of checked rows, or compare them with those of the estimator."""
    validate_data(estimator, like, reset=reset, skip_check_array=True)
    _check_width(estimator, like.shape[1])


def _check_width(estimator: Any, p: int) -> None:
    if is_int(estimator.n_components) and estimator.n_components > p:
        expected = f"an int in [1, {p}] (the number of columns)"
        raise bad_parameter("n_components", "PrefixEncoder", expected, estimator.n_components)


def engine_of(*data: object) -> ModuleType | None:
    """Return the integration of collections that are not in memory, recognized by protocol; None for others."""
    if not any(hasattr(part, "__dask_graph__") for part in data):
        return None
    from firstk.integrations import dask

    return dask


def _frame_rows(X: object) -> tuple[np.ndarray, bool] | None:
    """Return the rows of a data frame or series, and whether columns are their coordinates; None for arrays."""
    series = hasattr(type(X), "to_frame") and hasattr(type(X), "name")
    if not series and not hasattr(type(X), "columns"):
        return None
    from firstk.data.files.vector_table import rows_of

    if not series:
        return rows_of(X)
    found = rows_of(X.to_frame("vectors"))  # type: ignore[attr-defined]
    return found if found is not None and not found[1] else (np.asarray(X), False)  # of numbers: one dimension
