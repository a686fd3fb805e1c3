"""How the time to axis alignment grows with the width of the code, on the synthetic set of H.2 (figure 4).

One cell trains one model at one width until its axis distance is 0.3, or to the end of its epochs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from firstk_papers.bao2020.lae_training import MODELS, OPTIMIZERS, REVISION, on_moments, trained
from firstk_papers.frame.panels import Chart, Findings, Panel, Series, Table
from firstk_papers.frame.types import JsonDict, JsonObject, Results


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one recipe a model, optimizer and width, with the learning rates of Bao et al. 2020 table 4."""
    data = {"name": "synthetic", **{name: settings[name] for name in ("rows", "p", "low", "high", "seed")}}
    found = []
    for run in settings["runs"]:
        for k in settings["widths"]:
            recipe = {name: run[name] for name in ("model", "optimizer", "lam", "rho") if name in run}
            recipe |= {"k": k, "batch": "full", "seed": settings["seed"], "until": settings["until"]}
            recipe["learning_rate"] = _rate(run, k)
            recipe["data"] = data
            kind = run["optimizer"] if on_moments(recipe) else "rows"
            most = settings.get("most_epochs_of", {}).get(run["model"], settings["most_epochs"])
            recipe["epochs"] = min(_most(run.get("epochs", settings[f"epochs_{kind}"]), k), most)
            if recipe["epochs"]:  # none: this width is left out, and reported so
                found.append(recipe | {"revision": REVISION})
    return found


def _rate(run: JsonObject, k: int) -> float:
    """Return the learning rate for a width: one number, or from given widths on."""
    rates = {0: run["learning_rate"]} | {int(width): rate for width, rate in run.get("rates_from", {}).items()}
    return rates[max(width for width in rates if width <= k)]


def _most(epochs: Mapping[str, int], k: int) -> int:
    """Return the epochs that a width may take: those of the largest width listed that is not above it."""
    return epochs[max((name for name in epochs if int(name) <= k), key=int)]


def measure(cell: JsonObject) -> JsonDict:
    """Train until aligned; return the epoch, or None, and the axis distance then."""
    epochs = cell["epochs"]
    watch = trained(cell, [epochs])
    epoch, axis, subspace = watch.trace[-1]
    reached = axis <= cell["until"]
    return {"epoch": epoch if reached else None, "axis": round(axis, 5), "subspace": round(subspace, 6)}


def report(settings: JsonObject, results: Results) -> Findings:
    """Report the epochs by width, a chart an optimizer, and how they grow."""
    arrived: dict[tuple[str, str], dict[int, int | None]] = {}
    for cell, result in results:
        arrived.setdefault((cell["model"], cell["optimizer"]), {})[cell["k"]] = result["epoch"]
    panels: list[Panel] = []
    for optimizer, label in (("nesterov", "Nesterov, momentum 0.9"), ("adam", "Adam")):
        chosen = {model: by_width for (model, name), by_width in arrived.items() if name == optimizer}
        series = tuple(_series(MODELS[model], by_width) for model, by_width in chosen.items())
        title = f"Epochs to axis distance {settings['until']:g}, {label}"
        panels.append(Chart(title, "width of the code, k", "epochs", series, x_scale="log", y_scale="log"))
    panels.append(_table(results))
    measures = _measures(arrived) | {"regularised_fail_under_adam": _fail_under_adam(settings, results)}
    return Findings(measures, tuple(panels), _notes(settings), _censored(settings, results))


def _series(name: str, by_width: Mapping[int, int | None]) -> Series:
    widths = sorted(by_width)
    y = tuple(None if by_width[k] is None else float(by_width[k] or 0) for k in widths)
    return Series(name, tuple(float(k) for k in widths), y)


def _table(results: Results) -> Table:
    rows = tuple(
        (MODELS[c["model"]], c["optimizer"], c["k"], f"{c['learning_rate']:g}", c["epochs"], r["epoch"], r["axis"],
         r["subspace"])
        for c, r in results
    )  # fmt: skip
    columns = ("model", "optimizer", "k", "learning rate", "most epochs", "aligned at", "axis, then", "subspace, then")
    return Table("Every run", columns, rows)


