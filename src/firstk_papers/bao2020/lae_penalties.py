"""Penalties of non-uniform l2 that condition the optimum best, and what they cost on the way to it (I.1).

Figure 5 solves problem (16) for the spectrum of MNIST; figure 6 trains with its answer and with the penalties of H.1.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from firstk.orderings import NonuniformL2, condition_number
from firstk_papers.bao2020.lae_spectra import mnist_of, spectrum_of
from firstk_papers.bao2020.lae_training import REVISION, first_below, looks, plain_trace, trained
from firstk_papers.frame.panels import Chart, Findings, Mark, Panel, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

SCHEDULES = {
    "bound": "optimal in (16)",
    "inside": "optimal in (16), best margin (ours)",
    "conditioned": "best conditioned (ours)",
    "mnist": "appendix H.1",
}
LEVELS = (0.7, 0.5, 0.3)
MARGINS = (0.1, 1e-2, 1e-3, 1e-4, 1e-6)


# -- problem (16) ------------------------------------------------------------------------------------------------


def bound_terms(spectrum: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Return what (16) takes the largest of: 2 (s_1 - s_k)(nu_i + nu_j) / ((lam_i - lam_j)(nu_j - nu_i)), i > j.

    s are eigenvalues and nu_i = 1 - lam_i / s_i.
    """
    nu = 1 - lam / spectrum
    i, j = np.tril_indices(len(lam), -1)
    with np.errstate(divide="ignore"):
        return 2 * (spectrum[0] - spectrum[-1]) * (nu[i] + nu[j]) / ((lam[i] - lam[j]) * (nu[j] - nu[i]))


def best_bound(spectrum: np.ndarray, margin: float) -> np.ndarray:
    """Solve (16) for lambda between `margin` and 1 - `margin` of the last eigenvalue.

    For a bound c each lambda is taken as small as the term with the one before it allows: the term falls as lambda
    grows, and a smaller lambda_j leaves lambda_(j+1) more room. The least c whose chain ends inside is the optimum.
    Without a margin the chain begins at 0 and ends at sigma_k^2, where an axis vanishes.
    """
    first, last = margin * spectrum[-1], (1 - margin) * spectrum[-1]
    low, high = 0.0, 60.0  # of log c
    for _ in range(60):
        middle = (low + high) / 2
        chain = _chain(spectrum, first, last, float(np.exp(middle)))
        low, high = (middle, high) if chain is None else (low, middle)
    chain = _chain(spectrum, first, last, float(np.exp(high)))
    assert chain is not None
    return chain


def _chain(spectrum: np.ndarray, first: float, last: float, bound: float) -> np.ndarray | None:
    """Return the smallest lambdas whose neighboring terms are at most `bound`; None if they pass `last`."""
    lam = [first]
    scale = 2 * (spectrum[0] - spectrum[-1])
    for s_before, s in pairwise(spectrum):
        before = lam[-1]

        def excess(value: float, before: float = before, s_before: float = s_before, s: float = s) -> float:
            nu, nu_before = 1 - value / s, 1 - before / s_before
            return scale * (nu + nu_before) - bound * (value - before) * (nu_before - nu)

        if before >= last or excess(last) > 0:
            return None
        lam.append(float(brentq(excess, before, last, xtol=1e-15)))
    return np.array(lam)


def schedules(spectrum: np.ndarray, margin: float) -> dict[str, np.ndarray]:
    """Return the penalties that are compared, by name."""
    k = len(spectrum)
    inside = [best_bound(spectrum, float(share)) for share in np.geomspace(margin, 0.4, 15)]
    return {
        "bound": best_bound(spectrum, margin),
        "inside": min(inside, key=lambda lam: condition_number(spectrum, lam)),
        "conditioned": NonuniformL2("conditioned").lambdas(spectrum, k),
        "mnist": NonuniformL2("mnist").lambdas(spectrum, k),
    }


