"""Dask collections: statistics per partition, merged in a tree, on any scheduler from threads to a cluster.

Only the merged statistics are sent to the client: moments, and a bounded sample of rows.
The tree depends only on the number of partitions, so the result is bitwise identical for any assignment of work to
workers, also if a worker is lost and its partitions are computed again. Needs the extra "dask".
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.checks import check_prefix, require
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.problem import Problem
from firstk.exceptions import FirstkError, InvalidInputError
from firstk.moments.cross import CrossMoments
from firstk.moments.statistics import Statistics
from firstk.moments.stream import Accumulated, Chunks, HoldOut, accumulate, as_rows, merged

if TYPE_CHECKING:
    import pandas as pd
    from dask.array import Array
    from dask.bag import Bag
    from dask.dataframe import DataFrame, Series
    from numpy.typing import ArrayLike, DTypeLike

Collection: TypeAlias = "Array | DataFrame | Series | Bag"

# Number of statistics merged by one task.
_FAN = 8


def accumulate_collections(problem: Problem, columns: Mapping[str, Collection | ArrayLike | None]) -> Statistics:
    """Return the statistics of dask collections.

    Parameters
    ----------
    problem : Problem
    columns : mapping
        "X" with "y" or "weight", or "left", "right" and "scores": arrays, data frames or series of dask, partitioned
        alike along rows, or None. Or "X" alone: a bag of batches, as in
        :func:`firstk.moments.stream.checked`.
    """
    problem.check_streamable("dask data")
    quiet = replace(problem, verbose=False)  # workers show no progress bar
    found: Statistics | None = _reduced(columns, _leaf, merged, quiet)
    if found is None:
        raise InvalidInputError("The dask data have no row to fit on.")
    return found


def accumulate_paired(
    old: Collection, new: Collection | ArrayLike, sample_weight: Collection | ArrayLike | None, owner: str
) -> CrossMoments:
    """Return the moments of pairs of vectors of two models, of dask arrays or data frames partitioned alike."""
    if _is_bag(old) or _is_bag(new):
        raise InvalidInputError(
            f"{owner} takes dask arrays and data frames. Of a bag, call partial_fit on its batches."
        )
    columns = {"old": old, "new": new, "weight": sample_weight}
    found: CrossMoments | None = _reduced(columns, _paired_leaf, _paired_joined, owner)
    if found is None or not found.rows:
        raise InvalidInputError("The dask data have no row to fit on.")
    return found


def gather(problem: Problem, chunks: Chunks, parts: HoldOut) -> Accumulated:
    """Accumulate a stream of files on workers, one file per task.

    Equivalent to :func:`firstk.moments.stream.accumulate`, on the cluster of the current client.
    """
    dask = require("dask", "dask", "Fitting on a dask cluster")
    if chunks.files is None:
        raise InvalidInputError(
            "A dask cluster reads rows from files only. Fit pairs, and rows in memory, without a cluster."
        )
    read, quiet = dask.delayed(_read, pure=False), replace(problem, verbose=False)
    found: Accumulated = _tree([read(quiet, own, parts, first) for first, own in chunks.files()], _joined)
    return found


def _reduced(
    columns: Mapping[str, Collection | ArrayLike | None],
    leaf: Callable[[int, Any, Any], Any],
    join: Callable[[list[Any]], Any],
    setting: object,
) -> Any:
    """Return what is left after `leaf` on each partition and `join` on groups of them; None where there are none."""
    measured = require("dask", "dask", "Fitting on dask data").delayed(leaf, pure=False)
    given = {name: part for name, part in columns.items() if part is not None}
    return _tree([measured(i, batch, setting) for i, batch in enumerate(_batches(given))], join)


def _tree(parts: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Merge delayed parts on workers, in order, some at a time; None where there are none."""
    joined = require("dask", "dask", "Fitting on dask data").delayed(join, pure=False)
    while len(parts) > 1:
        parts = [joined(parts[i : i + _FAN]) for i in range(0, len(parts), _FAN)]
    return parts[0].compute() if parts else None


@contextmanager
def _in_partition(number: int) -> Iterator[None]:
    """Raise errors with the number of the partition; new ones with the message only, because they are pickled."""
    try:
        yield
    except FirstkError as error:
        raise InvalidInputError(f"In partition {number}: {error}") from None


def _leaf(partition: int, batches: object, problem: Problem) -> Statistics | None:
    """Accumulate a partition on a worker: one batch, or the items of a bag."""
    with _in_partition(partition):
        return merged([problem.statistics_of(batch) for batch in (batches if isinstance(batches, list) else [batches])])


def _paired_leaf(partition: int, batch: Mapping[str, Any], owner: str) -> CrossMoments:
    """Accumulate the pairs of a partition on a worker."""
    old, new, weight = (batch.get(name) for name in ("old", "new", "weight"))
    if not len(old) and not len(new):  # type: ignore[arg-type]
        return CrossMoments()
    with _in_partition(partition):
        weight = None if weight is None else np.asarray(weight).ravel()
        return CrossMoments.sampled(as_rows(old), as_rows(new), weight, owner)


def _paired_joined(parts: list[CrossMoments]) -> CrossMoments:
    """Merge the moments of several partitions, in order, without modifying them."""
    whole = CrossMoments()
    for part in parts:
        whole.merge(part)
    return whole


def _read(problem: Problem, chunks: Chunks, parts: HoldOut, first: int) -> Accumulated:
    return accumulate(problem.statistics_of, chunks, parts, workers=1, first=first)