def _measures(arrived: Mapping[tuple[str, str], Mapping[int, int | None]]) -> JsonDict:
    """Return, by model, the slope of log epochs in log k and the largest width reached; and ratios to rotation."""
    found: JsonDict = {}
    for (model, optimizer), by_width in arrived.items():
        seen = sorted((k, epoch) for k, epoch in by_width.items() if epoch is not None)
        found[f"{model}_{optimizer}_largest"] = max((k for k, _ in seen), default=None)
        found[f"{model}_{optimizer}_growth"] = _growth(seen)
    rotation = arrived.get(("rotation", "nesterov"), {})
    flattest = found.get("rotation_nesterov_growth")
    for model in MODELS:
        if model != "rotation":
            growths = (found.get(f"{model}_nesterov_growth"), flattest)
            beyond = None if None in growths else round(growths[0] - growths[1], 3)  # type: ignore[operator]
            found[f"{model}_growth_beyond_rotation"] = beyond
            found |= {f"{model}_over_rotation_at": None, f"{model}_over_rotation": None}
        by_width = arrived.get((model, "nesterov"), {})
        both = [k for k in by_width if by_width[k] is not None and rotation.get(k) is not None]
        if both and model != "rotation":
            widest = max(both)
            found[f"{model}_over_rotation_at"] = widest
            found[f"{model}_over_rotation"] = round(by_width[widest] / rotation[widest], 3)  # type: ignore[operator]
    return found


def _fail_under_adam(settings: JsonObject, results: Results) -> bool | None:
    """Tell whether both regularised models miss the level at some width within the paper's epochs; None if not run."""
    failed = []
    for model in ("nonuniform_l2", "deterministic_nd"):
        full = [
            result["epoch"] is None
            for cell, result in results
            if (cell["model"], cell["optimizer"]) == (model, "adam")
            and (result["epoch"] is not None or cell["epochs"] >= settings["paper_epochs"])
            and cell["k"] == max(settings["widths"])
        ]
        if not full:
            return None
        failed.append(any(full))
    return all(failed)


def _growth(seen: list[tuple[int, int]]) -> float | None:
    """Return the slope of a line through log epochs over log k; None with fewer than three points."""
    if len(seen) < 3:
        return None
    k, epochs = np.log(np.array(seen, dtype=float)).T
    return round(float(np.polyfit(k, epochs, 1)[0]), 3)


def _notes(settings: JsonObject) -> tuple[str, ...]:
    return (
        f"Spectrum used: {settings['rows']:,} normal rows of m = {settings['p']:,} whose population has eigenvalues "
        f"evenly spaced from {settings['low']:g} to {settings['high']:g}, as in the authors' published code. Section 7 "
        "says singular values 1, ..., m; appendix H.2 says 1 to 100. At learning rates of 1e-3 (table 4) and curvature "
        "4 sigma_1^2 only eigenvalues up to some hundreds do not diverge, and penalties up to 100 leave something of "
        "the code only if eigenvalues come near 100.",
        "Adam does not apply to the rotation-augmented gradient, and firstk raises an error for it "
        f"({OPTIMIZERS['nesterov']} only); the paper draws that line all the same, and it is left out here.",
    )


def _censored(settings: JsonObject, results: Results) -> tuple[str, ...]:
    """List the widths that ended before the paper's number of epochs, by model and optimizer."""
    ended: dict[tuple[str, str], list[str]] = {}
    for cell, result in results:
        if result["epoch"] is None and cell["epochs"] < settings["paper_epochs"]:
            text = f"k = {cell['k']} at {cell['epochs']:,} (axis distance {result['axis']:.2f})"
            ended.setdefault((cell["model"], cell["optimizer"]), []).append(text)
    said = [f"{MODELS[m]}, {o}: stopped {'; '.join(texts)}." for (m, o), texts in ended.items()]
    return (*said, *_left_out(settings, results))


def _left_out(settings: JsonObject, results: Results) -> list[str]:
    """List the widths that were not run at all."""
    run = {(cell["model"], cell["optimizer"], cell["k"]) for cell, _ in results}
    said = []
    for part in settings["runs"]:
        gone = [k for k in settings["widths"] if (part["model"], part["optimizer"], k) not in run]
        if gone:
            said.append(f"{MODELS[part['model']]}, {part['optimizer']}: not run at k = {', '.join(map(str, gone))}.")
    return said
