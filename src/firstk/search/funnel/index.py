"""FunnelIndex: an index with a schedule that is chosen for a recall; SearchResult: what a search returns.

It adds, removes, searches, saves and loads; the operations of a search are in `funnel`, `_plain` and `_compiled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from firstk._base.checks import (
    bad_parameter,
    check_choice,
    check_fraction,
    check_verbose,
    is_int,
    numba_may_compile,
    require_compiled,
)
from firstk._base.concurrency import cores, one_blas_thread
from firstk._base.progress import Verbose, showing
from firstk.data import CodeStamp
from firstk.encoder import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.search.funnel import _numpy as _plain
from firstk.search.funnel.arrays import FunnelArrays, build_arrays, no_bounds
from firstk.search.funnel.block_search import search_block
from firstk.search.funnel.byte_prefixes import BytePrefixes, fit_cells
from firstk.search.funnel.prefixes import FIRST_STAGES, FirstStage
from firstk.search.funnel.schedule import Schedule, check_request, check_schedule, given_schedule
from firstk.search.funnel.schedule_choice import choose_schedule
from firstk.search.index_file import fitting_parts, pack_encoder, read_index, unpack_encoder, write_index
from firstk.search.rows_and_ids import METRICS, RowsAndIds, WriteLock, as_codes, check_stored, known_ids, new_ids

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import nn

    from firstk import PrefixEncoder
    from firstk._base.array_types import MatrixLike

Block = TypeVar("Block")
Result = TypeVar("Result")
ENGINES = ("auto", "compiled", "numpy")
# Rows from which the compiled operations are worth loading.
_LARGE = 10_000


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Neighbors of each query, nearest first, and the work they took.

    Attributes
    ----------
    ids : ndarray of int64, shape (m, n_neighbors)
    scores : ndarray of float32, shape (m, n_neighbors)
        Squared distances ("l2", smaller is nearer), dot products or cosines (larger is nearer).
    multiply_adds : ndarray of int64, shape (m,)
        Work of each query: the scan of the first stage, every coordinate that was added afterwards, the bounds
        that were looked at, and the query's own norms.
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
class _State:
    """What an index holds at one time. Additions and removals replace it as a whole: a search reads it once.

    Attributes
    ----------
    store : RowsAndIds
    next_id : int
    schedule : Schedule
    stored : BytePrefixes or None
    layout : list of FunnelArrays
        Empty until the first search.
    """

    store: RowsAndIds
    next_id: int
    schedule: Schedule
    stored: BytePrefixes | None
    layout: list[FunnelArrays] = field(default_factory=list, init=False)

    def __len__(self) -> int:
        return len(self.store)


class FunnelIndex:
    """Nearest neighbors by a funnel over prefixes; `FunnelIndex.fit` builds one.

    Rows are kept as float32 codes whose first coordinates say most, such as those of a `PrefixEncoder`. A search
    scans a short prefix of every row, keeps a shortlist, and adds coordinates only to rows that can still be among
    the nearest. Scores are computed from all coordinates, in float64. Threads may add, remove and search at the same
    time: a search sees the rows of the moment when it began.

    Attributes
    ----------
    schedule : Schedule
        Prefixes and shortlist sizes, and the recall they were chosen for.
    metric : {"l2", "inner_product", "cosine"}
    first_stage : {"float32", "int8", "binary", "embedded"}
    engine : {"auto", "compiled", "numpy"}
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
        schedule: Schedule,
        *,
        metric: str = "l2",
        first_stage: str = "float32",
        engine: str = "auto",
        encoder: FittedEncoder | None = None,
        next_id: int = 0,
        stored: BytePrefixes | None = None,
        stamp: CodeStamp | None = None,
    ):
        self.metric, self.first_stage, self.engine = metric, first_stage, engine
        self.encoder = encoder
        self.stamp = stamp if encoder is None else encoder.stamp()
        self._state = _State(store, next_id, schedule, stored)
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
        first_stage: str = "float32",
        bytes: int | None = None,
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
        first_stage : {"float32", "int8", "binary", "embedded"}
            How the first scan keeps its prefixes: four bytes, one byte or one bit a coordinate; or, with "embedded",
            bits given to coordinates by what they are worth.
        bytes : int, optional
            Of "embedded", for each row; 32 if not given, or all that lower the error of the codes.
        schedule : iterable of (k, size), optional
            Stages by hand; no recall is then measured.
        ids : array-like of int, optional
            One for each row; 0 to n - 1 if not given.
        encoder : PrefixEncoder or FittedEncoder, optional
            Encodes rows as documents here and in `add`, and queries as queries in `search`; saved with the index.
        stamp : CodeStamp, optional
            Who made the codes, where `Z` are codes: ``encoder.stamp(k)``, or of a file
            ``open_codes(path).record.stamp``; saved with the index. `add` and `search` compare theirs with it.
        engine : {"auto", "compiled", "numpy"}
            "compiled" needs numba; "auto" takes it for large stores where it is installed.
        random_state : int
            Seed of the sample.
        verbose : bool or "auto"
            Show progress; "auto": of what takes long, on a terminal or in a notebook.
        """
        owner = "FunnelIndex.fit"
        if stamp is not None and encoder is not None:
            raise InvalidInputError(f"{owner} takes 'stamp' with codes, and 'encoder' with vectors. Leave one out.")
        check_choice(metric, METRICS, "metric", owner)
        check_choice(first_stage, FIRST_STAGES, "first_stage", owner)
        check_choice(engine, ENGINES, "engine", owner)
        recall = check_fraction(recall, "recall", owner, open_left=True)
        if bytes is not None and first_stage != "embedded":
            raise InvalidInputError(
                f"{owner} takes 'bytes' with first_stage='embedded' only. Got bytes={bytes!r} with first_stage="
                f"{first_stage!r}: leave one of them out."
            )
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
        form = FirstStage(first_stage, fit_cells(codes, bytes, random_state) if first_stage == "embedded" else None)
        euclidean = metric != "inner_product"
        if schedule is not None:
            chosen = given_schedule(schedule, d, n, n_neighbors)
        else:
            with showing(verbose):
                chosen = choose_schedule(codes, euclidean, form, recall, n_neighbors, random_state)
        stored = None if form.cells is None else BytePrefixes.of(form.cells, euclidean, codes)
        # A copy: the index must not change when the caller's array does.
        store = RowsAndIds(codes.copy() if np.shares_memory(codes, Z) else codes, numbers)
        facts = {"metric": metric, "first_stage": first_stage, "engine": engine}
        return cls(store, chosen, **facts, encoder=fitted, next_id=int(numbers.max()) + 1, stored=stored, stamp=stamp)

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
        now = self._state
        if len(now) == 0:
            raise InvalidInputError(f"{owner} needs rows, and this index holds none. Add some first.")
        recall = now.schedule.recall or 0.99 if recall is None else recall
        recall = check_fraction(recall, "recall", owner, open_left=True)
        n = min(now.schedule.n_neighbors, len(now)) if n_neighbors is None else n_neighbors
        if not is_int(n) or not 1 <= n <= len(now):
            raise bad_parameter("n_neighbors", owner, f"an int in [1, {len(now)}] (the rows)", n)
        euclidean, form = self.metric != "inner_product", self._form(now)
        with showing(check_verbose(verbose, owner)):
            schedule = choose_schedule(now.store.rows, euclidean, form, recall, int(n), random_state)
        with self._writing:  # rows that others added or removed meanwhile stay so
            self._state = replace(self._state, schedule=schedule)
        return schedule

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
            stored = None if old.stored is None else old.stored.appended(codes)
            self._state = _State(old.store.appended(codes, numbers), next_id, old.schedule, stored)
        return numbers

    def remove(self, ids: ArrayLike) -> None:
        """Remove rows by id: all of them, or none if one is unknown."""
        with self._writing:
            old = self._state
            kept = ~np.isin(old.store.ids, known_ids(ids, old.store.ids, "FunnelIndex.remove"))
            stored = None if old.stored is None else old.stored.kept(kept)
            self._state = replace(old, store=old.store.kept(kept), stored=stored)

    # -- use -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._state)

    def __repr__(self) -> str:
        return f"FunnelIndex({len(self)} rows of {self.d}, {self.metric}: {self.schedule})"

    @property
    def schedule(self) -> Schedule:
        """Prefixes and shortlist sizes, and the recall they were chosen for."""
        return self._state.schedule

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
    def bytes(self) -> int | None:
        """Bytes of a row in the first stage, where it is "embedded"."""
        stored = self._state.stored
        return None if stored is None else stored.embedded.n_bytes

    def _form(self, now: _State) -> FirstStage:
        return FirstStage(self.first_stage, None if now.stored is None else now.stored.embedded)

    @property
    def nbytes(self) -> int:
        """Memory of codes, ids and everything that is kept to search them."""
        now = self._state
        return now.store.rows.nbytes + now.store.ids.nbytes + (self._layout(now).nbytes if len(now) else 0)

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
        n = check_request(n_neighbors, now.schedule, len(now), exact, owner)
        threads = checked_threads(threads, owner)
        if exact and not self._form(now).bounds_distances:
            raise no_bounds()
        codes = as_codes(_encoded(Q, self.encoder, "query", owner), self.metric, owner, "Q", self.d)
        layout = self._layout(now)
        operations: ModuleType = _plain
        if is_compiled(self.engine, len(now)):
            from firstk.search.funnel import _compiled

            operations = _compiled
        size = min(operations.queries_at_once(len(now)), -(-len(codes) // threads))
        blocks = [codes[start : start + size] for start in range(0, len(codes), size)]
        found = over_blocks(lambda block: search_block(layout, operations, block, n, exact), blocks, threads)
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

    def _layout(self, now: _State) -> FunnelArrays:
        """Return the layout of a state, which keeps it."""
        if not now.layout:
            euclidean = self.metric != "inner_product"
            now.layout.append(build_arrays(now.store.rows, euclidean, now.schedule, self._form(now), now.stored))
        return now.layout[0]

    # -- storage -------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write codes, ids, schedule and encoder into one file, atomically."""
        now = self._state
        facts = {
            "d": self.d,
            "metric": self.metric,
            "first_stage": self.first_stage,
            "engine": self.engine,
            "next_id": now.next_id,
            "schedule": now.schedule.to_dict(),
            "stamp": None if self.stamp is None else self.stamp.to_dict(),
        }
        arrays = {"codes": now.store.rows, "ids": now.store.ids}
        if now.stored is not None:
            facts["cells"] = now.stored.embedded.record()
            arrays["bytes"] = now.stored.rows.codes()
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
            first_stage = check_choice(facts["first_stage"], FIRST_STAGES, "first_stage", "FunnelIndex")
            stored = None
            if first_stage == "embedded":
                stored = BytePrefixes.read(facts["cells"], arrays["bytes"], store.rows, metric != "inner_product")
            encoder = unpack_encoder(arrays, f"{path}/encoder", module)
            if encoder is not None and encoder.d != store.d:
                raise InvalidInputError(f"its encoder gives codes of width {encoder.d}, and its own are of {store.d}")
            return cls(
                store,
                schedule,
                metric=metric,
                first_stage=first_stage,
                engine=check_choice(facts["engine"], ENGINES, "engine", "FunnelIndex"),
                encoder=encoder,
                next_id=facts["next_id"],
                stored=stored,
                stamp=None if facts.get("stamp") is None else CodeStamp.read(facts["stamp"]),
            )


def _encoded(X: MatrixLike, encoder: FittedEncoder | None, side: str, owner: str) -> MatrixLike:
    return X if encoder is None else encoder.encode(X, side=side, owner=owner)


def is_compiled(engine: str, rows: int) -> bool:
    """Tell whether a search of so many rows is compiled; raise an error where it should be and cannot."""
    if engine == "auto":
        return rows >= _LARGE and numba_may_compile()
    if engine == "compiled":
        require_compiled("search", "A compiled search", "engine='numpy'")
    return engine == "compiled"


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
