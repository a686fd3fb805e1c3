"""Checks of arguments, and the error messages that they raise.

Every message has three parts: what was wrong, the number, the way out. They are written here, so that the same mistake
reads the same wherever it is made.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import numbers
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import getattr_static
from types import ModuleType
from typing import Any, Generic, Literal, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.array_types import MatrixLike
from firstk.exceptions import InvalidInputError, MissingExtraError

Member = TypeVar("Member")
# Squares of smaller numbers are short of digits in float64.
_SMALLEST = float(np.sqrt(np.finfo(np.float64).tiny / np.finfo(np.float64).eps))


def bad_parameter(name: str, owner: str, allowed: str, got: object) -> InvalidInputError:
    """Build the error for a parameter outside its range.

    Examples
    --------
    >>> print(bad_parameter("k", "PrefixEncoder.transform", "an int in [1, 64] (the fitted dimension)", 80))
    The 'k' parameter of PrefixEncoder.transform must be an int in [1, 64] (the fitted dimension). Got 80 instead.
    """
    return InvalidInputError(f"The '{name}' parameter of {owner} must be {allowed}. Got {got!r} instead.")


def is_share(value: object) -> TypeGuard[float]:
    """Tell whether a value is a float between 0 and 1, both excluded."""
    return isinstance(value, float) and 0 < value < 1


def is_int(value: object) -> TypeGuard[int]:
    """Tell whether `value` is an integer; booleans are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: object) -> TypeGuard[float]:
    """Tell whether `value` is a finite real number that a float can hold; booleans are not."""
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def check_prefix(k: object, d: int, owner: str) -> int:
    """Return prefix length `k` as an int in [1, d]; None means the whole code."""
    if k is None:
        return d
    if not is_int(k) or not 1 <= int(k) <= d:
        raise bad_parameter("k", owner, f"an int in [1, {d}] (the fitted dimension)", k)
    return int(k)


def check_choice(value: object, choices: Collection[str], name: str, owner: str) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise bad_parameter(name, owner, "one of " + ", ".join(repr(c) for c in sorted(choices)), value)
    return value


def check_flag(value: object, name: str, owner: str) -> None:
    """Raise an error for a setting that is neither True nor False."""
    if not isinstance(value, bool):
        raise bad_parameter(name, owner, "True or False", value)


def check_verbose(verbose: object, owner: str) -> bool | Literal["auto"]:
    """Return a setting of what is shown, see :mod:`firstk._base.progress`; raise an error for a text that is none."""
    if isinstance(verbose, str):
        check_choice(verbose, ("auto",), "verbose", owner)
        return "auto"
    return bool(verbose)


def check_fraction(value: object, name: str, owner: str, *, open_left: bool = False) -> float:
    """Return `value` as a float in [0, 1], or in (0, 1] with `open_left`."""
    if not is_real(value) or not 0 <= value <= 1 or (open_left and value == 0):
        meant = f" ({value / 100:g} means {value:g} %)" if is_real(value) and 10 <= value <= 100 else ""
        raise bad_parameter(name, owner, f"a number in {'(' if open_left else '['}0, 1]{meant}", value)
    return float(value)


def check_non_negative(value: object, name: str, owner: str) -> float:
    """Return `value` as a finite float that is not negative."""
    if not is_real(value) or value < 0:
        raise bad_parameter(name, owner, "a finite number that is not negative", value)
    return float(value)


def check_matrix(X: MatrixLike, owner: str, name: str = "X", *, width: int | None = None) -> np.ndarray:
    """Return `X` as a finite two-dimensional float array, never copying float32 or float64.

    Parameters
    ----------
    X : array-like of shape (n, p)
        float32 and float64 are kept, every other number becomes float64 (float16: float32).
    owner, name : str
        What an error message calls the caller and the argument.
    width : int, optional
        The number of columns that is required.
    """
    if hasattr(X, "tocsr"):
        raise InvalidInputError(
            f"{owner} takes a dense '{name}', and this one is sparse. Pass {name}.toarray(), for a sample of rows if "
            "memory is short."
        )
    try:
        X = np.asarray(X)
        if X.dtype == np.float16:
            X = X.astype(np.float32)
        elif X.dtype not in (np.float32, np.float64):
            if np.iscomplexobj(X):
                raise InvalidInputError(f"{owner} takes real numbers; '{name}' holds complex ones.")
            X = X.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{owner} takes numbers; '{name}' holds something else ({error}). Encode text and categories first."
        ) from None
    if X.ndim != 2:
        raise InvalidInputError(
            f"{owner} takes a two-dimensional '{name}' (rows are samples). Got shape {X.shape}; "
            "one sample is X.reshape(1, -1), one column X.reshape(-1, 1)."
        )
    if 0 in X.shape:
        raise InvalidInputError(f"{owner} needs at least one row and one column in '{name}'. Got shape {X.shape}.")
    if width is not None and X.shape[1] != width:
        raise InvalidInputError(f"{owner} takes '{name}' with {width} columns. Got {X.shape[1]}.")
    check_finite(X, owner, name)
    return X