@lru_cache(maxsize=2)
def _schedules(spectrum: tuple[float, ...], margin: float) -> dict[str, np.ndarray]:
    """Solve once for all cells of a figure."""
    return schedules(np.array(spectrum), margin)


def stated_bound(spectrum: np.ndarray) -> float:
    """Return the paper's closed lower bound on the condition number (section 4.3.1)."""
    s, k = spectrum, len(spectrum)
    return float(2 * (k - 1) * (s[0] - s[-1]) * (s[1:-1] - s[-1]).sum() / (s[0] * s[-1]))


# -- cells -------------------------------------------------------------------------------------------------------


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return the problem itself and one recipe a schedule and learning rate."""
    shared = {"k": settings["k"], "seed": settings["seed"], "margin": settings["margin"], "revision": REVISION + 2}
    shared["data"] = mnist_of(settings)
    found: list[JsonDict] = [{"kind": "problem", **shared}]
    for schedule in settings.get("schedules", []):
        for rate in settings["learning_rates"]:
            recipe = {"kind": "run", "schedule": schedule, "model": "nonuniform_l2", "optimizer": "adam"}
            found.append(recipe | shared | {"batch": "full", "learning_rate": rate, "epochs": settings["epochs"]})
    return found


def measure(cell: JsonObject) -> JsonDict:
    """Solve (16), or train with one schedule of penalties."""
    spectrum = spectrum_of(cell["data"]).values[: cell["k"]]
    lams = _schedules(tuple(spectrum.tolist()), cell["margin"])
    if cell["kind"] == "run":
        lam = [float(value) for value in lams[cell["schedule"]]]
        return {"trace": plain_trace(trained({**cell, "lam": lam}, looks(cell["epochs"])))}
    return {
        "spectrum": list(rounded(spectrum)),
        "lambdas": {name: list(rounded(lam)) for name, lam in lams.items()},
        "conditions": {name: _condition(spectrum, lam) for name, lam in lams.items()},
        "largest_terms": {
            name: round(float(bound_terms(spectrum, lam).max()), 3)
            for name, lam in lams.items()
            if (lam < spectrum).all()
        },
        "margins": [_at_margin(spectrum, margin) for margin in MARGINS],
        "stated_bound": round(stated_bound(spectrum), 3),
        "penalised_away": [int(i) + 1 for i in np.flatnonzero(lams["mnist"] >= spectrum)],
    }


def _at_margin(spectrum: np.ndarray, margin: float) -> list[float | None]:
    """Return a margin, the optimum of (16) with it, and the true condition number there."""
    lam = best_bound(spectrum, margin)
    return [margin, *rounded([bound_terms(spectrum, lam).max()]), _condition(spectrum, lam)]


def _condition(spectrum: np.ndarray, lam: np.ndarray) -> float | None:
    """Return the true condition number at the optimum; None where an axis vanishes, or the Hessian is singular."""
    if (lam >= spectrum).any():
        return None
    value = condition_number(spectrum, lam)
    return round(value, 3) if np.isfinite(value) else None


# -- figures -----------------------------------------------------------------------------------------------------


def penalties(settings: JsonObject, results: Results) -> Findings:
    """Report figure 5: the penalties against the spectrum, and the condition numbers they give."""
    problem = results[0][1]
    k = tuple(float(i + 1) for i in range(settings["k"]))
    lines = tuple(
        Series(SCHEDULES[name], k, tuple(lam), ours=name in ("conditioned", "inside"))
        for name, lam in problem["lambdas"].items()
    )
    bars = Series("spectrum, sigma_k^2", k, tuple(problem["spectrum"]), kind="bars")
    mark = Mark(problem["spectrum"][-1], "y", "sigma_20^2")
    conditions, largest = problem["conditions"], problem["largest_terms"]
    rows = tuple((SCHEDULES[name], largest.get(name), conditions[name]) for name in problem["lambdas"])
    away = ", ".join(map(str, problem["penalised_away"])) or "none"
    return Findings(
        measures={
            "bound_last_share": round(problem["lambdas"]["bound"][-1] / problem["spectrum"][-1], 4),
            "bound_largest_term": largest["bound"],
            "stated_bound": problem["stated_bound"],
            "bound_over_stated": round(largest["bound"] / problem["stated_bound"], 3),
            "bound_condition_over_best": _over(conditions["bound"], conditions["inside"]),
            "conditioned_condition": conditions["conditioned"],
            "inside_condition": conditions["inside"],
            "h1_penalised_away": len(problem["penalised_away"]),
        },
        panels=(
            Chart("Penalties on MNIST", "k", "lambda_k", lines, marks=(mark,)),
            Chart("The same against the spectrum", "k", "lambda_k, sigma_k^2", (bars, *lines), y_scale="log"),
            Table("Conditioning at the optimum", ("penalties", "largest term of (16)", "condition number"), rows),
            Table(
                "Problem (16) ever nearer its boundary",
                ("margin", "optimum of (16)", "condition number there"),
                tuple(tuple(row) for row in problem["margins"]),
            ),
        ),
        notes=(
            f"Problem (16) has its infimum at lambda_1 = 0 and lambda_k = sigma_k^2, where axis k vanishes: solved "
            f"here with both ends kept {settings['margin']:g} of sigma_k^2 away.",
            f"Appendix H.1's penalties have lambda_k >= sigma_k^2 for k = {away}; no condition number belongs to them.",
        ),
    )


def _over(value: float | None, reference: float | None) -> float | None:
    return None if value is None or reference is None else round(value / reference, 3)


def cost(settings: JsonObject, results: Results) -> Findings:
    """Report figure 6: axis and subspace distance under Adam, by penalties and learning rate."""
    runs = [(cell, result["trace"]) for cell, result in results if cell["kind"] == "run"]
    panels: list[Panel] = []
    for name, scale in (("axis", "linear"), ("subspace", "log")):
        for schedule in settings["schedules"]:
            chosen = [(cell["learning_rate"], trace) for cell, trace in runs if cell["schedule"] == schedule]
            series = tuple(
                Series(f"learning rate {rate:g}", tuple(trace["epoch"]), tuple(trace[name])) for rate, trace in chosen
            )
            title = f"{name.capitalize()} distance, {SCHEDULES[schedule]}"
            panels.append(Chart(title, "epochs", f"{name} distance", series, x_scale="log", y_scale=scale))
    panels.append(_arrivals(runs))
    return Findings(_costs(settings, runs), tuple(panels))


def _arrivals(runs: Results) -> Table:
    rows = []
    for cell, trace in runs:
        arrived = [first_below(trace, "axis", level) for level in LEVELS]
        ends = (first_below(trace, "subspace", 0.3), trace["axis"][-1], trace["subspace"][-1])
        rows.append((SCHEDULES[cell["schedule"]], f"{cell['learning_rate']:g}", *arrived, *ends))
    columns = ("penalties", "learning rate", *(f"axis <= {level:g}" for level in LEVELS), "subspace <= 0.3")
    return Table("Epochs until a distance is reached", (*columns, "axis, end", "subspace, end"), tuple(rows))


def _costs(settings: JsonObject, runs: Results) -> JsonDict:
    """Return the axis distance at the end of each schedule's best run, and how late (16) is against H.1."""
    found: JsonDict = {}
    for schedule in settings["schedules"]:
        traces = [trace for cell, trace in runs if cell["schedule"] == schedule]
        found[f"{schedule}_best_axis_end"] = min(trace["axis"][-1] for trace in traces)
        for level in LEVELS:
            arrived = [first_below(trace, "axis", level) for trace in traces]
            found[f"{schedule}_aligned_to_{level:g}"] = min((e for e in arrived if e is not None), default=None)
    end = float(settings["epochs"])
    for level in LEVELS:
        usual, late = (found[f"{name}_aligned_to_{level:g}"] for name in ("mnist", "bound"))
        found[f"bound_over_h1_at_{level:g}"] = None if usual is None else round((late or end) / usual, 3)
    return found
