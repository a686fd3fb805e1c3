"""Rows on their way into a store: vectors with ids and payloads, given apart or columns of the table of the vectors."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.checks import bad_parameter, check_same_length, is_int
from firstk.data.files import VectorTable, missing_column
from firstk.exceptions import InvalidInputError
from firstk.integrations import ID_COLUMN, Documents
from firstk.search.stores.contract import Id, Payload, StoredRows
from firstk.search.stores.filters import encodable

Ids = Sequence[int | str | uuid.UUID] | np.ndarray | str
Payloads = Sequence[Mapping[str, Any]] | Sequence[str]


@dataclass(frozen=True, eq=False)
class Incoming:
    """Rows that are to be written, checked before the first of them is.

    Attributes
    ----------
    documents : Documents
        The vectors.
    kind : {"int", "text"}
        Of ids, of which every row has one of its own.
    column : str or None
        Column of ids.
    ids : list of int or str, optional
        Ids that were given apart, by row number; without these and without a column, rows are numbered.
    columns : tuple of str
        Columns of a table that are the payload.
    payloads : list of dict, optional
        Payloads that were given apart, by row number.
    """

    documents: Documents
    kind: str
    column: str | None
    ids: list[Id] | None
    columns: tuple[str, ...]
    payloads: list[dict[str, Any]] | None

    @classmethod
    def of(cls, documents: Documents, ids: Ids | None, payloads: Payloads | None, owner: str) -> Incoming:
        """Check ids and payloads; names of columns are those of a table."""
        n, columns, table = documents.rows, documents.columns, documents.source
        apart, given = None, None
        if payloads is not None and isinstance(table, VectorTable) and all(isinstance(one, str) for one in payloads):
            columns = tuple(map(str, payloads))
        elif payloads is not None:
            if not isinstance(payloads, Sequence) or not all(isinstance(one, Mapping) for one in payloads):
                raise InvalidInputError(
                    f"The 'payloads' of {owner} must be a list of dicts, one for each row, or names of columns of a "
                    "table."
                )
            check_same_length(payloads, range(n), "payloads", "vectors", owner)
            apart, columns = [dict(one) for one in payloads if isinstance(one, Mapping)], ()
        column = ids if isinstance(ids, str) and isinstance(table, VectorTable) else None
        if ids is None and ID_COLUMN in documents.columns:
            column = ID_COLUMN
        for name in (*(() if column is None else (column,)), *columns):
            if name not in documents.columns:
                raise missing_column(getattr(table, "path", "an array"), name, documents.columns)
        if column is not None and isinstance(table, VectorTable):
            parts = (Documents(part).column(column).tolist() for _, part in table.parts())
            kind = _kind_of(([plain_id(key, owner) for key in part] for part in parts), f"The ids in column '{column}'")
        elif ids is None:
            kind = "int"
        else:
            if isinstance(ids, (str, bytes)) or not isinstance(ids, (Sequence, np.ndarray)):
                raise bad_parameter(
                    "ids", owner, "a sequence of ints or UUIDs, or the name of a column of a table", ids
                )
            given = [plain_id(key, owner) for key in ids]
            if len(given) != n:
                raise InvalidInputError(f"{owner} needs as many 'ids' as rows in 'vectors'. Got {len(given)} and {n}.")
            kind = _kind_of([given], f"The ids of {owner}")
        columns = tuple(name for name in columns if name != column)  # the store returns it as the id
        return cls(documents, kind, column, given, columns, apart)

    @property
    def numbered(self) -> bool:
        """Whether ids are row numbers, because there are no others."""
        return self.column is None and self.ids is None

    @property
    def names(self) -> set[Any]:
        """Names in payloads."""
        return set(self.columns).union(*(self.payloads or ()))

    def read(self, size: int) -> Iterator[StoredRows]:
        """Yield all rows that have a vector, at most `size` at a time: ids, vectors, payloads of JSON values."""
        wanted = self.columns if self.column is None else (*self.columns, self.column)
        for block in self.documents.blocks(size, wanted):
            keys: list[Any] = block.rows.tolist()
            if self.column is not None:
                keys = np.asarray(block.columns[self.column]).tolist()
            elif self.ids is not None:
                keys = [self.ids[i] for i in keys]
            ids = [plain_id(key, "push") for key in keys]
            held: list[dict[str, Any]] = [{} for _ in ids]
            if self.payloads is not None:
                held = [self.payloads[i] for i in block.rows]
            elif self.columns:
                values = [_json_values(block.columns[name]) for name in self.columns]
                held = [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]
            payloads = [plain_payload(one, key) for one, key in zip(held, ids, strict=True)]
            yield StoredRows(ids, block.vectors, payloads)


def _kind_of(parts: Iterable[list[Id]], what: str) -> str:
    """Check that ids are of one kind and unique, by 64 bits of a hash each, and return the kind."""
    kinds: set[str] = set()
    hashes = [np.empty(0, np.uint64)]
    for keys in parts:
        kinds |= {"int" if isinstance(key, int) else "text" for key in keys}
        digests = b"".join(hashlib.blake2b(repr(key).encode(), digest_size=8).digest() for key in keys)
        hashes.append(np.frombuffer(digests, np.uint64))
    if len(kinds) > 1:
        raise InvalidInputError(f"{what} are ints or text, and not both. Convert them to one kind.")
    every = np.sort(np.concatenate(hashes))
    if doubles := int((every[1:] == every[:-1]).sum()):
        raise InvalidInputError(
            f"{what} must be unique, and {doubles:,} came before: only the last row of each would be kept. Drop "
            "the others, or name another column (--id)."
        )
    return kinds.pop() if kinds else "int"


def _json_values(column: np.ndarray) -> list[Any]:
    """Return a column as JSON values: missing numbers as None, dates as text."""
    if column.dtype.kind in "mM":
        return [None if np.isnat(value) else str(value) for value in column]
    values = column.tolist()
    if column.dtype.kind == "f" and column.ndim == 1:
        return [value if np.isfinite(value) else None for value in values]
    values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    kept = (str, int, float, bool, list, dict)
    return [value if value is None or isinstance(value, kept) else str(value) for value in values]


def plain_id(key: object, owner: str) -> Id:
    """Return an id that every store takes, or raise InvalidInputError."""
    if isinstance(key, (int, np.integer)) and is_int(key) and 0 <= int(key) < 2**63:
        return int(key)
    if isinstance(key, uuid.UUID):
        return str(key)
    if isinstance(key, str) and "\0" not in key and encodable(key) and 0 < len(key.encode()) <= 512:
        return str(key)
    raise InvalidInputError(
        f"Ids of rows are ints in [0, 2^63), or text of 1 to 512 bytes in UTF-8 without NUL. {owner} got {key!r:.60}."
    )


def plain_payload(payload: Mapping[str, Any], key: Id) -> Payload:
    """Return a payload of JSON values, numbers of numpy as those of Python."""

    def checked_int(digits: str) -> None:
        if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
            raise ValueError(f"a whole number of {len(digits.lstrip('-'))} digits, more than 64 bits")

    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in payload.items()}
    try:
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False)
        json.loads(text, parse_int=checked_int)
        if not encodable(text):
            raise ValueError("text that UTF-8 cannot hold")
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"The payload of id {key!r} holds what stores do not ({str(error)[:80]}). Convert it to text or "
            "numbers, or leave it out."
        ) from None
    return plain
