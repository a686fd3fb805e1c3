r"""The rule by which a prefix length and a precision are chosen, for every command, page and function alike.

Shares are ratios of scores to that of the raw vectors on the same units. A point keeps a share if every longer prefix
in the same precision does so as well, up to the longest that is not clearly worse than the best. Choosing the cheapest
of many points on the units that score them flatters the one that is chosen: it is chosen again on each draw :math:`b`,
and the mean of :math:`s_b(c_b) - s(c_b)` is taken off its share (the bootstrap estimate of optimism: Efron and
Tibshirani, An Introduction to the Bootstrap, chapter 17).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk.data.precision import PRECISIONS
from firstk.exceptions import InvalidInputError
from firstk.quality.choice import RAW, SHARES, Choice, Limits, Offer, Point
from firstk.quality.paired import DEVIATIONS, OF_MANY, ROUNDING, TOLERANCE, Difference

if TYPE_CHECKING:
    from firstk.quality.evaluation import Evaluation

# Objectives that are a baseline themselves, by the names that evaluations have, and which.
SOLVED = {"reconstruction": "PCA", "similarity, dot_products": "uncentred SVD"}
# Shown for comparison; never recommended.
CHANCE_CODE = "random dimensions"
# Draws on which the reference has less of its score than this say nothing about shares.
LEAST_REFERENCE = 0.1


def choose(table: Evaluation, limits: Limits) -> Choice:
    """Choose a point of an evaluation.

    Raises
    ------
    InvalidInputError
        If the evaluation has no point of the encoder's own within the limits, or if a share of its score means nothing.
        A share that no point keeps is no error: `Choice.own` is None then.
    """
    facts: dict[str, Any] = {
        "metric": table.metric,
        "limits": limits,
        "input_bytes": table.input_bytes,
        "n_evaluated": table.n_evaluated,
        "unit": table.unit,
        "n_known": table.n_known,
        "on_new": table.over_all is not None,
        "store": table.store,
    }
    if _no_better_than_chance(table):  # a share of such a score would be a share of luck
        return Choice(reference=RAW, reference_score=table.input_score or 0.0, offers=(), chance=table.chance, **facts)
    _check_within(table, limits)
    found, name, whole = evidence(table, limits.relative_to)
    if whole <= 0:
        if limits.keep is not None:
            way = "relative_to='best'" if name == RAW else "bytes_per_vector=..., which needs no share"
            raise InvalidInputError(
                f"A share of the {table.metric} of {name} means nothing here: it is {whole:.4g}, and not positive. "
                f"Use {way}."
            )
        found = replace(found, shares=np.array([point.score for point in table.points]), draws=found.draws[:0])
    # PCA and uncentred SVD are as simple as each other.
    as_simple = tuple(code for name, code in SOLVED.items() if table.label in SOLVED and name != table.label)
    rule = _Rule(found, limits, _shares_over_all(table, limits.relative_to), as_simple)
    own, others = (_allowed(table, limits, own=own) for own in (True, False))
    offers = rule.offers(own, others & (limits.k is None), simpler_codes(table.label))
    if whole <= 0:
        offers = [replace(offer, share=None, low=None, high=None) for offer in offers if offer.reason != "share"]
    chosen = next((offer for offer in offers if offer.reason in ("cheapest", "best")), None)
    return Choice(
        reference=name,
        reference_score=whole,
        offers=tuple(offers),
        needed=_needed(chosen, limits.keep, table.n_evaluated),
        **facts,
    )


# -- shares ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Evidence:
    """Shares of all points, as measured and on each draw.

    Attributes
    ----------
    points : tuple of Point
    shares : ndarray of shape (C,)
    draws : ndarray of shape (B, C)
        B = 0 where nothing was resampled.
    n : int, optional
        How many units were evaluated.
    whole : int, optional
        The point that shares are of, where it is one of them.
    most : float
        What no share exceeds: 1 where the raw vectors have the highest score there is, as about their own neighbors.
    reach : ndarray of shape (C,), optional
        How far above its share each point may be, where there are intervals and no draws.
    """

    points: tuple[Point, ...]
    shares: np.ndarray
    draws: np.ndarray
    n: int | None = None
    whole: int | None = None
    most: float = np.inf
    reach: np.ndarray | None = None

    @cached_property
    def noise(self) -> np.ndarray:
        """Standard deviation of each share over the draws.

        Units that all agree say no more than that fewer than three in n differ (the rule of three).
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
        families = []
        for places in found.values():
            family = np.array(sorted(places, key=lambda i: self.points[i].bytes))
            best = family[self.shares[family].argmax()]
            spread = np.zeros(len(family)) if self.reach is None else self.reach[family]
            if len(self.draws):
                spread = DEVIATIONS * (self.draws[:, [best]] - self.draws[:, family]).std(axis=0)
            behind = self.shares[best] - self.shares[family]
            families.append(family[: np.flatnonzero(behind <= spread + ROUNDING)[-1] + 1])
        return families

    def stable(self, shares: np.ndarray) -> np.ndarray:
        """Return the least share from each prefix on; `shares` has a last axis of length C."""
        least = shares.copy()
        for family in self.families:
            longest_first = family[::-1]
            least[..., longest_first] = np.minimum.accumulate(shares[..., longest_first], axis=-1)
        return least

    def ahead(self, one: int, other: int) -> Difference:
        """Return how far one point is ahead of another."""
        return Difference.of(self.shares[one] - self.shares[other], self.draws[:, one] - self.draws[:, other])


