"""Evaluation: every length and precision of an encoder, next to baselines and the raw vectors, on the same units.

Codes of k coordinates are rounded and read back, as a store would; queries are not rounded, but in the points that say
so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_prefix, is_int
from firstk._base.concurrency import Alongside, cores, ordered_map
from firstk._base.rows import is_sparse
from firstk.advice.baselines import baselines_of, plain_truncation
from firstk.advice.store_scores import as_compared, can_rescore, columns_compared, rescored
from firstk.advice.stored_codes import (
    FITTED_ROWS,
    BitStrings,
    EncodedOnce,
    product_quantizers,
    rounded_storages,
)
from firstk.data.precision import PRECISIONS, Precision, resolve_precision
from firstk.data.stores import Form, Store, find_store
from firstk.data.task import Data, Pairs, Rows, Search, n_rows
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import MeanScore, PerRowScores, resampled_scores
from firstk.metrics.curve import (
    AS_IT_IS,
    METRICS,
    SEARCH,
    Storage,
    check_data,
    check_metric,
    full_width_neighbors,
    per_row_scores,
    settled_metric,
)
from firstk.moments.fingerprint import row_priorities
from firstk.moments.moments import Moments
from firstk.quality.choice import CHANCE_CODE, EMBEDDED, PRODUCT_QUANTIZER, RAW, Point, simpler_codes
from firstk.quality.evaluation import Evaluation, Packed
from firstk.quality.paired import DRAWS, TOLERANCE

# Metrics of an encoder's own head or decoder: the raw vectors and baselines have none.
OWN_METRICS = ("head_accuracy", "mixture")
# Metrics of objectives that look at no labels or targets.
UNSUPERVISED = ("explained_variance", "readback_variance", "recall@10")
# Metrics that compare queries with stored codes, whose queries may be rounded as well.
SEARCHES = ("1nn_accuracy", "recall@10", "spearman", "positive_recall@10", *SEARCH)
# Metrics of the best linear readout of the codes, which any other scale and origin leaves as they are.
READOUTS = ("readback_variance", "r2", "probe_accuracy")
# Recall counts ten neighbors for each row, so that a few hundred rows tell shares to half a percent: pairs of rows and
# stored rows that are compared by it, unless asked otherwise.
MOST_PAIRS = 2_000_000
# All prefixes up to here; beyond, eight an octave: no eye and no decision needs more.
ALL_PREFIXES, PER_OCTAVE = 32, 8
# Products of one search, of queries, documents and columns, beyond which lengths are those of a `ladder` alone.
MOST_PRODUCTS = 10_000_000_000
# What the evaluation of searches takes on one core: for each number of the store, which is rounded, read back and laid
# out for every point, and for each product of one search. Measured once: 119 processor seconds for 117,659 x 256
# numbers and 400 queries.
SECONDS_A_NUMBER, SECONDS_A_PRODUCT = 2.4e-6, 3.9e-9
# A baseline whose scores differ by less than this share is no other code to speak of.
AHEAD = 1e-3
# Lengths at which a baseline keeps less of the score at full width than this are no advice, wherever it is ahead there.
WORTH = 0.5
# The baseline of columns as they are.
PLAIN = "plain truncation"
# Bytes that points scored at the same time may take together: each has a few copies of the stored codes.
AT_ONCE, COPIES = 1 << 29, 4

Progress = Callable[[str], object]


def evaluate(
    encoder: Any,
    data: Data | None,
    *,
    metric: str = "auto",
    ks: Sequence[int] | None = None,
    also: Sequence[int] = (),
    precisions: Iterable[str] = tuple(PRECISIONS),
    sizes: Sequence[int] | None = None,
    baselines: bool | Mapping[str, FittedEncoder] = True,
    product_quantizer: bool = False,
    draws: int = DRAWS,
    most_pairs: int | None = MOST_PAIRS,
    store: str | None = None,
    progress: Progress = lambda what: None,
) -> Evaluation:
    """Score every length and precision of an encoder, next to baselines and the raw vectors.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
        Fitted.
    data : Rows, Pairs or Search
        Held-out data, for an honest answer: ``task.held_out``, which must not be None. Of searches, where the encoder
        has learned from judgements, the evaluation is of queries for new documents, if there are 30 of them; that of
        all queries is in its field `over_all`.
    metric : str
        A name in `firstk.metrics.METRICS`; "auto": the objective's own, or the nearest that baselines have too.
    ks : sequence of int, optional
        Prefix lengths. If not given: in float32 all up to 32 and eight an octave beyond; in other precisions four an
        octave, or those at which the code's order is fixed. Of searches of more than 10^10 products (queries times
        documents times columns): two an octave.
    also : sequence of int
        Further prefix lengths beside the usual ones.
    precisions : iterable of str
        Names in `firstk.data.precision.PRECISIONS`.
    sizes : sequence of int, optional
        Numbers of bytes of embedded bits, which have no prefix length; `default_bytes` if not given.
    baselines : bool or mapping from names to FittedEncoder
        Baselines to score as well. True: PCA and uncentred SVD of the rows of the fit, where the encoder holds their
        moments; plain truncation; random dimensions. Those that are ahead of the encoder
        somewhere, or as good and simpler, are rounded too; of searches of more than 10^10 products the best of these
        alone, and not to embedded bits.
    product_quantizer : bool
        Score product quantizers of the raw vectors too, where faiss is installed.
    draws : int
        Resamples of the units.
    most_pairs : int, optional
        Of rows and stored rows that recall@10 compares; None for all.
    store : str, optional
        A vector store in `firstk.data.STORES`, such as "pgvector": score what it holds under its own comparison, in
        its bytes, with the oversampling that rescoring needs, in place of `precisions`. The metric has to be one of a
        search; "auto" is recall@10 where the objective's own is none.
    progress : callable (str) -> None
        Told what has been evaluated.

    Returns
    -------
    evaluation : Evaluation
        ``evaluation.choose(keep=0.99)`` says what to store.

    Examples
    --------
    >>> from firstk import PrefixEncoder, Rows, evaluate
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> encoder = PrefixEncoder(16).fit(digits.X_train)
    >>> data = Rows(digits.X_test, digits.y_test, reference=Rows(digits.X_train, digits.y_train))
    >>> found = evaluate(encoder, data, ks=[8, 16], precisions=["float32", "int8"])
    >>> chosen = found.choose(keep=0.99).point
    >>> chosen.k, chosen.precision, chosen.bytes
    (16, 'int8', 16)
    """
    fitted = check_fitted(encoder, "evaluate")
    data = check_data(data, "evaluate")
    if not is_int(draws) or draws < 0:
        raise bad_parameter("draws", "evaluate", "an int of at least 0", draws)
    data = replace(data)  # what rows remember is true while nobody writes into them: within this call
    data = told_apart(data, fitted.learned if fitted.record.unit == "pair" else None)
    held = None if store is None else find_store(store, "evaluate")
    if held is not None and not held.forms:
        held = None  # files hold every precision
    name = lead_metric(fitted, data) if metric == "auto" else metric
    if held is not None:  # a store is for searches
        precisions = ("float32",)
        if name not in SEARCHES and metric != "auto":
            raise InvalidInputError(
                f"A store is searched, and the metric '{name}' compares nothing. Use one of {', '.join(SEARCHES)}."
            )
        name = name if name in SEARCHES else "recall@10" if isinstance(data, Rows) else "positive_recall@10"
    data = affordable(data, check_metric(name, data), most_pairs)
    if name == "recall@10" and not isinstance(data, Pairs):
        full_width_neighbors(fitted, data)  # once, before threads ask for them
    names = [resolve_precision(each, "evaluate") for each in dict.fromkeys(precisions)]
    usual = default_lengths(fitted)
    if long := products(fitted, data) > MOST_PRODUCTS:
        usual = tuple(k for k in usual if k in ladder(fitted.d)) if usual == finer_ladder(fitted.d) else usual
    lengths = [check_prefix(k, fitted.d, "evaluate") for k in (*(usual if ks is None else ks), *also)]
    grid = _Grid(fitted, data, name, sorted(set(lengths)), names, ks is not None, draws)
    others = (
        _baselines(encoder, data, name)
        if baselines is True
        else {code: check_fitted(baseline, "evaluate") for code, baseline in dict(baselines or {}).items()}
    )
    rounded = any(precision.name != "float32" for precision in names)
    with Alongside() as beside:
        # The cells of bits are fitted while prefixes are swept.
        bits = any(precision.name == EMBEDDED for precision in names)
        found_sizes = beside.submit(lambda: (default_bytes(fitted) if sizes is None else sizes) if bits else ())
        if long:  # one after the other: each holds some copies of many rows
            found_sizes.result()
        found = grid.curves(others, progress)
        grid = replace(grid, sizes=tuple(found_sizes.result()))
    if (rounded or held is not None) and name not in OWN_METRICS:
        others = {code: others[code] for code in rivals(found, fitted, others, METRICS[name].raw(fitted, grid.asked))}
        if long and others:  # one of them: each would take as long as the encoder itself
            means = {code: np.mean([one.values[0].score for one in found if one.point.code == code]) for code in others}
            others = {(best := max(means, key=means.__getitem__)): others[best]}
    if names and not any(precision.name == "float32" for precision in names):  # swept for `rivals` alone
        found = [one for one in found if one.point.code]
    found += grid.rounded(others if rounded else {}, progress)
    if held is not None:
        found += grid.in_store(held, others, found, progress)
    elif product_quantizer and name not in OWN_METRICS:
        found += grid.product_quantizers(progress)
    return replace(grid.tabulated(found), store="" if held is None else held.name)


def told_apart(data: Data, learned: np.ndarray | None) -> Data:
    """Tell searches apart by whether a document that is relevant to the query is among those learned from.

    Parameters
    ----------
    data : Rows, Pairs or Search
        Returned as it is unless it is a Search that does not tell them apart yet.
    learned : ndarray of uint64 or None
        `FittedEncoder.learned`.
    """
    if not isinstance(data, Search) or data.relevance is None or learned is None or data.seen is not None:
        return data
    documents: Any = data.documents if is_sparse(data.documents) else np.asarray(data.documents)
    relevance, known = np.asarray(data.relevance), np.isin(row_priorities({"X": documents}), learned)
    seen = np.zeros(data.n, dtype=bool)
    seen[relevance[known[relevance[:, 1]] & (relevance[:, 2] > 0), 0]] = True
    return replace(data, seen=seen)


def products(encoder: FittedEncoder, data: Data) -> int:
    """Return how many products one search of the raw vectors takes; 0 of data that are no searches."""
    return n_rows(data.documents) * data.n * encoder.p if isinstance(data, Search) else 0


def expected_seconds(encoder: FittedEncoder, data: Data) -> float:
    """Return about how long `evaluate` takes of searches in every precision, on all cores; 0 of other data."""
    return (SECONDS_A_NUMBER + SECONDS_A_PRODUCT * data.n) * products(encoder, data) / max(1, data.n) / cores()


def affordable(data: Data, metric: str, most_pairs: int | None) -> Data:
    """Return as many of the rows or queries as recall compares, evenly spaced; all of them for other metrics."""
    if metric != "recall@10" or most_pairs is None or isinstance(data, Pairs):
        return data
    if isinstance(data, Rows) and data.reference is None:
        return data
    most = max(1, most_pairs // n_rows(data.stored))
    return data if data.n <= most else data.subset(np.linspace(0, data.n - 1, most).round().astype(int))


# -- what is asked -------------------------------------------------------------------------------------------------


def lead_metric(encoder: FittedEncoder, data: Data | None = None) -> str:
    """Return the metric that an evaluation is about: the objective's own, or the nearest that baselines have too.

    Vectors without labels or judgements are kept to be searched, so reconstruction leads by recall@10 as well; who
    wants vectors back asks for readback_variance.
    """
    own = encoder.record.metric if data is None else settled_metric(encoder, data)
    if isinstance(data, Rows) and data.y is not None and own in UNSUPERVISED:
        return metric_of_target(data.y)  # labels that the objective does not look at say what the codes are for
    labels = encoder.head is not None and encoder.head.classes is not None
    return {
        "explained_variance": "recall@10",
        "head_accuracy": "1nn_accuracy",
        "mixture": "1nn_accuracy" if labels else "r2",
        "pair_agreement": "recall@10",
    }.get(own, own)


def other_metrics(encoder: FittedEncoder, data: Data) -> tuple[str, ...]:
    """Return the metrics that tell more than the leading one, as far as the data allow."""
    lead = lead_metric(encoder, data)
    if isinstance(data, Search):
        return () if data.relevance is None else tuple(name for name in SEARCH if name != lead)
    if not isinstance(data, Rows):
        return ()
    own = settled_metric(encoder, data)
    by_target = () if data.y is None else (metric_of_target(data.y),)
    others = {
        "head_accuracy": ("head_accuracy",),
        "1nn_accuracy": ("probe_accuracy",),
        "mixture": ("readback_variance",),
        "explained_variance": ("readback_variance",),
        "readback_variance": ("readback_variance",),
        "recall@10": ("recall@10",),
    }.get(own, by_target)
    return tuple(name for name in others if name != lead)


def metric_of_target(y: ArrayLike) -> str:
    """Return the metric of targets, which are floats or several columns, or of everything else: labels."""
    return "r2" if np.asarray(y).dtype.kind == "f" or np.ndim(y) > 1 else "1nn_accuracy"


def ladder(d: int) -> tuple[int, ...]:
    """Prefix lengths worth a row in a table: 1, 2, 3, 4, 6, 8, 12, ... up to d, and d itself.

    Examples
    --------
    >>> ladder(20)
    (1, 2, 3, 4, 6, 8, 12, 16, 20)
    """
    steps = {m << e for e in range(d.bit_length()) for m in (2, 3)}
    return tuple(sorted({1, d} | {k for k in steps if k < d}))


def finer_ladder(d: int) -> tuple[int, ...]:
    """Prefix lengths to choose among: four an octave from 16 on, a `ladder` below, from one 64th of the width.

    A step too far costs at most a quarter of the bytes then. Shorter prefixes of a long code keep too little to be
    stored.

    Examples
    --------
    >>> finer_ladder(20), finer_ladder(600)[:12]
    ((1, 2, 3, 4, 6, 8, 12, 16, 20), (12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96))
    """
    between = {m << e for e in range(2, d.bit_length()) for m in (5, 7)}
    return tuple(sorted(k for k in {*ladder(d), *(k for k in between if k < d)} if k >= d // 64))


def prefix_grid(d: int) -> tuple[int, ...]:
    """Return the prefix lengths of a curve: all of a short code, eight an octave of a long one.

    Examples
    --------
    >>> prefix_grid(4), len(prefix_grid(768))
    ((1, 2, 3, 4), 69)
    """
    if d <= ALL_PREFIXES:
        return tuple(range(1, d + 1))
    steps = np.arange(int(np.log2(d / ALL_PREFIXES) * PER_OCTAVE) + 1) / PER_OCTAVE
    octaves = np.rint(ALL_PREFIXES * 2**steps).astype(int).tolist()
    return tuple(sorted({*range(1, ALL_PREFIXES + 1), *octaves, d}))


def default_lengths(encoder: FittedEncoder) -> tuple[int, ...]:
    """Return the prefix lengths of rounded codes: those at which the order is fixed; `finer_ladder` where all are."""
    return encoder.record.supported_up_to(encoder.d) or finer_ladder(encoder.d)


def default_bytes(encoder: FittedEncoder, also: float | None = None) -> tuple[int, ...]:
    """Return the numbers of bytes at which embedded bits are scored, those of the raw vectors and baselines as well.

    None where the encoder has no cells for bits. Bits can be cut after any byte: after those of a limit, `also`, too. A
    byte a column is the most: in as many, the columns as they are keep all there is to tell.
    """
    try:
        most = encoder.quantizer(None).bytes
    except InvalidInputError:
        return ()
    ladders = {*byte_ladder(min(most, encoder.p)), *byte_ladder(encoder.p)}
    return tuple(sorted(ladders | (set() if also is None else {int(also)})))


def byte_ladder(most: int) -> tuple[int, ...]:
    """Numbers of bytes to choose among: from 8, four an octave from 16 to 64, else a `ladder`; all of a short code.

    Examples
    --------
    >>> byte_ladder(300)
    (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96, 128, 192, 256, 300)
    """
    steps = {*ladder(most), *(size for size in (20, 28, 40, 56) if size < most)}
    return tuple(sorted(size for size in steps if size >= 8 or most < 64))


# -- baselines ---------------------------------------------------------------------------------------------------


def _baselines(encoder: Any, data: Data, metric: str) -> dict[str, FittedEncoder]:
    """Return the baselines of a metric; those that must be fitted, only where the rows of the fit are at hand.

    Fitted on rows that are searched they would remember them, as the encoder does not, and look better than it.
    """
    if metric in OWN_METRICS:
        return {}
    statistics, p = getattr(encoder, "_statistics", None), check_fitted(encoder, "evaluate").p
    if statistics is None:
        return baselines_of(None, p=p)
    rows: Any = data.stored
    if isinstance(data, Pairs):  # what is evaluated is nothing to fit on
        sample = statistics.sample.columns
        rows = np.concatenate([sample["left"], sample["right"]]) if "left" in sample else None
    elif isinstance(data, Rows) and data.reference is None:
        rows = None
    return baselines_of(data.stored, statistics) if isinstance(statistics.moments, Moments) else baselines_of(rows, p=p)


def rivals(
    found: Sequence[Measured], encoder: FittedEncoder, baselines: Mapping[str, FittedEncoder], raw: float | None
) -> list[str]:
    """Return the baselines that may be the advice: those worth a place in every precision.

    These are ahead of the encoder at some prefix length that is worth storing, or as good there and simpler. Beyond
    half of the columns all codes are as good; there the simpler one is the raw vectors, rounded. A baseline with the
    encoder's own scores is the encoder, one that is nowhere clearly ahead of another that is taken adds nothing to it,
    and columns drawn at random are no advice.
    """
    scores: dict[str, dict[int, float]] = {}
    for one in found:
        scores.setdefault(one.point.code, {})[one.point.k] = one.values[0].score
    ours = scores.get("", {})
    worth, simpler = WORTH * (raw or max(ours.values())), simpler_codes(encoder.record.title)
    taken: list[str] = []
    for code in baselines:
        both = [(k, score, ours[k]) for k, score in scores.get(code, {}).items() if k in ours]
        if code == CHANCE_CODE or all(abs(score - own) <= AHEAD * abs(own) for _, score, own in both):
            continue
        longest = baselines[code].p // 2 if code in simpler else 0
        ahead = any(
            score >= worth and score > own + (-TOLERANCE if k <= longest else AHEAD) * abs(own)
            for k, score, own in both
        )
        covered = any(
            all(
                score < worth or score <= scores[other].get(k, -np.inf) + TOLERANCE * abs(score) for k, score, _ in both
            )
            for other in taken
        )
        if ahead and not covered:
            taken.append(code)
    return taken


# -- scoring -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Measured:
    """A point with its score, on each part of the units."""

    point: Point
    values: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Value:
    """A score, its values on resamples, and how many units it is of (0 where it is a constant)."""

    score: float
    draws: np.ndarray
    n: int


Job = tuple[str, Callable[[], list[Measured]]]


class _Stored(NamedTuple):
    """Codes as they are stored: the points that they make, and the columns of each after `storage`."""

    points: Sequence[Point]
    encoder: Any
    columns: Sequence[int]
    storage: Storage = AS_IT_IS


def _points(
    code: str, encoder: Any, ks: Sequence[int], precision: str, size: Callable[[int], int] | None = None, **more: Any
) -> list[Point]:
    """Return the points of some prefix lengths, without scores; bytes are those of the precision unless given."""
    size = size or PRECISIONS[precision].bytes_per_vector
    once = [0 if code == RAW else encoder.stored_once(slice(k)) for k in ks]
    return [
        Point(k, precision, size(k), 0.0, code=code, stored_once=own, **more) for k, own in zip(ks, once, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Grid:
    """What scores codes on one set of data, as jobs that do not depend on each other."""

    encoder: FittedEncoder
    data: Data
    metric: str
    ks: Sequence[int]
    precisions: Sequence[Precision]
    every: bool
    n_draws: int
    sizes: tuple[int, ...] = ()

    @property
    def asked(self) -> Data:
        """The data that the evaluation is of: searches for new documents, where there are enough."""
        new = self.data.new if isinstance(self.data, Search) else None
        return self.data if new is None else new

    def _measured(self, points: Sequence[Point], scores: PerRowScores) -> list[Measured]:
        """Return points with their scores, on new documents first where these are told apart."""
        parts = [scores]
        if self.asked is not self.data:
            assert isinstance(scores, MeanScore)
            assert isinstance(self.data, Search)
            parts = [scores.part(~np.asarray(self.data.seen)), scores]
        found = [
            (
                part.score(),
                resampled_scores(part, resamples=self.n_draws) if not i else np.empty((0, len(points))),
                part.n,
            )
            for i, part in enumerate(parts)
        ]
        return [
            Measured(
                replace(point, score=float(found[0][0][column])),
                tuple(Value(float(score[column]), draws[:, column], n) for score, draws, n in found),
            )
            for column, point in enumerate(points)
        ]

    def _scored(self, stored: Iterable[_Stored]) -> list[Measured]:
        """Score codes as they are stored."""
        return [
            one
            for points, encoder, columns, storage in stored
            for one in self._measured(
                points, per_row_scores(encoder, self.data, self.metric, np.array(columns), storage)
            )
        ]

    def _made(self, make: Callable[..., Iterable[_Stored]], *given: Any) -> list[Measured]:
        return self._scored(make(*given))

    def _run(self, jobs: Iterable[Job], progress: Progress) -> list[Measured]:
        """Do jobs, in their order: one on each core, if memory allows for so many.

        Else one after the other, each on all cores: workers that leave cores idle would be slower than that. Jobs
        differ in size, and hold no more than their scores when they are done.
        """
        found: list[Measured] = []
        most = AT_ONCE // (COPIES * 4 * self.encoder.p * max(1, n_rows(self.data.stored)))
        alone = cores() == 1 or most < cores()

        def work(job: Job) -> tuple[str, list[Measured]]:
            return job[0], job[1]()

        # All jobs may wait for an earlier one.
        for name, measured in map(work, jobs) if alone else ordered_map(work, jobs, cores(), ahead=1_000_000):
            progress(name)
            found += measured
        return found

    def curves(self, baselines: Mapping[str, FittedEncoder], progress: Progress) -> list[Measured]:
        """Score prefixes of the encoder, and of baselines at fewer lengths, in float32: nothing is rounded."""
        d = self.encoder.d
        few = self.ks if self.every else sorted({*ladder(d), *(self.encoder.record.supported_up_to(d) or ())})
        grid = () if products(self.encoder, self.data) > MOST_PRODUCTS else prefix_grid(d)
        ks = self.ks if self.every else sorted({*grid, *few, *self.ks})

        def curve(code: str) -> list[Measured]:
            encoder, lengths = self.encoder, ks
            if code:
                encoder = baselines[code]
                lengths = [k for k in few if k <= encoder.d]
                if self.metric == "explained_variance" and encoder.decoder is not None:
                    # Variance is that about the mean, so what a baseline leaves out is filled with the mean.
                    encoder = replace(encoder, mean=self.encoder.mean, query_mean=self.encoder.mean)
            return self._scored([_Stored(_points(code, encoder, lengths, "float32"), encoder, lengths)])

        jobs = ((f"{self.metric}, {code or 'ours'}", partial(curve, code)) for code in ("", *baselines))
        return self._run(jobs, progress)

    def rounded(self, rivals: Mapping[str, FittedEncoder], progress: Progress) -> list[Measured]:
        """Score the encoder, rivals and the raw vectors in every other precision."""
        bits = any(precision.name == EMBEDDED for precision in self.precisions)
        # Of baselines and raw vectors from 8 bytes on, octaves up to half a byte a column, and all asked for beside:
        # beyond, the columns as they are take four bits each.
        usual, most = default_bytes(self.encoder) if self.sizes else (), self.encoder.p // 2
        coarser = [o for o in self.sizes if o not in usual or o < 8 or (o & (o - 1) == 0 and o <= most)]

        def rounding(code: str, encoder: EncodedOnce, ks: Sequence[int]) -> Iterator[Job]:
            for precision in self.precisions:
                if precision.name not in ("float32", EMBEDDED):
                    # 12 bits take as many bytes as 16: lengths that take fewer than the next.
                    sizes = [*map(precision.bytes_per_vector, ks), None]
                    lengths = ks if self.every else [k for k, a, b in zip(ks, sizes, sizes[1:], strict=False) if a != b]
                    name = f"{code}, {precision.name}" if code else precision.name
                    yield name, partial(self._made, self._rounded, code, encoder, precision, lengths)

        def jobs() -> Iterator[Job]:
            # First, as these take longest; of a long search they would take half of the time.
            if bits and products(self.encoder, self.data) <= MOST_PRODUCTS:
                for code, baseline in rivals.items():
                    strings = partial(self._strings, baseline, code)
                    yield f"{code}, embedded bits", partial(self._made, self._bits, strings, code, coarser)
            yield from rounding("", EncodedOnce(self.encoder, self.data), self.ks)
            if bits:
                made = _once(partial(self._strings, self.encoder, ""))
                for size in self.sizes:
                    yield f"{size} bytes of embedded bits", partial(self._made, self._bits, made, "", [size])
            if self.metric in OWN_METRICS:
                return
            yield from rounding(RAW, self._columns, [self.encoder.p])
            for code, baseline in rivals.items():
                yield from rounding(code, EncodedOnce(baseline, self.data), self._coarser_lengths(baseline))

        return self._run(jobs(), progress)

    def _rounded(self, code: str, encoder: EncodedOnce, precision: Precision, ks: Sequence[int]) -> Iterator[_Stored]:
        """Round prefixes to one precision; bits with queries as they are, then with bits of queries."""
        Z = encoder.coordinates(self.data.stored, owner="evaluate")
        binary = precision.name == "binary"
        for queries in ("float32", "binary") if binary and self.metric in SEARCHES else ("float32",):
            # Readouts find means and scales by themselves.
            signs = binary and (queries == "binary" or self.metric in READOUTS)
            for lengths, storage in rounded_storages(encoder, precision, Z, ks, signs=signs, ask=queries == "binary"):
                points = _points(code, encoder, lengths, precision.name, queries=queries)
                yield _Stored(points, encoder[: lengths[-1]], lengths, storage)

    def in_store(
        self, store: Store, rivals: Mapping[str, FittedEncoder], found: Sequence[Measured], progress: Progress
    ) -> list[Measured]:
        """Score the encoder, rivals and the raw vectors in every form of a store; float32 as it was measured."""
        codes: dict[str, tuple[EncodedOnce, Sequence[int]]] = {"": (EncodedOnce(self.encoder, self.data), self.ks)}
        codes |= {code: (EncodedOnce(one, self.data), self._coarser_lengths(one)) for code, one in rivals.items()}
        codes[RAW] = self._columns, [self.encoder.p]
        plain = [one for one in (*found, *self.as_they_came()) if one.point.precision == "float32"]
        measured: list[Measured] = []
        jobs: list[Job] = []
        for form in store.forms:
            for code, (encoder, ks) in codes.items():
                lengths = [k for k in ks if form.fits(k)]
                if form.rescored:  # of the code and of the raw vectors, where the store rounds these itself
                    told = code in ("", RAW) and can_rescore(self.data, self.metric)
                    lengths = [k for k in lengths if told and (self.every or k in (*ladder(k + 1), encoder.d))]
                elif form.precision == "float32":
                    measured += [
                        Measured(replace(one.point, form=form.name, bytes=form.bytes(one.point.k)), one.values)
                        for one in plain
                        if one.point.code == code and one.point.k in lengths
                    ]
                    continue
                jobs.append((f"{store.name}, {form.name}", partial(self._in_form, form, code, encoder, lengths)))
        return measured + self._run(jobs, progress)

    def _in_form(self, form: Form, code: str, encoder: Any, ks: Sequence[int]) -> list[Measured]:
        """Score codes of one store's form, each length by itself."""
        measured: list[Measured] = []
        for k in ks:
            cut, oversampling = encoder[:k], None
            scores: PerRowScores
            if form.rescored:
                assert can_rescore(self.data, self.metric)
                oversampling, scores = rescored(cut, self.data, self.metric, form, k)
            else:
                Z = cut.coordinates(self.data.stored, owner="evaluate")
                storage = as_compared(form.precision, Z[:: -(-len(Z) // FITTED_ROWS)], unit=cut.normalized)
                columns = np.array([columns_compared(form.precision, k)])
                scores = per_row_scores(cut, self.data, self.metric, columns, storage)
            more = {"queries": form.queries, "form": form.name, "oversampling": oversampling}
            measured += self._measured(_points(code, encoder, [k], form.precision, form.bytes, **more), scores)
        return measured

    def _strings(self, encoder: FittedEncoder, code: str) -> BitStrings | None:
        """Return the embedded bits of an encoder; None where it has no cells for them, or too little for a byte."""
        if code == PLAIN:  # bits of columns as they are keep less than those of PCA
            return None
        # A fitted encoder brings its cells along; a baseline gets cells of the rows that are stored.
        rows: Any = self.data.stored if code else None
        try:
            return BitStrings(encoder, self.data, compares=self.metric in SEARCHES, rows=rows)
        except InvalidInputError:
            return None

    def _bits(self, made: Callable[[], BitStrings | None], code: str, sizes: Sequence[int]) -> Iterator[_Stored]:
        """Cut embedded bits to some sizes, those that the code has."""
        strings = made()
        if strings is None:
            return
        for size in sorted(size for size in set(sizes) if size <= strings.quantizer.bytes):
            cut = strings.quantizer.at(size)
            point = Point(len(cut.embedded.used), EMBEDDED, size, 0.0, code=code, stored_once=cut.stored_once)
            yield _Stored([point], strings.asking, [strings.asking.d], strings.storage(size))

    @property
    def _columns(self) -> EncodedOnce:
        """The encoder that keeps all columns as they are."""
        plain = plain_truncation(np.zeros((1, self.encoder.p)))
        if self.metric == "explained_variance":  # that about the mean; a cosine is that of the vectors as they came
            plain = replace(plain, mean=self.encoder.mean, query_mean=self.encoder.mean)
        return EncodedOnce(plain, self.data)

    def as_they_came(self) -> list[Measured]:
        """Score the raw vectors; nothing where they have no such score."""
        known = METRICS[self.metric]
        rows = known.raw_rows(self.encoder, self.data)
        p = self.encoder.p
        point = Point(p, "float32", 4 * p, known.raw_constant or 0.0, code=RAW, stored_once=0)
        if rows is not None:
            return self._measured([point], rows)
        if known.raw_constant is None:
            return []
        return [Measured(point, (Value(point.score, np.full(self.n_draws, point.score), 0),) * 2)]

    def product_quantizers(self, progress: Progress) -> list[Measured]:
        """Score product quantizers of the raw vectors, which faiss trains on all cores."""
        plain, found, p = self._columns, [], self.encoder.p
        for size, storage in product_quantizers(plain.coordinates(self.data.stored, owner="evaluate")):
            # 256 centers of each group of columns, in float32.
            point = Point(p, PRODUCT_QUANTIZER, size, 0.0, code="faiss", stored_once=4 * 256 * p)
            found += self._scored([_Stored([point], plain, [p], storage)])
            progress(f"a product quantizer of {size} bytes")
        return found

    def _coarser_lengths(self, baseline: FittedEncoder) -> list[int]:
        """Return lengths of a rounded baseline: half as many as those to choose among, and all asked for beside."""
        d = self.encoder.d
        return [k for k in self.ks if (k in ladder(d) or k not in finer_ladder(d)) and k <= baseline.d]

    def tabulated(self, found: list[Measured]) -> Evaluation:
        """Return the evaluation of points that were scored."""
        found = sorted([*found, *self.as_they_came()], key=lambda one: one.point.key)
        raw = next((one for one in found if one.point.raw), None)
        facts: dict[str, Any] = {
            "metric": self.metric,
            "input_bytes": self.encoder.p * np.dtype(getattr(self.data.stored, "dtype", np.float32)).itemsize,
            "label": self.encoder.record.title,
            "unit": self.data.unit,
            "supported": self.encoder.record.supported_up_to(self.encoder.d),
        }

        def of(part: int, **more: Any) -> Evaluation:
            n = next((one.values[part].n for one in found if one.values[part].n), self.data.n)
            points = tuple(replace(one.point, score=one.values[part].score) for one in found)
            score = None if raw is None else raw.values[part].score
            return Evaluation(points, input_score=score, n_evaluated=n, **facts, **more)

        known = 0
        if isinstance(self.data, Search) and self.data.parts:
            known = int(self.data.parts["known"].sum())
        return of(
            0,
            chance=METRICS[self.metric].chance(self.asked),
            draws=Packed.of([one.values[0].draws for one in found]) if self.n_draws else None,
            n_known=known or None,
            over_all=None if self.asked is self.data else of(1),
        )


def _once(make: Callable[[], BitStrings | None]) -> Callable[[], BitStrings | None]:
    """Return what makes something the first time it is asked, while other threads that ask wait for it."""
    made, lock = cache(make), Lock()

    def ask() -> BitStrings | None:
        with lock:
            return made()

    return ask
