"""What is made of the recovery fits: figures 1, 3, 4 and 5, Table 1, and the numbers behind their claims.

One ruler serves all claims: a direction is aligned where its cosine is 0.99 or more, two subspaces where their mean
principal angle is at most that cosine's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from firstk_papers.frame.panels import Chart, Findings, Heatmap, Mark, Panel, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

ALIGNED = 0.99
WIDE = 0.01  # relative eigengap above which an axis can be told from its neighbors
REACHED = 1e-7  # share missing below which a curve is not drawn on
NAMES = {
    "full_prefix": "full prefix",
    "sparse_prefix": "sparse prefix",
    "nonuniform_l2": "non-uniform l2",
    "monotone_l1": "monotone l1",
    "unordered": "unordered",
    "ours": "full prefix, solved by firstk",
}
TITLES = {
    "synthetic-mse": "PCA, synthetic",
    "fashion-mse": "PCA, Fashion-MNIST",
    "synthetic-fisher": "LDA, synthetic",
    "fashion-fisher": "LDA, Fashion-MNIST",
    "illustration": "PCA, synthetic",
}
REGULARIZED = ("nonuniform_l2", "monotone_l1")
PAPERS = ("full_prefix", "sparse_prefix", *REGULARIZED, "unordered")

Fits = dict[str, dict[str, JsonObject]]


def _fits(settings: JsonObject, results: Results) -> Fits:
    """Return what was found, by configuration and method; results come in the order of cells."""
    found = iter(results)
    return {
        name: {method: next(found)[1] for method in methods_of(settings, name)} for name in settings["configurations"]
    }


def methods_of(settings: JsonObject, name: str) -> list[str]:
    """Return the methods that a configuration is trained with: all, but for those that the settings leave out."""
    left_out = settings.get("left_out", {}).get(name, ())
    return [method for method in settings["methods"] if method not in left_out]


def _key(name: str) -> str:
    return name.replace("-", "_")


def _lines(fits: Mapping[str, JsonObject], quantity: str) -> tuple[Series, ...]:
    return tuple(
        Series(NAMES[method], tuple(range(1, len(fit[quantity]) + 1)), tuple(fit[quantity]), ours=method == "ours")
        for method, fit in fits.items()
    )


def _spectrum(fits: Mapping[str, JsonObject]) -> Series:
    values = np.array(next(iter(fits.values()))["spectrum"])
    bars = rounded(values / values[0])
    return Series("spectrum, over its largest", tuple(range(1, len(bars) + 1)), bars, kind="bars")


def _share_aligned(cosines: Sequence[float]) -> float:
    return float(np.mean(np.array(cosines) >= ALIGNED))


def _least_where_wide(fit: JsonObject, quantity: str = "max_cos") -> float:
    return float(np.array(fit[quantity])[np.array(fit["gaps"]) > WIDE].min())


def _capped(results: Results) -> tuple[str, ...]:
    """List which of the paper's fits had fewer steps than the others of their configuration."""
    lengths = {(c["data"], c["family"], c["d"], c["method"]): c["length"] for c, _ in results if c["method"] in PAPERS}
    longest = {kind[:3]: max(length for other, length in lengths.items() if other[:3] == kind[:3]) for kind in lengths}
    return tuple(
        f"{NAMES[kind[3]]} on {kind[0]} ({kind[1]}): stopped at {length:,} of {longest[kind[:3]]:,} "
        f"{'steps' if kind[1] == 'fisher' else 'epochs'}, for time."
        for kind, length in lengths.items()
        if length < longest[kind[:3]]
    )


# -- Figure 1 ----------------------------------------------------------------------------------------------------------


def largest_cosines(settings: JsonObject, results: Results) -> Findings:
    """Report figure 1: MaxCos of every learned direction with the reference axes, over the spectrum."""
    fits = _fits(settings, results)
    panels = tuple(
        Chart(TITLES[name], "k", "MaxCos (38)", (_spectrum(by_method), *_lines(by_method, "max_cos")))
        for name, by_method in fits.items()
    )
    measures = {
        f"{_key(name)}_{what}": value
        for name, by_method in fits.items()
        for what, value in _cosine_measures(by_method).items()
    }
    leads = [value for name, value in measures.items() if name.endswith("_lead_over_regularisers")]
    measures["least_lead_over_regularisers"] = min(leads)
    return Findings(evaluated_measures(settings, measures), panels, _gap_notes(fits), _capped(results))


