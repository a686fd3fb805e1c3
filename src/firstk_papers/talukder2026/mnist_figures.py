"""Figures 2 and 6b, read off the cells of `mnist_codes`: means over seeds with intervals, maps of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import SupportsFloat

import numpy as np
from scipy import stats

from firstk_papers.frame.panels import Chart, Findings, Mark, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

NAMES = {"full_prefix": "full prefix", "monotone_l1": "monotone l1"}
SHOWN = NAMES | {"harmonic": "full prefix, harmonic weights"}
PAPER_RHO = {"full_prefix": 0.956, "monotone_l1": 0.850}  # Talukder et al. 2026 section 3
NEAR = 0.02  # of the accuracy at full width: at the plateau
INERT = 0.1  # of the largest mean |z_k|: below it a coordinate is called inert
CONFIDENCE = 0.95
DRAWN = 600  # points of a map


def geometry(settings: JsonObject, results: Results) -> Findings:
    """Return figure 2: sizes, probes and prefixes of the two codes, and how size agrees with what a probe finds."""
    runs = {method: _of(results, method, settings["alpha"]) for method in NAMES}
    measures: JsonDict = {}
    for method, found in runs.items():
        measures |= {f"{method}_{name}": value for name, value in _summary(found).items()}
        low, high = measures[f"{method}_spearman_low"], measures[f"{method}_spearman_high"]
        measures[f"{method}_paper_rho_inside"] = None if low is None else bool(low <= PAPER_RHO[method] <= high)
    measures |= _compared(runs, measures)
    harmonic = _of(results, "harmonic", settings["alpha"])
    measures["harmonic_gap_at_3"] = _digits(gaps(_stack(harmonic, "accuracy"))[:, 2].mean()) if harmonic else None
    grid, note = _choice(settings, results)
    measures["alpha_is_the_best_of_the_grid"] = None if grid is None else grid == settings["alpha"]
    return Findings(
        measures=measures,
        panels=(
            *_curves(runs | {"harmonic": harmonic} if harmonic else runs),
            *_agreement(runs, settings["seeds"][0]),
            _by_seed(runs | {"harmonic": harmonic}, settings["seeds"]),
            _by_alpha(_of_seed(results, settings["seeds"][0])),
        ),
        notes=(note, _seeds_note(measures, len(settings["seeds"])), _probe_note(measures)),
        censored=_censored(settings, results),
    )


def _of(results: Results, method: str, alpha: float) -> list[JsonObject]:
    """Return what the seeds of a method gave, the chosen alpha alone."""
    return [found for cell, found in results if cell["method"] == method and cell["alpha"] in (None, alpha)]


def _stack(found: Sequence[JsonObject], name: str) -> np.ndarray:
    return np.array([run[name] for run in found], dtype=float)  # (seeds, d)


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and ends of Student's interval for it over the first axis, 95 %; no width where there is one row."""
    mean, n = values.mean(axis=0), len(values)
    if n == 1:
        return mean, mean, mean
    half = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def agreement(size: np.ndarray, probe: np.ndarray) -> float:
    """Return Spearman's correlation of mean |z_k| with the accuracy of a probe of z_k."""
    return float(stats.spearmanr(size, probe).statistic)


def gaps(accuracy: np.ndarray) -> np.ndarray:
    """Return how far each prefix is below the accuracy at full width; (..., d)."""
    return accuracy[..., -1:] - accuracy


def plateau(accuracy: np.ndarray) -> int:
    """Return the smallest k from which on every prefix is within 0.02 of the accuracy at full width."""
    far = np.flatnonzero(gaps(accuracy) > NEAR)
    return int(far[-1]) + 2 if len(far) else 1


def _plateaus(found: Sequence[JsonObject]) -> np.ndarray:
    return np.array([plateau(accuracy) for accuracy in _stack(found, "accuracy")])


