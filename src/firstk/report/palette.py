"""How lines look: colours for light and dark, and dash patterns that tell them apart without colour.

The page and the figures share them, so that a curve looks the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Each has a contrast of 4.5 or more against the page (light, dark).
OURS = (
    ("#1557c0", "#82b4ff"),  # blue
    ("#a8480a", "#ffb077"),  # burnt orange
    ("#0b7059", "#62d2b1"),  # green
    ("#84309b", "#dcaaf5"),  # purple
    ("#b01f54", "#ff9ebd"),  # rose
)
BASELINE = ("#626a77", "#a3acb9")
RAW = ("#626a77", "#a3acb9")

OUR_DASHES: tuple[tuple[float, ...], ...] = ((), (14, 3), (14, 3, 3, 3), (8, 2), (14, 3, 3, 3, 3, 3))
BASELINE_DASHES: tuple[tuple[float, ...], ...] = ((7, 4), (2, 2.5), (9, 3, 2, 3), (4, 2), (9, 3, 2, 3, 2, 3))
RAW_DASH: tuple[float, ...] = (1, 3)


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


RAW_LOOK = Look("raw", RAW[0], RAW_DASH, 1.5)


def looks(curves: Sequence[object], baselines: Sequence[object]) -> list[Look]:
    """Give every curve its look, ours first; patterns repeat after five."""
    ours = [
        Look(f"ours-{i % len(OURS)}", OURS[i % len(OURS)][0], OUR_DASHES[i % len(OUR_DASHES)], 2.5)
        for i in range(len(curves))
    ]
    return ours + [
        Look("baseline", BASELINE[0], BASELINE_DASHES[i % len(BASELINE_DASHES)], 1.75) for i in range(len(baselines))
    ]


def css_variables(scheme: int) -> str:
    """Colours as CSS variables; `scheme` is 0 for light and 1 for dark."""
    named = {f"ours-{i}": pair for i, pair in enumerate(OURS)} | {"baseline": BASELINE, "raw": RAW}
    return " ".join(f"--{name}: {pair[scheme]};" for name, pair in named.items())