def check_finite(X: np.ndarray, owner: str, name: str = "X") -> None:
    """Raise InvalidInputError for NaN and infinities, with the first rows that hold them."""
    # One sum is finite when all entries are (and do not overflow): the slow search runs only on suspicion.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=X.dtype if X.dtype == np.float32 else np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(X).reshape(len(X), -1).all(axis=1))
    if len(bad) == 0:
        return
    raise InvalidInputError(
        f"{owner} takes finite numbers; '{name}' has NaN or infinity in {len(bad)} of {len(X)} rows "
        f"(row {some_rows(bad)}). Drop or impute those rows first."
    )


def some_rows(rows: Sequence[int] | np.ndarray) -> str:
    """Return the first of some row numbers as text, with dots where there are more."""
    return ", ".join(str(int(row)) for row in rows[:5]) + (", ..." if len(rows) > 5 else "")


def check_same_length(a: Sized, b: Sized, name_a: str, name_b: str, owner: str) -> None:
    """Check that two arguments have as many rows."""
    if len(a) != len(b):
        raise InvalidInputError(
            f"{owner} needs as many rows in '{name_a}' as in '{name_b}'. Got {len(a)} and {len(b)}."
        )


def largest_of(X: Any) -> float:
    """Return the largest magnitude in an array, dense or sparse; 0 where there is none."""
    X = getattr(X, "data", X) if hasattr(X, "tocsr") else np.asarray(X)
    return float(max(X.max(initial=0.0), -X.min(initial=0.0)))


def too_small(largest: float, owner: str) -> InvalidInputError:
    """Build the error for numbers whose squares are short of digits, or zero."""
    return InvalidInputError(
        f"{owner} met numbers too small for their precision: scale the columns up first. The largest is {largest:.1e}, "
        "and its square underflows: divide all numbers by it."
    )


@contextmanager
def explaining_small_numbers(X: Any, owner: str = "fit") -> Iterator[None]:
    """Name the cause where a fit fails because squares of its numbers are zero: that looks as if nothing varied."""
    try:
        yield
    except InvalidInputError:
        if 0 < (largest := largest_of(X)) < _SMALLEST:
            raise too_small(largest, owner) from None
        raise


def check_no_nul(values: Iterable[object], owner: str) -> None:
    """Raise InvalidInputError for text that ends in a NUL character, which numpy drops: two labels would become one."""
    for i, value in enumerate(values):
        if isinstance(value, str) and value.endswith("\0"):
            raise InvalidInputError(
                f"{owner} takes text that does not end in a NUL character, which numpy would drop. Got {value!r:.60} "
                f"at row {i}. Replace such characters first."
            )


def check_weights(weights: ArrayLike | None, n: int, owner: str, name: str = "sample_weight") -> np.ndarray | None:
    """Return weights of rows as a float64 vector: finite, not negative, not all zero; None stays None."""
    if weights is None:
        return None
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"The '{name}' of {owner} must be {n} finite numbers. Got something else.") from None
    if w.ndim == 0:
        w = np.full(n, float(w))
    wrong = "" if w.any() else f"{n} zeros"
    if w.shape != (n,):
        wrong = f"shape {w.shape}"
    elif len(bad := np.flatnonzero(~np.isfinite(w) | (w < 0))):
        wrong = f"{w[bad[0]]:g} at row {bad[0]}"
    if wrong:
        raise InvalidInputError(
            f"The '{name}' of {owner} must be {n} finite numbers, none negative and not all zero. Got {wrong}."
        )
    return w