def _joined(parts: list[Accumulated]) -> Accumulated:
    """Merge the results of several files, in order, without modifying them."""
    whole: Accumulated[Statistics] = Accumulated()
    for part in copy.deepcopy(parts):
        whole.take(part)
    return whole


# -- partitions ------------------------------------------------------------------------------------------------


def _batches(given: Mapping[str, Any]) -> list[Any]:
    """Return, for each partition, the delayed objects of a batch."""
    first = next(iter(given.values()))
    if _is_bag(first):
        if len(given) > 1:
            raise InvalidInputError("A bag holds whole batches: put labels and weights into them, as (X, y, weight).")
        return list(first.to_delayed())
    rows = _whole_rows(first)
    aligned = {name: part if part is first else _aligned(rows, part, name) for name, part in given.items()}
    aligned[next(iter(given))] = rows
    lists = _partitions(aligned)
    counts = {name: len(parts) for name, parts in lists.items()}
    if len(set(counts.values())) > 1:
        told = " and ".join(f"{count} of '{name}'" for name, count in counts.items())
        raise InvalidInputError(f"The numbers of partitions must be equal. Got {told}: repartition one of them.")
    return [dict(zip(lists, parts, strict=True)) for parts in zip(*lists.values(), strict=True)]


def _is_bag(part: object) -> bool:
    return hasattr(type(part), "to_delayed") and not hasattr(type(part), "ndim")


def _is_array(part: object) -> TypeGuard[Array]:
    return hasattr(type(part), "rechunk")


def _whole_rows(X: Collection) -> Collection:
    """Return a collection whose partitions hold whole rows; data frames always do."""
    if not hasattr(type(X), "to_delayed"):
        raise InvalidInputError(
            f"Dask data must be an array, a data frame or a bag of batches. Got a {type(X).__name__}: see "
            "dask.array.from_delayed."
        )
    if not _is_array(X):
        return X
    if X.ndim != 2:
        raise InvalidInputError(f"A dask array of rows must be two-dimensional. Got {X.ndim} dimensions.")
    return X.rechunk({1: -1})


def _aligned(X: Collection, given: Collection | ArrayLike, name: str) -> Collection:
    """Return labels, weights or the other side of pairs, with the partitions of X."""
    arrays = require("dask.array", "dask", "Fitting on dask data")
    part: Any = given if hasattr(given, "__dask_graph__") else arrays.from_array(np.asarray(given), chunks=-1)
    if _is_array(part) and part.ndim == 2:
        part = _whole_rows(part)
    if not _is_array(X) or not _is_array(part) or X.chunks[0] == part.chunks[0]:
        return part
    if not np.isnan(X.chunks[0] + part.chunks[0]).any():
        if X.shape[0] != part.shape[0]:
            raise InvalidInputError(
                f"Fitting needs as many rows in 'X' as in '{name}'. Got {X.shape[0]} and {part.shape[0]}."
            )
        return part.rechunk({0: X.chunks[0]})
    return part


def _partitions(columns: Mapping[str, Collection]) -> dict[str, list[Any]]:
    """Return the partitions of collections. Arrays are optimized together, so that shared inputs are read once."""
    arrays = {name: part for name, part in columns.items() if _is_array(part)}
    shared = require("dask", "dask", "Fitting on dask data").optimize(*arrays.values())
    lists = {
        name: part.to_delayed(optimize_graph=False).ravel().tolist() for name, part in zip(arrays, shared, strict=True)
    }
    return {name: lists[name] if name in lists else part.to_delayed() for name, part in columns.items()}


# -- for the estimator --------------------------------------------------------------------------------------


def like(X: Collection, width: int) -> np.ndarray | pd.DataFrame:
    """Return an empty array or frame with the width of X and, if its columns are coordinates, their names."""
    meta: Any = getattr(X, "_meta", None)
    if hasattr(meta, "columns") and len(meta.columns) == width and all(kind.kind in "fiub" for kind in meta.dtypes):
        return meta
    return np.empty((0, X.shape[1] if _is_array(X) else width))


def encode(encoder: FittedEncoder, X: Collection, k: int | None, side: str, owner: str) -> Array:
    """Return the codes of a dask array or data frame as a lazy dask array with the partitions of X."""
    dask = require("dask", "dask", "Encoding dask data")
    arrays = require("dask.array", "dask", "Encoding dask data")
    width = check_prefix(k, encoder.d, owner)
    if _is_bag(X):
        raise InvalidInputError(f"{owner} takes dask arrays and data frames. For a bag: bag.map(encoder.transform).")
    rows = _whole_rows(X)
    counts = rows.chunks[0] if _is_array(rows) else (np.nan,) * rows.npartitions
    dtype = np.float32 if getattr(rows, "dtype", None) in (np.float16, np.float32) else np.float64
    # Workers need no rows of the fit.
    work, shared = dask.delayed(_encoded, pure=True), dask.delayed(replace(encoder, sample=None), pure=True)
    parts = _partitions({"X": rows})["X"]
    codes = [work(shared, part, width, side, owner, i, dtype) for i, part in enumerate(parts)]
    blocks = [arrays.from_delayed(code, (n, width), dtype) for code, n in zip(codes, counts, strict=True)]
    return arrays.concatenate(blocks, allow_unknown_chunksizes=True)


def _encoded(
    encoder: FittedEncoder, part: MatrixLike, k: int, side: str, owner: str, partition: int, dtype: DTypeLike
) -> np.ndarray:
    """Encode a partition on a worker."""
    X = as_rows(part)
    if not X.shape[0]:
        return np.empty((0, k), dtype)
    with _in_partition(partition):
        return np.asarray(encoder.encode(X, k, side=side, owner=owner), dtype=dtype)
