"""Batches of a stream, checked and named as an objective takes them.

Streams, dask partitions and the workers of other engines all hand over batches. They are checked here, where they are
read, so that a bad one raises an error before anything is merged.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from firstk._base.checks import check_weights
from firstk._base.rows import Rows, half_as_single, is_sparse, sliceable
from firstk.data.files.opening import rows_of
from firstk.exceptions import InvalidInputError
from firstk.moments.pairs import check_pairs
from firstk.moments.statistics import Statistics
from firstk.moments.targets import check_target

if TYPE_CHECKING:
    from firstk.contracts import Objective

ROWS, PAIRS = ("X", "y", "weight"), ("left", "right", "scores")


def checked(objective: Objective, batch: object) -> dict[str, Any] | None:
    """Return a batch as the objective takes it; None where it has no rows, or all of them have weight zero.

    Parameters
    ----------
    objective : Objective
    batch : array, tuple or mapping
        Rows X; or (X, y), or (X, y, weight), or a mapping of those names; or, for pairs, (left, right),
        (left, right, scores), or a mapping.
    """
    pairs = objective.supervision == "pairs"
    columns = named(batch, PAIRS if pairs else ROWS)
    if pairs:
        left, right = (as_rows(columns[side]) for side in ("left", "right"))
        if not left.shape[0] and not right.shape[0]:
            return None
        left, right, scores = check_pairs(left, right, columns.get("scores"), "Fitting pairs")
        return {"left": left, "right": right, "scores": scores}
    X, y, weight = as_rows(columns["X"]), columns.get("y"), columns.get("weight")
    n = X.shape[0]
    if not n or (weight is not None and len(weight) == n and not np.any(weight)):
        return None
    rows = {"X": X, "weight": check_weights(weight, n, "Fitting")}
    if objective.supervision != "rows":
        rows["y"] = check_target(y, objective, n)
    return rows


def named(batch: object, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return a batch as a mapping from names to columns."""
    if isinstance(batch, Mapping):
        if not set(names[:1]) <= set(batch) <= set(names):
            raise InvalidInputError(f"A batch has {', '.join(map(repr, names))}. Got {', '.join(map(repr, batch))}.")
        return batch
    parts = batch if isinstance(batch, tuple) else (batch,)
    least = 2 if names is PAIRS else 1
    if not least <= len(parts) <= len(names):
        raise InvalidInputError(f"A batch is a tuple of {', '.join(names)}. Got {len(parts)} parts.")
    return dict(zip(names, parts, strict=False))


def as_rows(part: Rows) -> np.ndarray | sparse.csr_matrix:
    """Return vectors as a matrix of float32 or float64, or a sparse one; half precision as single."""
    found = rows_of(part)
    rows = sliceable(part if found is None else found[0])
    if is_sparse(rows):
        return rows
    rows = half_as_single(rows)
    if rows.ndim != 2:
        raise InvalidInputError(f"A batch holds two-dimensional rows. Got shape {rows.shape}.")
    try:
        return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"Rows are numbers; these hold something else ({error}).") from None


def merged(parts: list[Statistics | None]) -> Statistics | None:
    """Return the statistics of all parts, in their order; the parts stay as they are."""
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    whole = copy.deepcopy(found[0])
    for part in found[1:]:
        if part.n_features != whole.n_features:
            raise InvalidInputError(f"Vectors have one width. Got {whole.n_features} and {part.n_features} numbers.")
        whole = whole.merge(part)
    return whole
