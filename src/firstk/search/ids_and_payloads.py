"""Ids and payloads of the rows of a vector store: given apart, or columns of the table that holds the vectors."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.checks import bad_parameter, check_same_length
from firstk.data.files import Batch
from firstk.exceptions import InvalidInputError
from firstk.integrations import ID_COLUMN, Documents

Ids = Sequence[int | str | uuid.UUID] | np.ndarray | str
Payloads = Sequence[Mapping[str, Any]] | Sequence[str]


# From an id and the name of a function, for error messages, to the id in the stores' form.
IdRule = Callable[[object, str], int | str]


@dataclass(frozen=True, eq=False)
class Points:
    """What is stored with the vectors.

    Attributes
    ----------
    ids : list of int or str
        By row number, in the form that the store accepts.
    numbered : bool
        Whether they are row numbers, because there are no others.
    columns : tuple of str
        Columns of a table that are the payload.
    given : list of dict, optional
        Payloads that were given apart, by row number.
    """

    ids: list[int | str]
    numbered: bool
    columns: tuple[str, ...] = ()
    given: list[dict[str, Any]] | None = None

    @classmethod
    def of(
        cls,
        documents: Documents,
        ids: Ids | None,
        payloads: Payloads | None,
        owner: str,
        rule: IdRule,
    ) -> Points:
        """Check ids and payloads, before anything is stored."""
        n, columns = documents.rows, documents.columns
        given: list[dict[str, Any]] | None = None
        if payloads is not None and columns and all(isinstance(one, str) for one in payloads):
            columns = tuple(map(str, payloads))
            for one in columns:
                if one not in documents.columns:
                    documents.column(one)  # which raises, with the names that there are
        elif payloads is not None:
            given, columns = _checked_payloads(payloads, n, owner), ()
        name = ids if isinstance(ids, str) and documents.columns else None
        if ids is None and ID_COLUMN in documents.columns:
            name = ID_COLUMN
        if name is not None:
            keys = _keys_of(documents.column(name), name, owner, rule)
            if payloads is None:
                columns = tuple(one for one in columns if one != name)  # the store returns it as the id
            return cls(keys, False, columns, given)
        if ids is None:
            return cls(list(range(n)), True, columns, given)
        return cls(checked_ids(ids, n, owner, rule), False, columns, given)

    def payloads_of(self, block: Batch) -> list[dict[str, Any]] | None:
        """Return the payloads of some rows, as JSON values."""
        if self.given is not None:
            return [self.given[i] for i in block.rows]
        if not self.columns:
            return None
        values = [_plain(block.columns[name]) for name in self.columns]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]


def _plain(column: np.ndarray) -> list[Any]:
    """Return a column as JSON values: missing numbers as None, dates as text."""
    if column.dtype.kind in "mM":
        return [None if np.isnat(value) else str(value) for value in column]
    values = column.tolist()
    if column.dtype.kind == "f" and column.ndim == 1:
        return [value if np.isfinite(value) else None for value in values]
    values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    kept = (str, int, float, bool, list, dict)
    return [value if value is None or isinstance(value, kept) else str(value) for value in values]


def _keys_of(column: np.ndarray, name: str, owner: str, rule: IdRule) -> list[int | str]:
    """Return the ids of a column."""
    values = column.tolist()
    if any(value is None or value != value for value in values):
        raise InvalidInputError(f"Column '{name}' has rows without an id. Fill them in, or name another.")
    keys = [rule(value, owner) for value in values]
    _check_unique(keys, f"The ids in column '{name}'", [str(value) for value in values])
    return keys


def checked_ids(
    ids: Sequence[int | str | uuid.UUID] | np.ndarray | str, n: int, owner: str, rule: IdRule
) -> list[int | str]:
    """Return unique ids in the form that the store accepts."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, (Sequence, np.ndarray)):
        raise bad_parameter("ids", owner, "a sequence of ints or UUIDs, or the name of a column of a table", ids)
    keys = [rule(key, owner) for key in ids]
    if len(keys) != n:
        raise InvalidInputError(f"{owner} needs as many 'ids' as rows in 'vectors'. Got {len(keys)} and {n}.")
    _check_unique(keys, f"The 'ids' of {owner}", keys)
    return keys


def _check_unique(keys: list[int | str], what: str, shown: Sequence[int | str]) -> None:
    seen: set[int | str] = set()
    twice = [i for i, key in enumerate(keys) if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
    if twice:
        raise InvalidInputError(
            f"{what} must be unique: {len({keys[i] for i in twice})} occur more than once, the first "
            f"{shown[twice[0]]!r}. Only the last would be kept; drop the rows that were replaced."
        )


def _checked_payloads(payloads: Payloads, n: int, owner: str) -> list[dict[str, Any]]:
    if not isinstance(payloads, Sequence) or not all(isinstance(one, Mapping) for one in payloads):
        raise InvalidInputError(
            f"The 'payloads' of {owner} must be a list of dicts, one for each row, or names of columns of a table."
        )
    check_same_length(payloads, range(n), "payloads", "vectors", owner)
    return [dict(one) for one in payloads if isinstance(one, Mapping)]
