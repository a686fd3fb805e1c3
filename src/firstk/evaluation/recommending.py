r"""The rule by which a prefix length and a precision are recommended, for every command, page and function alike.

Shares are ratios of scores to that of the raw vectors on the same rows. Scores of resampled rows, the same draws for
all points, make their differences paired. A point is recommended if it keeps the share, and every longer prefix in the
same precision does so as well, up to the longest that is not clearly worse than the best. Choosing the cheapest of many
points on the rows that score them flatters the one that is chosen: it is chosen again on each draw :math:`b`, and the
mean of :math:`s_b(c_b) - s(c_b)` is taken off its share (the bootstrap estimate of optimism: Efron and Tibshirani, An
Introduction to the Bootstrap, chapter 17).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_fraction, is_int, is_real
from firstk.data.precision import PRECISIONS
from firstk.encoder.curve import REFERENCES, SHARES
from firstk.encoder.recommendation import AS_GOOD, PRODUCT_QUANTIZER, RAW, Choice, OperatingPoint, Recommendation
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk.evaluation.operating_points import PrecisionTable

CONFIDENCE = 0.95
# Ends of a normal interval with that confidence, in standard deviations of the draws.
DEVIATIONS = 1.96
# The same for the largest of some hundred scores.
OF_MANY = 3.7
# Shares that differ by less are equal: codes of float32 are summed to 1e-7, on each processor its own.
ROUNDING = 1e-6
KEEP = 0.99
# Objectives that are a baseline themselves, by the names that tables have (`objective_name`), and which.
SOLVED = {"reconstruction": "PCA", "similarity, dot_products": "uncentred SVD"}
# A baseline that is evaluated to be seen, and no advice: columns drawn at random.
CHANCE_CODE = "random dimensions"
# The largest share: a loss of 0 is none of any other loss.
MOST_KEPT = 1e3
# Draws on which the reference has less of its score than this say nothing about shares.
LEAST_REFERENCE = 0.1


@dataclass(frozen=True)
class Limits:
    """What an operating point is to be chosen by.

    Attributes
    ----------
    keep : float in (0, 1], optional
        The share that must be kept.
    relative_to : {"auto", "input", "best", "full"}
        Of which score, as in `PrefixCurve.smallest`.
    bytes_per_vector : int, optional
        The most that a stored vector may take.
    seconds : float, optional
        The most that one exact search may take.
    k : int, optional
        This prefix length.
    precisions : tuple of str
        Precisions to choose among.
    binary_queries : bool
        Queries are rounded to bits as well.
    """

    keep: float | None = None
    relative_to: str = "auto"
    bytes_per_vector: int | None = None
    seconds: float | None = None
    k: int | None = None
    precisions: tuple[str, ...] = tuple(PRECISIONS)
    binary_queries: bool = False

    def __post_init__(self) -> None:
        if self.keep is not None:
            check_fraction(self.keep, "keep", "Limits", open_left=True)
        check_choice(self.relative_to, REFERENCES, "relative_to", "Limits")
        if self.seconds is not None and (not is_real(self.seconds) or self.seconds <= 0):
            raise bad_parameter("seconds", "Limits", "a positive number", self.seconds)
        if self.bytes_per_vector is not None and (not is_real(self.bytes_per_vector) or self.bytes_per_vector < 1):
            raise bad_parameter("bytes_per_vector", "Limits", "a number of at least 1", self.bytes_per_vector)
        if self.k is not None and (not is_int(self.k) or self.k < 1):
            raise bad_parameter("k", "Limits", "an int of at least 1", self.k)
        for name in self.precisions:
            check_choice(name, PRECISIONS, "precisions", "Limits")

    @property
    def chooses(self) -> bool:
        """True where a choice was asked for."""
        return any(limit is not None for limit in (self.keep, self.bytes_per_vector, self.seconds, self.k))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Shares of all points of a table, as measured and on each draw.

    Attributes
    ----------
    points : tuple of OperatingPoint
    shares : ndarray of shape (C,)
    draws : ndarray of shape (B, C)
        B = 0 where nothing was resampled.
    n : int, optional
        How many rows were evaluated.
    whole : int, optional
        The point that shares are of, where it is one of them.
    most : float
        What no share exceeds: 1 where the raw vectors have the highest score there is, as about their own neighbors.
    """

    points: tuple[OperatingPoint, ...]
    shares: np.ndarray
    draws: np.ndarray
    n: int | None = None
    whole: int | None = None
    most: float = np.inf

    @cached_property
    def noise(self) -> np.ndarray:
        """Standard deviation of each share over the draws.

        Rows that all agree say no more than that fewer than three in n differ (the rule of three).
        """
        if not len(self.draws):
            return np.zeros(len(self.points))
        noise = np.maximum(self.draws.std(axis=0), 0.0 if self.n is None else 3 / self.n / DEVIATIONS)
        if self.whole is not None:
            noise[self.whole] = 0.0  # what shares are of
        return noise

    @cached_property
    def families(self) -> list[np.ndarray]:
        """Positions of each code in each precision, shortest first, up to the longest not clearly worse than the best.

        Beyond that one, coordinates do harm: they need not keep the share.
        """
        found: dict[tuple[str, str], list[int]] = {}
        for i, point in enumerate(self.points):
            found.setdefault((point.code, point.stored_as), []).append(i)
        return [self._until_harm(np.array(sorted(f, key=lambda i: self.points[i].bytes))) for f in found.values()]

    def _until_harm(self, family: np.ndarray) -> np.ndarray:
        best = family[self.shares[family].argmax()]
        behind = self.shares[best] - self.shares[family]
        spread = (
            (self.draws[:, [best]] - self.draws[:, family]).std(axis=0) if len(self.draws) else np.zeros(len(family))
        )
        last = np.flatnonzero(behind <= DEVIATIONS * spread + ROUNDING)[-1]
        return family[: last + 1]

    def stable(self, shares: np.ndarray) -> np.ndarray:
        """Return the least share from each prefix on; `shares` has a last axis of length C."""
        least = shares.copy()
        for family in self.families:
            longest_first = family[::-1]
            least[..., longest_first] = np.minimum.accumulate(shares[..., longest_first], axis=-1)
        return least


