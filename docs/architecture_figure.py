"""Draw the rooms of the library and who imports whom, from the import graph: a picture that cannot go stale.

``docs/conf.py`` draws it whenever the site is built; ``python docs/architecture_figure.py PATH`` does so by hand.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "firstk"
PATH = "read → Task → fit → FittedEncoder → evaluate → Evaluation → choose → Choice → words"
CELL, LEFT, TOP = 24, 150, 170
INK, PALE, DOT = "#1f2933", "#e4e7eb", "#2563eb"


def layers() -> list[list[str]]:
    """Return the rooms by layer, the top first, as import-linter checks them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    rows = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    return [[room.strip() for room in row.split("|")] for row in rows]


def sources(room: str) -> list[Path]:
    """Return the files of a room."""
    folder = LIBRARY / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def imported_rooms(room: str) -> set[str]:
    """Return the rooms that a room imports when it runs; imports for types alone do not count."""
    found = set()
    for path in sources(room):
        tree = ast.parse(path.read_text("utf-8"))
        for_types = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or id(node) in for_types or node.module is None:
                continue
            if node.module == "firstk":
                found |= {alias.name for alias in node.names}
            elif node.module.startswith("firstk."):
                found.add(node.module.split(".")[1])
    return found - {room}


def drawing() -> str:
    """Return the picture as SVG: the path, then a matrix of rooms."""
    rows = layers()
    rooms = [room for row in rows for room in row]
    width, height = LEFT + CELL * len(rooms) + 60, TOP + CELL * len(rooms) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(20, 30, PATH, size=13),
        _text(
            20,
            56,
            "A dot: the room of the row imports the room of the column. Imports go downward: dots stand right",
            size=11,
        ),
        _text(
            20,
            72,
            "of the diagonal, but for the doors that pyproject.toml lists. Beside each room: its lines.",
            size=11,
        ),
    ]
    place = {room: i for i, room in enumerate(rooms)}
    start = 0
    for row in rows:  # a layer is a band; its rooms do not import one another
        side = CELL * len(row)
        x, y = LEFT + CELL * start, TOP + CELL * start
        parts.append(f'<rect x="{x}" y="{y}" width="{side}" height="{side}" fill="{PALE}"/>')
        start += len(row)
    for room, i in place.items():
        y, x = TOP + CELL * (i + 0.5), LEFT + CELL * (i + 0.5)
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in sources(room))
        parts.append(_text(LEFT - 8, y + 4, f"{room}  {lines:,}", anchor="end"))
        parts.append(
            f'<g transform="translate({x + 4} {TOP - 8}) rotate(-60)">{_text(0, 0, room)}</g>'
            f'<line x1="{LEFT}" y1="{y + CELL / 2}" x2="{width - 60}" y2="{y + CELL / 2}" stroke="{PALE}"/>'
        )
        for other in imported_rooms(room):
            if other in place:
                parts.append(f'<circle cx="{LEFT + CELL * (place[other] + 0.5)}" cy="{y}" r="5" fill="{DOT}"/>')
    return "\n".join([*parts, "</svg>"])


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} font-size="{size}" fill="{INK}">{escape(words)}</text>'


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawing(), "utf-8")
