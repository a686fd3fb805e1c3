"""Labels and targets, checked for whoever learns from them: an objective, a diagnosis, a command.

What a fit, a diagnosis or a command learns from is checked here, so that the same `y` is accepted by each of them;
labels that a metric compares are checked in `_base.checks`.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from firstk._base.checks import check_no_nul, check_same_length, some_rows
from firstk.exceptions import InvalidInputError, LabelsWarning

if TYPE_CHECKING:
    from firstk.contracts import Objective

# Whole numbers with more values than this are read as quantities.
MOST_CLASSES = 200


def check_target(y: ArrayLike | None, objective: Objective, n: int) -> np.ndarray:
    """Return `y` as `n` labels or as numbers, as the objective takes them."""
    owner = f"PrefixEncoder with objective '{objective.name}'"
    if y is None:
        raise InvalidInputError(
            f"{owner} requires y to be passed, but the target y is None: it learns from {objective.supervision}."
        )
    y = as_labels(y, owner)
    labels = objective.supervision == "labels" or (objective.supervision == "labels or targets" and y.dtype.kind != "f")
    if labels:
        return check_labels(y, n, owner)
    targets = check_targets(y, n, owner)
    # One column of integers or booleans with few values may be numbers of classes.
    whole = targets.dtype.kind in "iub" and (targets.ndim == 1 or targets.shape[1] == 1)
    if whole and (values := len(np.unique(targets))) <= min(MOST_CLASSES, len(targets) // 2):
        warnings.warn(
            f"{owner} got whole numbers with {values} values in {n} rows as targets, which look like "
            "classes: it would learn that class 2 lies between 1 and 3. For classes, use objective 'fisher' or "
            "'classification'; for quantities, give floats (y.astype(float) in Python), which silences this.",
            LabelsWarning,
            stacklevel=2,
        )
    return targets


def as_labels(y: ArrayLike, owner: str) -> np.ndarray:
    """Return labels or targets as an array: no two labels become one, and objects that are numbers become numbers."""
    try:
        found = np.asarray(y)
    except ValueError:  # lists of different lengths
        raise several_labels(owner, "lists of different lengths") from None
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
    kinds = ((bool, (bool, np.bool_)), (np.int64, numbers.Integral), (np.float64, numbers.Real))
    for dtype, kind in kinds if found.dtype.kind == "O" and found.size else ():
        if all(isinstance(label, kind) for label in found.flat):  # objects that are all of one kind of number
            try:
                return found.astype(dtype)
            except OverflowError:
                break  # more than 64 bits: floats would make two labels one
    return found


def check_labels(y: np.ndarray, n: int, owner: str, first: int = 0) -> np.ndarray:
    """Return one label for each of `n` rows, none missing and all of one kind; `first` is the number of the first."""
    if y.dtype.kind == "O" and y.ndim == 1 and any(isinstance(label, (list, tuple, set, frozenset)) for label in y):
        raise several_labels(owner, "a list or set for each row")
    if y.ndim == 2 and y.shape[1] > 1 and (y.dtype.kind in "bUOT" or np.isin(y, (0, 1)).all()):
        raise several_labels(owner, f"shape {y.shape}")
    if y.ndim != 1 and not (y.ndim == 2 and y.shape[1] == 1):
        raise InvalidInputError(
            f"{owner} takes one label a row: y should be a 1d array, got shape {y.shape}. Name one column of labels."
        )
    y = column_or_1d(y, warn=True)
    check_none_missing(y, owner, range(first, first + len(y)))
    kinds = {"text" if isinstance(label, str) else type(label).__name__ for label in y} if y.dtype.kind == "O" else ()
    if "text" in kinds and len(kinds) > 1:
        found = ", ".join(sorted(kinds))
        raise InvalidInputError(f"{owner} takes labels of one kind. Got {found}: convert them first.")
    if y.dtype.kind not in "fiubUT" and kinds != {"text"} and len(y):
        raise InvalidInputError(
            f"{owner} takes labels that are text or whole numbers of 64 bits, and 'y' holds others (Unknown label "
            f"type: {type(y.flat[0]).__name__}). Turn them into text."
        )
    if y.dtype.kind == "f" and (~np.isfinite(y) | (y != np.trunc(y))).any():
        raise InvalidInputError(
            f"{owner} takes labels, and 'y' holds numbers with fractions (Unknown label type: continuous). Use the "
            "objective 'regression' for targets, or turn them into classes."
        )
    check_same_length(range(n), y, "X", "y", owner)
    return y


def several_labels(owner: str, got: str) -> InvalidInputError:
    """Build the error for labels of which a row has several."""
    return InvalidInputError(
        f"{owner} takes one label a row: y should be a 1d array, and this holds several labels a row (multilabel): "
        f"{got}. Make a column of 0 and 1 for each label (sklearn's MultiLabelBinarizer) and learn them together as "
        "numbers: objective='regression' or 'mixture' with y.astype(float); or keep one label a row."
    )


def check_targets(y: np.ndarray, n: int, owner: str, first: int = 0) -> np.ndarray:
    """Return one or more finite numbers for each of `n` rows; `first` is the number of the first row."""
    try:
        y = y.astype(np.float64) if y.dtype.kind == "O" else y
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{owner} takes numbers as targets. Unknown label type: {type(y.flat[0]).__name__}. For classes, use "
            "objective 'fisher' or 'classification'."
        ) from None
    if y.dtype.kind not in "fiub" or y.ndim not in (1, 2):
        raise InvalidInputError(
            f"{owner} takes one or two dimensions of numbers as targets. Got {y.dtype}, shape {y.shape}. For classes, "
            "use objective 'fisher' or 'classification'."
        )
    check_same_length(range(n), y, "X", "y", owner)
    if y.dtype.kind == "f":
        finite = np.isfinite(y.reshape(len(y), -1)).all(axis=1)
        if not finite.all():
            rows = np.flatnonzero(~finite) + first
            raise InvalidInputError(
                f"{owner} takes finite targets; 'y' has NaN or infinity in {len(rows)} rows (row {some_rows(rows)}). "
                "Drop or fill those rows first."
            )
    return y


def check_none_missing(y: np.ndarray, owner: str, rows: Sequence[int] | np.ndarray) -> None:
    """Raise InvalidInputError if a label or target is None or NaN; `rows` are the numbers of their rows."""
    if y.dtype.kind not in "fOT" or y.ndim != 1:
        return
    missing = np.flatnonzero([value is None or value != value for value in y.tolist()])  # NaN is not itself
    if len(missing):
        numbers = np.asarray(rows)[missing]
        raise InvalidInputError(
            f"{owner} takes a label or target for every row, and {len(missing)} of {len(y)} have none: Input y "
            f"contains NaN or None (row {some_rows(numbers)}). Drop or fill those rows first."
        )


def one_column(y: ArrayLike | None) -> np.ndarray | None:
    """Return labels or targets as they are, but a table of one column as that column."""
    if y is None:
        return None
    y = np.asarray(y)
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