def evidence(table: PrecisionTable, relative_to: str = "auto") -> tuple[Evidence, str, float]:
    """Return the shares of a table's points, what they are shares of, and its score."""
    scores = np.array([point.score for point in table.points])
    draws = np.empty((0, len(scores))) if table.resampled is None else table.resampled.array().T
    whole, name, whole_draws = _reference(table, relative_to, scores, draws)
    if whole <= 0:
        way = (
            "relative_to='best'" if name == RAW else "PrecisionTable.choose(bytes_per_vector=...), which needs no share"
        )
        raise InvalidInputError(
            f"A share of the {table.metric} of {name} means nothing here: it is {whole:.4g}, and not positive. "
            f"Use {way}."
        )
    # Draws on which the reference scores next to nothing have no shares; few rows and a weak score make them.
    counted = whole_draws[:, 0] > LEAST_REFERENCE * whole
    draws, whole_draws = draws[counted], whole_draws[counted]
    shares, drawn = (
        (scores / whole, draws / whole_draws)
        if table.higher_is_better
        else (
            _share_of_loss(whole, scores),
            _share_of_loss(whole_draws, draws),
        )
    )
    place = next((i for i, point in enumerate(table.points) if name == RAW and _is_raw(point)), None)
    perfect = name == RAW and table.higher_is_better and whole == 1.0 and bool((whole_draws == 1.0).all())
    most = 1.0 if perfect and bool((scores <= 1.0).all()) else np.inf
    return Evidence(table.points, shares, drawn, table.n_evaluated, place, most), name, whole


def _share_of_loss(whole: np.ndarray | float, losses: np.ndarray) -> np.ndarray:
    """Return what codes keep of a loss, where lower is better: the reference's loss over their own.

    A loss of nothing keeps `MOST_KEPT`, and so does any that is so small that the ratio would exceed it.
    """
    return np.asarray(whole / np.maximum(losses, whole / MOST_KEPT))


def _is_raw(point: OperatingPoint) -> bool:
    """Tell whether a point is the raw vectors as they came."""
    return point.code == RAW and point.precision == "float32"


