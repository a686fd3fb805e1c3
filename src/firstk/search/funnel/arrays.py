"""Arrays that a search needs, computed from the codes, the metric and the schedule.

It is computed when it is first needed and discarded when rows are added or removed. The search rests on two facts. A
prefix of the code gives a partial cost, c_k = |q_k - x_k|^2 or -<q_k, x_k>, and the norms of what is left, r_q and r_x,
bound the rest (triangle inequality and Cauchy-Schwarz):

    |q - x|^2 >= c_k + (r_q - r_x)^2,        -<q, x> >= c_k - r_q r_x.

Costs are smaller for nearer rows. The scan works with nearness instead: larger is nearer, and up to a constant of the
query it is minus half the cost ("l2") or minus the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from firstk.exceptions import InvalidInputError
from firstk.search.funnel.byte_prefixes import BytePrefixes
from firstk.search.funnel.prefixes import FirstStage, Prefixes, Tiles
from firstk.search.funnel.schedule import Schedule

_ROWS_AT_ONCE = 8192
# Rows of the sample that finds the scan a threshold to start from, as a share of the store; none below this many.
SAMPLE_SHARE, SAMPLE_LEAST = 16, 16_384
# Relative rounding of remainder norms: float32, computed from a rounded centre; true error is below 2^-21.
REMAINDER_ROUNDING = 2.0**-20


@dataclass(frozen=True, eq=False)
class Columns:
    """Prefixes at one k, and what is added to their dot products with a query.

    Attributes
    ----------
    prefixes : Prefixes
    k : int
    bias : ndarray of float32, shape (padded rows,)
        -inf on padding.
    remainder : ndarray of float32, shape (padded rows,)
        Norm of what is left of each row past k.
    """

    prefixes: Prefixes
    k: int
    bias: np.ndarray
    remainder: np.ndarray


@dataclass(frozen=True, eq=False)
class Scan:
    """One pass of a block of queries over the prefixes: nearness = <q, x> + lift * remainder + bias.

    Attributes
    ----------
    columns : Columns
    queries : ndarray
        One row a query, as `Prefixes.queries` returns them.
    lift : ndarray of float32, shape (m,), or None
    """

    columns: Columns
    queries: np.ndarray
    lift: np.ndarray | None = None

    @property
    def cost(self) -> int:
        """Multiply-adds for one row and one query."""
        return self.columns.prefixes.cost(self.columns.k) + (self.lift is not None)

    @property
    def spent(self) -> int:
        """Multiply-adds for one query."""
        return self.columns.prefixes.n * self.cost

    def only(self, some: np.ndarray) -> Scan:
        """Return the scan of some of the queries."""
        return replace(self, queries=self.queries[some], lift=None if self.lift is None else self.lift[some])


@dataclass(frozen=True, eq=False)
class Queries:
    """A block of queries: codes, centred codes, and norms of what is left at each checkpoint."""

    codes: np.ndarray
    centred: np.ndarray
    norms: np.ndarray
    remainders: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class FunnelArrays:
    """Prefixes, norms and remainders of a store.

    Attributes
    ----------
    codes : ndarray of float32, shape (n, d)
    euclidean : bool
        Squared distances; otherwise inner products.
    edges : tuple of int
        0, the checkpoints, d: coordinates are added from one edge to the next.
    centre : ndarray of float32, shape (d,)
        Mean of the rows; zero for inner products, which centring would change.
    norms : ndarray of float64, shape (n,)
        Of the centred rows.
    remainders : ndarray of float32, shape (n, len(edges))
        Norm of the centred coordinates past each edge.
    first, sample, exact : Columns
        For the first shortlist; the same of a few rows drawn at random (None for small stores); for the bound of an
        exact search (None for bits and bytes, which bound nothing).
    schedule : Schedule
    """

    codes: np.ndarray
    euclidean: bool
    edges: tuple[int, ...]
    centre: np.ndarray
    norms: np.ndarray
    remainders: np.ndarray
    first: Columns
    sample: Columns | None
    exact: Columns | None
    schedule: Schedule

    def prepare(self, Q: np.ndarray) -> Queries:
        """Centre a block of queries and take its norms: d multiply-adds each."""
        norms, remainders = norms_past(Q, self.centre, self.edges)
        widest = max(self.schedule.stages[0].k, self.schedule.exact_k)
        return Queries(Q, Q[:, :widest] - self.centre[:widest], norms, remainders.astype(np.float64))

    def estimate(self, queries: Queries, *, sampled: bool = False) -> Scan:
        """Return the scan that chooses the first shortlist: partial costs at the first stage's k."""
        columns = self.sample if sampled and self.sample is not None else self.first
        form = columns.prefixes.queries(queries.centred, columns.k)
        if self.euclidean or not columns.prefixes.bounds_distances:
            return Scan(columns, form)
        lift = self.schedule.remainder_cosine * queries.remainders[:, self.edges.index(columns.k)]
        return Scan(columns, form, lift.astype(np.float32))

    def bound(self, queries: Queries, costs: np.ndarray) -> tuple[Scan, np.ndarray]:
        """Return the scan that no row of cost at most `costs` can fall through, and its thresholds.

        With y = x - centre and rounding unit u of float32, nearness is off by less than (k + 32) 2u times
        (|y_q| + M)^2 / 2 for M the largest |y|: k + 2 roundings of sums, and a few of inputs. What an int8 prefix
        hides is at most |y_q| times its error.
        """
        columns = self.exact
        if columns is None or not isinstance(columns.prefixes, Tiles):
            raise no_bounds()
        k, y = columns.k, queries.norms
        exactly = 0.5 * (y**2 - costs) if self.euclidean else -costs
        rounding = (k + 32) * 2.0**-23 * 0.5 * (y + float(self.norms.max())) ** 2
        slack = rounding + y * columns.prefixes.error + 2.0**-100
        thresholds = np.nextafter((exactly - slack).astype(np.float32), np.float32(-np.inf))
        lift = queries.remainders[:, self.edges.index(k)] * (1 + REMAINDER_ROUNDING)
        return Scan(columns, columns.prefixes.queries(queries.centred, k), lift.astype(np.float32)), thresholds

    @property
    def nbytes(self) -> int:
        """Memory without the codes."""
        parts = [self.norms, self.remainders, self.first.prefixes.data]
        if self.sample is not None:
            parts.append(self.sample.prefixes.data)
        for columns in (self.first, self.sample, self.exact):
            parts += [] if columns is None else [columns.bias, columns.remainder]
        return sum(part.nbytes for part in parts)