def _summary(found: Sequence[JsonObject]) -> JsonDict:
    """Return the numbers of one method, over seeds."""
    accuracy, size = _stack(found, "accuracy"), _stack(found, "size")
    below = gaps(accuracy).mean(axis=0)
    rho = np.array([agreement(size[i], run["probe"]) for i, run in enumerate(found)])
    free = [agreement(size[i], run["scale_free_probe"]) for i, run in enumerate(found)]
    mean, low, high = (float(value) for value in interval(rho))
    mean_size = size.mean(axis=0)
    alone = len(found) == 1
    return {
        "accuracy": _digits(accuracy[:, -1].mean()),
        "gap_at_3": _digits(below[2]),
        "gap_at_3_median": _digits(np.median(gaps(accuracy)[:, 2])),
        "seeds_at_plateau_by_3": int(np.sum(gaps(accuracy)[:, 2] <= NEAR)),
        "gap_at_6": _digits(below[5]),
        "plateau": plateau(accuracy.mean(axis=0)),
        "spearman": _digits(mean),
        "spearman_low": None if alone else _digits(low),
        "spearman_high": None if alone else _digits(high),
        "spearman_least": _digits(rho.min()),
        "spearman_most": _digits(rho.max()),
        "scale_free_spearman": _digits(np.mean(free)),
        "largest_rise_of_size": _digits(np.diff(mean_size).max()),
        "size_in_first_three": _digits(mean_size[:3].sum() / mean_size.sum()),
        "live_coordinates": int(np.sum(mean_size > INERT * mean_size.max())),
    }


def _compared(runs: Mapping[str, Sequence[JsonObject]], measures: JsonObject) -> JsonDict:
    """Return full prefix less monotone l1, or the ratio of the two; one seed alone compares nothing."""
    ours, other = (_stack(runs[method], "probe").mean(axis=0) for method in NAMES)

    def less(name: str) -> float:
        return _digits(measures[f"full_prefix_{name}"] - measures[f"monotone_l1_{name}"])

    found = {
        "spearman_difference": less("spearman"),
        "scale_free_spearman_difference": less("scale_free_spearman"),
        "size_in_first_three_difference": less("size_in_first_three"),
        "plateau_ratio": _digits(measures["monotone_l1_plateau"] / measures["full_prefix_plateau"]),
        "plateau_ratio_by_seed": _digits(np.median(_plateaus(runs["monotone_l1"]) / _plateaus(runs["full_prefix"]))),
        **{f"probe_difference_at_{k}": _digits(ours[k - 1] - other[k - 1]) for k in (1, 2, 3)},
    }
    return found if len(runs["full_prefix"]) > 1 else dict.fromkeys(found)


def _digits(value: SupportsFloat) -> float:
    return round(float(value), 5)


def _curves(runs: Mapping[str, Sequence[JsonObject]]) -> tuple[Chart, ...]:
    """Return panels (i) to (iv)."""
    titles = {
        "size": ("(i) Size of coordinates", "mean |z_k|"),
        "variance": ("(ii) Variance of coordinates", "variance of z_k"),
        "probe": ("(iii) One coordinate alone", "accuracy of a logistic probe"),
        "accuracy": ("(iv) The first k coordinates", "accuracy under the learned head"),
    }
    charts = []
    for name, (title, label) in titles.items():
        series = tuple(_band(SHOWN[method], _stack(found, name), method) for method, found in runs.items())
        marks = (Mark(3, "x", "k = 3"), Mark(6, "x", "k = 6")) if name == "accuracy" else ()
        charts.append(Chart(title, "k", label, series, marks=marks))
    return tuple(charts)


def _band(name: str, values: np.ndarray, method: str) -> Series:
    # Sizes of unit codes, variances and accuracies lie in [0, 1]; Student's interval does not know that.
    mean, low, high = (rounded(np.clip(part, 0, 1)) for part in interval(values))
    return Series(name, _numbers(values.shape[1]), mean, low, high, ours=method == "full_prefix")


def _numbers(d: int) -> tuple[float, ...]:
    return tuple(float(k) for k in range(1, d + 1))


def _agreement(runs: Mapping[str, Sequence[JsonObject]], seed: int) -> tuple[Chart, ...]:
    """Return panels (v) and (vi): rank against rank, of the first seed."""
    charts = []
    for panel, (method, found) in zip(("(v)", "(vi)"), runs.items(), strict=True):
        size, probe = (np.array(found[0][name]) for name in ("size", "probe"))
        x, y = (tuple(stats.rankdata(part).tolist()) for part in (size, probe))
        rho = agreement(size, probe)
        title = f"{panel} {NAMES[method]}, seed {seed}: rho = {rho:.3f} (Talukder et al. 2026: {PAPER_RHO[method]:.3f})"
        series = Series(NAMES[method], x, y, kind="points", ours=method == "full_prefix")
        charts.append(Chart(title, "rank of mean |z_k|", "rank of probe accuracy", (series,)))
    return tuple(charts)


