"""Appendix B of Talukder et al. 2026 as ratios to a single loss, read off the cells of `prefix_cost`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from firstk_papers.frame.panels import Chart, Findings, Mark, Series, Table, rounded
from firstk_papers.frame.types import JsonObject, Results

FULL, LOOP, SINGLE, MONOTONE = "full prefix", "loop over prefixes", "single", "monotone l1"
COUNTED = {"counts": "multiply-adds", "ms": "clock"}


def report(settings: JsonObject, results: Results) -> Findings:
    """Return ratios to a single loss as n, p and d grow, for squared error and for cross-entropy."""
    linear = [(c, r) for c, r in results if c["kind"] == "reconstruction"]
    heads = [(c, r) for c, r in results if c["kind"] == "cross_entropy"]
    step = next(r for c, r in results if c["kind"] == "network_step")
    near = next(r for c, r in linear if all(c[name] == size for name, size in settings["near_p"].items()))
    grown = {"reconstruction": _varied(linear, settings["reconstruction"], "d")}
    grown["cross_entropy"] = _varied(heads, settings["cross_entropy"], "d")
    measures: dict[str, float | None] = {
        "count_ratio_most": _most(linear, "counts"),
        "count_excess_most": round(max(excess(cell, found["counts"]) for cell, found in linear), 5),
        "count_added_growth_in_n": _added_growth(_varied(linear, settings["reconstruction"], "n")),
        "time_ratio_most": _most(linear, "ms"),
        "count_ratio_near_p": round(near["counts"][FULL] / near["counts"][SINGLE], 4),
        "time_ratio_near_p": round(near["ms"][FULL] / near["ms"][SINGLE], 4),
        "count_growth_in_d": growth(grown["reconstruction"], FULL, "counts"),
        "time_growth_in_d": growth(grown["reconstruction"], FULL, "ms"),
        "loop_count_growth_in_d": growth(grown["reconstruction"], LOOP, "counts"),
        "loop_time_growth_in_d": growth(grown["reconstruction"], LOOP, "ms"),
        "cross_entropy_loop_count_growth_in_d": growth(grown["cross_entropy"], LOOP, "counts"),
        "cross_entropy_loop_time_growth_in_d": growth(grown["cross_entropy"], LOOP, "ms"),
        "cross_entropy_sweep_time_growth_in_d": growth(grown["cross_entropy"], FULL, "ms"),
        "cross_entropy_loop_over_sweep_time": round(_last_ratio(grown["cross_entropy"], LOOP, FULL), 3),
        "network_step_time_ratio": round(step["ms"][FULL] / step["ms"][MONOTONE], 3),
        "network_step_loop_time_ratio": round(step["ms"][LOOP] / step["ms"][MONOTONE], 3),
    }
    if not settings["evaluate_times"]:  # a few quick rounds of small sizes say too little
        measures |= {name: None for name in measures if "time" in name}
    panels: tuple[Chart | Table, ...] = (
        *(_against(name, linear, settings["reconstruction"]) for name in ("d", "n", "p")),
        *(_against(name, heads, settings["cross_entropy"]) for name in ("d", "C")),
        _times(results),
    )
    return Findings(measures, panels, notes=_notes())


def _notes() -> tuple[str, ...]:
    return (
        "Times are processor times of forward and backward, the least of several rounds in which contenders take "
        "turns. Multiply-adds are those of matrix products, counted by torch as the step runs.",
        "All prefixes can cost less than one plain loss: from shared statistics nothing of size n x p is rebuilt. That "
        "saves one of five products of size n p d, and adds two of each Gram matrix.",
        "The compiled sweep of cross-entropy is not seen by torch's counter. By construction it has three "
        "multiply-adds and one exponential for each row, prefix and class; a single loss has as many multiply-adds and "
        "d times fewer exponentials. So it is a few single losses on the clock, not one as for the squared error, and "
        "not d.",
    )


def excess(cell: JsonObject, counts: Mapping[str, int]) -> float:
    """Return the multiply-adds beyond those of a single loss, in units of the two Gram matrices, (n + p) d^2."""
    return (counts[FULL] - counts[SINGLE]) / ((cell["n"] + cell["p"]) * cell["d"] ** 2)


def _most(results: Results, what: str) -> float:
    return round(max(found[what][FULL] / found[what][SINGLE] for _, found in results), 4)


def _varied(results: Results, base: JsonObject, name: str) -> list[tuple[JsonObject, JsonObject]]:
    """Return the cells in which `name` alone differs from the base size, ascending."""
    others = [key for key in ("n", "p", "d", "C") if key in base and key != name]
    kept = [(c, r) for c, r in results if all(c[key] == base[key] for key in others)]
    return sorted(kept, key=lambda pair: pair[0][name])


def growth(results: Results, contender: str, what: str) -> float | None:
    """Return the exponent e with which the ratio to a single loss grows like d^e: 1 is d-fold, 0 is none."""
    points = [(c["d"], r[what][contender] / r[what][SINGLE]) for c, r in results if r[what].get(contender)]
    if len(points) < 2:
        return None
    d, ratio = np.log(np.array(points)).T
    return round(float(np.polyfit(d, ratio, 1)[0]), 4)


def _added_growth(results: Results) -> float:
    """Return the exponent of n with which all prefixes add multiply-adds to the 4 n p d that a single loss has too."""
    n, added = np.log([(c["n"], r["counts"][FULL] - 4 * c["n"] * c["p"] * c["d"]) for c, r in results]).T
    return round(float(np.polyfit(n, added, 1)[0]), 4)


def _last_ratio(results: Results, slow: str, quick: str) -> float:
    """Return the ratio of two times at the largest size that has both."""
    times = [r["ms"] for _, r in results if slow in r["ms"]]
    return times[-1][slow] / times[-1][quick]


def _against(name: str, results: Results, base: JsonObject) -> Chart:
    """Return ratios to a single loss against one size."""
    varied = _varied(results, base, name)
    kind = results[0][0]["kind"].replace("_", "-") if results else ""
    series = []
    for contender in (FULL, LOOP):
        for what, label in COUNTED.items():
            points = [(c[name], r[what][contender] / r[what][SINGLE]) for c, r in varied if r[what].get(contender)]
            if points:
                x, y = tuple(float(size) for size, _ in points), rounded(ratio for _, ratio in points)
                series.append(Series(f"{contender}, {label}", x, y, ours=contender == FULL))
    fixed = ", ".join(f"{key} = {base[key]}" for key in ("n", "p", "d", "C") if key in base and key != name)
    marks = (Mark(1, "y", "a single loss"),)
    return Chart(f"{kind}, {fixed}", name, "ratio to a single loss", tuple(series), "log", "log", marks)


def _times(results: Results) -> Table:
    rows = []
    for cell, found in results:
        size = ", ".join(f"{key} = {cell[key]}" for key in ("n", "p", "d", "C") if key in cell)
        for name, ms in found["ms"].items():
            count = found["counts"][name] or None
            rows.append((cell["kind"].replace("_", " "), size, name, ms, None if count is None else count / 1e6))
    return Table("All sizes", ("loss", "size", "contender", "milliseconds", "million multiply-adds"), tuple(rows))
