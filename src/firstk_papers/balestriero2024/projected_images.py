"""Images as the top and the bottom of the spectrum leave them (figure 10 and the middle of figure 1)."""

from __future__ import annotations

import numpy as np

from firstk_papers.frame.panels import Findings, Pictures
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1
TITLES = {"cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST"}
SPREAD = 2.5  # standard deviations between grey and either end of the scale


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell a set."""
    common = {name: settings[name] for name in ("shown", "shrink", "pairs")}
    return [{**common, "set": part["name"], "rows": part["rows"], "revision": REVISION} for part in settings["sets"]]


def measure(cell: JsonObject) -> JsonDict:
    """Project the first test image of each of some classes on both ends; return pictures and what each end holds."""
    from firstk_papers.balestriero2024.eigenspaces import eigenspaces, pixels

    data = pixels(cell["set"], cell["rows"], 1000, cell["shrink"])
    spaces = eigenspaces(cell["set"], cell["rows"], cell["shrink"])
    first = [int(np.flatnonzero(data.y_test == c)[0]) for c in range(cell["shown"])]
    X = data.X_test[first]
    found = []
    for top, bottom in cell["pairs"]:
        for end, share in (("top", top), ("bottom", bottom)):
            k = spaces.cut(end, share)
            kept = spaces.project(X, end, k)
            found.append({
                "end": end,
                "share": share,
                "axes": k,
                "kept": spaces.kept(end, k),
                # Of these test images: detail is the energy of differences of neighboring pixels over that of pixels.
                "detail": detail(kept, data.shape),
                "pixels": [as_picture(row) for row in (kept + spaces.encoder.mean_ if end == "top" else kept)],
            })  # fmt: skip
    return {"shape": list(data.shape), "originals": [as_picture(row) for row in X], "projected": found}


def as_picture(row: np.ndarray) -> str:
    """Return one image as bytes in hexadecimal: its mean is grey, 2.5 standard deviations are black and white."""
    spread = max(float(row.std()), 1e-12)
    levels = 127.5 + 127.5 / SPREAD * (row - row.mean()) / spread
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8).tobytes().hex()


def detail(X: np.ndarray, shape: tuple[int, int, int]) -> float:
    """Return the energy of differences of neighboring pixels over that of pixels: small where images are smooth."""
    images = X.reshape(len(X), *shape).astype(np.float64)
    differences = np.square(np.diff(images, axis=1)).sum() + np.square(np.diff(images, axis=2)).sum()
    return float(differences / np.square(images).sum())


def report(settings: JsonObject, results: Results) -> Findings:
    """Show each set's images above what the ends of the spectrum keep of them."""
    measures: dict[str, float] = {}
    panels = []
    for cell, found in results:
        name = cell["set"].partition("-")[0]
        rows = ["images"] + [
            f"{part['end']} {part['kept']:.0%} ({'first' if part['end'] == 'top' else 'all but'} {part['axes']} axes)"
            for part in found["projected"]
        ]
        shape = tuple(found["shape"]) if found["shape"][2] > 1 else tuple(found["shape"][:2])
        pictures = (tuple(found["originals"]), *(tuple(part["pixels"]) for part in found["projected"]))
        columns = tuple(str(i + 1) for i in range(cell["shown"]))
        panels.append(Pictures(TITLES[cell["set"]], tuple(rows), columns, shape, pictures))
        top, bottom = (part["detail"] for part in found["projected"][:2])
        measures |= {f"{name}_top_detail": top, f"{name}_bottom_detail": bottom, f"{name}_ratio": bottom / top}
    note = "Each picture is drawn about its own mean and spread, because the bottom is too faint to see otherwise."
    return Findings(measures, tuple(panels), (note,))
