"""Atomic writes of files of vectors: one matrix at once, or batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_no_nul, check_same_length
from firstk.data.files.contract import Format, Layout, Writer, exactly
from firstk.data.files.vector_columns import PLAIN_NAME
from firstk.data.files.vector_table import format_of
from firstk.data.remote import RemotePath, place_of, written
from firstk.exceptions import InvalidInputError


def write_vectors(
    path: str | Path,
    vectors: ArrayLike,
    columns: Mapping[str, np.ndarray | Sequence[object]] | None = None,
    *,
    name: str = PLAIN_NAME,
    metadata: Mapping[str, str] | None = None,
) -> Path | RemotePath:
    """Write a matrix and other columns to a file, in one atomic step.

    Parameters
    ----------
    path : path
        Its ending is the format: npy, npz, parquet, arrow (also feather), csv, tsv, jsonl (these three also in gzip:
        ``.csv.gz``), safetensors.
    vectors : array of shape (n, p)
        Written as it is typed: float16, float32 or float64, or whole numbers.
    columns : mapping of str to array of n entries, optional
    name : str
        Of the vector column.
    metadata : mapping of str to str, optional
        Facts that are stored in the file.
    """
    vectors, columns = np.asarray(vectors), dict(columns or {})
    if vectors.ndim != 2 or 0 in vectors.shape or vectors.dtype.kind not in "fiu":
        raise InvalidInputError(
            f"write_vectors takes a matrix of numbers. Got {vectors.dtype} of shape {vectors.shape}."
        )
    for key, column in columns.items():
        check_same_length(vectors, column, "vectors", key, "write_vectors")
        if not isinstance(column, np.ndarray):
            check_no_nul(column, "write_vectors")
    layout = Layout(name, vectors.shape[1], vectors.dtype, tuple(columns), dict(metadata or {}))
    with creating(path, layout) as writer:
        writer.write(vectors, {key: np.asarray(column) for key, column in columns.items()})
    return place_of(path)


@contextmanager
def creating(path: str | Path, layout: Layout) -> Iterator[Writer]:
    """Give a writer, and put the file in place when the block ends well; otherwise leave nothing."""
    target, form = place_of(path), format_of(path)
    check_columns(form, target, layout)
    assert form.create is not None
    with written(target, f"A store of format {form.name}") as temporary:
        writer = form.create(temporary, layout)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise


def check_columns(form: Format, path: object, layout: Layout) -> None:
    """Raise InvalidInputError for names that clash, and for columns that the format cannot store."""
    if layout.vectors in layout.columns:
        raise InvalidInputError(f"'{path}' cannot hold two columns called {layout.vectors!r}. Rename one.")
    if layout.metadata and not form.notes:
        raise InvalidInputError(f"{form.name} cannot store metadata; use parquet, arrow, npz or safetensors.")
    if form.holds == "nothing" and layout.columns:
        names = ", ".join(map(repr, layout.columns))
        raise InvalidInputError(
            f"A file of format {form.name} holds vectors only, and there are others: {names}. Leave them out, or "
            "write parquet, arrow, csv or npz."
        )


def fitting_columns(form: Format, columns: Sequence[str], sample: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Return the columns that a format can hold, by a sample of each."""
    if form.holds == "anything":
        return tuple(columns)
    kinds = {"nothing": "", "numbers": "fiub", "arrays": "fiubUSmM"}[form.holds]
    return tuple(name for name in columns if exactly(sample, name).dtype.kind in kinds)