def _by_seed(runs: Mapping[str, Sequence[JsonObject]], seeds: Sequence[int]) -> Table:
    rows = []
    for method, found in runs.items():
        for seed, run in zip(seeds, found, strict=False):  # harmonic weights are not in every tier
            accuracy = np.array(run["accuracy"])
            rho = agreement(np.array(run["size"]), np.array(run["probe"]))
            free = agreement(np.array(run["size"]), np.array(run["scale_free_probe"]))
            numbers = (rho, free, accuracy[2], accuracy[5], accuracy[-1])
            rows.append((SHOWN[method], seed, *(round(float(x), 4) for x in numbers), plateau(accuracy), run["epochs"]))
    columns = ("method", "seed", "Spearman", "Spearman, scale-free probe", "k = 3", "k = 6", "all", "plateau", "epochs")
    return Table("By seed", columns, tuple(rows))


def _of_seed(results: Results, seed: int) -> dict[float, JsonObject]:
    """Return what each alpha gave with one seed, ascending."""
    found = {c["alpha"]: r for c, r in results if c["method"] == "monotone_l1" and c["seed"] == seed}
    return dict(sorted(found.items()))


def _by_alpha(found: Mapping[float, JsonObject]) -> Table:
    """Return what the penalty's strength does, so that the choice can be assessed."""
    rows = []
    for alpha, run in found.items():
        accuracy = np.array(run["accuracy"])
        numbers = (np.mean(run["choosing_accuracy"]), run["choosing_accuracy"][-1], *accuracy[[2, 5, -1]])
        rho = agreement(np.array(run["size"]), np.array(run["probe"]))
        rows.append((alpha, *(round(float(x), 4) for x in (*numbers, rho)), plateau(accuracy)))
    columns = ("alpha", "choosing, mean over k", "choosing, all", "test, k = 3", "k = 6", "all", "Spearman", "plateau")
    return Table("Monotone l1 by alpha, one seed", columns, tuple(rows))


def _choice(settings: JsonObject, results: Results) -> tuple[float | None, str]:
    """Return the alpha with the best mean accuracy over all prefixes on rows held out for choosing, and a remark."""
    seed, count = settings["seeds"][0], settings["choosing_rows"]
    scored = {alpha: float(np.mean(run["choosing_accuracy"])) for alpha, run in _of_seed(results, seed).items()}
    if settings.get("code"):
        return None, f"alpha is {settings['alpha']:g}, as in the authors' code."
    said = f"Talukder et al. 2026 gives no alpha for MNIST. Here it is {settings['alpha']:g}"
    if len(scored) < 2:
        return None, f"{said}, as chosen in the full tier."
    listed = ", ".join(f"{alpha:g}: {score:.4f}" for alpha, score in scored.items())
    best = max(scored, key=scored.__getitem__)
    rule = f"the best mean accuracy over all prefixes on {count:,} training images kept for choosing (seed {seed})"
    return best, f"{said}, from a grid by {rule}: {listed}."


def _seeds_note(measures: JsonObject, seeds: int) -> str:
    said = [
        f"{name} in {measures[f'{method}_seeds_at_plateau_by_3']} of {seeds} (median gap "
        f"{measures[f'{method}_gap_at_3_median']:.3f})"
        for method, name in NAMES.items()
    ]
    return f"Seeds that are within {NEAR:g} of the accuracy at full width at k = 3: {', '.join(said)}."


def _probe_note(measures: JsonObject) -> str:
    pair = [f"{measures[f'{method}_scale_free_spearman']:.3f} for {name}" for method, name in NAMES.items()]
    return (
        "The logistic probe has a penalty, which holds small coordinates back. With a probe that is blind to scale, "
        f"Spearman's correlation is {' and '.join(pair)}."
    )


def _censored(settings: JsonObject, results: Results) -> tuple[str, ...]:
    """Name what was still allowed to go on in the paper: at most 20 epochs on all training images."""
    capped = sum(found["epochs"] >= settings["epochs"] for _, found in results)
    if settings["epochs"] >= settings["paper_epochs"] or not capped:
        return ()
    return (
        f"{capped} of {len(results)} networks stopped at {settings['epochs']} epochs; "
        f"Talukder et al. 2026 allows {settings['paper_epochs']}.",
    )


