"""Which rows of two files embed the same text: by an id that both have, or row by row.

Vectors of two models have no coordinate in common, so rows that do not belong together raise no error by themselves.
Cosines do: pairs of texts that are alike to one model are alike to the other. Rows are refused whose cosines agree no
better than those of shuffled rows (the test of Mantel 1967).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from firstk._base.rows import unit_rows
from firstk.advice import RowsOfFile, column_of, usual
from firstk.data.files import ID_NAMES, load_columns
from firstk.exceptions import InvalidInputError
from firstk.metrics import as_text

# Rows whose cosines are compared, and shuffles that they are compared with.
_SAMPLE, _SHUFFLES = 400, 99


@dataclass(frozen=True, eq=False)
class Pairing:
    """Places of rows that belong together, and how they were found.

    Attributes
    ----------
    old, new : ndarray of int of shape (n,)
        Places among the rows that were read, old ones ascending.
    said : str
        A sentence.
    """

    old: np.ndarray
    new: np.ndarray
    said: str


def paired(old: RowsOfFile, new: RowsOfFile, ids: str | None, what: str = "rows") -> Pairing:
    """Return the rows of two files that embed the same text.

    Parameters
    ----------
    old, new : RowsOfFile
    ids : str, optional
        Column of ids of both files. Without it, a column by a usual name that both have; else rows are paired in
        their order.
    what : str
        What an error message calls the rows.
    """
    column = ids if ids is not None else next((name for name in id_columns(old) if name in id_columns(new)), None)
    if column is not None:
        known, asked = (as_text(column_of(side.table, column)[side.rows]) for side in (old, new))
        for side, names in ((old, known), (new, asked)):
            if len(set(names)) < len(names):
                twice = next(name for name, count in Counter(names).items() if count > 1)
                raise InvalidInputError(
                    f"Column {column!r} of '{side.table.path}' has {len(names) - len(set(names)):,} ids twice, such as "
                    f"{twice!r}: keep one row of each."
                )
        place = {name: i for i, name in enumerate(known)}
        rows = np.array([place.get(name, -1) for name in asked], dtype=np.int64)
        there = np.flatnonzero(rows >= 0)
        if not len(there):
            raise InvalidInputError(
                f"No id of '{new.table.path}' is in '{old.table.path}' (column {column!r}: {asked[0]!r}, ... and "
                f"{known[0]!r}, ...). Give files of the same {what}, or name another column with --id."
            )
        there = there[np.argsort(rows[there])]
        strangers = len(rows) - len(there)
        said = f"{len(there):,} {what} are paired by their {column!r}"
        said += f"; {strangers:,} of the new model are not in '{old.table.path}' and were left out" if strangers else ""
        return Pairing(rows[there], there, f"{said}.")
    counts = old.table.rows, new.table.rows
    if counts[0] != counts[1]:
        raise InvalidInputError(
            f"'{old.table.path}' has {counts[0]:,} {what} and '{new.table.path}' {counts[1]:,}, and they share no "
            "column of ids: which belong together? Give both files a column of ids, and name it with --id."
        )
    both, at_old, at_new = np.intersect1d(old.rows, new.rows, assume_unique=True, return_indices=True)
    return Pairing(at_old, at_new, f"{len(both):,} {what} are paired in the order of the files.")


def check_correspond(old: np.ndarray, new: np.ndarray, names: tuple[str, str], random_state: int = 0) -> float:
    """Return the correlation of cosines among old rows with those among new ones; unrelated rows raise.

    Parameters
    ----------
    old, new : ndarray of shape (n, p) and (n, q)
    names : (str, str)
        What the files are called.
    random_state : int
    """
    rng = np.random.default_rng(random_state)
    some = rng.permutation(len(old))[:_SAMPLE]
    A, B = (unit_rows(side[some].astype(np.float64)) for side in (old, new))
    upper = np.triu_indices(len(some), 1)
    wanted, cosines = _standard((A @ A.T)[upper]), B @ B.T
    found = float(wanted @ _standard(cosines[upper]))
    shuffles = (rng.permutation(len(some)) for _ in range(_SHUFFLES))
    chance = max(float(wanted @ _standard(cosines[np.ix_(order, order)][upper])) for order in shuffles)
    if found <= chance:
        raise InvalidInputError(
            f"The rows of '{names[0]}' and '{names[1]}' do not seem to embed the same texts: cosines among "
            f"{len(some):,} of them correlate by {found:.3f}, and after shuffling by up to {chance:.3f}. Bring them "
            "into the same order, or give both a column of ids and name it with --id."
        )
    return found


def _standard(values: np.ndarray) -> np.ndarray:
    """Return values with mean 0 and norm 1, so that products are correlations; constant ones become 0."""
    values = values - values.mean()
    size = np.linalg.norm(values)
    return values / size if size > 1e-9 * np.sqrt(len(values)) else np.zeros_like(values)


def id_columns(side: RowsOfFile) -> list[str]:
    """Return the columns of a file that name rows, by their usual names."""
    return [
        name for name in load_columns(side.table.path) if usual(name) in ID_NAMES and name not in side.table.members
    ]
