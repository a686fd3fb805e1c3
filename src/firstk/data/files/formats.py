"""The formats that are known, found by the ending of a name."""

from __future__ import annotations

from pathlib import Path

from firstk.data.files import arrow, npy, npz, parquet, tensors, text
from firstk.data.files.contract import Format
from firstk.exceptions import InvalidInputError

FORMATS: tuple[Format, ...] = (
    npy.FORMAT,
    npz.FORMAT,
    parquet.FORMAT,
    arrow.FORMAT,
    text.COMMAS,
    text.TABS,
    tensors.FORMAT,
)


def format_of(path: str | Path) -> Format:
    """Return the format of a file by its ending.

    Examples
    --------
    >>> format_of("vectors.feather").name
    'arrow'
    """
    ending = Path(path).suffix.lower()
    for form in FORMATS:
        if ending in form.endings:
            return form
    known = ", ".join(ending for form in FORMATS for ending in form.endings)
    raise InvalidInputError(f"The format of '{path}' is not known: its name must end in one of {known}.")