def clustering(settings: JsonObject, results: Results) -> Findings:
    """Return figure 6b: classes in short prefixes, on a plane and in the codes themselves."""
    runs = {method: _of(results, method, settings["alpha"]) for method in NAMES}
    prefixes = settings["map_prefixes"]
    measures: JsonDict = {}
    for score in ("silhouette", "neighbors"):
        codes = [_cluster_scores(runs[method], "clusters", score) for method in NAMES]
        several = len(codes[0]) > 1
        measures[f"code_{score}_least_difference"] = (
            _digits((codes[0] - codes[1]).mean(axis=0).min()) if several else None
        )
        mapped = [found[0]["maps"] for found in runs.values()]
        known = all(part and part["clusters"] for part in mapped)
        measures[f"map_{score}_least_difference"] = (
            _digits(min(a[score] - b[score] for a, b in zip(*(p["clusters"] for p in mapped), strict=True)))
            if known
            else None
        )
    return Findings(
        measures=measures,
        panels=(*_planes(runs), *_cluster_charts(runs, prefixes), _cluster_table(runs, prefixes)),
        notes=_map_notes(settings, runs),
        censored=_censored(settings, results),
    )


def _cluster_scores(found: Sequence[JsonObject], where: str, score: str) -> np.ndarray:
    return np.array([[part[score] for part in run[where]] for run in found])  # (seeds, prefixes)


def _planes(runs: Mapping[str, Sequence[JsonObject]]) -> tuple[Chart, ...]:
    charts = []
    for method, found in runs.items():
        maps = found[0]["maps"]
        if maps is None:
            continue
        y = np.array(maps["y"][:DRAWN])
        kind = "UMAP of k" if maps["clusters"] else "first two coordinates, k"
        for k, plane in maps["planes"].items():
            a, b = np.array(plane)[:, :DRAWN]
            classes = np.unique(y)
            series = tuple(Series(f"digit {c}", tuple(a[y == c]), tuple(b[y == c]), kind="points") for c in classes)
            charts.append(Chart(f"{NAMES[method]}: {kind} = {k}", "", "", series))
    return tuple(charts)


def _cluster_charts(runs: Mapping[str, Sequence[JsonObject]], prefixes: Sequence[int]) -> tuple[Chart, ...]:
    labels = {"silhouette": "mean silhouette of the digits", "neighbors": "accuracy of 5 nearest neighbors"}
    charts = []
    for score, label in labels.items():
        series = []
        for method, found in runs.items():
            mean, low, high = (rounded(part) for part in interval(_cluster_scores(found, "clusters", score)))
            x = tuple(float(k) for k in prefixes)
            series.append(Series(NAMES[method], x, mean, low, high, ours=method == "full_prefix"))
        charts.append(Chart("In the codes, all seeds", "k", label, tuple(series)))
    return tuple(charts)


def _cluster_table(runs: Mapping[str, Sequence[JsonObject]], prefixes: Sequence[int]) -> Table:
    rows = []
    for method, found in runs.items():
        maps = found[0]["maps"]
        mapped = (maps["clusters"] if maps else None) or [{}] * len(prefixes)
        for i, k in enumerate(prefixes):
            codes = [_digits(_cluster_scores(found, "clusters", s)[:, i].mean()) for s in ("silhouette", "neighbors")]
            rows.append((NAMES[method], k, mapped[i].get("silhouette"), mapped[i].get("neighbors"), *codes))
    columns = ("method", "k", "silhouette, map", "5-NN, map", "silhouette, codes", "5-NN, codes")
    return Table("Clusters", columns, tuple(rows))


def _map_notes(settings: JsonObject, runs: Mapping[str, Sequence[JsonObject]]) -> tuple[str, ...]:
    if settings["mapping"] != "umap":
        return ("Maps are drawn in the full tier.",)
    if any(found[0]["maps"]["clusters"] is None for found in runs.values()):
        return ("umap-learn is not installed, so the first two coordinates are drawn: pip install 'firstk[umap]'.",)
    count = settings["map_rows"]
    return (f"UMAP of the first {count:,} test images with its default settings, seed {settings['seeds'][0]}.",)
