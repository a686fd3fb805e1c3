"""Learning dynamics of linear autoencoders on MNIST: axis and subspace distance over epochs (figures 2, 3, 7, 8).

Figures 2 and 3 read the same full-batch runs; 7 and 8 are the runs in batches. One cell is one run.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from firstk import Gradient, NonuniformL2, PrefixEncoder
from firstk.exceptions import IllegalCombinationError
from firstk_papers.bao2020.lae_spectra import mnist_of, spectrum_of
from firstk_papers.bao2020.lae_training import (
    MODELS,
    OPTIMIZERS,
    REVISION,
    first_below,
    looks,
    on_moments,
    plain_trace,
    trained,
)
from firstk_papers.frame.panels import Chart, Findings, Heatmap, Mark, Panel, Pictures, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

LEVELS = (0.5, 0.3, 0.1, 0.01)
ALIGNED = 0.3  # the axis distance at which Bao et al. 2020 figure 4 calls a model aligned
_SHOWN = 10  # decoder columns drawn as images
_REGULARIZED = ("nonuniform_l2", "deterministic_nd")


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one recipe a model and optimizer, with the learning rate that Bao et al. 2020 tuned for it (table 2)."""
    data = mnist_of(settings)
    shared = {name: settings[name] for name in ("k", "batch", "seed")} | {"data": data, "revision": REVISION}
    found = []
    for run in settings["runs"]:
        epochs = min(run.get("epochs", settings["epochs"]), settings["most_epochs"])
        extra = {name: run[name] for name in ("lam", "rho") if name in run}
        recipe = {**shared, **extra, **{name: run[name] for name in ("model", "optimizer", "learning_rate")}}
        recipe["epochs"] = epochs if on_moments(recipe) else min(epochs, settings["most_epochs_on_rows"])
        pictured = recipe["optimizer"] == "nesterov" and recipe["batch"] == "full"
        recipe["snapshots"] = _snapshots(settings["snapshots"], recipe["epochs"]) if pictured else []
        found.append(recipe)
    return found


def _snapshots(wanted: list[int], epochs: int) -> list[int]:
    """Return the epochs of figure 3 that a run reaches; what it does not reach is replaced by its end."""
    return sorted({min(epoch, epochs) for epoch in wanted})


def measure(cell: JsonObject) -> JsonDict:
    """Train one recipe; return its trace, U^T W2 at the snapshots, and the decoder as images."""
    watch = trained(cell, looks(cell["epochs"]), cell["snapshots"])
    found: JsonDict = {"trace": plain_trace(watch), "penalised_away": _penalised_away(cell)}
    if watch.decoder is not None:
        found["overlaps"] = {str(epoch): [list(rounded(row)) for row in kept] for epoch, kept in watch.kept.items()}
        rotated = on_moments(cell)
        columns = watch.decoder[:_SHOWN]
        found["pictures"] = [_grey(c) for c in (columns @ spectrum_of(cell["data"]).axes if rotated else columns)]
    return found


def _penalised_away(cell: JsonObject) -> list[int]:
    """Return the components with lambda_k >= sigma_k^2, which vanish at the optimum (theorem 3 excludes them)."""
    if "l2" not in cell["model"]:
        return []
    values = spectrum_of(cell["data"]).values
    k = cell["k"]
    uniform = cell["model"] == "uniform_l2"
    lam = np.full(k, cell["lam"]) if uniform else NonuniformL2(cell["lam"]).lambdas(values, k)
    return [int(i) + 1 for i in np.flatnonzero(lam >= values[:k])]


def _grey(column: np.ndarray) -> str:
    """Return a decoder column as an image: zero is mid-grey, the largest weight black or white."""
    scale = np.abs(column).max() or 1.0
    return np.round(127.5 + 127.5 * column / scale).astype(np.uint8).tobytes().hex()


# -- figures 2, 7, 8 ---------------------------------------------------------------------------------------------


