"""What stands beside the vectors: labels or targets, checked for the objective that learns from them."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from firstk._base.checks import check_no_nul, check_same_length
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.contracts import Objective


def check_target(y: Any, objective: Objective, n: int) -> np.ndarray:
    """Return `y` as `n` labels or as numbers, as the objective takes them."""
    owner = f"PrefixEncoder with objective '{objective.name}'"
    if y is None:
        raise InvalidInputError(
            f"{owner} requires y to be passed, but the target y is None: it learns from {objective.supervision}."
        )
    y = as_labels(y, owner)
    if objective.supervision == "labels" or (objective.supervision == "labels or targets" and y.dtype.kind != "f"):
        y = _checked_labels(y, owner)
    else:
        y = _checked_numbers(y, owner)
    check_same_length(range(n), y, "X", "y", owner)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InvalidInputError(f"{owner} takes finite targets; 'y' has NaN or infinity. Drop those rows first.")
    return y


def as_labels(y: Any, owner: str) -> np.ndarray:
    """Return labels or targets as an array: no two labels become one, and objects that are numbers become numbers."""
    found = np.asarray(y)
    if found.dtype.kind in "UOT" and not (isinstance(y, np.ndarray) and y.dtype.kind == "U"):
        check_no_nul(np.asarray(y, dtype=object).flat, owner)
    if found.dtype.kind == "S" or (found.dtype.kind == "O" and any(isinstance(label, bytes) for label in found.flat)):
        raise InvalidInputError(
            f"{owner} takes labels that are text or numbers, and 'y' holds bytes ({found.flat[0]!r:.40}, ...). Decode "
            "them first: [label.decode() for label in y]."
        )
    if np.iscomplexobj(found):
        raise InvalidInputError(
            f"{owner} takes text or real numbers as 'y'. Complex data not supported: give real parts."
        )
    return _plain_numbers(found) if found.dtype.kind == "O" and found.size else found


def _plain_numbers(y: np.ndarray) -> np.ndarray:
    """Return objects that are all of one kind of number as an array of that kind."""
    kinds = ((bool, (bool, np.bool_)), (np.int64, numbers.Integral), (np.float64, numbers.Real))
    for dtype, kind in kinds:
        if all(isinstance(label, kind) for label in y.flat):
            try:
                return y.astype(dtype)
            except OverflowError:
                break  # more than 64 bits: floats would make two labels one
    return y


def _checked_labels(y: np.ndarray, owner: str) -> np.ndarray:
    if y.ndim != 1 and not (y.ndim == 2 and y.shape[1] == 1):
        raise InvalidInputError(
            f"{owner} takes one label a row: y should be a 1d array, got shape {y.shape}. Name one column of labels."
        )
    y = column_or_1d(y, warn=True)
    _check_one_kind(y, owner)
    if y.dtype.kind == "f" and np.isnan(y).any():
        rows = np.flatnonzero(np.isnan(y))
        raise InvalidInputError(
            f"{owner} takes a label for every row, and {len(rows)} are missing: Input y contains NaN (row {rows[0]}). "
            "Drop those rows first."
        )
    try:
        with np.errstate(invalid="ignore"):
            check_classification_targets(y)
    except (ValueError, TypeError):
        if y.dtype.kind != "f":
            raise InvalidInputError(
                f"{owner} takes labels that are text or whole numbers of 64 bits, and 'y' holds others (Unknown label "
                f"type: {type(y.flat[0]).__name__}). Turn them into text."
            ) from None
        raise InvalidInputError(
            f"{owner} takes labels, and 'y' holds numbers with fractions (Unknown label type: continuous). Use the "
            "objective 'regression' for targets, or turn them into classes."
        ) from None
    return y


def one_column(y: Any) -> Any:
    """Return labels or targets as they are, but a table of one column as that column."""
    if y is None:
        return None
    y = np.asarray(y)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _check_one_kind(y: np.ndarray, owner: str) -> None:
    """Refuse labels that cannot be sorted: missing ones, and text beside numbers."""
    kinds = {"text" if isinstance(label, str) else type(label).__name__ for label in y} if y.dtype.kind == "O" else ()
    if "NoneType" in kinds or ("text" in kinds and len(kinds) > 1):
        found = ", ".join(sorted(kinds))
        raise InvalidInputError(
            f"{owner} takes labels of one kind, none of them missing. Got {found}: convert them first."
        )


def _checked_numbers(y: np.ndarray, owner: str) -> np.ndarray:
    try:
        y = y.astype(np.float64) if y.dtype.kind == "O" else y
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{owner} takes numbers as targets. Unknown label type: {type(y.flat[0]).__name__}."
        ) from None
    if y.dtype.kind not in "fiub" or y.ndim not in (1, 2):
        raise InvalidInputError(
            f"{owner} takes one or two dimensions of numbers as targets. Got {y.dtype}, shape {y.shape}."
        )
    return y
