"""What an index of codes and one of bytes share: rows that come and go under ids, and queries in blocks on threads.

Rows are added and removed by making another store of them. They keep the order in which they were added, so a store
after adds and removals is the one built from what is left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from firstk._base.checks import bad_parameter, is_int
from firstk._base.concurrency import cores, one_blas_thread
from firstk._base.rows import as_dense, sliceable, unit_rows
from firstk.exceptions import InvalidInputError
from firstk.metrics import Calibration

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from firstk._base.array_types import MatrixLike
    from firstk.encoder import FittedEncoder

Block = TypeVar("Block")
Result = TypeVar("Result")
# Rows whose results estimates of raw cosines are learned from.
_CALIBRATED = 1000


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Neighbors of each query, nearest first, and the work they took.

    Attributes
    ----------
    ids : ndarray of int64, shape (m, n_neighbors)
    scores : ndarray of float32, shape (m, n_neighbors)
        Squared distances ("l2", smaller is nearer), dot products or cosines (larger is nearer); with
        ``calibrated=True`` estimates of the raw vectors' cosines.
    multiply_adds : ndarray of int64, shape (m,)
        Work of each query: the columns of the rows that the first stage looked at and of its cells, every coordinate
        that was compared afterwards, and the query's own norms.
    brute_force : int
        Work of one query without a funnel: rows times width.
    encoding : int
        Work of encoding one query, where the index holds an encoder and was given vectors; not part of the above,
        because a search without a funnel over codes would pay it too.
    """

    ids: np.ndarray
    scores: np.ndarray
    multiply_adds: np.ndarray
    brute_force: int
    encoding: int = 0

    @property
    def fraction(self) -> float:
        """Multiply-adds used, as a share of those of brute force."""
        return float(self.multiply_adds.mean()) / self.brute_force

    def __repr__(self) -> str:
        m, n = self.ids.shape
        return f"SearchResult({n} neighbors of {m} queries, {self.fraction:.1%} of brute force's multiply-adds)"


class RowsAndIds:
    """Columns of rows, among them their int64 "ids", which do not change while the store is read.

    Additions write past the rows of this store, into memory that the next one shares, under a lock. Only the latest
    store of that memory does so: an addition to an earlier one, such as that of a copied index, gets memory of its own.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], n: int | None = None, used: list[int] | None = None):
        self._columns, self._n = dict(columns), len(columns["ids"]) if n is None else n
        self._used = [self._n] if used is None else used  # rows of the memory that are taken, by whichever store

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column, in the order in which rows were added."""
        return self._columns[name][: self._n]

    def columns(self) -> dict[str, np.ndarray]:
        """Return all columns by name."""
        return {name: self[name] for name in self._columns}

    @property
    def nbytes(self) -> int:
        """Memory of the rows, without what is kept for rows to come."""
        return sum(column.nbytes for column in self.columns().values())

    def appended(self, added: Mapping[str, np.ndarray]) -> RowsAndIds:
        """Return a store with rows at the end; capacity doubles, so that many small additions cost what one does."""
        needed, held, used = self._n + len(added["ids"]), self._columns, self._used
        if needed > len(held["ids"]) or used[0] != self._n:
            capacity, used = max(needed, 2 * self._n), [0]
            held = {name: np.empty((capacity, *part.shape[1:]), part.dtype) for name, part in held.items()}
            for name, larger in held.items():
                larger[: self._n] = self[name]
        for name, column in held.items():
            column[self._n : needed] = added[name]
        used[0] = needed
        return RowsAndIds(held, needed, used)

    def kept(self, mask: np.ndarray) -> RowsAndIds:
        """Return a store of the rows of a mask, in their order."""
        return RowsAndIds({name: column[mask] for name, column in self.columns().items()})


@dataclass(frozen=True, eq=False)
class IndexState:
    """What an index holds at one time. Additions and removals replace it as a whole: a search reads it once."""

    store: RowsAndIds
    next_id: int

    def __len__(self) -> int:
        return len(self.store)