def distances(settings: JsonObject, results: Results) -> Findings:
    """Report both distances over epochs, a pair of charts an optimizer, and when each model is aligned."""
    traces = {(cell["model"], cell["optimizer"]): result["trace"] for cell, result in results}
    panels: list[Panel] = []
    for optimizer, label in (("nesterov", "Nesterov, momentum 0.9"), ("adam", "Adam")):
        chosen = {model: trace for (model, name), trace in traces.items() if name == optimizer}
        panels.append(_chart(f"Axis distance, {label}", "axis", chosen, "linear", (Mark(ALIGNED, "y", "0.3"),)))
        panels.append(_chart(f"Subspace distance, {label}", "subspace", chosen, "log", ()))
    panels.append(_arrivals(results))
    return Findings(
        measures=_measures(traces) | {"adam_refused_for_rotation": _adam_raises()},
        panels=tuple(panels),
        notes=_notes(settings, results),
        censored=_censored(settings, results),
    )


def _chart(title: str, name: str, traces: JsonObject, y_scale: str, marks: tuple[Mark, ...]) -> Chart:
    series = tuple(Series(MODELS[model], tuple(trace["epoch"]), tuple(trace[name])) for model, trace in traces.items())
    return Chart(title, "epochs", f"{name} distance", series, x_scale="log", y_scale=y_scale, marks=marks)


def _arrivals(results: Results) -> Table:
    rows = []
    for cell, result in results:
        trace = result["trace"]
        named = (MODELS[cell["model"]], cell["optimizer"], f"{cell['learning_rate']:g}", cell["epochs"])
        arrived = [first_below(trace, "axis", level) for level in LEVELS]
        ends = (first_below(trace, "subspace", ALIGNED), trace["axis"][-1], trace["subspace"][-1])
        rows.append((*named, *arrived, *ends))
    reached = [f"axis <= {level:g}" for level in LEVELS]
    columns = ("model", "optimizer", "learning rate", "epochs run", *reached, f"subspace <= {ALIGNED:g}")
    return Table("Epochs until a distance is reached", (*columns, "axis, end", "subspace, end"), tuple(rows))


def _measures(traces: Mapping[tuple[str, str], JsonObject]) -> JsonDict:
    """Return numbers for claims: when models align, against one another and against their subspace."""
    found: JsonDict = {}
    for (model, optimizer), trace in traces.items():
        found[f"{model}_{optimizer}_axis_end"] = trace["axis"][-1]
        found[f"{model}_{optimizer}_aligned_at"] = first_below(trace, "axis", ALIGNED)
        found[f"{model}_{optimizer}_lag"] = _at_least(trace, "axis", trace, "subspace")
    lags = [found[f"{model}_{optimizer}_lag"] for model, optimizer in traces]
    found["least_lag"] = min((lag for lag in lags if lag is not None), default=None)
    rotation = traces.get(("rotation", "nesterov"))
    for model in MODELS:
        plain, adam = traces.get((model, "nesterov")), traces.get((model, "adam"))
        if rotation is not None and plain is not None and model != "rotation":
            found[f"{model}_over_rotation"] = _at_least(plain, "axis", rotation, "axis")
            found[f"{model}_over_rotation_at_0.1"] = _at_least(plain, "axis", rotation, "axis", 0.1)
            found[f"{model}_end_beyond_rotation"] = _beyond(plain, rotation)
        if plain is not None and adam is not None:
            found[f"{model}_nesterov_over_adam"] = _at_least(plain, "axis", adam, "axis")
            found[f"{model}_end_beyond_adam"] = _beyond(plain, adam)
    pair = [traces[model, "nesterov"] for model in _REGULARIZED if (model, "nesterov") in traces]
    if len(pair) == 2:
        found["nonuniform_over_deterministic_nd"] = _at_least(pair[0], "axis", pair[1], "axis")
    return found


