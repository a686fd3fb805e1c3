"""Columns of an engine's Arrow batches: rows to fit on, and codes in place of vectors, for `spark` and `ray`.

What is sent to a worker is bytes, numbers and names: a fitted encoder travels as the files of a saved model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from firstk._base.checks import check_choice, require
from firstk.data.files.arrow_tables import MemoryReader, as_numpy, binary_array, list_array
from firstk.data.files.contract import Batch, Wanted, code_layout
from firstk.data.files.vector_columns import ID_NAMES
from firstk.data.files.vector_table import NAN, rows_with_nan
from firstk.data.precision import read_precision
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.estimator.encoding import Described, Encoding, Wish, encoding_of
from firstk.exceptions import InvalidInputError
from firstk.integrations.parts import ShortSampleError, finish

if TYPE_CHECKING:
    import pyarrow

    from firstk.estimator.prefix_encoder import PrefixEncoder

Encoder = TypeVar("Encoder", bound="PrefixEncoder")
SHOWN = 5  # ids in an error message
# Rows on which scales and thresholds of a precision are fitted.
SAMPLE_ROWS = 65_536


@dataclass(frozen=True)
class Named:
    """The columns of a fit: vectors, or both sides of pairs with their scores as the label; and what becomes of NaN."""

    vectors: str | Sequence[str]
    label: str | None = None
    weight: str | None = None
    nan: str = "refuse"

    @property
    def pairs(self) -> bool:
        """Whether there are two columns of vectors."""
        return not isinstance(self.vectors, str)

    def among(self, columns: Iterable[str]) -> list[str]:
        """Return the columns to read, and the one that names rows in errors; raise an error where one is missing."""
        check_choice(self.nan, NAN, "nan", "fit and transform")
        there, sides = list(columns), list(self.vectors) if self.pairs else [str(self.vectors)]
        if self.pairs and (len(sides) != 2 or self.weight is not None):
            raise InvalidInputError(
                f"Pairs are two columns of vectors, without weights. Got {sides} and {self.weight!r}."
            )
        wanted = [*sides, *(name for name in (self.label, self.weight) if name is not None)]
        for name in wanted:
            if name not in there:
                raise InvalidInputError(f"There is no column {name!r}. The columns are {', '.join(there)}.")
        return list(dict.fromkeys([*wanted, *_ids(there)]))

    def batches(self, tables: Iterable[pyarrow.RecordBatch]) -> Iterator[dict[str, Any]]:
        """Yield batches as `firstk.integrations.parts.measure` takes them."""
        sides = dict(zip(("left", "right"), self.vectors, strict=True)) if self.pairs else {"X": str(self.vectors)}
        beside = {"scores" if self.pairs else "y": self.label, "weight": self.weight}
        for table in tables:
            kept, vectors = matrices(table, list(sides.values()), self.nan)
            found = dict(zip(sides, vectors, strict=True))
            for key, name in beside.items():
                if name is None:
                    continue
                column = kept.column(name)
                if column.null_count:
                    raise InvalidInputError(
                        f"Column {name!r} has nothing in {column.null_count} of {len(kept)} rows. "
                        f"{_told(kept, np.flatnonzero(np.asarray(column.is_null())))}"
                    )
                found[key] = as_numpy(column)
            if len(kept):
                yield found


def _ids(names: Iterable[str]) -> list[str]:
    """Return the first column that names rows, if there is one."""
    return [name for name in names if name.lower() in ID_NAMES][:1]


def matrices(
    table: pyarrow.RecordBatch, names: Sequence[str], nan: str
) -> tuple[pyarrow.RecordBatch, list[np.ndarray]]:
    """Return the rows whose vectors are numbers, and their columns as matrices, which share memory where all are kept.

    Other rows are dropped, or raise an error that names them, as do lists of different lengths.
    """
    found, kept = [], np.ones(len(table), bool)
    for name in names:
        place = table.schema.names.index(name)
        # Tensors of an engine's own type are lists below.
        lists = getattr(table.column(name), "storage", table.column(name))
        part = table.set_column(place, name, lists)
        view = MemoryReader(part, Wanted(name), name)
        try:
            X = view.matrix(part, 0)
        except InvalidInputError as error:
            counted = require("pyarrow.compute", "tables", "Arrow").list_value_length(lists)
            lengths = counted.to_numpy(zero_copy_only=False)
            wrong = np.flatnonzero(np.isfinite(lengths) & (lengths != view.width))
            raise InvalidInputError(f"{error} {_told(table, wrong)}") from None
        bad = rows_with_nan(X) if X.shape[1] else np.arange(len(X))
        if len(bad) and nan == "refuse":
            raise InvalidInputError(
                f"Column {name!r} has NaN, infinity or nothing in {len(bad)} of {len(X)} vectors. {_told(table, bad)} "
                "Mend them, or leave those rows out with nan='drop'."
            )
        found.append(X)
        kept[bad] = False
    if kept.all():
        return table, found
    return table.filter(require("pyarrow", "tables", "Arrow").array(kept)), [X[kept] for X in found]


def _told(table: pyarrow.RecordBatch, rows: np.ndarray) -> str:
    """Name rows by their ids, or by their places in the batch."""
    more = ", ..." if len(rows) > SHOWN else ""
    for name in _ids(table.schema.names):
        return f"Their {name}: {', '.join(str(table.column(name)[int(i)]) for i in rows[:SHOWN])}{more}."
    return f"Their places in a batch of {len(table)}: {', '.join(map(str, rows[:SHOWN]))}{more}."


@dataclass(frozen=True)
class Coder:
    """What turns a column of vectors into a column of codes on a worker; made by `coder`.

    Attributes
    ----------
    files : mapping of str to bytes
        Of a saved model.
    wish : Wish
    stored : mapping
        The record of the fitted precision.
    vectors, nan : str
    """

    files: Mapping[str, bytes]
    wish: Wish
    stored: Mapping[str, object]
    vectors: str
    nan: str

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # what is read stays here

    @cached_property
    def encoding(self) -> Encoding:
        """The encoder with its precision, read once a worker."""
        made = _encoding(FittedEncoder.from_files(self.files, "the model"), self.wish, self.vectors)
        return made if made.in_model else replace(made, precision=read_precision(dict(self.stored)))

    @property
    def metadata(self) -> dict[str, str]:
        """What a file of these codes says about itself."""
        made = self.encoding
        return dict(code_layout(self.vectors, made.precision, made.k, (), made.facts()).metadata)

    @property
    def empty(self) -> np.ndarray:
        """Codes of no row."""
        layout = code_layout(self.vectors, self.encoding.precision, self.encoding.k, (), None)
        return np.zeros((0, layout.width), layout.dtype)

    def __call__(self, table: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Return the batch with codes in place of vectors, and other columns as they are."""
        pa = require("pyarrow", "tables", "Arrow")
        table, (X,) = matrices(table, [self.vectors], self.nan)
        codes = self.encoding(Batch(X, {}, np.arange(len(X))))[0] if len(X) else self.empty
        column = binary_array(codes) if codes.dtype == np.uint8 else list_array(codes)
        kind = pa.binary() if codes.dtype == np.uint8 else pa.list_(column.type.value_type)
        return table.set_column(table.schema.names.index(self.vectors), self.vectors, column.cast(kind))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise an error of ours from a worker as that sentence, without the stacks of engine and worker."""
    try:
        yield
    except InvalidInputError:
        raise
    except Exception as error:
        said = re.search(r"firstk\.exceptions\.\w+: (.+)", str(error))
        if said is None:
            raise
        raise InvalidInputError(said[1].strip()) from None


def fitted_on(encoder: Encoder, gather: Callable[[int | None], list[bytes]], rows: int) -> Encoder:
    """Fit an encoder on the parts that `gather` gives for so many rows; again, with larger parts, if they are short."""
    with plain_errors():
        try:
            finish(encoder, gather(rows))
        except ShortSampleError:
            finish(encoder, gather(None))
    return encoder


def coder(
    encoder: Any, columns: Iterable[str], vectors: str, wish: Wish, nan: str, sample: Iterable[pyarrow.RecordBatch]
) -> Coder:
    """Return the coder of a fitted encoder; `sample` is read where scales have to be fitted on codes."""
    Named(vectors, nan=nan).among(columns)
    with plain_errors():
        fitted = check_fitted(encoder, "transform")
        made = _encoding(fitted, wish, vectors)
        if made.to_fit:
            rows = [X for part in sample for X in matrices(part, [vectors], nan)[1] if len(X)]
            if not rows:
                raise InvalidInputError("There is no row to fit the scales of the codes on.")
            made = made.fitted(np.concatenate([made.encode(X) for X in rows]))
        return Coder(fitted.files(), wish, made.precision.record(), vectors, nan)


def _encoding(encoder: FittedEncoder, wish: Wish, vectors: str) -> Encoding:
    return encoding_of(encoder, Described("the data", encoder.p, vectors), wish)
