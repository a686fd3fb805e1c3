r"""Budgets over many codes: how long each of several codes should be when their total is fixed.

Fields of a document, heads of an attention cache, shards of different kinds: each has an encoder and a curve
:math:`s_j(k)`, and together they may have no more than `budget` coordinates or bytes. The next piece of the budget goes
to the code whose score it raises most per unit, weighted by how much it is used,

.. math:: j^* = \arg\max_j \; w_j \, \frac{\bar s_j(k') - \bar s_j(k)}{k' - k},

:math:`\bar s_j` being the concave envelope of :math:`s_j` (its least concave majorant) and k' its next vertex. This is
the rule by which coordinates get their bits (`firstk.bits.allocation`; Shoham and Gersho 1988). Where curves are
concave and their sizes lie one apart, no other allocation of the total is better. Otherwise what is lost is at most the
gain of one step between two vertices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.checks import bad_parameter, is_int
from firstk.exceptions import InvalidInputError
from firstk.quality.curve import PrefixCurve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Allocation:
    """Sizes of several codes under one total.

    Attributes
    ----------
    sizes : dict
        The size of each code, by its name (its number where curves had no names).
    total : int
        Their sum, at most the budget.
    score : float
        Weighted sum of the scores at these sizes; of losses, the negative.
    """

    sizes: dict[str | int, int]
    total: int
    score: float


def allocate(
    curves: Mapping[str, PrefixCurve | ArrayLike] | Sequence[PrefixCurve | ArrayLike],
    budget: int,
    *,
    weights: Mapping[str, float] | Sequence[float] | None = None,
) -> Allocation:
    """Give each of several codes its share of a budget of coordinates or bytes.

    Parameters
    ----------
    curves : mapping or sequence
        Of each code a `PrefixCurve`, whose sizes are its k; or two rows, sizes and scores (bytes, for instance, and the
        scores in so many bytes); or the scores at sizes 0, 1, 2, .... Every code gets at least its first size.
    budget : int
        The most that all sizes may add up to.
    weights : mapping or sequence of float, optional
        How much each code is used: its share of the queries, say. The same for all if not given.

    Returns
    -------
    Allocation
        Ties go to the code that comes first.

    Examples
    --------
    >>> title, body = [0.0, 0.6, 0.7, 0.7], [0.0, 0.3, 0.5, 0.65]
    >>> allocate({"title": title, "body": body}, 4).sizes
    {'title': 1, 'body': 3}
    >>> allocate({"title": title, "body": body}, 4, weights={"title": 9, "body": 1}).sizes
    {'title': 2, 'body': 2}
    """
    names: list[str | int] = list(curves) if isinstance(curves, Mapping) else list(range(len(curves)))
    given = list(curves.values()) if isinstance(curves, Mapping) else list(curves)
    if not given:
        raise InvalidInputError("allocate needs at least one curve. Got none: give a curve for each code.")
    measured = [_points(curve, name) for curve, name in zip(given, names, strict=True)]
    uses = _weights(weights, names)
    least = sum(int(sizes[0]) for sizes, _ in measured)
    if not is_int(budget) or budget < least:
        raise bad_parameter("budget", "allocate", f"an int of at least {least} (the least sizes together)", budget)
    places = _climbed(measured, uses, budget - least)
    sizes = {name: int(points[0][place]) for name, points, place in zip(names, measured, places, strict=True)}
    score = sum(use * points[1][place] for use, points, place in zip(uses, measured, places, strict=True))
    return Allocation(sizes, sum(sizes.values()), float(score))


def _climbed(measured: list[tuple[np.ndarray, np.ndarray]], uses: np.ndarray, left: int) -> list[int]:
    """Return the place of each code on its curve when all that is left has been given away."""
    steps = []  # the gain per unit, the code, and the step along the curve
    for code, (sizes, scores) in enumerate(measured):
        vertices = concave_vertices(sizes, scores)
        for start, end in pairwise(vertices):
            gain = uses[code] * (scores[end] - scores[start]) / (sizes[end] - sizes[start])
            if gain > 0:
                steps.append((-gain, code, start, end))
    places = [0] * len(measured)
    stopped: set[int] = set()
    for _, code, start, end in sorted(steps):
        sizes, scores = measured[code]
        cost = int(sizes[end] - sizes[start])
        if code in stopped:
            continue
        if cost > left:
            # The next vertex is too far: take the best measured point on the way to it.
            stopped.add(code)
            within = np.flatnonzero(sizes - sizes[start] <= left)
            best = int(within[np.argmax(scores[within])])
            end, cost = (best, int(sizes[best] - sizes[start])) if scores[best] > scores[start] else (start, 0)
        places[code], left = end, left - cost
    return places


def concave_vertices(sizes: np.ndarray, scores: np.ndarray) -> list[int]:
    """Return the places where the concave envelope touches a curve, up to its highest point.

    Examples
    --------
    >>> concave_vertices(np.array([0, 1, 2, 3, 4]), np.array([0.0, 0.1, 0.6, 0.7, 0.65]))
    [0, 2, 3]
    """
    kept: list[int] = []
    for place in range(int(np.argmax(scores)) + 1):
        while len(kept) >= 2:
            first, middle = kept[-2:]
            rise = (scores[middle] - scores[first]) * (sizes[place] - sizes[first])
            if rise > (scores[place] - scores[first]) * (sizes[middle] - sizes[first]):
                break
            kept.pop()
        kept.append(place)
    return kept


def _points(curve: PrefixCurve | ArrayLike, name: str | int) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes and scores, the higher the better."""
    if isinstance(curve, PrefixCurve):
        scores = np.asarray(curve.score, dtype=np.float64)
        return np.asarray(curve.k, dtype=np.int64), scores if curve.higher_is_better else -scores
    try:
        values = np.asarray(curve, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    sizes, scores = values if values.ndim == 2 and len(values) == 2 else (np.arange(values.size), values)
    if scores.ndim != 1 or not scores.size or not np.isfinite(values).all():
        raise InvalidInputError(
            f"Curve {name!r} of allocate must be a PrefixCurve, two rows of sizes and scores, or finite scores at "
            f"sizes 0, 1, 2, .... Got {type(curve).__name__} of shape {np.shape(values)}."
        )
    if (np.diff(sizes) <= 0).any() or sizes[0] < 0 or (sizes != np.rint(sizes)).any():
        raise InvalidInputError(
            f"The sizes of curve {name!r} of allocate must be whole numbers of at least 0 that grow. Got "
            f"{sizes[:5].tolist()} ...: sort them, and count coordinates or bytes."
        )
    return sizes.astype(np.int64), scores


def _weights(weights: Mapping[str, float] | Sequence[float] | None, names: list[str | int]) -> np.ndarray:
    if weights is None:
        return np.ones(len(names))
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise bad_parameter("weights", "allocate", f"a number for each of {names}", sorted(map(str, weights)))
        weights = [weights[name] for name in names]  # type: ignore[index]
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (len(names),) or not np.isfinite(values).all() or (values < 0).any():
        raise bad_parameter("weights", "allocate", f"{len(names)} finite numbers of at least 0", weights)
    return values
