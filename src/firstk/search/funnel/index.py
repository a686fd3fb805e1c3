"""FunnelIndex: an index with a schedule that is chosen for a recall; SearchResult: what a search returns.

It adds, removes, searches, saves and loads; how a block of queries is searched is in `block_search`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_fraction, check_verbose, is_int, require
from firstk._base.concurrency import cores, one_blas_thread
from firstk._base.progress import Verbose, showing
from firstk.data import CodeStamp
from firstk.encoder import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.search.funnel.block_search import FunnelArrays, centre_of, prefixes_of, search_block
from firstk.search.funnel.cells import cells_of
from firstk.search.funnel.schedule import Schedule, check_request, check_schedule, given_schedule
from firstk.search.funnel.schedule_choice import Chosen, choose_schedule
from firstk.search.index_file import fitting_parts, pack_encoder, read_index, unpack_encoder, write_index
from firstk.search.rows_and_ids import METRICS, RowsAndIds, WriteLock, as_codes, check_stored, known_ids, new_ids

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import nn

    from firstk import PrefixEncoder
    from firstk._base.array_types import MatrixLike

Block = TypeVar("Block")
Result = TypeVar("Result")
_ENGINES = ("auto", "faiss", "numpy")
# Rows from which faiss is worth loading.
_LARGE = 10_000
# Queries that are searched together: in cells, and among all rows, as many as a number of pairs allows.
_IN_CELLS, _TOGETHER, _PAIRS = 256, 64, 1 << 23


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Neighbors of each query, nearest first, and the work they took.

    Attributes
    ----------
    ids : ndarray of int64, shape (m, n_neighbors)
    scores : ndarray of float32, shape (m, n_neighbors)
        Squared distances ("l2", smaller is nearer), dot products or cosines (larger is nearer).
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


@dataclass(frozen=True, eq=False)
class _FunnelState:
    """What an index holds at one time. Additions and removals replace it as a whole: a search reads it once.

    Attributes
    ----------
    store : RowsAndIds
    next_id : int
    chosen : Chosen
        The schedule, and the cells of the rows.
    centre : ndarray of float32, shape (d,)
    arrays : list of FunnelArrays
        Empty until the first search.
    """

    store: RowsAndIds
    next_id: int
    chosen: Chosen
    centre: np.ndarray
    arrays: list[FunnelArrays] = field(default_factory=list, init=False)

    def __len__(self) -> int:
        return len(self.store)


class FunnelIndex:
    """Nearest neighbors by a funnel over prefixes; `FunnelIndex.fit` builds one.

    Rows are kept as float32 codes whose first coordinates say most, such as those of a `PrefixEncoder`. A search
    compares a short prefix, of all rows or of those in the cells nearest to the query, keeps a shortlist, and compares
    longer prefixes of that alone. Scores are computed from all coordinates, in float64. Threads may add, remove and
    search at the same time: a search sees the rows of the moment when it began.

    Attributes
    ----------
    schedule : Schedule
        Prefixes and shortlist sizes, and the recall they were chosen for.
    metric : {"l2", "inner_product", "cosine"}
    engine : {"auto", "faiss", "numpy"}
    encoder : FittedEncoder or None
        Where there is one, the index takes vectors; otherwise codes.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.default_rng(0).normal(size=(2000, 32)) * 0.8 ** np.arange(32)
    >>> index = FunnelIndex.fit(Z, recall=0.99)
    >>> found = index.search(Z[:3], 2)
    >>> found.ids[:, 0].tolist(), bool(found.fraction < 0.5)
    ([0, 1, 2], True)
    """

    def __init__(
        self,
        store: RowsAndIds,
        chosen: Chosen,
        centre: np.ndarray,
        *,
        metric: str = "l2",
        engine: str = "auto",
        encoder: FittedEncoder | None = None,
        next_id: int = 0,
        stamp: CodeStamp | None = None,
    ):
        self.metric, self.engine, self.encoder = metric, engine, encoder
        self.stamp = stamp if encoder is None else encoder.stamp()
        self._state = _FunnelState(store, next_id, chosen, centre)
        self._writing = WriteLock()

    # -- building ------------------------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        Z: MatrixLike,
        *,
        recall: float = 0.99,
        n_neighbors: int = 10,
        metric: str = "l2",
        schedule: Iterable[tuple[int, int]] | None = None,
        ids: ArrayLike | None = None,
        encoder: PrefixEncoder | FittedEncoder | None = None,
        stamp: CodeStamp | None = None,
        engine: str = "auto",
        random_state: int = 0,
        verbose: Verbose = "auto",
    ) -> FunnelIndex:
        """Build an index, with the cheapest schedule that reaches a recall on rows sampled from `Z`.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Codes of the rows; with `encoder`, vectors to encode.
        recall : float in (0, 1]
            Share of the true nearest neighbors that a search should find, on queries that are like the rows. It
            holds on the sampled rows with a margin of 2.3 standard errors; it is not a guarantee. For one,
            search with ``exact=True``.
        n_neighbors : int
            The largest number of neighbors that will be asked for.
        metric : {"l2", "inner_product", "cosine"}
            Cosines are those of the whole codes: rows and queries are scaled to unit norm.
        schedule : iterable of (k, size), optional
            Stages by hand; no recall is then measured.
        ids : array-like of int, optional
            One for each row; 0 to n - 1 if not given.
        encoder : PrefixEncoder or FittedEncoder, optional
            Encodes rows as documents here and in `add`, and queries as queries in `search`; saved with the index.
        stamp : CodeStamp, optional
            Who made the codes, where `Z` are codes: ``encoder.stamp(k)``, or of a file
            ``open_codes(path).record.stamp``; saved with the index. `add` and `search` compare theirs with it.
        engine : {"auto", "faiss", "numpy"}
            What makes shortlists. "faiss" looks into cells, if there are many rows and few cells are enough for the
            recall; "auto" takes it from 10,000 rows on where it is installed.
        random_state : int
            Seed of the sample.
        verbose : bool or "auto"
            Show progress; "auto": of what takes long, on a terminal or in a notebook.
        """
        owner = "FunnelIndex.fit"
        if stamp is not None and encoder is not None:
            raise InvalidInputError(f"{owner} takes 'stamp' with codes, and 'encoder' with vectors. Leave one out.")
        check_choice(metric, METRICS, "metric", owner)
        check_choice(engine, _ENGINES, "engine", owner)
        recall = check_fraction(recall, "recall", owner, open_left=True)
        fitted = getattr(encoder, "encoder_", encoder)
        if fitted is not None and not isinstance(fitted, FittedEncoder):
            raise bad_parameter("encoder", owner, "a fitted PrefixEncoder, a FittedEncoder or None", encoder)
        check_verbose(verbose, owner)
        with showing(verbose):
            codes = as_codes(_encoded(Z, fitted, "document", owner), metric, owner, "Z")
        n, d = codes.shape
        if not is_int(n_neighbors) or not 1 <= n_neighbors <= n:
            raise bad_parameter("n_neighbors", owner, f"an int in [1, {n}] (the rows)", n_neighbors)
        numbers = new_ids(ids, n, 0, np.empty(0, np.int64), owner)
        euclidean = metric != "inner_product"
        centre = centre_of(codes, euclidean)
        if schedule is not None:
            chosen = Chosen(given_schedule(schedule, d, n, n_neighbors))
        else:
            with showing(verbose):
                faiss = _takes_faiss(engine, n)
                chosen = choose_schedule(codes, centre, euclidean, recall, n_neighbors, random_state, faiss)
        # A copy: the index must not change when the caller's array does.
        store = RowsAndIds(codes.copy() if np.shares_memory(codes, Z) else codes, numbers)
        last = int(numbers.max()) + 1
        return cls(store, chosen, centre, metric=metric, engine=engine, encoder=fitted, next_id=last, stamp=stamp)

    def replan(
        self,
        *,
        recall: float | None = None,
        n_neighbors: int | None = None,
        random_state: int = 0,
        verbose: Verbose = "auto",
    ) -> Schedule:
        """Choose the schedule again from the rows in the index, and return it.

        For another recall or more neighbors, or when rows were added that differ from those it was chosen on.
        """
        owner = "FunnelIndex.replan"
        with showing(check_verbose(verbose, owner)), self._writing:
            now, codes = self._state, self._state.store.rows
            if len(now) == 0:
                raise InvalidInputError(f"{owner} needs rows, and this index holds none. Add some first.")
            recall = self.schedule.recall or 0.99 if recall is None else recall
            recall = check_fraction(recall, "recall", owner, open_left=True)
            n = min(self.schedule.n_neighbors, len(now)) if n_neighbors is None else n_neighbors
            if not is_int(n) or not 1 <= n <= len(now):
                raise bad_parameter("n_neighbors", owner, f"an int in [1, {len(now)}] (the rows)", n)
            centre, faiss = centre_of(codes, self._euclidean), _takes_faiss(self.engine, len(now))
            chosen = choose_schedule(codes, centre, self._euclidean, recall, int(n), random_state, faiss)
            self._state = replace(now, chosen=chosen, centre=centre)
        return chosen.schedule

    def add(self, Z: MatrixLike, ids: ArrayLike | None = None, *, stamp: CodeStamp | None = None) -> np.ndarray:
        """Add rows and return their ids; the shares of the schedule stay, so shortlists grow with the store.

        `stamp` is that of the codes, where it is known: codes of another encoder raise an error.
        """
        owner = "FunnelIndex.add"
        self._check_stamp(stamp, "these rows")
        codes = as_codes(_encoded(Z, self.encoder, "document", owner), self.metric, owner, "Z", self.d)
        with self._writing:
            old = self._state
            numbers = new_ids(ids, len(codes), old.next_id, old.store.ids, owner)
            next_id = max(old.next_id, int(numbers.max()) + 1)
            chosen = old.chosen
            if chosen.centroids is not None and chosen.cells is not None:
                parts = prefixes_of(codes, old.centre, chosen.schedule.stages[0].k, self._euclidean)
                chosen = replace(chosen, cells=np.concatenate([chosen.cells, cells_of(parts, chosen.centroids)]))
            self._state = _FunnelState(old.store.appended(codes, numbers), next_id, chosen, old.centre)
        return numbers

    def remove(self, ids: ArrayLike) -> None:
        """Remove rows by id: all of them, or none if one is unknown."""
        with self._writing:
            old = self._state
            kept = ~np.isin(old.store.ids, known_ids(ids, old.store.ids, "FunnelIndex.remove"))
            cells = None if old.chosen.cells is None else old.chosen.cells[kept]
            self._state = replace(old, store=old.store.kept(kept), chosen=replace(old.chosen, cells=cells))

    # -- use -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._state)

    def __repr__(self) -> str:
        return f"FunnelIndex({len(self)} rows of {self.d}, {self.metric}: {self.schedule})"

    @property
    def schedule(self) -> Schedule:
        """Prefixes and shortlist sizes, and the recall they were chosen for."""
        return self._state.chosen.schedule

    @property
    def d(self) -> int:
        """Width of the codes."""
        return self._state.store.d

    @property
    def codes(self) -> np.ndarray:
        """The codes of the rows, in the order of `ids`; not to be written to."""
        rows = self._state.store.rows.view()
        rows.flags.writeable = False
        return rows

    @property
    def ids(self) -> np.ndarray:
        """Ids of the rows, in the order in which they were added."""
        return self._state.store.ids.copy()

    @property
    def _euclidean(self) -> bool:
        return self.metric != "inner_product"

    @property
    def nbytes(self) -> int:
        """Memory of codes, ids and everything that is kept to search them."""
        now = self._state
        return now.store.rows.nbytes + now.store.ids.nbytes + (self._arrays(now).nbytes if len(now) else 0)

    def search(
        self,
        Q: MatrixLike,
        n_neighbors: int | None = None,
        *,
        exact: bool = False,
        threads: int | None = None,
        stamp: CodeStamp | None = None,
    ) -> SearchResult:
        """Find the nearest rows of each query.

        Parameters
        ----------
        Q : array-like of shape (m, d)
            Codes of the queries; vectors if the index has an encoder.
        n_neighbors : int, optional
            As many as the index was fitted for, if not given.
        exact : bool
            Return the true nearest neighbors of the codes as stored, whatever the schedule. Ties go to the row that
            was added first.
        threads : int, optional
            Number of threads that share the queries; all cores if not given.
        stamp : CodeStamp, optional
            Of the codes of the queries, where it is known: codes of another encoder raise an error.
        """
        owner = "FunnelIndex.search"
        self._check_stamp(stamp, "these queries")
        now = self._state
        n = check_request(n_neighbors, now.chosen.schedule, len(now), exact, owner)
        threads = checked_threads(threads, owner)
        codes = as_codes(_encoded(Q, self.encoder, "query", owner), self.metric, owner, "Q", self.d)
        arrays = self._arrays(now)
        most = _IN_CELLS if arrays.cells is not None and not exact else max(1, min(_TOGETHER, _PAIRS // len(now)))
        size = min(most, -(-len(codes) // threads))
        blocks = [codes[start : start + size] for start in range(0, len(codes), size)]
        found = over_blocks(lambda block: search_block(arrays, block, n, exact), blocks, threads)
        rows, costs, spent = (
            np.concatenate([getattr(part, name) for part in found]) for name in ("rows", "costs", "spent")
        )
        encoding = 0 if self.encoder is None else self.encoder.p * self.encoder.d
        return SearchResult(now.store.ids[rows], self._scores(costs), spent, len(now) * self.d, encoding)

    def _check_stamp(self, stamp: CodeStamp | None, whose: str) -> None:
        if stamp is not None and self.stamp is not None:
            stamp.check(self.stamp, whose, "this index")

    def _scores(self, costs: np.ndarray) -> np.ndarray:
        scores = {"l2": costs, "inner_product": -costs, "cosine": 1 - costs / 2}[self.metric]
        return scores.astype(np.float32)

    def _arrays(self, now: _FunnelState) -> FunnelArrays:
        """Return the arrays of a state, which keeps them."""
        if not now.arrays:
            chosen, faiss = now.chosen, _takes_faiss(self.engine, len(now))
            made = FunnelArrays.of(
                now.store.rows, now.centre, self._euclidean, chosen.schedule, faiss, chosen.centroids, chosen.cells
            )
            now.arrays.append(made)
        return now.arrays[0]

    # -- storage -------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write codes, ids, schedule and encoder into one file, atomically."""
        now = self._state
        facts = {
            "d": self.d,
            "metric": self.metric,
            "engine": self.engine,
            "next_id": now.next_id,
            "schedule": now.chosen.schedule.to_dict(),
            "stamp": None if self.stamp is None else self.stamp.to_dict(),
        }
        arrays = {"codes": now.store.rows, "ids": now.store.ids, "centre": now.centre}
        if now.chosen.centroids is not None and now.chosen.cells is not None:
            arrays |= {"centroids": now.chosen.centroids, "cells": now.chosen.cells}
        if self.encoder is not None:
            arrays |= pack_encoder(self.encoder)
        return write_index(path, facts, arrays)

    @classmethod
    def load(cls, path: str | Path, module: nn.Module | None = None) -> FunnelIndex:
        """Read a saved index, checking format, checksum, shapes and numbers; `module` is a custom network's."""
        facts, arrays = read_index(path)
        with fitting_parts(path):
            store = RowsAndIds(arrays["codes"], arrays["ids"])
            metric = check_choice(facts["metric"], METRICS, "metric", "FunnelIndex")
            check_stored(store.rows, store.ids, facts["d"], facts["next_id"], metric, f"'{path}'")
            schedule = Schedule.from_dict(facts["schedule"])
            check_schedule(schedule, store.d)
            encoder = unpack_encoder(arrays, f"{path}/encoder", module)
            if encoder is not None and encoder.d != store.d:
                raise InvalidInputError(f"its encoder gives codes of width {encoder.d}, and its own are of {store.d}")
            width = schedule.stages[0].k + (metric == "inner_product")
            return cls(
                store,
                Chosen(schedule, *_checked_cells(arrays.get("centroids"), arrays.get("cells"), len(store), width)),
                _checked_floats(arrays["centre"], (store.d,)),
                metric=metric,
                engine=check_choice(facts["engine"], _ENGINES, "engine", "FunnelIndex"),
                encoder=encoder,
                next_id=facts["next_id"],
                stamp=None if facts.get("stamp") is None else CodeStamp.read(facts["stamp"]),
            )


