"""Statistics of the data that a fit needs: moments, and a bounded sample of rows; additive, and storable.

Mining neighbors, choosing settings left to "auto" and quantizers need some rows beside the moments. Each row gets a
priority by hashing its content, and the rows of lowest priority are kept. So the sample is the same for any batching,
any partition and any order of merging, and so are the choices made from it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from firstk._base.arrays import are_hashes, under, within
from firstk._base.rows import Rows, as_dense, projected, sliceable
from firstk.exceptions import CorruptModelError
from firstk.moments.fingerprint import MOST_TAUGHT, Fingerprint, row_hashes, row_priorities
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments

_FIRST_PASS = 4096
# Rows sampled for quantizers where the objective needs none, and numbers in them at most.
_SAMPLE_ROWS, _FEWEST_SAMPLED, _SAMPLE_NUMBERS = 2**16, 256, 2**24
# Columns that hold vectors; others hold what belongs to them.
VECTORS = ("X", "left", "right")


class RowSample:
    """The `capacity` rows of lowest hash among all rows seen, each with whatever belongs to it.

    Parameters
    ----------
    capacity : int
        How many rows are kept; 0 keeps none.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> one = RowSample(4).update({"X": X})
    >>> two = RowSample(4).update({"X": X[5:]}).merge(RowSample(4).update({"X": X[:5]}))
    >>> np.array_equal(one["X"], two["X"])
    True
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.priority = np.zeros(0, dtype=np.uint64)
        self.columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.priority)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def update(self, columns: Mapping[str, Rows | None], priority: np.ndarray | None = None) -> RowSample:
        """Take in a batch: a mapping from names to arrays with one row each; None is left out.

        `priority` is a hash of each row where one is at hand, always of the same kind; `row_hashes` if not given.
        """
        present = {name: sliceable(part) for name, part in columns.items() if part is not None}
        if not self.capacity:
            return self
        n = next(iter(present.values())).shape[0]
        if priority is None:
            blocks = (slice(start, start + _FIRST_PASS) for start in range(0, n, _FIRST_PASS))
            hashes = [row_hashes({name: part[rows] for name, part in present.items()}) for rows in blocks]
            priority = np.concatenate(hashes) if hashes else np.zeros(0, np.uint64)
        rows = self._winners(priority)
        if len(rows):
            self._keep_lowest(priority[rows], {name: as_dense(part[rows]) for name, part in present.items()})
        return self

    def merge(self, other: RowSample) -> RowSample:
        """Take in another sample; the smaller capacity of the two is the one whose rows are known."""
        if other.capacity < self.capacity:
            self.capacity = other.capacity
            self.priority = self.priority[: self.capacity]
            self.columns = {name: part[: self.capacity] for name, part in self.columns.items()}
        rows = self._winners(other.priority) if self.capacity else np.zeros(0, np.int64)
        if len(rows):
            self._keep_lowest(other.priority[rows], other.take(rows))
        return self

    def union(self, other: RowSample) -> RowSample:
        """Take in another sample whose rows may be the same ones: of two stores that share rows, or of one store twice.

        A row that one sample holds m times and the other n times is held max(m, n) times.
        """
        first, last = (np.searchsorted(self.priority, other.priority, side) for side in ("left", "right"))
        copy = np.arange(len(other)) - np.searchsorted(other.priority, other.priority)
        return self.merge(other.part(np.flatnonzero(copy >= last - first)))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the sample as arrays, from which ``from_arrays`` builds the same object."""
        facts = {"capacity": np.array([self.capacity], dtype=np.int64), "priority": self.priority}
        return facts | under("columns", self.columns)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> RowSample:
        """Undo ``to_arrays``."""
        try:
            made = cls(int(arrays["capacity"][0]))
            made.priority, made.columns = np.array(arrays["priority"]), within(arrays, "columns")
        except (KeyError, ValueError, IndexError) as error:
            raise CorruptModelError(f"These are not the arrays of a sample of rows ({error!r}).") from None
        if any(len(part) != len(made) for part in made.columns.values()):
            raise CorruptModelError("The columns of a sample of rows differ in length.")
        return made

    def take(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the given rows of every column."""
        return {name: part[rows] for name, part in self.columns.items()}

    def first(self, rows: int) -> RowSample:
        """Return the rows of lowest hash: what a sample of that capacity would hold."""
        return self.part(np.arange(min(rows, len(self))))

    def part(self, rows: np.ndarray) -> RowSample:
        """Return a sample of the given rows of this one, in ascending order, which is that of their hashes."""
        cut = RowSample(self.capacity)
        cut.priority, cut.columns = self.priority[rows], self.take(rows)
        return cut

    def in_basis(self, basis: np.ndarray) -> RowSample:
        """Return the sample with its vectors in the coordinates of a basis, in the order that it has."""
        turned = RowSample(self.capacity)
        turned.priority = self.priority
        vectors = {name: part for name, part in self.columns.items() if name in VECTORS}
        turned.columns = self.columns | projected(vectors, basis)
        return turned

    def _winners(self, priority: np.ndarray) -> np.ndarray:
        """Return which rows can be among those kept, in the order of their priorities; most of a long stream cannot."""
        rows = np.arange(len(priority))
        if len(self) >= self.capacity:
            rows = np.flatnonzero(priority < self.priority[-1])
        return rows[np.argsort(priority[rows], kind="stable")[: self.capacity]]

    def _keep_lowest(self, priority: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Take in rows in the order of their priorities, of which there are no more than the capacity."""
        if not len(self):
            self.priority, self.columns = priority, dict(columns)
            return
        counts = (len(self), len(priority))
        joined = np.concatenate([self.priority, priority])
        order = np.argsort(joined, kind="stable")[: self.capacity]
        self.priority = joined[order]
        made = {}
        for name in {**self.columns, **columns}:  # only weights come and go, and without one a row counts once
            first, second = (
                part.get(name, np.ones(n)) for part, n in zip((self.columns, columns), counts, strict=True)
            )
            made[name] = np.empty((len(order), *first.shape[1:]), dtype=np.result_type(first, second))
            new = order >= len(first)
            made[name][~new], made[name][new] = first[order[~new]], second[order[new] - len(first)]
        self.columns = made


def sample_capacity(n_features: int) -> int:
    """Return how many rows are sampled of a stream whose objective needs none: 65,536, fewer of wide ones."""
    return min(_SAMPLE_ROWS, max(_FEWEST_SAMPLED, _SAMPLE_NUMBERS // n_features))


def sample_of_documents(documents: np.ndarray) -> RowSample:
    """Return the documents of a store of which a model keeps cells and a profile: those of lowest `row_priorities`."""
    columns = {"X": documents}
    return RowSample(sample_capacity(documents.shape[1])).update(columns, row_priorities(columns))


def lowest_rows(columns: Mapping[str, Rows | None]) -> dict[str, Rows]:
    """Return the rows of lowest `row_priorities`, in their order: what a `RowSample` keeps, where all are at hand.

    Sparse rows stay sparse.
    """
    present = {name: sliceable(part) for name, part in columns.items() if part is not None}
    rows = np.argsort(row_priorities(present), kind="stable")[: sample_capacity(present["X"].shape[1])]
    return {name: part[rows] for name, part in present.items()}


# -- moments and sample ----------------------------------------------------------------------------------------------


Derived = TypeVar("Derived")


@dataclass(frozen=True, eq=False)
class PartOf:
    """What some statistics are a part of, so that what is known of all rows need not be found again for some of them.

    Attributes
    ----------
    whole : Statistics
    rows : ndarray of int
        Rows of its sample, ascending, that the part was made of.
    """

    whole: Statistics
    rows: np.ndarray


class _Workspace:
    """Intermediate results of several fits, each computed once, by one thread; others wait for that result alone."""

    def __init__(self) -> None:
        self.results: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self._locks: dict[Hashable, threading.RLock] = {}

    def lock(self, key: Hashable) -> threading.RLock:
        """Return the lock of one result."""
        with self._lock:
            return self._locks.setdefault(key, threading.RLock())


@dataclass
class Statistics:
    """What is kept of the data: moments, and a bounded sample of rows.

    Attributes
    ----------
    moments : Moments or PairMoments
    sample : RowSample
    n_features : int
        p, the width of the vectors.
    basis : ndarray of shape (p, r), optional
        Orthonormal; when it is there, moments and sample are written in its coordinates.
    trace : list of dict
        History of the training that was started from them.
    fingerprint : Fingerprint
        Of the rows seen, as they came.
    part_of : PartOf, optional
        The statistics of more rows, where these are of a fold of their sample.
    learned : ndarray of uint64, optional
        Of pairs, the `pair_hashes` of both sides; of rows the `taught_hashes`. None where they were stored without.
    documents : RowSample, optional
        Of the store that pairs are from, in full coordinates, where it is known: its documents are what will be
        encoded, and pairs hold few of them.
    queries : RowSample, optional
        Queries without judgements that the documents will be searched with, in full coordinates.
    """

    moments: Moments | PairMoments
    sample: RowSample
    n_features: int
    basis: np.ndarray | None = None
    trace: list[dict[str, float]] = field(default_factory=list)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    part_of: PartOf | None = None
    learned: np.ndarray | None = None
    documents: RowSample | None = None
    queries: RowSample | None = None
    _workspace: _Workspace | None = field(default=None, init=False, repr=False, compare=False)

    def merge(self, other: Statistics) -> Statistics:
        """Take in the statistics of other data."""
        mine, theirs = self.in_full_coordinates(), other.in_full_coordinates()
        mine.moments.merge(theirs.moments)  # type: ignore[arg-type]
        mine.sample.merge(theirs.sample)
        mine.fingerprint += theirs.fingerprint
        both = mine.learned is not None and theirs.learned is not None
        mine.learned = np.union1d(mine.learned, theirs.learned) if both else None  # type: ignore[arg-type]
        if mine.learned is not None and isinstance(mine.moments, Moments):
            mine.learned = mine.learned[:MOST_TAUGHT]
        stores = [part.documents for part in (mine, theirs) if part.documents is not None]
        if stores:
            mine.documents = RowSample(stores[0].capacity)
            for store in stores:
                mine.documents.union(store)
        if theirs.queries is not None:
            mine.queries = theirs.queries if mine.queries is None else mine.queries.merge(theirs.queries)
        return mine

    def in_full_coordinates(self) -> Statistics:
        """Return the statistics in full coordinates."""
        if self.basis is None:
            moments, sample = self.moments, self.sample
        else:
            moments, sample = self.moments.from_basis(self.basis), self.sample.in_basis(self.basis.T)
        return Statistics(
            moments,
            sample,
            self.n_features,
            fingerprint=self.fingerprint,
            learned=self.learned,
            documents=self.documents,
            queries=self.queries,
        )

    @property
    def to_encode(self) -> tuple[RowSample, str]:
        """A sample of what will be encoded (documents, right sides or rows), and the name of its vectors."""
        if self.documents is not None:
            return self.documents, "X"
        return self.sample, "right" if "right" in self.sample else "X"

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what is kept of the data as arrays of numbers and text: to be stored or sent, without pickle."""
        full = self.in_full_coordinates()
        counts = np.array([full.n_features, full.fingerprint.rows, full.fingerprint.total], dtype=np.uint64)
        known = {} if full.learned is None else {"learned": full.learned}
        for name, beside in (("documents", full.documents), ("queries", full.queries)):
            known |= {} if beside is None else under(name, beside.to_arrays())
        parts = under("moments", full.moments.to_arrays()) | under("sample", full.sample.to_arrays())
        return {"counts": counts} | known | parts

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Statistics:
        """Undo ``to_arrays``."""
        try:
            n_features, rows, total = (int(count) for count in arrays["counts"])
            moments = within(arrays, "moments")
            kind: type[Moments | PairMoments] = PairMoments if "third" in moments else Moments
            made = cls(kind.from_arrays(moments), RowSample.from_arrays(within(arrays, "sample")), n_features)
            made.fingerprint, made.learned = Fingerprint(rows, total), arrays.get("learned")
            if documents := within(arrays, "documents"):
                made.documents = RowSample.from_arrays(documents)
            if queries := within(arrays, "queries"):
                made.queries = RowSample.from_arrays(queries)
            for wrong in _wrong(arrays, made):
                raise CorruptModelError(f"These are not the arrays of statistics: {wrong}.")
        except CorruptModelError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise CorruptModelError(f"These are not the arrays of statistics ({error!r:.200}).") from None
        return made

    @contextmanager
    def sharing(self) -> Iterator[Statistics]:
        """Keep what `shared` computes until the end of the block: for several fits from the same statistics."""
        if self._workspace is not None:
            yield self
            return
        self._workspace = _Workspace()
        try:
            yield self
        finally:
            self._workspace = None

    def shared(self, key: Hashable, compute: Callable[[], Derived]) -> Derived:
        """Return what `compute` gives; within ``sharing``, computed the first time it is asked for.

        For large intermediate results that fits with other settings need too, and that nobody needs afterwards.
        """
        work = self._workspace
        if work is None:
            return compute()
        with work.lock(key):
            if key not in work.results:
                work.results[key] = compute()
            found: Derived = work.results[key]
            return found

    @property
    def shares(self) -> bool:
        """Whether several fits are made from these statistics now."""
        return self._workspace is not None


# Counts and flags are whole numbers, labels and targets of sampled rows may be anything; all else has fractions.
_WHOLE = ("counts", "learned", "resolution", "with_scores", "capacity", "priority")


def _wrong(arrays: Mapping[str, np.ndarray], made: Statistics) -> Iterator[str]:
    """Say which arrays cannot be those of statistics, and which parts do not fit together."""
    for name, part in arrays.items():
        last = name.rpartition(".")[2]
        kinds = "iu" if last in _WHOLE else "UO" if last == "precision" else "f"
        if name.startswith("sample.columns.") or last == "group_labels":
            kinds = "biufUO"
        if part.dtype.kind not in kinds or not part.ndim:
            yield f"'{name}' holds {part.dtype} of shape {part.shape}"
        elif part.dtype.kind == "f" and not np.isfinite(part).all():
            yield f"'{name}' holds NaN or infinity"
        elif last == "group_weight" and (part < 0).any():
            yield f"'{name}' holds a negative weight"
    moments = made.moments
    if made.n_features < 1 or moments.rows < 0 or (moments.rows and moments.p != made.n_features):
        yield f"{moments.rows} rows of width {moments.p} in a space of {made.n_features} dimensions"
    if made.fingerprint.rows < 0 or made.fingerprint.total < 0:
        yield f"a fingerprint of {made.fingerprint.rows} rows"
    for name, sample in (("sample", made.sample), ("documents", made.documents), ("queries", made.queries)):
        if sample is None:
            continue
        if sample.capacity < 0 or len(sample) > sample.capacity or sample.priority.dtype != np.uint64:
            yield f"{len(sample)} rows in a sample of {sample.capacity}"
        if sample.columns and not ({"X"} <= set(sample.columns) or {"left", "right"} <= set(sample.columns)):
            yield f"{name} without vectors"
        if name != "sample" and sample.columns.get("X", np.zeros(0)).shape[1:] != (made.n_features,):
            yield f"{name} that are not vectors of {made.n_features} numbers"
    if made.learned is not None and not are_hashes(made.learned):
        yield "hashes of documents that are not ascending whole numbers"
