"""What the weights of prefixes do (section 2.1): to the answer, to the speed, and where no one code is best.

Three parts: cumulative weights of the schedules; linear fits under each, by Adam as in Table 1 of Talukder et al. 2026
and by firstk; and cross-entropy, where the best codes of different lengths do not nest.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from firstk import Classification, Fisher, FullPrefix, Gradient, PrefixEncoder
from firstk.metrics import paired_cosines
from firstk_papers.datasets import load_banking77
from firstk_papers.frame.hooks import prefix_weights
from firstk_papers.frame.panels import Chart, Findings, Mark, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results
from firstk_papers.talukder2026.recovery import cell_of, table_1
from firstk_papers.talukder2026.recovery_fits import (
    Reference,
    TrainingSet,
    canonical_cosines,
    reference,
    training_set,
)
from firstk_papers.talukder2026.recovery_reports import ALIGNED, TITLES, WIDE

REVISION = 1
SCHEDULES = ("uniform", "harmonic", "reverse_harmonic")
NAMES = {"uniform": "uniform", "harmonic": "1/m", "reverse_harmonic": "1/(d - m + 1)"}
TRACE = 60


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return the weights, the linear fits and the classifiers, each under three schedules."""
    table, seed = table_1(settings["tier"]), settings["seed"]
    made: list[JsonDict] = []
    for omega in SCHEDULES:
        made.append({"revision": REVISION, "part": "weights", "omega": omega, "d": settings["d"]})
        for run in settings["runs"]:
            cell = cell_of(table, run["configuration"], run["method"], seed)
            made.append(
                cell
                | {
                    "revision": REVISION,
                    "part": "linear",
                    "omega": omega,
                    "length": run["length"],
                    "configuration": run["configuration"],
                }
                | ({"trace_every": run["trace_every"]} if "trace_every" in run else {})
            )
        for start in range(settings["classifiers"]):
            made.append(
                {
                    "revision": REVISION,
                    "part": "classifier",
                    "omega": omega,
                    "seed": seed + start,
                    "rows": settings["rows"],
                    "d": settings["width"],
                    "epochs": settings["epochs"],
                    "shrinkage": settings["shrinkage"],
                }
            )
    return made


def measure(cell: JsonObject) -> JsonDict:
    """Do one of the three parts."""
    return {"weights": _weights, "linear": _linear, "classifier": _classifier}[cell["part"]](cell)


def _weights(cell: JsonObject) -> JsonDict:
    cum = prefix_weights(FullPrefix(cell["omega"]), cell["d"]).cum
    return {"cum": list(rounded(cum / cum[0])), "ratio": float(cum[0] / cum[-1])}


class Axes:
    """How many axes are found: the share with PairedCos of 0.99 or more, and the least where the eigengap is wide."""

    def __init__(self, data: TrainingSet, best: Reference, eps: float | None):
        self.data, self.best, self.eps = data, best, eps

    def cosines(self, B: np.ndarray, A: np.ndarray | None) -> np.ndarray:
        """Return PairedCos: of the decoder's columns, or of the canonical form in the metric of Sw + eps I."""
        if self.eps is None:
            assert A is not None
            return paired_cosines(A.T, self.best.axes)
        return canonical_cosines(B, self.best, self.data.moments, self.eps)

    def __call__(self, B: np.ndarray, A: np.ndarray | None) -> dict[str, float]:
        """Return what training watches."""
        found = self.cosines(B, A)
        return {"share": float(np.mean(found >= ALIGNED)), "least": float(found[self.best.gaps > WIDE].min())}