def evidence(table: Evaluation, relative_to: str = "auto") -> tuple[Evidence, str, float]:
    """Return the shares of an evaluation's points, what they are shares of, and its score."""
    points, scores = table.points, np.array([point.score for point in table.points])
    draws = np.empty((0, len(scores))) if table.draws is None else table.draws.array().T
    raw = next((i for i, point in enumerate(points) if point.raw), None)
    if relative_to == "auto":  # a share of nothing means nothing: raw vectors that score nothing are no reference
        relative_to = "best" if table.input_score is None or table.input_score <= 0 else "input"
    if relative_to == "input":
        if table.input_score is None:
            raise InvalidInputError(
                "This evaluation has no score of the raw vectors to take a share of. Use relative_to='best'."
            )
        whole, name = float(table.input_score), RAW
        wholes = np.full((len(draws), 1), whole) if raw is None else draws[:, [raw]]
    else:
        own = [
            i
            for i, point in enumerate(points)
            if point.own
            and point.precision == table.precisions[0]
            and (point.k in (table.supported or (point.k,)) or not point.is_prefix)
        ]
        place = max(own, key=lambda i: scores[i] if relative_to == "best" else points[i].bytes)
        name = f"{'the best prefix' if relative_to == 'best' else 'the full code'} ({points[place]})"
        whole, wholes, raw = float(scores[place]), draws[:, [place]], None
    # Draws on which the reference scores next to nothing have no shares; few units and a weak score make them.
    counted = wholes[:, 0] > LEAST_REFERENCE * whole
    draws, wholes = draws[counted], wholes[counted]
    perfect = name == RAW and whole == 1.0 and bool((wholes == 1.0).all()) and bool((scores <= 1.0).all())
    divisor = whole if whole > 0 else 1.0
    shares, drawn = scores / divisor, draws / np.where(wholes > 0, wholes, 1.0)
    return Evidence(points, shares, drawn, table.n_evaluated, raw, 1.0 if perfect else np.inf), name, whole


def _shares_over_all(table: Evaluation, relative_to: str) -> dict[int, float]:
    """Return the share of each point over all queries; nothing where the choice is on all of them already."""
    if table.over_all is None:
        return {}
    try:
        found, _, whole = evidence(table.over_all, relative_to)
    except InvalidInputError:
        return {}
    keys = [point.key for point in found.points] if whole > 0 else []
    shares = dict(zip(keys, found.shares.tolist(), strict=False))
    return {i: shares[point.key] for i, point in enumerate(table.points) if point.key in shares}


