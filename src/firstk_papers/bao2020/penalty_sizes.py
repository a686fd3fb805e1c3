"""Which components the papers' own penalties cut off: lambda_k >= sigma_k^2 in Bao et al. 2020 H.1 and H.2.

Theorems 2 and 3 of Bao et al. 2020 assume lambda_k < sigma_k^2; a component that breaks it is exactly zero at the
optimum.
"""

from __future__ import annotations

import numpy as np

from firstk.orderings import NonuniformL2
from firstk_papers.datasets.images import images
from firstk_papers.frame.instances import floats, line
from firstk_papers.frame.panels import Chart, Findings, Table
from firstk_papers.frame.types import JsonDict, JsonObject, Results

READINGS = {
    "H.2, singular values 100 to 1": (100.0, True),
    "section 7, singular values 1000 to 1": (1000.0, True),
    "H.2, eigenvalues not divided by n": (100.0, False),
}


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return cells: MNIST, and the synthetic set of every width in each of its readings."""
    mnist = {"kind": "mnist", "rows": settings["rows"], "k": 20, "revision": 1}
    return [mnist] + [
        {"kind": "synthetic", "reading": reading, "k": k, "p": 1000, "n": 5000, "revision": 1}
        for reading in READINGS
        for k in settings["widths"]
    ]


def measure(cell: JsonObject) -> JsonDict:
    """Return spectrum, penalties, and the components that break the condition."""
    k = cell["k"]
    if cell["kind"] == "mnist":
        X = images("mnist").X_train
        X = X if cell["rows"] is None else X[: cell["rows"]]
        scatter = np.cov(_pixels(X), rowvar=False, bias=True)
        spectrum = np.linalg.eigvalsh(scatter)[::-1][:k]
        lam = NonuniformL2("mnist").lambdas(spectrum, k)
    else:
        high, divided = READINGS[cell["reading"]]
        spectrum = np.linspace(high, 1.0, cell["p"])[:k] ** 2 / (cell["n"] if divided else 1)
        lam = NonuniformL2("synthetic").lambdas(spectrum, k)
    return {"spectrum": floats(spectrum), "lam": floats(lam), "broken": broken(spectrum, lam)}


def broken(spectrum: np.ndarray, lam: np.ndarray) -> list[int]:
    """Return the components, counted from 1, whose penalty is at least their eigenvalue."""
    return [int(i) + 1 for i in np.flatnonzero(lam >= spectrum)]


def _pixels(X: np.ndarray) -> np.ndarray:
    """Bring images to rows of pixels in [0, 1], as training on tensors has them."""
    flat = X.reshape(len(X), -1).astype(np.float64)
    return flat / 255 if flat.max() > 1.5 else flat


def _said(gone: list[int]) -> str:
    if not gone:
        return "none"
    return f"{gone[0]} to {gone[-1]}" if len(gone) > 1 else str(gone[0])


def report(settings: JsonObject, results: Results) -> Findings:
    """Show which components are cut off."""
    (mnist,) = [found for cell, found in results if cell["kind"] == "mnist"]
    synthetic = [(cell, found) for cell, found in results if cell["kind"] == "synthetic"]
    k = range(1, 21)
    digits = Chart(
        "MNIST, pixels in [0, 1], k = 20 (H.1)",
        "component",
        "value",
        (line("eigenvalue", k, mnist["spectrum"]), line("penalty", k, mnist["lam"])),
        y_scale="log",
    )
    shares = Chart(
        "Synthetic set (H.2): components left",
        "latent dimension k",
        "share with lambda < sigma^2",
        tuple(line(name, settings["widths"], _left(synthetic, name), ours=i == 0) for i, name in enumerate(READINGS)),
        x_scale="log",
    )
    table = Table(
        "Components with lambda >= sigma^2",
        ("set", "k", "components", "count"),
        (
            ("MNIST (H.1)", 20, _said(mnist["broken"]), len(mnist["broken"])),
            *((c["reading"], c["k"], _said(f["broken"]), len(f["broken"])) for c, f in synthetic),
        ),
    )
    counts = {name: [len(f["broken"]) for c, f in synthetic if c["reading"] == name] for name in READINGS}
    appendix, text, undivided = (counts[name] for name in READINGS)
    first = min(f["broken"][0] for c, f in synthetic if c["reading"] == next(iter(READINGS)) and f["broken"])
    return Findings(
        {
            "mnist_broken": len(mnist["broken"]),
            "mnist_first": mnist["broken"][0] if mnist["broken"] else None,
            "synthetic_least_broken": min(appendix),
            "synthetic_widths_broken": sum(count > 0 for count in appendix),
            "synthetic_text_widths_broken": sum(count > 0 for count in text),
            "synthetic_undivided_widths_broken": sum(count > 0 for count in undivided),
            "synthetic_first": first,
        },
        (digits, shares, table),
        (f"MNIST: components {_said(mnist['broken'])} of 20 break the condition.",),
    )


def _left(synthetic: Results, name: str) -> list[float]:
    return [1 - len(f["broken"]) / c["k"] for c, f in synthetic if c["reading"] == name]