def _cosine_measures(by_method: Mapping[str, JsonObject]) -> dict[str, float]:
    """Return the numbers of one panel: of each method, and of full prefix against the others."""
    shares = {method: _share_aligned(fit["max_cos"]) for method, fit in by_method.items()}
    means = {method: float(np.mean(fit["max_cos"])) for method, fit in by_method.items()}
    found = {f"{method}_share_aligned": share for method, share in shares.items()}
    found |= {f"{method}_mean": mean for method, mean in means.items()}
    found |= {f"{method}_least_where_wide": _least_where_wide(fit) for method, fit in by_method.items()}
    papers = [method for method in PAPERS if method in by_method]
    found |= {f"{m}_least_in_metric": min(fit["in_metric"]) for m, fit in by_method.items() if "in_metric" in fit}
    return found | {
        "best_share_but_full_prefix": max(shares[m] for m in papers if m != "full_prefix"),
        "best_share_of_the_paper": max(shares[m] for m in papers),
        "lead_over_regularisers": means["full_prefix"] - max(means[m] for m in papers if m in REGULARIZED),
        "decline": _decline(by_method["full_prefix"]),
    }


def _decline(fit: JsonObject) -> float:
    """Return the mean MaxCos of the first half of the axes less that of the second half."""
    first, second = np.array_split(np.array(fit["max_cos"]), 2)
    return float(first.mean() - second.mean())


def _gap_notes(fits: Fits) -> tuple[str, ...]:
    notes = []
    for name, by_method in fits.items():
        gaps = np.array(next(iter(by_method.values()))["gaps"])
        notes.append(
            f"{TITLES[name]}: {int(np.sum(gaps > WIDE))} of {len(gaps)} axes have a relative eigengap above 1 % on "
            f"both sides; the narrowest gap is {gaps.min():.2g}."
        )
    return tuple(notes)


def evaluated_measures(settings: JsonObject, measures: JsonObject) -> JsonDict:
    """Return measures with six digits; None for the paper's methods in a tier too short for them to arrive anywhere."""
    too_short = settings["tier"] == "smoke"
    return {
        name: None
        if too_short and "_ours_" not in name
        else value
        if isinstance(value, (bool, int))
        else rounded([value])[0]
        for name, value in measures.items()
    }


# -- Figure 5 ----------------------------------------------------------------------------------------------------------


def angles_and_pairs(settings: JsonObject, results: Results) -> Findings:
    """Report figure 5: mean principal angles with PCA, and PairedCos with PCA and LDA."""
    fits = _fits(settings, results)
    measures: JsonDict = {}
    panels = []
    for name in filter(lambda name: name.endswith("-mse"), fits):
        own = next(cell["prefixes"] for cell, fit in results if fit is fits[name]["sparse_prefix"])
        marks = tuple(Mark(k, "x") for k in own)
        panels.append(
            Chart(TITLES[name], "k", "mean principal angle, degrees (39)", _lines(fits[name], "angles"), marks=marks)
        )
        angles = {method: np.array(fit["angles"]) for method, fit in fits[name].items()}
        for method in ("full_prefix", "ours"):
            measures[f"{_key(name)}_{method}_largest_angle"] = float(angles[method].max())
        sparse = angles["sparse_prefix"]
        measures[f"{_key(name)}_sparse_largest_own_angle"] = float(sparse[np.array(own) - 1].max())
        measures[f"{_key(name)}_sparse_dips_at_own_sizes_only"] = dips(sparse) == [k for k in own if k < len(sparse)]
        measures[f"{_key(name)}_others_largest_full_angle"] = max(
            float(angles[m][-1]) for m in PAPERS[2:] if m in angles
        )
    for name, by_method in fits.items():
        panels.append(Chart(TITLES[name], "k", "PairedCos (37)", _lines(by_method, "paired_cos")))
        shares = {method: _share_aligned(fit["paired_cos"]) for method, fit in by_method.items()}
        measures |= {f"{_key(name)}_{method}_share_paired": share for method, share in shares.items()}
        measures[f"{_key(name)}_others_largest_share_paired"] = max(shares[m] for m in PAPERS[2:] if m in shares)
        measures[f"{_key(name)}_ours_least_paired_where_wide"] = _least_where_wide(by_method["ours"], "paired_cos")
    return Findings(evaluated_measures(settings, measures), tuple(panels), _ruler_notes(fits), _capped(results))