def numba_may_compile() -> bool:
    """Tell whether numba is installed and not told to leave Python as it is: our kernels run compiled or not at all."""
    config = getattr(sys.modules.get("numba"), "config", None)  # a module that another thread imports has none yet
    if config is not None:
        return not config.DISABLE_JIT
    switched_off = os.environ.get("NUMBA_DISABLE_JIT", "").strip() not in ("", "0")
    return importlib.util.find_spec("numba") is not None and not switched_off


def require_compiled(extra: str, purpose: str, instead: str) -> None:
    """Raise an error unless numba is there and may compile; `instead` is the way without it."""
    require("numba", extra, purpose)
    if not numba_may_compile():
        raise InvalidInputError(
            f"{purpose} needs numba to compile, and NUMBA_DISABLE_JIT=1 tells it not to. Unset that variable, or use "
            f"{instead}."
        )


def require(package: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(package.split(".")[0], extra, purpose) from None


def check_matrix_pair(
    Z_ref: ArrayLike, Z: ArrayLike, owner: str, names: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return two matrices of equal width in their common floating type."""
    Z_ref = check_matrix(Z_ref, owner, names[0])
    Z = check_matrix(Z, owner, names[1], width=Z_ref.shape[1])
    dtype = np.result_type(Z_ref, Z)
    return Z_ref.astype(dtype, copy=False), Z.astype(dtype, copy=False)


def check_lengths(ks: ArrayLike | None, d: int, owner: str) -> np.ndarray:
    """Return prefix lengths as increasing ints in [1, d]; None means every k from 1 to d."""
    if ks is None:
        return np.arange(1, d + 1)
    lengths = list(np.asarray(ks).ravel())
    if not lengths or not all(is_int(k) and 1 <= k <= d for k in lengths) or (np.diff(lengths) <= 0).any():
        raise bad_parameter("ks", owner, f"strictly increasing ints in [1, {d}], or None for all of them", ks)
    return np.asarray(lengths, dtype=np.int64)


def check_labels(y: ArrayLike, n: int, owner: str, name: str) -> np.ndarray:
    """Return one label per row as a vector."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"{owner} takes one label per row: '{name}' must have shape ({n},). Got {labels.shape}."
        )
    if np.issubdtype(labels.dtype, np.floating) and np.isnan(labels).any():
        raise InvalidInputError(
            f"{owner} takes labels without gaps; '{name}' has NaN in {int(np.isnan(labels).sum())} of {n} "
            "rows. Drop those rows, or give them a label of their own."
        )
    return labels


def check_label_pair(
    y_ref: ArrayLike, y: ArrayLike, sizes: tuple[int, int], owner: str, names: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return two label vectors that can be compared: both of numbers or both of text."""
    first, second = (check_labels(v, n, owner, name) for v, n, name in zip((y_ref, y), sizes, names, strict=True))
    # numpy compares text with numbers as never equal, which would read as an accuracy of 0.
    if {first.dtype.kind, second.dtype.kind} & set("US") and first.dtype.kind != second.dtype.kind:
        raise InvalidInputError(
            f"{owner} needs labels of one type. '{names[0]}' is {first.dtype} and '{names[1]}' is "
            f"{second.dtype}: convert both to text or both to numbers."
        )
    return first, second


def check_count(value: int, name: str, owner: str, *, most: int | None = None) -> int:
    """Return `value` as an int of at least 1, and of at most `most`."""
    if not is_int(value) or value < 1 or (most is not None and value > most):
        raise bad_parameter(name, owner, f"an int in [1, {most}]" if most else "an int of at least 1", value)
    return int(value)


def check_rows(rows: ArrayLike, n: int, owner: str, name: str) -> np.ndarray:
    """Return row numbers as int64, each in [0, n)."""
    rows = np.asarray(rows)
    if not np.issubdtype(rows.dtype, np.integer):
        raise InvalidInputError(f"{owner} takes row numbers in '{name}': ints, not {rows.dtype}.")
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        raise InvalidInputError(
            f"{owner} takes row numbers from 0 to {n - 1} in '{name}'. Got values from {rows.min()} to {rows.max()}."
        )
    return rows.astype(np.int64)


# -- members of an axis -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnsavedMember:
    """Stands for a member of the user's own class in a loaded estimator: models hold no code, so a fit needs it again.

    Attributes
    ----------
    parameter : str
        "objective" or "ordering".
    made_by : str
        Full name of the class.
    """

    parameter: str
    made_by: str

    @property
    def message(self) -> str:
        """What is missing, and the way out."""
        return (
            f"The {self.parameter} of this encoder was a {self.made_by}, a class of your own, which is not saved. "
            f"Pass it again: set_params({self.parameter}=...)."
        )


@dataclass(frozen=True)
class Registry(Generic[Member]):
    """The members of an axis by name; strings are resolved here, once, at the public edge.

    Attributes
    ----------
    parameter : str
        Which parameter of PrefixEncoder: "objective", "ordering" or "solver".
    example : str
        An object that could be given, for the error message.
    public : mapping from names to classes
        What a user may name.
    internal : mapping from names to classes
        What a public member can resolve into, and what saved models may therefore name.
    needs_settings : mapping from names to str
        Members that cannot be made without settings, and what to give instead of their name.
    protocol : type, optional
        Any object with its attributes is a member; None takes registered classes only.
    choices : mapping from attributes to their allowed values
        Checked for a user's own member.
    checkable : bool
        Whether members check their settings by ``check()``, without further arguments.
    owner : str
        Whose parameter it is.
    """

    parameter: str
    example: str
    public: Mapping[str, type[Any]]
    internal: Mapping[str, type[Any]] = field(default_factory=dict)
    needs_settings: Mapping[str, str] = field(default_factory=dict)
    protocol: type[Member] | None = None
    choices: Mapping[str, Collection[str]] = field(default_factory=dict)
    checkable: bool = True
    owner: str = "PrefixEncoder"

    def resolve(self, value: object) -> Member:
        """Return the member that a name or an object stands for, its settings checked."""
        found: Any = self._member(value)
        if self.checkable:
            found.check()
        return found

    def _member(self, value: object) -> Member:
        names = ", ".join(map(repr, self.public))
        expected = f"one of {names}, or an object such as {self.example}"
        if isinstance(value, str):
            if value in self.needs_settings:
                raise bad_parameter(self.parameter, self.owner, self.needs_settings[value], value)
            if value not in self.public:
                raise bad_parameter(self.parameter, self.owner, expected, value)
            found: Member = self.public[value]()
            return found
        if isinstance(value, UnsavedMember):
            raise InvalidInputError(value.message)
        if self.registered(value) or (self.protocol is None and isinstance(value, tuple(self.public.values()))):
            return value  # type: ignore[return-value]
        if self.protocol is None:
            raise bad_parameter(self.parameter, self.owner, expected, value)
        own = check_member(value, self.protocol, self.parameter, expected, self.owner)
        for name, allowed in self.choices.items():
            check_choice(getattr(own, name), allowed, name, type(own).__name__)
        return own

    def registered(self, value: object) -> bool:
        """Tell whether a member is one of the library's own, which can be rebuilt from its name and settings."""
        return type(value) in (*self.public.values(), *self.internal.values())

    def restore(self, name: str, settings: Mapping[str, Any]) -> Member:
        """Rebuild a member from its name and recorded settings."""
        return self.resolve((self.internal.get(name) or self.public[name])(**settings))


def check_member(
    value: object, protocol: type[Member], name: str, expected: str, owner: str = "PrefixEncoder"
) -> Member:
    """Return `value` if it has every attribute of the protocol; else raise an error that names what is missing.

    Parameters
    ----------
    value : object
        Given as the parameter `name` of PrefixEncoder.
    protocol : type
        `Objective`, `Ordering` or `Solver`.
    expected : str
        What the parameter must be, for an object that has nothing in common with the protocol.
    owner : str
        Whose parameter it is.
    """
    parts = [part for part in (*protocol.__annotations__, *vars(protocol)) if not part.startswith("_")]
    absent = object()
    missing = [part for part in dict.fromkeys(parts) if getattr_static(value, part, absent) is absent]
    if isinstance(value, type) or "name" in missing:
        raise bad_parameter(name, owner, expected, value)
    if missing:
        raise InvalidInputError(
            f"The '{name}' of {owner}, a {type(value).__name__}, lacks {len(missing)} of the {len(set(parts))} "
            f"attributes of {protocol.__module__}.{protocol.__name__}: {', '.join(missing)}. Derive it from the base "
            "class that has defaults for them (docs/extending.md)."
        )
    return value  # type: ignore[return-value]


def class_path(thing: object) -> str:
    """Return the full name of an object's class."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