def _linear(cell: JsonObject) -> JsonDict:
    """Train under one schedule, and follow how many axes of the closed form are found."""
    data = training_set(cell["data"], cell["rows"], cell["seed"])
    eps = cell.get("eps")
    best = reference(data, cell["family"], cell["d"], eps)
    axes = Axes(data, best, eps)
    settings: JsonDict = {"epochs": cell["length"], "watch": axes}
    settings["trace_every"] = cell.get("trace_every", 1)
    if cell["method"] != "ours":
        settings |= {"optimizer": "adam", "learning_rate": cell["learning_rate"], "schedule": "constant"}
        settings |= {"batch_size": cell["batch"], "whiten": False, "canonical": False}
        settings["trace_every"] = max(1, cell["length"] // 200) if cell["batch"] == "full" else 1
    encoder = PrefixEncoder(
        cell["d"], objective="reconstruction" if eps is None else Fisher(shrinkage=best.shrinkage),
        ordering=FullPrefix(cell["omega"]), solver=Gradient(**settings), init="random", random_state=cell["seed"],
    ).fit(data.X, None if eps is None else data.y)  # fmt: skip
    batch = cell.get("batch", "full")
    steps = 1 if batch == "full" else len(data.X) // batch
    trace = encoder.trace_
    last = axes(encoder.components_, encoder.decoder_)
    kept = [trace[i] for i in np.unique(np.geomspace(1, len(trace), TRACE).round().astype(int)) - 1]
    half = next((steps * entry["epoch"] for entry in trace if entry["share"] >= 0.5), None)
    return {
        "step": list(rounded(steps * entry["epoch"] for entry in kept)),
        "share": list(rounded(entry["share"] for entry in kept)),
        "least": float(last["least"]),
        "steps_to_half": half,
    }


def _classifier(cell: JsonObject) -> JsonDict:
    """Train full-prefix cross-entropy on Banking77; return test accuracy of the shared head at every k."""
    banking = load_banking77()
    rows = slice(None, None, max(1, len(banking.X_train) // cell["rows"]))
    encoder = PrefixEncoder(
        cell["d"], objective=Classification(shrinkage=cell["shrinkage"], own_heads=0),
        ordering=FullPrefix(cell["omega"]), solver=Gradient(epochs=cell["epochs"]), random_state=cell["seed"],
    ).fit(banking.X_train[rows], banking.y_train[rows])  # fmt: skip
    curve = encoder.curve(banking.X_test, banking.y_test, metric="head_accuracy")
    return {"accuracy": list(rounded(curve.score))}


# -- report ------------------------------------------------------------------------------------------------------------


def report(settings: JsonObject, results: Results) -> Findings:
    """Return weights, speeds and accuracies side by side."""
    measures: JsonDict = {}
    panels = [_weight_panel(results, measures)]
    for run in settings["runs"]:
        panels.append(_linear_panel(run, results, measures))
    panels.append(_classifier_panel(results, measures))
    ours = [value for name, value in measures.items() if name.startswith("ours_least_")]
    measures["ours_least_of_all"] = min(ours)
    return Findings(measures, tuple(panels))


def _of(results: Results, part: str, omega: str) -> list[tuple[JsonObject, JsonObject]]:
    return [(cell, found) for cell, found in results if cell["part"] == part and cell["omega"] == omega]


def _weight_panel(results: Results, measures: JsonDict) -> Chart:
    lines = []
    for omega in SCHEDULES:
        ((_, found),) = _of(results, "weights", omega)
        lines.append(Series(NAMES[omega], tuple(range(1, len(found["cum"]) + 1)), tuple(found["cum"])))
        measures[f"ratio_{omega}"] = rounded([found["ratio"]])[0]
    uniform = measures["ratio_uniform"]
    measures["harmonic_over_uniform"] = rounded([measures["ratio_harmonic"] / uniform])[0]
    measures["reverse_over_uniform"] = rounded([measures["ratio_reverse_harmonic"] / uniform])[0]
    measures["all_decrease"] = all(a > b for line in lines for a, b in pairwise(line.y))  # type: ignore[operator]
    return Chart("Cumulative weight of coordinate k, over the first", "k", "w_k / w_1", tuple(lines), y_scale="log")


def _linear_panel(run: JsonObject, results: Results, measures: JsonDict) -> Chart:
    lines = []
    who = "ours" if run["method"] == "ours" else "adam"
    key = f"{who}_{{}}_{run['configuration'].replace('-', '_')}"
    halves = {}
    for omega in SCHEDULES:
        ((_, found),) = [
            pair
            for pair in _of(results, "linear", omega)
            if (pair[0]["configuration"], pair[0]["method"]) == (run["configuration"], run["method"])
        ]
        lines.append(Series(NAMES[omega], tuple(found["step"]), tuple(found["share"])))
        measures[key.format("least") + f"_{omega}"] = rounded([found["least"]])[0]
        measures[key.format("steps_to_half") + f"_{omega}"] = halves[omega] = found["steps_to_half"]
    reached = [half for half in halves.values() if half is not None]
    measures[key.format("slowest_over_fastest")] = (
        rounded([max(reached) / min(reached)])[0] if len(reached) == len(SCHEDULES) else None
    )
    title = f"{TITLES[run['configuration']]}: {'firstk' if who == 'ours' else 'Adam as in Table 1'}"
    return Chart(title, "step", "share of axes found (PairedCos 0.99)", tuple(lines), x_scale="log")


def _classifier_panel(results: Results, measures: JsonDict) -> Chart:
    lines, means = [], {}
    for omega in SCHEDULES:
        scores = np.array([found["accuracy"] for _, found in _of(results, "classifier", omega)])  # (seeds, d)
        means[omega] = scores.mean(axis=0)
        ks = tuple(range(1, scores.shape[1] + 1))
        low, high = rounded(scores.min(axis=0)), rounded(scores.max(axis=0))
        lines.append(Series(NAMES[omega], ks, rounded(means[omega]), low, high))
        for k in (4, 8, len(ks)):
            measures[f"accuracy_{omega}_{k}"] = rounded([means[omega][k - 1]])[0]
    short = means["harmonic"][3] - means["reverse_harmonic"][3]
    full = means["reverse_harmonic"][-1] - means["harmonic"][-1]
    measures["short_gain_of_harmonic"], measures["full_gain_of_reverse"] = rounded([short, full])
    return Chart(
        "Cross-entropy, Banking77: accuracy of the shared head", "k", "test accuracy", tuple(lines), x_scale="log",
        marks=(Mark(4, "x", "k = 4"),),
    )  # fmt: skip
