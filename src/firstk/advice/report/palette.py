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
