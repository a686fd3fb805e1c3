"""Write vectors to a file: whole, or not at all.

Rows go to a draft beside the target, which takes the target's name when everything has been written. A draft that a
killed process left behind is removed by the next one that writes the same file.
"""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from firstk._checks import InvalidInput, check_same_length
from firstk.data.files.choosing import PLAIN_NAME
from firstk.data.files.contract import Format, Layout, Writer
from firstk.data.files.formats import format_of

_DRAFT = ".partial"


def write_vectors(
    path: Any,
    vectors: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    name: str = PLAIN_NAME,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write a matrix and the columns beside it to a file, whole or not at all.

    Parameters
    ----------
    path : path
        Its ending is the format: npy, npz, parquet, arrow (also feather), csv, tsv, safetensors.
    vectors : array of shape (n, p)
        Written as it is typed: float16, float32 or float64, or whole numbers.
    columns : mapping of str to array of n entries, optional
    name : str
        Of the vector column.
    metadata : mapping of str to str, optional
        Facts that travel in the file.
    """
    vectors, columns = np.asarray(vectors), dict(columns or {})
    if vectors.ndim != 2 or 0 in vectors.shape or vectors.dtype.kind not in "fiu":
        raise InvalidInput(f"write_vectors takes a matrix of numbers. Got {vectors.dtype} of shape {vectors.shape}.")
    for key, column in columns.items():
        check_same_length(vectors, column, "vectors", key, "write_vectors")
    layout = Layout(name, vectors.shape[1], vectors.dtype, tuple(columns), dict(metadata or {}))
    with creating(path, layout) as writer:
        writer.write(vectors, {key: np.asarray(column) for key, column in columns.items()})
    return Path(path)


@contextmanager
def creating(path: Any, layout: Layout) -> Iterator[Writer]:
    """Give a writer, and put the file in place when the block ends well; otherwise leave nothing."""
    target, form = Path(path).expanduser(), format_of(path)
    check_columns(form, target, layout)
    sweep(target)
    draft = target.with_name(f".{target.name}.{platform.node()}-{os.getpid()}{_DRAFT}")
    writer: Writer | None = None
    done = False
    try:
        with saying(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            writer = form.create(draft, layout)
            yield writer
            writer.close()
            os.replace(draft, target)
            done = True
    finally:
        if not done:
            if writer is not None:
                writer.abandon()
            with suppress(OSError):
                draft.unlink()


def check_columns(form: Format, path: Any, layout: Layout) -> None:
    """Refuse names that clash, and columns that the format has no room for."""
    if layout.vectors in layout.columns:
        raise InvalidInput(f"'{path}' cannot hold two columns called {layout.vectors!r}. Rename one.")
    if form.holds == "nothing" and layout.columns:
        names = ", ".join(map(repr, layout.columns))
        raise InvalidInput(
            f"An {form.name} file holds vectors only, and there are other columns: {names}. Leave them out, or write "
            "parquet, arrow, csv or npz."
        )


@contextmanager
def saying(target: Path) -> Iterator[None]:
    """Turn a full disk, a missing permission and the like into a sentence."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "there is no space left on the device" if full else (error.strerror or str(error)).rstrip(".")
        raise InvalidInput(f"Could not write '{target}': {why}. Nothing was left half-written.") from None


def sweep(target: Path) -> None:
    """Remove drafts of `target` whose process is gone."""
    with suppress(OSError):
        for draft in target.parent.glob(f".{target.name}.{platform.node()}-*{_DRAFT}*"):
            number = draft.name.rpartition(f"{platform.node()}-")[2].partition(_DRAFT)[0]
            if number.isdecimal() and not _alive(int(number)):
                draft.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def fitting_columns(form: Format, columns: Sequence[str], sample: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that a format can hold, judged by a sample of each."""
    if form.holds == "anything":
        return tuple(columns)
    kinds = {"nothing": "", "numbers": "fiub", "arrays": "fiubUSmM"}[form.holds]
    return tuple(name for name in columns if np.asarray(sample[name]).dtype.kind in kinds)
