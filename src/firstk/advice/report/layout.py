"""Arithmetic of a chart: axes, ticks, and labels that do not overlap.

Positions are shares of an axis, 0 at its start and 1 at its end; a `Frame` turns them into coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST_NAME = 28
FEW_POINTS = 24  # Up to here, each evaluated prefix is marked.


@dataclass(frozen=True)
class Frame:
    """The place of the plot inside its picture.

    Attributes
    ----------
    width, height : float
        Of the picture.
    left, right, top, bottom : float
        Edges of the plot; `right` and `bottom` are coordinates, not margins.
    labelled : bool
        Whether there is room for the names of curves at the right.
    """

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    labelled: bool

    def x(self, share: float) -> float:
        """Coordinate of a share of the horizontal axis."""
        return self.left + share * (self.right - self.left)

    def y(self, share: float) -> float:
        """Coordinate of a share of the vertical axis, which grows upwards."""
        return self.bottom - share * (self.bottom - self.top)


@dataclass(frozen=True)
class Octaves:
    """The horizontal axis: log2 of k, because codes are cut at powers of two far more often than at equal steps."""

    low: int
    high: int

    def share(self, k: int) -> float:
        """Position of `k`; an axis of a single k has it in the middle."""
        if self.low == self.high:
            return 0.5
        return math.log2(k / self.low) / math.log2(self.high / self.low)

    def ticks(self, room: float) -> list[int]:
        """Both ends and the powers of two between, none closer to its neighbor than `room` (a share)."""
        if self.low == self.high:
            return [self.low]
        stride = max(1, math.ceil(room * math.log2(self.high / self.low)))
        first, last = (self.low - 1).bit_length(), self.high.bit_length()
        powers = [2**exponent for exponent in range(first, last, stride)]
        inner = [k for k in powers if room <= self.share(k) <= 1 - room]
        return [self.low, *inner, self.high]


# Share of a broken axis that holds what is below the break.
COMPRESSED = 0.16
# Scores below this share of the whole matter to no decision, unless less is asked for.
LEAST_SHARE = 0.8
# Differences below it are none: their steps would have no logarithm.
_LEAST = 1e-300


@dataclass(frozen=True)
class Values:
    """The vertical axis: from one round number to another, with round steps between.

    Attributes
    ----------
    ticks : tuple of float
    broken : bool
        What lies below the second tick is compressed into `COMPRESSED` of the axis: the decision is above.
    """

    ticks: tuple[float, ...]
    broken: bool = False

    @classmethod
    def covering(cls, scores: Iterable[float], about: int = 5, floor: float | None = None) -> Values:
        """Make an axis with about so many steps that holds all scores; what is below `floor` is compressed."""
        scores = list(scores)
        if floor is not None and min(scores) < floor < max(scores):
            above, below = cls.covering([floor, max(scores)], about), cls.covering([min(scores), floor], 2)
            if above.ticks[0] > min(scores):
                return cls((below.ticks[0], *above.ticks), broken=True)
        low, high = min(scores), max(scores)
        size = max(abs(low), abs(high))
        size = size if size > _LEAST else 0.0
        if high - low <= max(1e-6 * size, _LEAST):
            # A flat curve gets an axis around it, not one that magnifies rounding.
            low, high = low - 0.05 * (size or 1), high + 0.05 * (size or 1)
        # The smallest of 1, 2, 2.5, 5, 10 times a power of ten that is not below.
        rough = (high - low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= rough * (1 - 1e-9)), 10 * power)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls(tuple(i * step for i in range(first, last + 1)))

    def share(self, score: float) -> float:
        """Position of a score."""
        if not self.broken:
            return (score - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        low, knee, high = self.ticks[0], self.ticks[1], self.ticks[-1]
        if score < knee:
            return COMPRESSED * (score - low) / (knee - low)
        return COMPRESSED + (1 - COMPRESSED) * (score - knee) / (high - knee)

    def texts(self) -> list[str]:
        """Ticks as text, all with the same number of digits."""
        step = self.ticks[-1] - self.ticks[-2]
        if max(map(abs, self.ticks)) >= 1e5 or step < 1e-4:
            return [f"{tick:.5g}" for tick in self.ticks]
        digits = next((d for d in range(6) if math.isclose(round(step, d), step, rel_tol=1e-6)), 6)
        return [f"{tick + 0.0:.{digits}f}" for tick in self.ticks]


def floor_of(scores: Iterable[float], whole: float, asked: float | None = None) -> float | None:
    """Return the score below which an axis may be compressed; None where little lies below.

    Parameters
    ----------
    scores : iterable of float
        All that is drawn.
    whole : float
        The score that all are measured by: that of the raw vectors, or the best.
    asked : float, optional
        The score that is to be kept: three times what may be lost stays above the floor.

    Examples
    --------
    >>> floor_of([0.0, 0.3, 1.0], whole=1.0)
    0.8
    >>> floor_of([0.7, 0.9, 1.0], whole=1.0) is None
    True
    """
    scores = list(scores)
    floor = LEAST_SHARE * whole
    if asked is not None:
        floor = min(floor, whole - 3 * (whole - asked))
    worth = whole > _LEAST and floor - min(scores) > max(scores) - floor
    return floor if worth and floor < max(scores) else None


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a name to what fits next to a chart; tables have all of it."""
    return name if len(name) <= longest else name[: max(1, longest - 1)].rstrip() + "…"


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move positions as little as possible until neighbors are `gap` apart, inside [low, high].

    With ``wanted[i] - i * gap`` in place of ``wanted[i]`` this is monotone regression, so pooling adjacent
    violators gives the least-squares answer. Equal wishes keep the order in which they are given.

    Examples
    --------
    >>> spread([10.0, 10.0, 50.0], gap=4, low=0, high=60)
    [8.0, 12.0, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    if len(order) > 1:
        gap = min(gap, (high - low) / (len(order) - 1))
    blocks: list[tuple[float, int]] = []  # (sum, count) of wishes that touch
    for rank, i in enumerate(order):
        total, count = wanted[i] - rank * gap, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    ceiling = high - (len(order) - 1) * gap
    flat = [min(max(total / count, low), ceiling) for total, count in blocks for _ in range(count)]
    placed = [0.0] * len(order)
    for rank, i in enumerate(order):
        placed[i] = flat[rank] + rank * gap
    return placed


# Each has a contrast of 4.5 or more against the page (light, dark).
OURS = (
    ("#1557c0", "#82b4ff"),  # blue
    ("#a8480a", "#ffb077"),  # burnt orange
    ("#0b7059", "#62d2b1"),  # green
    ("#84309b", "#dcaaf5"),  # purple
    ("#b01f54", "#ff9ebd"),  # rose
    ("#6b5b00", "#e0cc5a"),  # gold
)
# Greys with a tint: quiet next to ours, and still not one like the other.
BASELINES = (
    ("#55616f", "#a9b4c2"),  # slate
    ("#7d5a3f", "#d2b091"),  # brown
    ("#33696e", "#8ec2c6"),  # teal
    ("#75547a", "#cdaad1"),  # mauve
    ("#60632a", "#c1c480"),  # olive
)
RAW = ("#626a77", "#a3acb9")
ASKED = ("#a02020", "#ff9d94")

OUR_DASHES: tuple[tuple[float, ...], ...] = ((), (14, 3), (14, 3, 3, 3), (8, 2), (14, 3, 3, 3, 3, 3), (20, 2))
BASELINE_DASHES: tuple[tuple[float, ...], ...] = ((7, 4), (2, 2.5), (10, 3, 2, 3), (3, 6), (10, 3, 2, 3, 2, 3))


@dataclass(frozen=True)
class Look:
    """How one line is drawn.

    Attributes
    ----------
    name : str
        Of the CSS variable that holds its colour.
    color : str
        The same colour, on white.
    dash : tuple of float
        Lengths of strokes and gaps; empty for a solid line.
    width : float
    """

    name: str
    color: str
    dash: tuple[float, ...]
    width: float

    @property
    def ours(self) -> bool:
        """True for a curve of ours, False for a baseline or the raw vectors."""
        return self.name.startswith("ours")


RAW_NAME = "raw vectors"
# A level, not a curve: thin and solid.
RAW_LOOK = Look("raw", RAW[0], (), 1.0)
# What is asked for: a level too, drawn so that it is not taken for the raw vectors.
ASKED_LOOK = Look("asked", ASKED[0], (5, 3), 1.0)


def assign(ours: Sequence[str], baselines: Sequence[str]) -> dict[tuple[bool, str], Look]:
    """Give every name its look, by whether it is ours; one name looks the same wherever it returns."""
    found = {(True, name): _look("ours", i, OURS, OUR_DASHES, 2.5) for i, name in enumerate(dict.fromkeys(ours))}
    for i, name in enumerate(dict.fromkeys(baselines)):
        found[False, name] = _look("baseline", i, BASELINES, BASELINE_DASHES, 1.75)
    return found


def _look(
    kind: str, i: int, colors: Sequence[tuple[str, str]], dashes: Sequence[tuple[float, ...]], width: float
) -> Look:
    # Patterns repeat after the last.
    return Look(f"{kind}-{i % len(colors)}", colors[i % len(colors)][0], dashes[i % len(dashes)], width)


def css_variables(scheme: int) -> str:
    """Colours as CSS variables; `scheme` is 0 for light and 1 for dark."""
    named = {f"ours-{i}": pair for i, pair in enumerate(OURS)} | {"raw": RAW, "asked": ASKED}
    named |= {f"baseline-{i}": pair for i, pair in enumerate(BASELINES)}
    return " ".join(f"--{name}: {pair[scheme]};" for name, pair in named.items())