def _reference(
    table: PrecisionTable, relative_to: str, scores: np.ndarray, draws: np.ndarray
) -> tuple[float, str, np.ndarray]:
    if relative_to == "auto":  # a share of nothing means nothing: raw vectors that score nothing are no reference
        relative_to = "best" if table.input_score is None or table.input_score <= 0 else "input"
    if relative_to == "input":
        if table.input_score is None:
            raise InvalidInputError(
                "This table has no score of the raw vectors to take a share of. Use relative_to='best'."
            )
        raw = [i for i, point in enumerate(table.points) if _is_raw(point)]
        column = draws[:, raw[:1]] if raw else np.full((len(draws), 1), table.input_score)
        return float(table.input_score), RAW, column
    own = [
        i
        for i, point in enumerate(table.points)
        if point.own
        and point.precision == table.precisions[0]
        and (point.k in (table.supported or (point.k,)) or not point.is_prefix)
    ]
    sign = 1 if table.higher_is_better else -1
    key = (lambda i: sign * scores[i]) if relative_to == "best" else (lambda i: table.points[i].bytes)
    place = max(own, key=key)
    name = f"{'the best prefix' if relative_to == 'best' else 'the full code'} ({table.points[place]})"
    return float(scores[place]), name, draws[:, [place]]


def recommend(table: PrecisionTable, limits: Limits | None = None) -> Recommendation:
    """Recommend an operating point of a table.

    Parameters
    ----------
    table : PrecisionTable
    limits : Limits, optional
        Without any: the cheapest that keeps 99 %.

    Returns
    -------
    recommendation : Recommendation
        Whose `chosen` is None where nothing is within the limits.
    """
    limits = limits or Limits(keep=KEEP)
    if _no_better_than_chance(table):  # a share of such a score would be a share of luck
        return Recommendation(
            table.metric,
            RAW,
            table.input_score or 0.0,
            n_evaluated=table.n_evaluated,
            unit=table.unit,
            chance=table.chance,
        )
    found, name, whole = evidence(table, limits.relative_to)
    rule = _Rule(found, limits, _over_all(table, limits.relative_to), _as_simple(table.label))
    own = _allowed(table, limits, own=True)
    others = _allowed(table, limits, own=False) if limits.k is None else np.zeros(len(own), dtype=bool)
    chosen = rule.choose(own)
    every_other = others
    others = others & ~rule.unproven(chosen)
    better = rule.choose(own | others) if others.any() else None
    if better is not None and not rule.is_better(better, chosen, own, others):
        better = None
    final = None if chosen is None else rule.described(chosen, own)
    simpler = others & np.isin([point.code for point in table.points], [RAW, *simpler_codes(table.label)])
    equal = None if chosen is None or better is not None else rule.as_good(simpler, chosen)
    rival = None if better is not None or equal is not None else rule.rival(every_other, chosen)
    thresholds = _thresholds(found, limits, own) if limits.keep is not None else {}
    everything = np.array([point.own for point in table.points])
    advice = Recommendation(
        metric=table.metric,
        reference=name,
        reference_score=whole,
        chosen=final,
        keep=limits.keep,
        bytes_per_vector=None if limits.bytes_per_vector is None else int(limits.bytes_per_vector),
        safe=None if chosen is None else rule.safe(own, chosen),
        better=None if better is None else rule.described(better, own | others),
        as_good=None if equal is None else rule.described(equal, own | others),
        rival=final if better is not None or equal is not None else None if rival is None else rule.plain(rival),
        best=rule.best(own if own.any() else everything),
        thresholds=tuple(thresholds.values()),
        shares=tuple(thresholds),
        input_bytes=table.input_bytes,
        n_evaluated=table.n_evaluated,
        unit=table.unit,
        needed=_needed(final, limits.keep, table.n_evaluated),
        confidence=CONFIDENCE,
        k=limits.k,
        precisions=() if set(limits.precisions) >= set(PRECISIONS) else limits.precisions,
        seconds=limits.seconds,
        rival_ahead=rival is not None and chosen is not None and rule.is_ahead(rival, chosen),
    )
    return _with_known(advice, table, limits.relative_to)


def _with_known(advice: Recommendation, table: PrecisionTable, relative_to: str) -> Recommendation:
    """Add what is kept over other queries than those for new documents, on which the choice was made."""
    if table.n_known is None or table.n_evaluated is None:
        return advice
    if table.everything is None:
        new = table.n_evaluated - table.n_known
        return replace(advice, n_known=table.n_known, n_new=new or None)
    advice = replace(advice, n_known=table.n_known, n_new=table.n_evaluated)
    if advice.advised is None or table.known is None:
        return advice
    point, rival = advice.advised.point, advice.rival
    kept = [_share_of(other, point, relative_to) for other in (table.everything, table.known)]
    beside = None if rival is None else _share_of(table.everything, rival.point, relative_to)
    return replace(advice, everything=kept[0], known=kept[1], rival_everything=beside)