# -- the rule ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rule:
    """The choice among points, on the measured shares and on each draw."""

    found: Evidence
    limits: Limits
    # Shares over all queries, where the choice is on searches for new documents.
    over_all: Mapping[int, float] = field(default_factory=dict)
    # Codes that are no simpler than the encoder's own: worth a new fit only where they are clearly ahead.
    as_simple: tuple[str, ...] = ()

    @cached_property
    def _order(self) -> np.ndarray:
        """Positions from the cheapest on; of equally many bytes, the shortest first."""
        points = self.found.points
        return np.array(sorted(range(len(points)), key=lambda i: (points[i].bytes, points[i].k)))

    @cached_property
    def _size(self) -> np.ndarray:
        return np.array([point.bytes for point in self.found.points])

    def _chosen(self, shares: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Return the position that is chosen from each row of shares, shape (B, C); -1 where none is."""
        order = self._order[allowed[self._order]]
        if not len(order):
            return np.full(len(shares), -1)
        left, kept = shares[:, order], np.ones((len(shares), len(order)), dtype=bool)
        if self.limits.keep is not None:
            kept = self.found.stable(shares)[:, order] >= self.limits.keep - ROUNDING
            # Of those that take as many bytes as the cheapest, the best.
            size = self._size[order]
            left = np.where(kept & (size == size[kept.argmax(axis=1)][:, None]), left, -np.inf)
        # Equal up to rounding: the cheaper.
        place = order[(left >= left.max(axis=1, keepdims=True) - ROUNDING).argmax(axis=1)]
        return np.where(kept.any(axis=1), place, -1)

    def offers(self, own: np.ndarray, others: np.ndarray, simpler_codes: Sequence[str]) -> list[Offer]:
        """Return what is named, the advice first: of the encoder's `own` points, and of `others` within the limits."""
        found, points, limits = self.found, self.found.points, self.limits
        chosen, proven = self.choose(own), others
        if chosen is not None and limits.keep is None:
            # Codes as simple as the encoder's own are no advice unless they are clearly above the one chosen. Where a
            # share is to be kept, fewer bytes are what counts.
            proven = others & np.array(
                [point.code not in self.as_simple or found.ahead(i, chosen).clear for i, point in enumerate(points)]
            )
        better = self.choose(own | proven) if proven.any() else None
        if better is not None and not self.is_better(better, chosen, own, proven):
            better = None
        simpler = proven & np.isin([point.code for point in points], [RAW, *simpler_codes])
        level = None if chosen is None or better is not None else self.level(simpler, chosen)
        offers = [
            self.described(place, reason, own | proven)
            for reason, place in (("better", better), ("simpler", level))
            if place is not None
        ]
        if chosen is not None:
            offers.append(self.described(chosen, "best" if limits.keep is None else "cheapest", own))
            if offers[-1].low is not None and offers[-1].low < (limits.keep or 0.0) - ROUNDING:
                offers += self.safe(own, chosen)
            # The best of other codes within the limit of bytes, or in no more than the one chosen takes.
            most = None if limits.keep is not None else limits.bytes_per_vector
            within = np.flatnonzero(others & (self._size <= (most or self._size[chosen])))
            if not offers[0].point.code and len(within):
                ahead = found.ahead(rival := self.highest(within), chosen)
                reason = "ahead" if ahead.value > ROUNDING and not ahead.clear else "behind"
                offers.append(self.described(rival, reason))
        if offers and (bits := offers[0].point).precision == "binary" and not bits.form:
            alike = replace(bits, queries="binary").key  # the same bits, with queries that are bits as well
            offers += [self.described(i, "rounded") for i, point in enumerate(points) if point.key == alike]
        everything = own if own.any() else np.array([point.own for point in points])
        offers.append(self.described(self.highest(np.flatnonzero(everything)), "most"))
        for share in SHARES if limits.keep is not None else ():
            asked = replace(self, limits=Limits(share, precisions=limits.precisions))
            place = asked.choose(own)
            if place is not None and (offer := asked.described(place, "share", own)).noise <= 1 - share:
                offers.append(replace(offer, asked=share))
        return offers

    def choose(self, allowed: np.ndarray) -> int | None:
        """Return the position of the point that is chosen; None where none is."""
        place = int(self._chosen(self.found.shares[None], allowed)[0])
        return None if place < 0 else place

    def described(self, place: int, reason: str, allowed: np.ndarray | None = None) -> Offer:
        """Return a point with its share and interval; what was chosen among `allowed`, less what choosing adds."""
        found, optimism, noise = self.found, 0.0, float(self.found.noise[place])
        point, share, over_all = found.points[place], float(found.shares[place]), self.over_all.get(place)
        if not len(found.draws) or place == found.whole:
            return Offer(point, reason, share, over_all=over_all)
        again = np.empty(0, dtype=int) if allowed is None else self._chosen(found.draws, allowed)
        drawn = np.flatnonzero(again >= 0)
        if len(drawn):
            flattered = found.draws[drawn, again[drawn]] - found.shares[again[drawn]]
            optimism, noise = float(flattered.mean()), max(float(flattered.std()), noise)
        share = min(max(0.0, share - optimism), found.most)
        low, high = max(0.0, share - DEVIATIONS * noise), min(share + DEVIATIONS * noise, found.most)
        return Offer(point, reason, share, low, high, over_all)

    def highest(self, places: np.ndarray) -> int:
        """Return the first of the positions whose share is the highest, up to rounding."""
        shares = self.found.shares[places]
        return int(places[(shares >= shares.max() - ROUNDING).argmax()])

    def safe(self, allowed: np.ndarray, chosen: int) -> list[Offer]:
        """Return the best in the fewest bytes whose whole interval keeps the share; none if that is the one chosen.

        It is what these bytes alone would recommend, with the same interval.
        """
        if self.limits.keep is None or not len(self.found.draws):
            return []
        size, least = self._size, self.limits.keep - ROUNDING
        # Longer prefixes keep the share as well; that their intervals do, too, is not asked: coordinates may do harm.
        kept = self.found.stable(self.found.shares) >= least
        kept &= self.found.shares - DEVIATIONS * self.found.noise >= least
        within = replace(self, limits=replace(self.limits, keep=None, bytes_per_vector=int(size.max())))
        for most in np.unique(size[allowed & kept & (size >= size[chosen])]).tolist():
            among = allowed & (size <= most)
            place = within.choose(among)
            if place is None or not kept[place] or place == chosen:
                continue
            offer = within.described(place, "safe", among)
            if offer.low is None or offer.low >= least:
                return [offer]
        return []

    def is_better(self, other: int, chosen: int | None, own: np.ndarray, others: np.ndarray) -> bool:
        """Tell whether a point that is not the encoder's own is the better advice, luck of choosing taken off."""
        points, found = self.found.points, self.found
        if not points[other].code:
            return False
        if chosen is None:
            return True
        if self._behind_over_all(other, chosen):  # it has to be clearly ahead of our own best in no more bytes
            places = np.flatnonzero(own & (self._size <= self._size[other]))
            if len(places) and not found.ahead(other, self.highest(places)).clear:
                return False
        if self.limits.keep is not None:
            if points[other].bytes != points[chosen].bytes:
                return points[other].bytes < points[chosen].bytes
            # Both keep the share in as many bytes: another code is worth its trouble if it is clearly ahead.
            return found.ahead(other, chosen).clear
        others_share = self.described(other, "", own | others).share or 0.0
        return others_share > (self.described(chosen, "", own).share or 0.0) + ROUNDING

    def level(self, simpler: np.ndarray, chosen: int) -> int | None:
        """Return the best simpler code that takes no more bytes than the one chosen, and is level with it."""
        places = [
            i
            for i in np.flatnonzero(simpler & (self._size <= self._size[chosen])).tolist()
            if not self._behind_over_all(i, chosen) and self.found.ahead(i, chosen).level
        ]
        return self.highest(np.array(places)) if places else None

    def _behind_over_all(self, other: int, chosen: int) -> bool:
        """Tell whether a point keeps less than the chosen one over all queries, where that is not what was asked."""
        return {other, chosen} <= self.over_all.keys() and self.over_all[chosen] - self.over_all[other] > TOLERANCE


def simpler_codes(objective: str) -> tuple[str, ...]:
    """Return the baselines that are simpler than the code of an objective; a product quantizer is not.

    Examples
    --------
    >>> simpler_codes("fisher"), simpler_codes("similarity, dot_products")
    (('plain truncation', 'PCA', 'uncentred SVD'), ('plain truncation',))
    """
    return ("plain truncation",) if objective in SOLVED else ("plain truncation", *SOLVED.values())


def _allowed(table: Evaluation, limits: Limits, *, own: bool) -> np.ndarray:
    """Return which points are within the limits: the encoder's own, or those of baselines."""
    queries = "binary" if limits.binary_queries else "float32"

    def fits(point: Point) -> bool:
        # The order inside a block of a code does not matter to bits, which are given to all of it.
        free = table.supported is None or not point.is_prefix or limits.k is not None
        supported = point.code or free or point.k in (table.supported or ())
        return (
            bool(point.code) is not own
            and bool(supported)
            and bool(point.form) is bool(table.store)
            and (
                bool(point.form)
                or point.queries == queries
                or (own and limits.binary_queries and point.precision != "binary")
            )
            and point.code != CHANCE_CODE
            and (point.precision in limits.precisions or (point.precision not in PRECISIONS and limits.any_precision))
            and (limits.k is None or (point.is_prefix and point.k == limits.k))
            and (limits.bytes_per_vector is None or point.bytes <= limits.bytes_per_vector)
        )

    return np.array([fits(point) for point in table.points])


def _check_within(table: Evaluation, limits: Limits) -> None:
    """Raise InvalidInputError, with what there is, where no point of the encoder is within the limits' costs."""
    left = [
        o
        for o in table.own
        if (limits.k is None or (o.is_prefix and o.k == limits.k))
        and (o.precision in limits.precisions or (o.form and limits.any_precision))
        and bool(o.form) is bool(table.store)
    ]
    if not left:
        there = sorted({o.k for o in table.prefixes})
        raise InvalidInputError(
            f"The evaluation has no {'code' if limits.k is None else f'k = {limits.k}'} in "
            f"{' or '.join(limits.precisions)}: it has k = {', '.join(map(str, there))} in "
            f"{', '.join(table.precisions)}."
        )
    least, most = min(point.bytes for point in left), limits.bytes_per_vector
    if most is not None and least > most:
        raise InvalidInputError(f"No code fits in {most} bytes; the smallest takes {least} bytes. Allow more.")


def _needed(chosen: Offer | None, keep: float | None, n: int | None) -> int | None:
    """Return how many units would lift the lower end to the share; None where no number would, or it is there."""
    if chosen is None or chosen.share is None or keep is None or n is None:
        return None
    above = chosen.share - keep
    return int(np.ceil(n * (chosen.noise / max(above, 1e-3)) ** 2)) if 0 < above < chosen.noise < 1 else None


def _no_better_than_chance(table: Evaluation) -> bool:
    """Tell whether neither the raw vectors nor any code does better than guessing.

    Of many codes the luckiest is above chance, so all of them have to be so by more deviations than one alone.
    """
    if table.chance is None or table.chance >= 1 or table.draws is None:
        return False
    above = np.array([point.score for point in table.points]) - table.chance
    noise = table.draws.array().std(axis=1)
    raw = np.array([point.raw for point in table.points])
    return bool((above[raw] <= DEVIATIONS * noise[raw]).all() and (above <= OF_MANY * noise).all())