def no_bounds() -> InvalidInputError:
    """Return the error of an exact search whose first stage cannot exclude rows."""
    return InvalidInputError(
        "An exact search needs a first stage that bounds distances, and signs and bytes do not. "
        "Build the index with first_stage='float32' or 'int8'."
    )


def build_arrays(
    codes: np.ndarray,
    euclidean: bool,
    schedule: Schedule,
    first_stage: FirstStage,
    stored: BytePrefixes | None = None,
) -> FunnelArrays:
    """Compute a layout in one pass over the codes; `stored` are the bytes of its rows, where they are kept."""
    n, d = codes.shape
    ks = {stage.k for stage in schedule.stages} | {schedule.exact_k}
    doubled = max(16, min(ks))
    while doubled < d:
        ks.add(doubled)
        doubled *= 2
    edges = (0, *sorted(ks | {d}))
    centre = codes.mean(axis=0, dtype=np.float64).astype(np.float32) if euclidean else np.zeros(d, np.float32)
    norms, remainders = norms_past(codes, centre, edges)
    k, exact_k = schedule.stages[0].k, schedule.exact_k
    if stored is not None:
        none = np.empty(0, np.float32)
        first = Columns(stored, k, none, none)
        return FunnelArrays(codes, euclidean, edges, centre, norms, remainders, first, None, None, schedule)
    Y = codes[:, : max(k, exact_k)] - centre[: max(k, exact_k)]
    prefixes = first_stage.prefixes(Y, centre, max(k, exact_k), euclidean)

    def left(k: int) -> np.ndarray:
        return remainders[:, edges.index(k)]

    sample = None
    if n >= SAMPLE_LEAST:
        rows = np.sort(np.random.default_rng(0).choice(n, n // SAMPLE_SHARE, replace=False))
        sample = _estimating(first_stage.prefixes(Y[rows], centre, k, euclidean), k, left(k)[rows], euclidean)
    exact = None
    if prefixes.bounds_distances:
        half = 0.5 * norms**2 if euclidean else np.zeros(n)
        exact = _columns(prefixes, exact_k, -half, left(exact_k))
    first = _estimating(prefixes, k, left(k), euclidean)
    return FunnelArrays(codes, euclidean, edges, centre, norms, remainders, first, sample, exact, schedule)


def _estimating(prefixes: Prefixes, k: int, left: np.ndarray, euclidean: bool) -> Columns:
    """Columns for partial costs: minus half the squared norm of the prefix, or nothing, is added."""
    half = 0.5 * prefixes.squared_norms(k) if euclidean else np.zeros(prefixes.n)
    return _columns(prefixes, k, -half, left)


def _columns(prefixes: Prefixes, k: int, bias: np.ndarray, left: np.ndarray) -> Columns:
    return Columns(prefixes, k, _padded(bias, prefixes.padded, -np.inf), _padded(left, prefixes.padded, 0.0))


def norms_past(X: np.ndarray, centre: np.ndarray, edges: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Norms of centred rows (float64), and of their coordinates past each edge (float32)."""
    past = np.zeros((len(X), len(edges)))
    for start in range(0, len(X), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        Y = X[rows] - centre
        parts = np.add.reduceat(np.square(Y, out=Y), edges[:-1], axis=1, dtype=np.float64)
        past[rows, :-1] = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
    np.sqrt(past, out=past)
    return past[:, 0], past.astype(np.float32)


def _padded(values: np.ndarray, length: int, fill: float) -> np.ndarray:
    padded = np.full(length, fill, dtype=np.float32)
    padded[: len(values)] = values
    return padded