def _over_all(table: PrecisionTable, relative_to: str) -> np.ndarray | None:
    """Return the shares of a table's points over all queries, where it is of searches for new documents."""
    if table.everything is None:
        return None
    try:
        return evidence(table.everything, relative_to)[0].shares
    except InvalidInputError:  # a share of them means nothing
        return None


def _share_of(table: PrecisionTable, point: OperatingPoint, relative_to: str) -> Choice | None:
    """Return what a point of another table keeps by this one; None where a share means nothing."""
    place = next((i for i, other in enumerate(table.points) if _named(other) == _named(point)), None)
    if place is None:
        return None
    try:
        return Choice(table.points[place], float(evidence(table, relative_to)[0].shares[place]))
    except InvalidInputError:
        return None


def _named(point: OperatingPoint) -> tuple[object, ...]:
    return point.code, point.k, point.bytes, point.stored_as


def simpler_codes(objective: str) -> tuple[str, ...]:
    """Return the baselines that are simpler than the code of an objective; a product quantizer is not.

    Examples
    --------
    >>> simpler_codes("fisher"), simpler_codes("similarity, dot_products")
    (('plain truncation', 'PCA', 'uncentred SVD'), ('plain truncation',))
    """
    return ("plain truncation",) if objective in SOLVED else ("plain truncation", *SOLVED.values())


def _as_simple(objective: str) -> tuple[str, ...]:
    """Return the baselines that are as simple as the code of an objective: PCA and uncentred SVD are to each other."""
    return tuple(code for name, code in SOLVED.items() if objective in SOLVED and name != objective)


def within_limits(table: PrecisionTable, limits: Limits) -> list[OperatingPoint]:
    """Return the encoder's own points that are within the limits, whatever they keep."""
    return [point for point, fits in zip(table.points, _allowed(table, limits, own=True), strict=True) if fits]


def _allowed(table: PrecisionTable, limits: Limits, *, own: bool) -> np.ndarray:
    """Return which points are within the limits: the encoder's own, or those of baselines."""
    queries, unlimited = "binary" if limits.binary_queries else "float32", set(limits.precisions) >= set(PRECISIONS)

    def fits(point: OperatingPoint) -> bool:
        # The order inside a block of a code does not matter to bits, which are given to all of it.
        free = table.supported is None or not point.is_prefix or limits.k is not None
        supported = point.code or free or point.k in (table.supported or ())
        return (
            bool(point.code) is not own
            and bool(supported)
            and (point.queries == queries or (own and limits.binary_queries and point.precision != "binary"))
            and point.code != CHANCE_CODE
            and (point.precision in limits.precisions or (point.precision == PRODUCT_QUANTIZER and unlimited))
            and (limits.k is None or (point.is_prefix and point.k == limits.k))
            and (limits.bytes_per_vector is None or point.bytes <= limits.bytes_per_vector)
            and (limits.seconds is None or (point.seconds is not None and point.seconds <= limits.seconds))
        )

    return np.array([fits(point) for point in table.points])