def dips(angles: np.ndarray) -> list[int]:
    """Return the sizes k < d at which the mean angle is smaller than at both neighbors, by half at least.

    "Aligned at these sizes only" is a curve that falls at them and is high between; half leaves out ripples.
    """
    inside = range(1, len(angles) - 1)
    return [k + 1 for k in inside if 2 * angles[k] <= min(angles[k - 1], angles[k + 1])]


def _ruler_notes(fits: Fits) -> tuple[str, ...]:
    notes = []
    for name in ("synthetic-fisher", "fashion-fisher"):
        least = {method: min(fit["in_metric"]) for method, fit in fits[name].items()}
        told = ", ".join(f"{NAMES[method]} {value:.3f}" for method, value in least.items())
        notes.append(
            f"{TITLES[name]}: in canonical form, and in the metric of Sw + eps I, the least PairedCos of each method "
            f"is: {told}."
        )
    return tuple(notes)


# -- Figure 3 ----------------------------------------------------------------------------------------------------------


def heatmaps(settings: JsonObject, results: Results) -> Findings:
    """Report figure 3: absolute cosines of learned directions with reference axes."""
    fits = _fits(settings, results)
    measures: JsonDict = {}
    panels = []
    for name, by_method in fits.items():
        own = next(cell["prefixes"] for cell, fit in results if fit is by_method["sparse_prefix"])
        for method, fit in by_method.items():
            cosines = np.array(fit["cosines"])
            panels.append(
                Heatmap(
                    f"{NAMES[method]} ({TITLES[name]})",
                    "reference axis",
                    "learned direction",
                    tuple(tuple(row) for row in cosines.tolist()),
                    0.0,
                    1.0,
                )
            )
            measures[f"{_key(name)}_{method}_on_diagonal"] = mass_in_blocks(cosines, range(1, len(cosines) + 1))
            measures[f"{_key(name)}_{method}_in_blocks"] = mass_in_blocks(cosines, own)
    return Findings(evaluated_measures(settings, measures), tuple(panels))


def mass_in_blocks(cosines: np.ndarray, ends: Sequence[int]) -> float:
    """Return the share of squared cosines that lies in the diagonal blocks which end at these sizes."""
    block = np.searchsorted(np.array(ends), np.arange(1, len(cosines) + 1))
    squares = cosines**2
    return float(squares[block[:, None] == block].sum() / squares.sum())


# -- Figure 4 ----------------------------------------------------------------------------------------------------------


def training_losses(settings: JsonObject, results: Results) -> Findings:
    """Report figure 4: how far the loss is from its global optimum, step by step."""
    fits = _fits(settings, results)
    measures: JsonDict = {}
    panels: list[Panel] = []
    rows = []
    for name, by_method in fits.items():
        lines = tuple(
            Series(NAMES[method], tuple(fit["trace"]["step"]), _above_zero(fit["trace"]["full"]), ours=method == "ours")
            for method, fit in by_method.items()
        )
        label = "loss at full width: share missing"
        panels.append(Chart(TITLES[name], "step", label, lines, x_scale="log", y_scale="log"))
        for method, fit in by_method.items():
            ends = [fit["trace"][which][-1] for which in ("full", "own")]
            rows.append((TITLES[name], NAMES[method], int(fit["trace"]["step"][-1]), *ends))
            measures[f"{_key(name)}_{method}_missing"] = ends[0]
            measures[f"{_key(name)}_{method}_missing_of_own"] = ends[1]
        last = {method: measures[f"{_key(name)}_{method}_missing"] for method in by_method}
        measures[f"{_key(name)}_worst_missing"] = max(last[m] for m in PAPERS if m in last)
        measures[f"{_key(name)}_prefixes_behind_others"] = min(last["full_prefix"], last["sparse_prefix"]) - max(
            last[m] for m in PAPERS[2:] if m in last
        )
    if settings["tier"] == "authors":
        measures |= _own_optima(fits["fashion-fisher"], results)
        panels.append(_own_losses(fits["fashion-fisher"]))
    else:
        measures |= dict.fromkeys(("fashion_fisher_prefix_optima_above", "fashion_fisher_most_missing_of_own"))
    columns = ("panel", "method", "steps", "missing at full width", "missing of its own loss")
    panels.append(Table("What is missing at the end of training", columns, tuple(rows)))
    notes = (
        "What is missing is a share: 0 at the global optimum, 1 for no code at all. A method's own loss is the mean "
        "over the prefixes it trains, without penalties.",
    )
    return Findings(evaluated_measures(settings, measures), tuple(panels), notes, _capped(results))


