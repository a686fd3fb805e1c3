"""Embedded data sets written to files of vectors, for examples and tutorials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firstk._base.checks import check_choice
from firstk.data.embedded import load_banking, load_digits
from firstk.data.files import write_vectors
from firstk.data.files.vector_columns import PLAIN_NAME
from firstk.data.files.vector_table import format_of
from firstk.data.files.write import fitting_columns


class Sample(NamedTuple):
    """An embedded set as a table: how it is read, the name of its vectors, and its other columns."""

    load: Callable[[], Any]
    vectors: str
    columns: Callable[[Any], Mapping[str, np.ndarray]]


SAMPLES: dict[str, Sample] = {
    "banking": Sample(
        load_banking,
        "embedding",
        lambda data: {
            "id": np.array(data.ids_train + data.ids_test),
            "text": np.array(data.texts_train + data.texts_test),
            "intent": np.array(data.class_names)[data.y],
        },
    ),
    "digits": Sample(load_digits, "pixels", lambda data: {"label": data.y}),
}


def write_sample(name: str, path: Any, part: str | None = None) -> dict[str, Any]:
    """Write an embedded data set to a file, and return a description of the file.

    Parameters
    ----------
    name : {"banking", "digits"}
    path : path
        The extension selects the format.
    part : {"train", "test"}, optional
        Only these rows; otherwise all, with a column `part`.

    Examples
    --------
    >>> import tempfile
    >>> write_sample("digits", tempfile.mkdtemp() + "/digits.npz")["rows"]
    1797
    """
    sample = SAMPLES[check_choice(name, SAMPLES, "name", "write_sample")]
    if part is not None:
        check_choice(part, ("train", "test"), "part", "write_sample")
    data, form = sample.load(), format_of(path)
    parts = np.repeat(["train", "test"], [len(data.y_train), len(data.y_test)])
    rows = parts == part if part else np.ones(len(parts), bool)
    held = {key: column[rows] for key, column in {**sample.columns(data), "part": parts}.items()}
    names = fitting_columns(form, list(held), held)
    X, written = data.X[rows], PLAIN_NAME if form.holds == "nothing" else sample.vectors
    write_vectors(Path(path), X, {key: held[key] for key in names}, name=written)
    return {"path": str(path), "rows": len(X), "width": X.shape[1], "vectors": written, "columns": list(names)}