@dataclass(frozen=True, eq=False)
class _Rule:
    """The choice among points, on the measured shares and on each draw."""

    found: Evidence
    limits: Limits
    # Shares over all queries, where `found` is of searches for new documents; of points in the same order.
    over_all: np.ndarray | None = None
    # Codes that are no simpler than the encoder's own: worth a new fit only where they are clearly ahead.
    as_simple: tuple[str, ...] = ()

    @cached_property
    def _order(self) -> np.ndarray:
        """Positions from the cheapest on; of equally many bytes, the shortest first."""
        points = self.found.points
        return np.array(sorted(range(len(points)), key=lambda i: (points[i].bytes, points[i].k)))

    def _chosen(self, shares: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Return the position that is chosen from each row of shares, shape (B, C); -1 where none is."""
        order = self._order[allowed[self._order]]
        if not len(order):
            return np.full(len(shares), -1)
        if self.limits.keep is None:
            # Equal up to rounding: the cheaper.
            left = shares[:, order]
            return order[(left >= left.max(axis=1, keepdims=True) - ROUNDING).argmax(axis=1)]
        kept = self.found.stable(shares)[:, order] >= self.limits.keep - ROUNDING
        size = np.array([self.found.points[i].bytes for i in order])
        # Of those that take as many bytes as the cheapest, the best.
        cheapest = kept & (size == size[kept.argmax(axis=1)][:, None])
        left = np.where(cheapest, shares[:, order], -np.inf)
        place = order[(left >= left.max(axis=1, keepdims=True) - ROUNDING).argmax(axis=1)]
        return np.where(kept.any(axis=1), place, -1)

    def choose(self, allowed: np.ndarray) -> int | None:
        """Return the position of the point that is chosen; None where none is."""
        place = int(self._chosen(self.found.shares[None], allowed)[0])
        return None if place < 0 else place

    def described(self, place: int, allowed: np.ndarray) -> Choice:
        """Return a point that was chosen among `allowed`, less the optimism of choosing, and its interval."""
        found = self.found
        if not len(found.draws) or place == found.whole:
            return Choice(found.points[place], float(found.shares[place]))
        again = self._chosen(found.draws, allowed)
        drawn = np.flatnonzero(again >= 0)
        flattered = found.draws[drawn, again[drawn]] - found.shares[again[drawn]]
        optimism, spread = (float(flattered.mean()), float(flattered.std())) if len(drawn) else (0.0, 0.0)
        return self._choice(place, float(found.shares[place]) - optimism, max(spread, float(found.noise[place])))

    def _choice(self, place: int, kept: float, noise: float) -> Choice:
        if not len(self.found.draws) or place == self.found.whole:
            return Choice(self.found.points[place], kept)
        kept = min(max(0.0, kept), self.found.most)
        low, high = max(0.0, kept - DEVIATIONS * noise), min(kept + DEVIATIONS * noise, self.found.most)
        return Choice(self.found.points[place], kept, low, high)

    def plain(self, place: int) -> Choice:
        """Return a point with its share as it was measured."""
        return self._choice(place, float(self.found.shares[place]), float(self.found.noise[place]))

    def best(self, allowed: np.ndarray) -> Choice | None:
        """Return the best of some points."""
        places = np.flatnonzero(allowed)
        return self.plain(self._highest(places)) if len(places) else None

    def rival(self, others: np.ndarray, chosen: int | None) -> int | None:
        """Return the best of other codes within the limit of bytes, or in no more than the one chosen takes."""
        if chosen is None:
            return None
        points, limits = self.found.points, self.limits
        most = points[chosen].bytes if limits.keep is not None else limits.bytes_per_vector or points[chosen].bytes
        within = [i for i in np.flatnonzero(others) if points[i].bytes <= most]
        return self._highest(np.array(within)) if within else None

    def is_ahead(self, one: int, other: int) -> bool:
        """Tell whether a point keeps more than another, though not clearly."""
        ahead = self.found.shares[one] > self.found.shares[other] + ROUNDING
        return bool(ahead) and not self._clearly_above(one, other)

    def _highest(self, places: np.ndarray) -> int:
        """Return the first of the positions whose share is the highest, up to rounding."""
        shares = self.found.shares[places]
        return int(places[(shares >= shares.max() - ROUNDING).argmax()])

    def safe(self, allowed: np.ndarray, chosen: int) -> Choice | None:
        """Return the best in the fewest bytes whose whole interval keeps the share; None if that is the one chosen.

        It is what these bytes alone would recommend, with the same interval.
        """
        if self.limits.keep is None or not len(self.found.draws):
            return None
        size = np.array([point.bytes for point in self.found.points])
        kept = self.found.stable(self.found.shares - DEVIATIONS * self.found.noise) >= self.limits.keep - ROUNDING
        within = replace(self, limits=replace(self.limits, keep=None))
        for most in np.unique(size[allowed & kept & (size >= size[chosen])]).tolist():
            among = allowed & (size <= most)
            place = within.choose(among)
            if place is None or not kept[place] or place == chosen:
                continue
            choice = within.described(place, among)
            if choice.low is None or choice.low >= self.limits.keep - ROUNDING:
                return choice
        return None

    def is_better(self, other: int, chosen: int | None, own: np.ndarray, others: np.ndarray) -> bool:
        """Tell whether a point that is not the encoder's own is the better advice, luck of choosing taken off."""
        points = self.found.points
        if not points[other].code:
            return False
        if chosen is None:
            return True
        if self._behind_over_all(other, chosen) and not self._clearly_ahead(other, own):
            return False
        if self.limits.keep is not None:
            if points[other].bytes != points[chosen].bytes:
                return points[other].bytes < points[chosen].bytes
            # Both keep the share in as many bytes: another code is worth its trouble if it is clearly ahead.
            return self._clearly_above(other, chosen)
        return self.described(other, own | others).kept > self.described(chosen, own).kept + ROUNDING

    def unproven(self, chosen: int | None) -> np.ndarray:
        """Return which points are of codes as simple as the encoder's own, and not clearly above the one chosen.

        These are no advice within a limit of bytes. Where a share is to be kept, fewer bytes are what counts.
        """
        found = np.zeros(len(self.found.points), dtype=bool)
        if chosen is None or self.limits.keep is not None:
            return found
        for i, point in enumerate(self.found.points):
            found[i] = point.code in self.as_simple and not self._clearly_above(i, chosen)
        return found

    def _behind_over_all(self, other: int, chosen: int) -> bool:
        """Tell whether a point keeps less than the chosen one over all queries, where that is not what was asked."""
        return self.over_all is not None and bool(self.over_all[chosen] - self.over_all[other] > AS_GOOD)

    def _clearly_ahead(self, other: int, own: np.ndarray) -> bool:
        """Tell whether a point is clearly ahead of the best of the encoder's own in no more bytes."""
        size = np.array([point.bytes for point in self.found.points])
        places = np.flatnonzero(own & (size <= size[other]))
        if not len(places):
            return True
        return self._clearly_above(other, self._highest(places))

    def _clearly_above(self, one: int, other: int) -> bool:
        """Tell whether a point keeps more than another, beyond the noise of the difference."""
        ahead = self.found.shares[one] - self.found.shares[other]
        return bool(ahead > DEVIATIONS * self._apart(one, other) + ROUNDING)

    def as_good(self, simpler: np.ndarray, chosen: int) -> int | None:
        """Return the best simpler code that takes no more bytes than the one chosen, and is as good.

        As good is what is behind by no more than `AS_GOOD`, and not clearly: the interval of the paired difference has
        0 in it.
        """
        points, shares = self.found.points, self.found.shares
        places = [
            i
            for i in np.flatnonzero(simpler).tolist()
            if points[i].bytes <= points[chosen].bytes
            and not self._behind_over_all(i, chosen)
            and shares[chosen] - shares[i] <= min(AS_GOOD, DEVIATIONS * self._apart(i, chosen)) + ROUNDING
        ]
        return self._highest(np.array(places)) if places else None

    def _apart(self, one: int, other: int) -> float:
        """Return the standard deviation of the difference of two shares, paired over the draws."""
        draws = self.found.draws
        return float((draws[:, one] - draws[:, other]).std()) if len(draws) else 0.0


def _thresholds(found: Evidence, limits: Limits, own: np.ndarray) -> dict[float, Choice]:
    """Return the cheapest for each share worth naming that the rows can tell from 1."""
    chosen = {}
    for share in SHARES:
        rule = _Rule(found, Limits(keep=share, precisions=limits.precisions, binary_queries=limits.binary_queries))
        place = rule.choose(own)
        if place is None:
            continue
        choice = rule.described(place, own)
        if choice.noise <= 1 - share:
            chosen[share] = choice
    return chosen


def _needed(chosen: Choice | None, keep: float | None, n: int | None) -> int | None:
    """Return how many rows would lift the lower end to the share; None where no number would, or it is there."""
    if chosen is None or keep is None or n is None or not 0 < chosen.kept - keep < chosen.noise < 1:
        return None
    return int(np.ceil(n * (chosen.noise / max(chosen.kept - keep, 1e-3)) ** 2))


def _no_better_than_chance(table: PrecisionTable) -> bool:
    """Tell whether neither the raw vectors nor any code does better than guessing.

    Of many codes the luckiest is above chance, so all of them have to be so by more deviations than one alone.
    """
    if table.chance is None or table.chance >= 1 or table.resampled is None or not table.higher_is_better:
        return False
    above = np.array([point.score for point in table.points]) - table.chance
    noise = table.resampled.array().std(axis=1)
    raw = np.array([point.code == RAW and point.precision == "float32" for point in table.points])
    return bool((above[raw] <= DEVIATIONS * noise[raw]).all() and (above <= OF_MANY * noise).all())
