"""A file of codes, checked after it was written: which of the full vectors' neighbors its rows find."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from firstk.bits.embedded import Embedded
from firstk.data.files import open_vectors
from firstk.data.files.contract import CodeRecord
from firstk.data.files.vector_table import VectorTable
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.neighbors import nearest_neighbors, neighbor_recall

# Rows that are read back, and the fewest of which neighbors are worth a number.
MOST_ROWS, FEWEST_ROWS = 2000, 50
NEIGHBORS = 10


class ReadBack(NamedTuple):
    """The share of the ten nearest neighbors that are found, and among how many rows."""

    kept: float
    rows: int


def read_back(
    encoder: FittedEncoder | None, source: str | Path, written: str | Path, *, vectors: str | None = None
) -> ReadBack | None:
    """Read the first codes of a file, and look for the neighbors that their vectors have among themselves.

    Codes are as they are stored; queries are the codes of the same rows in floating point, compared by cosine.

    Parameters
    ----------
    encoder : FittedEncoder or None
        The one that the codes are of; None for the vectors as they are.
    source, written : path
        The file of vectors, and that of their codes, in the same order.
    vectors : str, optional
        The vector column of `source`.

    Returns
    -------
    found : ReadBack or None
        None of fewer than 50 rows, of codes for another metric, and of a file from which the codes cannot be told
        without help.
    """
    table = open_vectors(source, vectors, nan="drop")
    codes = _opened(written, table.vectors)
    if codes is None:
        return None
    record = CodeRecord.read(written, codes.metadata)
    if record is not None and record.metric not in (None, "cosine"):
        return None
    X = next(iter(table.batches(MOST_ROWS, ()))).vectors
    Z = next(iter(codes.batches(MOST_ROWS, ()))).vectors
    n = min(len(X), len(Z))
    if n < FEWEST_ROWS:
        return None
    X, Z = np.asarray(X[:n], dtype=np.float32), np.asarray(Z[:n], dtype=np.float32)
    k = Z.shape[1]
    if encoder is None:
        asked = X[:, :k]
    elif record is not None and isinstance(record.precision, Embedded):
        asked = encoder.quantizer(record.precision.n_bytes).encode_query(X)
    else:
        asked = encoder.coordinates(X, k)
    truth = nearest_neighbors(X, X, NEIGHBORS, exclude_self=True)
    kept = neighbor_recall(Z, asked, truth, ks=[k], exclude_self=True)
    return ReadBack(float(kept[-1]), n)


def _opened(path: str | Path, name: str) -> VectorTable | None:
    """Open codes: their column has the name that the vectors had, where the format has names."""
    for column in (name, None):
        try:
            return open_vectors(path, column)
        except InvalidInputError:
            continue
    return None
