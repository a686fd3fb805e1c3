"""The loss surface of non-uniform l2 about its optimum (figure 1): a steep ring, and a shallow valley along it.

The plane is that of the paper: B = A^T = alpha O(theta) (I - Lambda S^-2)^(1/2) U^T at the point (alpha cos theta,
alpha sin theta), for two axes.
"""

from __future__ import annotations

import numpy as np

from firstk_papers.bao2020.landscape import loss
from firstk_papers.frame.instances import Problem, floats, line
from firstk_papers.frame.panels import Chart, Findings, Heatmap
from firstk_papers.frame.types import JsonDict, JsonObject, Results


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell: the surface, and a descent on it."""
    names = ("spectrum", "lam", "grid", "start", "steps")
    return [{name: settings[name] for name in names} | {"revision": 1}]


def surface(x: float, y: float, data: Problem, lam: np.ndarray) -> float:
    """Return the loss at a point of the plane."""
    alpha, theta = np.hypot(x, y), np.arctan2(y, x)
    turn = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
    B = alpha * turn * np.sqrt(1 - lam / data.spectrum) @ data.U.T
    return loss(data, lam, B, B.T)


def slope(x: float, y: float, data: Problem, lam: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Return the gradient in the plane, by central differences."""
    return np.array(
        [
            surface(x + h, y, data, lam) - surface(x - h, y, data, lam),
            surface(x, y + h, data, lam) - surface(x, y - h, data, lam),
        ]
    ) / (2 * h)


def measure(cell: JsonObject) -> JsonDict:
    """Draw the surface, find the ring and the curvatures, and go down."""
    s, lam = np.array(cell["spectrum"]), np.array(cell["lam"])
    data = Problem(np.diag(s), np.eye(2), s)
    axis = np.linspace(-1.4, 1.4, cell["grid"])
    best = surface(1, 0, data, lam)
    values = [[surface(x, y, data, lam) - best for x in axis] for y in axis[::-1]]
    h = 1e-4
    radial = (surface(1 + h, 0, data, lam) - 2 * best + surface(1 - h, 0, data, lam)) / h**2
    along = (surface(np.cos(h), np.sin(h), data, lam) - 2 * best + surface(np.cos(h), -np.sin(h), data, lam)) / h**2
    nu = 1 - lam / s
    path, t_ring, t_angle = _descent(np.array(cell["start"], float), data, lam, 0.5 / radial, cell["steps"])
    angles = np.linspace(0, np.pi, 61)
    floor = np.array([_floor(angle, data, lam) for angle in angles])  # radius and loss
    return {
        "surface": [floats(row) for row in values],
        "radial": float(radial),
        "along": float(along),
        "along_predicted": float(4 * (lam[1] - lam[0]) * (nu[0] - nu[1])),
        "ring": float(np.abs(floor[:, 0] - 1).max()),
        "angles": floats(angles),
        "valley": floats(floor[:, 1] - best),
        "path": [floats(point) for point in path],
        "steps_to_ring": t_ring,
        "steps_to_angle": t_angle,
    }


def _floor(angle: float, data: Problem, lam: np.ndarray) -> tuple[float, float]:
    """Return the radius at which the loss is least in a direction, and the loss there: a parabola in alpha^2."""
    none, once, twice = (surface(r * np.cos(angle), r * np.sin(angle), data, lam) for r in np.sqrt([0.0, 1.0, 2.0]))
    bend = (twice - 2 * once + none) / 2
    tilt = once - none - bend
    square = -tilt / (2 * bend)
    return float(np.sqrt(square)), float(none + tilt * square + bend * square**2)


def _descent(
    point: np.ndarray, data: Problem, lam: np.ndarray, rate: float, steps: int
) -> tuple[list[np.ndarray], int | None, int | None]:
    """Descend from a point; return when the radius and when the angle came, and stayed, within 1 % of their ends."""
    path = [point]
    for _ in range(steps):
        path.append(path[-1] - rate * slope(path[-1][0], path[-1][1], data, lam))
    track = np.array(path)
    off_ring = np.abs(np.hypot(*track.T) - 1) > 0.01
    off_angle = np.abs(track[:, 1]) > 0.01 * np.abs(track[:, 0])
    ends = [int(np.flatnonzero(off)[-1]) + 1 if not off[-1] else None for off in (off_ring, off_angle)]
    kept = np.unique(np.concatenate([np.arange(min(40, len(path))), np.linspace(0, len(path) - 1, 120).astype(int)]))
    return [path[i] for i in kept], ends[0], ends[1]


def report(settings: JsonObject, results: Results) -> Findings:
    """Report figure 1."""
    ((_, found),) = results
    heat = Heatmap(
        "Loss above the minimum, log10(0.01 + loss)",
        "alpha cos theta, -1.4 to 1.4",
        "alpha sin theta, 1.4 at the top",
        tuple(tuple(round(float(np.log10(0.01 + value)), 4) for value in row) for row in found["surface"]),
        equal=True,
    )
    turn = np.linspace(0, 2 * np.pi, 73)
    x, y = np.array(found["path"]).T
    path = Chart(
        "Gradient descent in that plane",
        "alpha cos theta",
        "alpha sin theta",
        (
            line("descent", x, y, ours=True),
            line("ring of radius 1", np.cos(turn), np.sin(turn)),
        ),
        equal=True,
    )
    along = Chart(
        "Loss on the floor of the valley",
        "theta",
        "above the minimum",
        (line("lowest loss at this angle", found["angles"], found["valley"]),),
    )
    ring, angle = found["steps_to_ring"], found["steps_to_angle"]
    return Findings(
        {
            "curvature_ratio": found["radial"] / found["along"],
            "along_gap": abs(found["along"] / found["along_predicted"] - 1),
            "ring": found["ring"],
            "steps_to_ring": ring,
            "steps_to_angle": angle,
            "stage_ratio": None if angle is None else angle / ring,
        },
        (heat, path, along),
    )