class RowIndex:
    """Rows under ids, which threads may add, remove and search at the same time.

    Attributes
    ----------
    calibration : Calibration or None
        What scores say of the raw vectors' cosines, once `calibrate` has learned it.
    """

    metric: str
    encoder: FittedEncoder | None
    search: Callable[..., SearchResult]

    def __init__(self, state: Any):
        self._state = state
        self.calibration: Calibration | None = None
        self._writing = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:  # a copy has a lock of its own
        return {name: part for name, part in vars(self).items() if name != "_writing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _writing=threading.Lock())

    def __len__(self) -> int:
        return len(self._state)

    @property
    def ids(self) -> np.ndarray:
        """Ids of the rows, in the order in which they were added."""
        return np.array(self._state.store["ids"])

    def calibrate(self, X: MatrixLike, queries: MatrixLike | None = None) -> None:
        """Learn what scores say of the cosines of raw vectors, for ``search(..., calibrated=True)``.

        Saved with the index. Learn it again when the store has grown much: the best of more rows have higher scores.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Vectors of the rows, in the order of `ids`. Of a memory-mapped file only what is compared is read.
        queries : array-like of shape (m, p), optional
            Queries like those to come; without them 1,000 of the rows ask for the others.
        """
        owner, ids = f"{type(self).__name__}.calibrate", self.ids
        if self.metric != "cosine" or self.encoder is None:
            raise InvalidInputError(
                f"{owner} needs an index with an encoder and metric 'cosine', whose scores estimate cosines of vectors."
            )
        X = sliceable(X)
        if X.shape[0] != len(ids):
            raise InvalidInputError(f"{owner} needs the vectors of the {len(ids):,} rows. Got {X.shape[0]:,}.")
        asked = X if queries is None else sliceable(queries)
        rows = np.unique(np.linspace(0, asked.shape[0] - 1, min(asked.shape[0], _CALIBRATED)).round().astype(int))
        Q = as_dense(asked[rows])
        found, order = self.search(Q), np.argsort(ids)
        places = order[np.searchsorted(ids, found.ids, sorter=order)]  # (m, n)
        near = unit_rows(as_dense(X[places.ravel()])).reshape(*places.shape, -1)
        raw = np.einsum("mp,mnp->mn", unit_rows(Q), near)
        others = np.full(places.shape, True) if queries is not None else places != rows[:, None]
        self.calibration = Calibration.fit(found.scores[others], raw[others])

    def _shown(self, scores: np.ndarray, calibrated: bool, owner: str) -> np.ndarray:
        """Return scores in float32, as they are or as raw cosines."""
        if calibrated and self.calibration is None:
            raise InvalidInputError(
                f"{owner} with calibrated=True needs calibrate(X) first, X the vectors of the rows."
            )
        return np.asarray(self.calibration(scores) if calibrated and self.calibration else scores, dtype=np.float32)

    def _append(
        self, ids: ArrayLike | None, count: int, owner: str, grow: Callable[[Any], tuple[dict[str, np.ndarray], Any]]
    ) -> np.ndarray:
        """Add rows and return their ids; `grow` makes their columns and the next state, but for rows, of this one."""
        with self._writing:
            old = self._state
            numbers = new_ids(ids, count, old.next_id, old.store["ids"], owner)
            columns, new = grow(old)
            store, next_id = old.store.appended(columns | {"ids": numbers}), int(numbers.max(initial=-1)) + 1
            self._state = replace(new, store=store, next_id=max(old.next_id, next_id))
        return numbers

    def remove(self, ids: ArrayLike) -> None:
        """Remove rows by id: all of them, or none if one is unknown."""
        owner = f"{type(self).__name__}.remove"
        with self._writing:
            old = self._state
            present, given = old.store["ids"], as_ids(ids, owner)
            if (unknown := np.setdiff1d(given, present)).size:
                raise InvalidInputError(
                    f"{owner} takes ids of the index; id {unknown[0]} is not in it ({unknown.size} of {len(given)} are "
                    "not). Nothing was removed."
                )
            self._state = replace(old, store=old.store.kept(~np.isin(present, given)))


def new_ids(ids: ArrayLike | None, count: int, next_id: int, present: np.ndarray, owner: str) -> np.ndarray:
    """Return one id per new row: those given, checked, or the next free numbers."""
    if ids is None:
        if next_id + count > 2**63:
            raise InvalidInputError(f"{owner} takes ids below 2^63, and the next free one is {next_id}. Give 'ids'.")
        return np.arange(count, dtype=np.int64) + np.int64(next_id)
    given = as_ids(ids, owner)
    if len(given) != count:
        raise InvalidInputError(f"{owner} needs as many ids as rows. Got {len(given)} and {count}.")
    distinct, counts = np.unique(given, return_counts=True)
    if (counts > 1).any():
        raise InvalidInputError(f"{owner} takes every id once; id {distinct[counts > 1][0]} is there several times.")
    if (known := np.intersect1d(given, present)).size:
        raise InvalidInputError(
            f"{owner} takes new ids; id {known[0]} is in the index already ({known.size} of {count} are). "
            "Remove those rows first, or leave 'ids' out."
        )
    return given


def as_ids(ids: ArrayLike, owner: str) -> np.ndarray:
    """Return a vector of int64, without rounding anything."""
    numbers = np.atleast_1d(np.asarray(ids))
    if numbers.ndim != 1 or (numbers.size and not np.issubdtype(numbers.dtype, np.integer)):
        raise InvalidInputError(f"{owner} takes ids as a list of ints. Got {numbers.dtype} of shape {numbers.shape}.")
    if numbers.size and numbers.dtype.kind == "u" and numbers.max() > np.iinfo(np.int64).max:
        raise InvalidInputError(f"{owner} takes ids below 2^63. Got {numbers.max()}.")
    return numbers.astype(np.int64)


def check_stored_ids(ids: np.ndarray, rows: int, next_id: object) -> None:
    """Raise for ids read from a file that cannot be those of so many rows."""
    if ids.shape != (rows,) or ids.dtype != np.int64 or len(np.unique(ids)) != len(ids):
        raise InvalidInputError("ids are not one distinct int64 for each row")
    if not is_int(next_id) or abs(next_id) > 2**63 or (ids.size and next_id <= int(ids.max())):
        raise InvalidInputError(f"the next id, {next_id!r:.40}, is not above all ids")


def checked_count(value: object, name: str, rows: int, owner: str) -> int:
    """Return how many rows to look for, or raise InvalidInputError."""
    if rows == 0:
        raise InvalidInputError(f"{owner} needs rows to search, and this index holds none. Add some first.")
    if not is_int(value) or not 1 <= value <= rows:
        raise bad_parameter(name, owner, f"an int in [1, {rows}] (the rows of the index)", value)
    return int(value)


def checked_threads(threads: int | None, owner: str) -> int:
    """Return the number of threads of a search: all cores, if it is not given."""
    if threads is None:
        return cores()
    if not is_int(threads) or threads < 1:
        raise bad_parameter("threads", owner, "an int of at least 1, or None for all cores", threads)
    return int(threads)


def over_blocks(work: Callable[[Block], Result], blocks: Sequence[Block], threads: int) -> list[Result]:
    """Return what `work` makes of each block, in their order."""
    if threads == 1 or len(blocks) == 1:
        return [work(block) for block in blocks]
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:  # BLAS must not start further ones
        return list(pool.map(work, blocks))


def calibration_facts(index: RowIndex) -> list[list[float]] | None:
    """Return what an index has learned of raw cosines, as JSON."""
    known = index.calibration
    return None if known is None else [known.scores.tolist(), known.raw.tolist()]


def read_calibration(facts: Mapping[str, Any]) -> Calibration | None:
    """Return what was saved of it; raise for tables that are none."""
    if facts.get("calibration") is None:
        return None
    scores, raw = np.array(facts["calibration"], dtype=np.float64)
    if not len(scores) or not np.isfinite([scores, raw]).all() or not (np.diff(scores) > 0).all():
        raise InvalidInputError("its calibration is not a table of ascending scores")
    return Calibration(scores, raw)
