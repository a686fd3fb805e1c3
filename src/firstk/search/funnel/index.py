"""FunnelIndex: an index with a schedule that is chosen for a recall.

How a block of queries is searched is in `block_search`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.checks import (
    bad_parameter,
    check_choice,
    check_finite,
    check_fraction,
    check_matrix,
    check_verbose,
    is_int,
    require,
)
from firstk._base.progress import Verbose, showing
from firstk.data import CodeStamp
from firstk.encoder import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.search.funnel.block_search import BlockResult, FunnelArrays, centre_of, prefixes_of, search_block
from firstk.search.funnel.cells import RowsInCells, cells_of, one_faiss_thread
from firstk.search.funnel.schedule import Schedule, check_schedule, given_schedule
from firstk.search.funnel.schedule_choice import Chosen, choose_schedule
from firstk.search.index_file import fitting_parts, pack_encoder, read_index, unpack_encoder, write_index
from firstk.search.row_index import (
    IndexState,
    RowIndex,
    RowsAndIds,
    SearchResult,
    calibration_facts,
    check_stored_ids,
    checked_count,
    checked_threads,
    new_ids,
    over_blocks,
    read_calibration,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import nn

    from firstk import PrefixEncoder
    from firstk._base.array_types import MatrixLike

METRICS: Collection[str] = ("cosine", "inner_product", "l2")
# Squares and sums of squares of such norms stay finite in float32.
_LARGEST_NORM = 1e18
# How far from one the norm of a unit vector may be: far more than the rounding of float32, whatever the width.
_UNIT_TOLERANCE = 1e-3
_ENGINES = ("auto", "faiss", "numpy")
# Rows from which faiss is worth loading.
_LARGE = 10_000
# Queries that are searched together: in cells, and among all rows, as many as a number of pairs allows.
_IN_CELLS, _TOGETHER, _PAIRS = 256, 64, 1 << 23


@dataclass(frozen=True, eq=False)
class _FunnelState(IndexState):
    """What an index holds at one time: columns "codes", "ids" and, where faiss looks into cells, "cells".

    Attributes
    ----------
    schedule : Schedule
    centroids : ndarray of float32 or None
        Of the cells.
    centre : ndarray of float32, shape (d,)
    arrays : list of FunnelArrays
        Empty until the first search.
    """

    schedule: Schedule
    centroids: np.ndarray | None
    centre: np.ndarray
    arrays: list[FunnelArrays] = field(default_factory=list, init=False)

    @classmethod
    def of(cls, codes: np.ndarray, ids: np.ndarray, next_id: int, chosen: Chosen, centre: np.ndarray) -> _FunnelState:
        """Return the state of rows with a schedule that was chosen for them."""
        columns = {"codes": codes, "ids": ids} | ({} if chosen.cells is None else {"cells": chosen.cells})
        return cls(RowsAndIds(columns), next_id, chosen.schedule, chosen.centroids, centre)


class FunnelIndex(RowIndex):
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
        state: _FunnelState,
        *,
        metric: str = "l2",
        engine: str = "auto",
        encoder: FittedEncoder | None = None,
        stamp: CodeStamp | None = None,
    ):
        super().__init__(state)
        self.metric, self.engine, self.encoder = metric, engine, encoder
        self.stamp = stamp if encoder is None else encoder.stamp()

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
        own = codes.copy() if np.shares_memory(codes, Z) else codes
        state = _FunnelState.of(own, numbers, int(numbers.max()) + 1, chosen, centre)
        return cls(state, metric=metric, engine=engine, encoder=fitted, stamp=stamp)

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
            now, codes = self._state, self._state.store["codes"]
            if len(now) == 0:
                raise InvalidInputError(f"{owner} needs rows, and this index holds none. Add some first.")
            recall = self.schedule.recall or 0.99 if recall is None else recall
            recall = check_fraction(recall, "recall", owner, open_left=True)
            n = min(self.schedule.n_neighbors, len(now)) if n_neighbors is None else n_neighbors
            if not is_int(n) or not 1 <= n <= len(now):
                raise bad_parameter("n_neighbors", owner, f"an int in [1, {len(now)}] (the rows)", n)
            centre, faiss = centre_of(codes, self._euclidean), _takes_faiss(self.engine, len(now))
            chosen = choose_schedule(codes, centre, self._euclidean, recall, int(n), random_state, faiss)
            self._state = _FunnelState.of(codes, now.store["ids"], now.next_id, chosen, centre)
        return chosen.schedule

    def add(self, Z: MatrixLike, ids: ArrayLike | None = None, *, stamp: CodeStamp | None = None) -> np.ndarray:
        """Add rows and return their ids; the shares of the schedule stay, so shortlists grow with the store.

        `stamp` is that of the codes, where it is known: codes of another encoder raise an error.
        """
        owner = "FunnelIndex.add"
        self._check_stamp(stamp, "these rows")
        codes = as_codes(_encoded(Z, self.encoder, "document", owner), self.metric, owner, "Z", self.d)

        def grow(old: _FunnelState) -> tuple[dict[str, np.ndarray], _FunnelState]:
            if old.centroids is None:
                return {"codes": codes}, old
            parts = prefixes_of(codes, old.centre, old.schedule.stages[0].k, self._euclidean)
            return {"codes": codes, "cells": cells_of(parts, old.centroids)}, old

        return self._append(ids, len(codes), owner, grow)

    # -- use -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"FunnelIndex({len(self)} rows of {self.d}, {self.metric}: {self.schedule})"

    @property
    def schedule(self) -> Schedule:
        """Prefixes and shortlist sizes, and the recall they were chosen for."""
        return self._state.schedule

    @property
    def d(self) -> int:
        """Width of the codes."""
        return self._state.store["codes"].shape[1]

    @property
    def codes(self) -> np.ndarray:
        """The codes of the rows, in the order of `ids`; not to be written to."""
        rows = self._state.store["codes"].view()
        rows.flags.writeable = False
        return rows

    @property
    def _euclidean(self) -> bool:
        return self.metric != "inner_product"

    @property
    def nbytes(self) -> int:
        """Memory of codes, ids and everything that is kept to search them."""
        now = self._state
        codes, ids = now.store["codes"], now.store["ids"]
        return codes.nbytes + ids.nbytes + (self._arrays(now).nbytes if len(now) else 0)

    def search(
        self,
        Q: MatrixLike,
        n_neighbors: int | None = None,
        *,
        exact: bool = False,
        threads: int | None = None,
        stamp: CodeStamp | None = None,
        calibrated: bool = False,
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
        calibrated : bool
            Return estimates of the raw vectors' cosines as scores, by what `calibrate` has learned.
        """
        owner = "FunnelIndex.search"
        self._check_stamp(stamp, "these queries")
        now = self._state
        planned = now.schedule.n_neighbors
        n = checked_count(planned if n_neighbors is None else n_neighbors, "n_neighbors", len(now), owner)
        if n > planned and not exact:
            raise InvalidInputError(
                f"The schedule of this index was chosen for at most {planned} neighbors, and {n} were asked for. Call "
                f"replan(n_neighbors={n}) first, or search with exact=True."
            )
        threads = checked_threads(threads, owner)
        codes = as_codes(_encoded(Q, self.encoder, "query", owner), self.metric, owner, "Q", self.d)
        arrays = self._arrays(now)
        most = _IN_CELLS if arrays.cells is not None and not exact else max(1, min(_TOGETHER, _PAIRS // len(now)))
        size = min(most, -(-len(codes) // threads))
        blocks = [codes[start : start + size] for start in range(0, len(codes), size)]

        def work(block: np.ndarray) -> BlockResult:
            with one_faiss_thread() if arrays.faiss else nullcontext():
                return search_block(arrays, block, n, exact)

        found = over_blocks(work, blocks, threads)
        rows, costs, spent = (
            np.concatenate([getattr(part, name) for part in found]) for name in ("rows", "costs", "spent")
        )
        encoding = 0 if self.encoder is None else self.encoder.p * self.encoder.d
        scores = {"l2": costs, "inner_product": -costs, "cosine": 1 - costs / 2}[self.metric]
        return SearchResult(
            now.store["ids"][rows], self._shown(scores, calibrated, owner), spent, len(now) * self.d, encoding
        )

    def _check_stamp(self, stamp: CodeStamp | None, whose: str) -> None:
        if stamp is not None and self.stamp is not None:
            stamp.check(self.stamp, whose, "this index")

    def _arrays(self, now: _FunnelState) -> FunnelArrays:
        """Return the arrays of a state, which keeps them."""
        if not now.arrays:
            codes, cells, faiss = now.store["codes"], None, _takes_faiss(self.engine, len(now))
            if faiss and now.centroids is not None:  # faiss lays the rows out in their cells
                parts = prefixes_of(codes, now.centre, now.schedule.stages[0].k, self._euclidean)
                cells = RowsInCells.of(parts, now.centroids, now.store["cells"], self._euclidean, now.schedule.probes)
            now.arrays.append(FunnelArrays(codes, self._euclidean, now.schedule, faiss, now.centre, cells))
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
            "schedule": now.schedule.to_dict(),
            "stamp": None if self.stamp is None else self.stamp.to_dict(),
            "calibration": calibration_facts(self),
        }
        arrays = now.store.columns() | {"centre": now.centre}
        if now.centroids is not None:
            arrays["centroids"] = now.centroids
        if self.encoder is not None:
            arrays |= pack_encoder(self.encoder)
        return write_index(path, facts, arrays)

    @classmethod
    def load(cls, path: str | Path, module: nn.Module | None = None) -> FunnelIndex:
        """Read a saved index, checking format, checksum, shapes and numbers; `module` is a custom network's."""
        facts, arrays = read_index(path)
        with fitting_parts(path):
            codes, ids, d = arrays["codes"], arrays["ids"], facts["d"]
            metric = check_choice(facts["metric"], METRICS, "metric", "FunnelIndex")
            if not is_int(d) or codes.ndim != 2 or codes.shape[1] != d or codes.dtype != np.float32 or not d:
                raise InvalidInputError(f"codes are {codes.dtype}{codes.shape}, and float32 of width {d!r} expected")
            check_stored_ids(ids, len(codes), facts["next_id"])
            if codes.size:
                check_finite(codes, f"'{path}'", "codes")
                norms = _norms(codes)
                unit = metric != "cosine" or np.abs(norms - 1).max() <= _UNIT_TOLERANCE
                if not norms.max() < _LARGEST_NORM or not unit:
                    raise InvalidInputError(f"codes have norms from {norms.min():.3g} to {norms.max():.3g}")
            schedule = Schedule.from_dict(facts["schedule"])
            check_schedule(schedule, d)
            encoder = unpack_encoder(arrays, f"{path}/encoder", module)
            if encoder is not None and encoder.d != d:
                raise InvalidInputError(f"its encoder gives codes of width {encoder.d}, and its own are of {d}")
            chosen = Chosen(schedule, arrays.get("centroids"), arrays.get("cells"))
            if chosen.centroids is None or chosen.cells is None:
                chosen = Chosen(schedule)
            else:  # faiss would crash on others
                centroids, cells = chosen.centroids, chosen.cells
                _check_floats(centroids, (len(centroids), schedule.stages[0].k + (metric == "inner_product")))
                inside = not len(codes) or 0 <= cells.min() <= cells.max() < len(centroids)
                if cells.dtype != np.int32 or cells.shape != ids.shape or not inside:
                    raise InvalidInputError(f"cells are {cells.dtype}{cells.shape}, or not among {len(centroids)}")
            _check_floats(arrays["centre"], (d,))
            index = cls(
                _FunnelState.of(codes, ids, facts["next_id"], chosen, arrays["centre"]),
                metric=metric,
                engine=check_choice(facts["engine"], _ENGINES, "engine", "FunnelIndex"),
                encoder=encoder,
                stamp=None if facts.get("stamp") is None else CodeStamp.read(facts["stamp"]),
            )
            index.calibration = read_calibration(facts)
            return index


def as_codes(Z: MatrixLike, metric: str, owner: str, name: str, width: int | None = None) -> np.ndarray:
    """Return codes as float32 rows, of unit norm for "cosine"; raise for rows that have no distance."""
    rows = check_matrix(Z, owner, name, width=width)
    norms = _norms(rows)
    if (large := np.flatnonzero(~(norms < _LARGEST_NORM))).size:
        raise InvalidInputError(
            f"{owner} computes in float32; row {large[0]} of '{name}' has norm {norms[large[0]]:.1e}, too large for "
            "its squares. Scale the codes down."
        )
    if metric != "cosine":
        return np.ascontiguousarray(rows, dtype=np.float32)
    if (zero := np.flatnonzero(norms == 0)).size:
        raise InvalidInputError(
            f"{owner} with metric 'cosine' takes rows that have a direction; row {zero[0]} of '{name}' is all zeros. "
            "Drop such rows."
        )
    unit: np.ndarray = rows / norms[:, None]
    return unit.astype(np.float32)


def _norms(Z: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", Z, Z, dtype=np.float64))


def _check_floats(array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
        raise InvalidInputError(f"{array.dtype}{array.shape} where finite float32 of shape {shape} is expected")


def _encoded(X: MatrixLike, encoder: FittedEncoder | None, side: str, owner: str) -> MatrixLike:
    return X if encoder is None else encoder.encode(X, side=side, owner=owner)


def _takes_faiss(engine: str, rows: int) -> bool:
    """Tell whether faiss searches so many rows; raise an error where it should and is not there."""
    if engine == "auto":
        return rows >= _LARGE and importlib.util.find_spec("faiss") is not None
    if engine == "faiss":
        require("faiss", "search", "A search with engine='faiss'")
    return engine == "faiss"