def _at_least(
    slow: JsonObject, slow_name: str, quick: JsonObject, quick_name: str, level: float = ALIGNED
) -> float | None:
    """Return the ratio of the epochs at which two distances fall below `level`.

    A slow run that ends before that counts with its length: the ratio is then a bound from below. None where nothing
    can be said: the quick one does not arrive, or such a bound does not even reach 1.
    """
    arrived, late = first_below(quick, quick_name, level), first_below(slow, slow_name, level)
    if arrived is None or (late is None and slow["epoch"][-1] <= arrived):
        return None
    return round((late or slow["epoch"][-1]) / arrived, 3)


def _beyond(one: JsonObject, other: JsonObject) -> float:
    """Return how much larger the axis distance of one run is than that of the other, after the same epochs."""
    common = min(one["epoch"][-1], other["epoch"][-1])
    last = [max(i for i, epoch in enumerate(trace["epoch"]) if epoch <= common) for trace in (one, other)]
    return round(one["axis"][last[0]] - other["axis"][last[1]], 5)


def _adam_raises() -> bool:
    """Tell whether firstk raises an error on Adam with the rotation-augmented gradient, the gradient of no loss."""
    rows = np.random.default_rng(0).normal(size=(20, 4))
    try:
        PrefixEncoder(2, ordering="rotation", solver=Gradient(optimizer=OPTIMIZERS["adam"])).fit(rows)
    except IllegalCombinationError:
        return True
    return False


def _notes(settings: JsonObject, results: Results) -> tuple[str, ...]:
    notes = []
    for cell, result in results:
        if result["penalised_away"] and cell["optimizer"] == "nesterov":
            which = ", ".join(map(str, result["penalised_away"]))
            notes.append(
                f"{MODELS[cell['model']]}: lambda_k >= sigma_k^2 for k = {which}; theorem 3 asks for less, and these "
                "axes vanish at the optimum."
            )
    if settings["batch"] == "full":
        notes.append(
            "Nesterov runs are in the eigenbasis of the data, which changes nothing in them; Adam's in pixels."
        )
    return tuple(notes)


def _censored(settings: JsonObject, results: Results) -> tuple[str, ...]:
    """List the runs that were stopped before the paper's number of epochs with their axes not yet found."""
    said = []
    for cell, result in results:
        short = cell["epochs"] < settings["paper_epochs"]
        if short and result["trace"]["axis"][-1] > LEVELS[-1] and cell["model"] != "uniform_l2":
            said.append(f"{MODELS[cell['model']]}, {cell['optimizer']}: stopped at {cell['epochs']:,} epochs.")
    return tuple(said)


# -- figure 3 ----------------------------------------------------------------------------------------------------


def overlaps(settings: JsonObject, results: Results) -> Findings:
    """Report U^T W2 with columns of unit norm at three epochs, one row per model, and decoder columns as images."""
    panels: list[Panel] = []
    measures: JsonDict = {}
    pictured = [(cell, result) for cell, result in results if "overlaps" in result]
    pictured.sort(key=lambda pair: -len(pair[0]["snapshots"]))  # three to a row, so short runs come last
    for cell, result in pictured:
        kept = {int(epoch): np.array(matrix) for epoch, matrix in result["overlaps"].items()}
        for epoch in cell["snapshots"]:
            title = f"{MODELS[cell['model']]}, epoch {epoch:,}"
            values = tuple(tuple(row) for row in np.round(kept[epoch], 3).tolist())
            panels.append(Heatmap(title, "column of the decoder", "principal axis", values, -1.0, 1.0))
        last = np.abs(kept[cell["snapshots"][-1]])
        measures[f"{cell['model']}_diagonal"] = round(float(np.mean(np.diag(last) ** 2)), 4)
        measures[f"{cell['model']}_permuted"] = round(float(np.mean(last.max(axis=1) ** 2)), 4)
    names = tuple(MODELS[cell["model"]] for cell, _ in pictured)
    columns = tuple(str(i + 1) for i in range(_SHOWN))
    pixels = tuple(tuple(result["pictures"]) for _, result in pictured)
    side = 28 // settings.get("pool", 1)
    panels.append(Pictures("First decoder columns at the end", names, columns, (side, side), pixels))
    return Findings(measures, tuple(panels), _notes(settings, results), _censored(settings, results))