def _checked_floats(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
        raise InvalidInputError(f"{array.dtype}{array.shape} where finite float32 of shape {shape} is expected")
    return array


def _checked_cells(
    centroids: np.ndarray | None, cells: np.ndarray | None, rows: int, width: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return centroids and cells that were read, or raise InvalidInputError for what faiss would crash on."""
    if centroids is None or cells is None:
        return None, None
    _checked_floats(centroids, (len(centroids), width))
    if (
        cells.dtype != np.int32
        or cells.shape != (rows,)
        or (rows and not 0 <= cells.min() <= cells.max() < len(centroids))
    ):
        raise InvalidInputError(f"cells of rows are {cells.dtype}{cells.shape}, or not among {len(centroids)}")
    return centroids, cells


def _encoded(X: MatrixLike, encoder: FittedEncoder | None, side: str, owner: str) -> MatrixLike:
    return X if encoder is None else encoder.encode(X, side=side, owner=owner)


def _takes_faiss(engine: str, rows: int) -> bool:
    """Tell whether faiss searches so many rows; raise an error where it should and is not there."""
    if engine == "auto":
        return rows >= _LARGE and importlib.util.find_spec("faiss") is not None
    if engine == "faiss":
        require("faiss", "search", "A search with engine='faiss'")
    return engine == "faiss"


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