def _own_optima(by_method: Mapping[str, JsonObject], results: Results) -> dict[str, float]:
    """Return how far the optima of the prefix methods' losses lie above that of full width, and what most misses.

    Methods that were cut short for time have not ended.
    """
    found = {id(fit): cell for cell, fit in results}
    lengths = {method: found[id(fit)]["length"] for method, fit in by_method.items() if method in PAPERS}
    best = {method: fit["own_optimum"] for method, fit in by_method.items()}
    above = min(best["full_prefix"], best["sparse_prefix"]) - best["unordered"]
    ended = [method for method, length in lengths.items() if length == max(lengths.values())]
    missing = max(by_method[method]["trace"]["own"][-1] for method in ended)
    return {"fashion_fisher_prefix_optima_above": above, "fashion_fisher_most_missing_of_own": missing}


def _own_losses(by_method: Mapping[str, JsonObject]) -> Chart:
    """Draw each method's own loss as figure 4 does: without a code it is 0, so a share missing gives its value."""
    lines, marks = [], {}
    for method, fit in by_method.items():
        best = fit["own_optimum"]
        values = tuple(None if share is None else best * (1 - share) for share in fit["trace"]["own"])
        lines.append(Series(NAMES[method], tuple(fit["trace"]["step"]), values, ours=method == "ours"))
        marks[best] = Mark(best, "y", f"optimum {best:.2f}")
    title = f"{TITLES['fashion-fisher']}: the loss that each method trains"
    return Chart(title, "step", "minus the mean ratio trace", tuple(lines), x_scale="log", marks=tuple(marks.values()))


def _above_zero(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Leave gaps where the optimum is reached: a logarithmic axis has no place for 0, and rounding nothing to say."""
    return tuple(value if value is not None and value > REACHED else None for value in values)


# -- Table 1 -----------------------------------------------------------------------------------------------------------


def configurations(settings: JsonObject, results: Results) -> Findings:
    """Report table 1: every configuration, what the data say of it, and the lengths that are ours."""
    found = {name: by_method["closed_form"] for name, by_method in _fits(settings, results).items()}
    tables = tuple(
        _table(data, {name: found[name] for name in found if settings["table"][name]["data"] == data}, settings)
        for data in settings["rows"]
    )
    agree = all(
        facts[key] == settings["table"][name][key]
        for name, facts in found.items()
        for key in ("p", "classes", "lda_rank")
    )
    whole = settings["tier"] == "full"
    measures = {
        "shapes_agree": agree,
        "synthetic_sizes_agree": found["synthetic-mse"]["sizes"] == [7000, 1000, 2000] if whole else None,
        "fashion_sizes_agree": found["fashion-mse"]["sizes"] == [49000, 7000, 14000] if whole else None,
        "largest_training_mean": max(facts["largest_mean"] for facts in found.values()),
        "lambdas_below_sigma_d": all(facts["lambda"][1] < facts["sigma_d"] for facts in found.values()),
    }
    return Findings(measures, tables)


def _table(data: str, found: JsonObject, settings: JsonObject) -> Table:
    """Return the configurations of one data set, side by side."""
    columns = [_column(settings["table"][name], facts, settings["lengths"][name]) for name, facts in found.items()]
    rows = tuple((what, *(column[what] for column in columns)) for what in columns[0])
    return Table(data, ("", *(settings["table"][name]["family"] for name in found)), rows)


def _column(row: JsonObject, facts: JsonObject, length: int) -> dict[str, str | float | int | None]:
    low, high = facts["lambda"]
    return {
        "p": facts["p"],
        "C": facts["classes"],
        "n_lda": facts["lda_rank"],
        "d": row["d"],
        "prefixes": ", ".join(map(str, row["prefixes"])),
        "batch": str(row["batch"]),
        "alpha": row["alpha"],
        "eps": row.get("eps"),
        "sigma_d^2": facts["sigma_d"],
        "lambda": f"{low:.2g} to {high:.2g}",
        "rows": "/".join(f"{size:,}" for size in facts["sizes"]),
        "length (ours)": f"{length:,} {'steps' if row['batch'] == 'full' else 'epochs'}",
    }
