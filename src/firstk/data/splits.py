"""Training, validation and test parts with exact counts.

Stratified by class and centered on the training part, as in the experiments of Talukder et al. 2026 (appendix C.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_matrix, check_same_length, is_int, is_real
from firstk.exceptions import InvalidInputError

RandomState = int | np.random.Generator | np.random.RandomState | None

_PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint parts of one data set.

    Attributes
    ----------
    X_train, X_val, X_test : ndarray of shape (n_part, p)
        Copies, with `mean_` subtracted.
    y_train, y_val, y_test : ndarray of shape (n_part,) or None
        None if no labels were given.
    mean_ : ndarray of shape (p,)
        Vector subtracted from every part: the mean of the training rows, or zeros with `centre=False`.
    index_train, index_val, index_test : ndarray of int64
        Row indices into X, to split texts, targets or weights in the same way.
    """

    X_train: np.ndarray
    X_val: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray | None
    y_val: np.ndarray | None
    y_test: np.ndarray | None
    mean_: np.ndarray
    index_train: np.ndarray
    index_val: np.ndarray
    index_test: np.ndarray


def split(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    fractions: Sequence[float] = (0.7, 0.1, 0.2),
    random_state: RandomState = 0,
    centre: bool = True,
) -> Split:
    """Split as in Talukder et al. 2026 appendix C.1: 70/10/20, stratified, centered on the training part, not scaled.

    Parameters
    ----------
    X : array-like of shape (n, p)
        float32 and float64 are kept; other dtypes become float64. X is not modified.
    y : array-like of shape (n,), optional
        Class labels to stratify by. Because of rounding, a small class may be absent from validation or test, but
        never from training.
    fractions : three numbers that sum to 1
        Training, validation and test share. Validation or test may be 0; their counts are rounded, and the
        training part gets the remaining rows.
    random_state : int, Generator, RandomState or None
    centre : bool
        Subtract the mean of the training rows from all parts.

    Returns
    -------
    Split

    Examples
    --------
    >>> from firstk.data import load_digits, split
    >>> digits = load_digits()
    >>> parts = split(digits.X, digits.y)
    >>> len(parts.X_train), len(parts.X_val), len(parts.X_test)
    (1258, 180, 359)
    >>> np.bincount(parts.y_val)[:3].tolist()
    [18, 18, 18]
    """
    from sklearn.model_selection import train_test_split

    X, allowed = check_matrix(X, "split"), "three numbers in [0, 1] that sum to 1, the first above 0"
    shares = tuple(fractions) if isinstance(fractions, Iterable) else ()
    if len(shares) != 3 or not all(is_real(f) and 0 <= f <= 1 for f in shares) or shares[0] <= 0:
        raise bad_parameter("fractions", "split", allowed, fractions)
    if abs(sum(shares) - 1) > 1e-6:
        raise bad_parameter("fractions", "split", allowed, fractions)
    n_val, n_test = round(len(X) * shares[1]), round(len(X) * shares[2])
    for part, share, count in zip(_PARTS, shares, (len(X) - n_val - n_test, n_val, n_test), strict=True):
        if share > 0 and count < 1:
            raise InvalidInputError(
                f"split leaves the {part} part empty: {share:g} of {len(X)} rows is {len(X) * share:g}. "
                "Give more rows, or set that fraction to 0 (validation or test only)."
            )
    labels = None if y is None else np.asarray(y)
    if labels is not None:
        if labels.ndim != 1:
            raise InvalidInputError(
                f"split takes one label per row in 'y'. Got shape {labels.shape}; use y.ravel() or argmax(1)."
            )
        check_same_length(X, labels, "X", "y", "split")
    rng = random_state  # None is fresh entropy, a Generator is used itself, a RandomState gives the seed
    if isinstance(rng, np.random.RandomState):
        rng = int(rng.randint(2**31))
    elif not (rng is None or isinstance(rng, np.random.Generator) or (is_int(rng) and rng >= 0)):
        allowed = "an int that is not negative, a numpy Generator or RandomState, or None"
        raise bad_parameter("random_state", "split", allowed, random_state)
    seeds = np.random.default_rng(rng).integers(2**31, size=2)

    def cut(rows: np.ndarray, n_second: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Split rows at random in two, with exactly so many in the second part."""
        if n_second == 0:
            return np.random.default_rng(seed).permutation(rows), rows[:0]
        strata = None if labels is None else labels[rows]
        try:
            first, second = train_test_split(rows, test_size=n_second, random_state=seed, stratify=strata)
        except (ValueError, TypeError) as error:  # TypeError: labels of several kinds
            raise InvalidInputError(
                f"split stratifies by 'y' and cannot keep all classes in {len(rows)} rows with {n_second} taken out "
                f"({str(error).rstrip('.')}). Drop or merge small classes and missing labels; for continuous targets "
                "omit y and index them with index_train."
            ) from None
        return first, second

    rest, test = cut(np.arange(len(X)), n_test, int(seeds[0]))
    train, val = cut(rest, n_val, int(seeds[1]))
    # Rounding may leave a class without training rows.
    if labels is not None and len(lost := np.setdiff1d(labels, labels[train])):
        raise InvalidInputError(
            f"split leaves no training row of {len(lost)} classes (class {lost[0]!s} first): that part has "
            f"{len(train)} of {len(labels)} rows. Enlarge its fraction, or drop or merge small classes."
        )
    mean = np.zeros(X.shape[1], dtype=X.dtype)
    if centre:
        mean = X[train].mean(axis=0, dtype=np.float64).astype(X.dtype)
    X_train, X_val, X_test = (X[rows] - mean for rows in (train, val, test))
    y_train, y_val, y_test = (None if labels is None else labels[rows] for rows in (train, val, test))
    return Split(X_train, X_val, X_test, y_train, y_val, y_test, mean, train, val, test)
