"""Condition numbers of the Hessian at the optimum, and the paper's lower bounds on them (sections 4.3, 5, B, D).

Both Hessians split into blocks of pairs of axes. Those of non-uniform l2 are the library's; those of nested dropout
are written here, for the loss at 1/n (the paper's (6) is half of it, with the same condition number).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy.optimize import minimize

from firstk.orderings import NestedDropout, NonuniformL2, condition_number, hessian_extremes
from firstk_papers.frame.hooks import prefix_weights
from firstk_papers.frame.instances import (
    extremes,
    floats,
    increasing,
    instance_cells,
    least,
    line,
    measuring,
    of_check,
    values,
    worst,
)
from firstk_papers.frame.panels import Chart, Findings, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

cells = instance_cells


# -- the paper's bounds ------------------------------------------------------------------------------------------


def l2_bound(s: np.ndarray) -> float:
    """Return 2 (k-1)(s_1 - s_k) sum_{1<i<k} (s_i - s_k) / (s_1 s_k), the bound of Bao et al. 2020 section 4.3."""
    return float(2 * (len(s) - 1) * (s[0] - s[-1]) * np.sum(s[1:-1] - s[-1]) / (s[0] * s[-1]))


def l2_bound_given(s: np.ndarray, lam: np.ndarray) -> float:
    """Return the bound inside Bao et al. 2020 (16), for given penalties."""
    nu = 1 - lam / s
    i, j = np.triu_indices(len(s), 1)
    with np.errstate(divide="ignore"):
        return float(np.max(2 * (s[0] - s[-1]) * (nu[i] + nu[j]) / ((lam[j] - lam[i]) * (nu[i] - nu[j]))))


def nested_bound(s: np.ndarray) -> float:
    """Return 8 s_1 (k-1)^2 / (s_1 - s_k), the bound of Bao et al. 2020 section 5."""
    return float(8 * s[0] * (len(s) - 1) ** 2 / (s[0] - s[-1]))


def nested_bound_given(s: np.ndarray, keep: np.ndarray) -> float:
    """Return max over i of 8 p_1 s_1 / ((s_i - s_{i+1})(p_i - p_{i+1})), the bound D for a given prior."""
    return float(np.max(8 * keep[0] * s[0] / ((s[:-1] - s[1:]) * (keep[:-1] - keep[1:]))))


def best_prior(s: np.ndarray, last: float) -> np.ndarray:
    """Return the prior of Bao et al. 2020 D: p_B(i) in proportion to 1 / (s_i - s_{i+1}), with the mass `last` at k."""
    steps = 1 / (s[:-1] - s[1:])
    return np.append((1 - last) * steps / steps.sum(), last)


# -- the Hessian of deterministic nested dropout -----------------------------------------------------------------


def nested_values(s: np.ndarray, keep: np.ndarray, d: int) -> np.ndarray:
    """Return the eigenvalues of the Hessian at B = A^T = U_d^T that are not 0 for every scale.

    b_i moves along u_j by e_ij, a_i by f_ij. Second-order terms of
    ``tr St - 2 sum_i p_i H_ii + sum_ij p_max(i,j) GA_ij GZ_ij`` couple (e_ij, f_ij, e_ji, f_ji) only; (e_ii, f_ii) give
    4 p_i s_i and one exact zero, the scale of axis i.
    """
    found = [4 * keep * s[:d]]
    for i in range(d):
        for j in range(i + 1, len(s)):
            own = keep[i] * np.array([[s[j], -s[j]], [-s[j], s[i]]])
            if j >= d:
                found.append(2 * np.linalg.eigvalsh(own))
                continue
            H = np.zeros((4, 4))
            H[:2, :2] = own
            H[2:, 2:] = keep[j] * np.array([[s[i], -s[i]], [-s[i], s[j]]])
            for f in (1, 3):  # 2 p_j (f_ij + f_ji)(s_i e_ji + s_j e_ij)
                for e, size in ((0, s[j]), (2, s[i])):
                    H[f, e] += keep[j] * size
                    H[e, f] += keep[j] * size
            found.append(2 * np.linalg.eigvalsh(H))
    return np.concatenate(found)


def nested_condition(s: np.ndarray, prior: np.ndarray, d: int) -> float:
    """Return the condition number of that Hessian, its d exact zeros apart."""
    found = nested_values(s, prefix_weights(NestedDropout(prior=floats(prior)), d).cum, d)
    low, high = found.min(), found.max()
    return float(high / low) if low > 1e-13 * high else float("inf")


# -- checks ------------------------------------------------------------------------------------------------------


def _l2(cell: JsonObject, spectrum: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Check the bound, and its two halves, for drawn penalties."""
    d = cell["d"]
    s = spectrum[:d]
    lam = increasing(d, s[-1], rng)
    low, high = hessian_extremes(s, lam)
    nu = 1 - lam / s
    i, j = np.triu_indices(d, 1)
    rotation = np.min((nu[i] - nu[j]) * (lam[j] - lam[i]) / (nu[i] + nu[j]))
    # The appendix halves the loss, the library does not: its Hessian is twice the appendix's.
    return {
        "ratio": high / low / l2_bound(s),
        "ratio_given": high / low / l2_bound_given(s, lam),
        "largest_ratio": float(high / 2 / (2 * (s[0] - s[-1]))),
        "smallest_ratio": float(low / 2 / rotation),
    }


def _l2_tightest(cell: JsonObject, spectrum: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Search spectra and penalties for the smallest ratio of condition number and bound."""
    d = cell["d"]

    def unpacked(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = np.cumsum(np.exp(np.clip(x[:d], -12, 12)))[::-1]
        steps = np.exp(np.clip(x[d:], -12, 12))
        return s, s[-1] * np.cumsum(steps)[:-1] / steps.sum()

    def log_ratio(x: np.ndarray) -> float:
        s, lam = unpacked(x)
        bound, cond = l2_bound(s), condition_number(s, lam)
        return float(np.log(cond / bound)) if bound > 0 and np.isfinite(cond) else 50.0

    best = _searched(log_ratio, 2 * d + 1, cell["searches"], rng)
    s, lam = unpacked(best)
    return {
        "tightest": float(np.exp(log_ratio(best))),
        "tightest_spectrum": floats(s / s[0]),
        "tightest_lam": floats(lam / s[-1]),
    }


def _nested(cell: JsonObject, spectrum: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Check the bound, and its two halves, for drawn priors and for the geometric one of Bao et al. 2020 H.1."""
    d = cell["d"]
    s, found = spectrum, []
    for prior in (rng.dirichlet(np.ones(d)) + 0.02, prefix_weights(NestedDropout(0.9), d).omega):
        keep = prefix_weights(NestedDropout(prior=floats(prior)), d).cum
        eigenvalues = nested_values(s, keep, d)
        low, high = eigenvalues.min(), eigenvalues.max()
        rotation = np.min((s[: d - 1] - s[1:d]) * (keep[:-1] - keep[1:])) / 4
        given = nested_bound_given(s[:d], keep)
        found.append(
            (high / low / nested_bound(s[:d]), high / low / given, high / 2 / (2 * keep[0] * s[0]), low / 2 / rotation)
        )
    names = ("ratio", "ratio_given", "largest_ratio", "smallest_ratio")
    picked = zip(names, zip(*found, strict=True), (min, min, min, max), strict=True)
    return {name: float(pick(column)) for name, column, pick in picked}


def _prior(cell: JsonObject, spectrum: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Compare the prior of Bao et al. 2020 D with others: by its own bound, and by the true condition number."""
    d = cell["d"]
    s = spectrum[:d]
    tiny = best_prior(s, 1e-9)
    others = [np.ones(d) / d, prefix_weights(NestedDropout(0.9), d).omega, *rng.dirichlet(np.ones(d), 200)]
    bounds = [nested_bound_given(s, prefix_weights(NestedDropout(prior=floats(prior)), d).cum) for prior in others]
    limit = float(8 * s[0] * np.sum(1 / (s[:-1] - s[1:])))
    lasts = np.logspace(-9, -0.3, 30)
    true = [nested_condition(s, best_prior(s, last), d) for last in lasts]

    def log_condition(x: np.ndarray) -> float:
        weights = np.exp(np.clip(x, -20, 20))
        cond = nested_condition(s, weights / weights.sum(), d)
        return float(np.log(cond)) if np.isfinite(cond) else 50.0

    # From the best of its own family, so that the search can only improve on it.
    start = np.log(best_prior(s, float(lasts[int(np.argmin(true))])))
    ours = np.exp(log_condition(_polished(log_condition, start)))
    return {
        "bound_over_limit": nested_bound_given(s, prefix_weights(NestedDropout(prior=floats(tiny)), d).cum) / limit,
        "others_over_limit": min(bounds) / limit,
        "limit_over_final": limit / nested_bound(s),
        "boundary_over_best": true[0] / float(ours),
        "uniform_over_best": nested_condition(s, np.ones(d) / d, d) / float(ours),
        "geometric_over_best": nested_condition(s, others[1], d) / float(ours),
        "lasts": floats(lasts),
        "true": floats(true),
        "best": float(ours),
        "limit": limit,
    }


def _boundary(cell: JsonObject, spectrum: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Solve (16) on penalties in [margin, 1 - margin] sigma_k^2: the smaller the margin the lower its optimum.

    The true condition number has no limit there: lambda_1 = 0 leaves the scale of axis 1 free.
    """
    s = spectrum[: cell["d"]]
    margins, start = np.logspace(-0.6, -6, 12), np.zeros(len(s) - 1)
    solutions = []
    for margin in margins:
        start = _polished(partial(_log_bound, s, margin), start)
        solutions.append(_between(start, s[-1], margin))
    true = [condition_number(s, lam) for lam in solutions]
    bounds = [l2_bound_given(s, lam) for lam in solutions]
    best = _best_condition(s, solutions[int(np.argmin(true))])
    ready = {name: condition_number(s, NonuniformL2(name).lambdas(s, len(s))) for name in ("spectral", "conditioned")}
    return {
        "margins": floats(margins),
        "bounds": floats(bounds),
        "true": floats(true),
        "bound_falls": bool(np.all(np.diff(bounds) < 0)),
        "nearest_over_best": true[-1] / best,
        "family_over_best": min(true) / best,
        "spectral_over_best": ready["spectral"] / best,
        "conditioned_over_best": ready["conditioned"] / best,
        "best": best,
    }


def _log_bound(s: np.ndarray, margin: float, x: np.ndarray) -> float:
    return float(np.log(l2_bound_given(s, _between(x, s[-1], margin))))


def _between(x: np.ndarray, last: float, margin: float) -> np.ndarray:
    """Return increasing penalties from margin to 1 - margin of `last`, their steps in proportion to exp(x)."""
    steps = np.exp(np.clip(x - x.max(), -30, 0))
    return last * (margin + (1 - 2 * margin) * np.append(0.0, np.cumsum(steps) / steps.sum()))


def _best_condition(s: np.ndarray, lam: np.ndarray) -> float:
    """Return the smallest condition number that a search from given penalties finds, anywhere inside (0, sigma_k^2)."""

    def log_condition(x: np.ndarray) -> float:
        steps = np.exp(np.clip(x, -20, 20))
        cond = condition_number(s, s[-1] * np.cumsum(steps)[:-1] / steps.sum())
        return float(np.log(cond)) if np.isfinite(cond) else 50.0

    start = np.log(np.diff(np.concatenate([[0.0], lam / s[-1], [1.0]])))
    return float(np.exp(log_condition(_polished(log_condition, start))))


def _growth(cell: JsonObject, spectrum: np.ndarray, rng: np.random.Generator) -> JsonDict:
    """Return condition numbers and bounds as k grows, for evenly spaced sigma between ends that stay."""
    d = cell["d"]
    s = np.linspace(cell["spread"], 1, d) ** 2
    uniform = np.ones(d) / d
    return {
        "l2": condition_number(s, NonuniformL2("spectral").lambdas(s, d)),
        "l2_bound": l2_bound(s),
        "nested": nested_condition(s, uniform, d),
        "nested_bound": nested_bound(s),
    }


def _polished(function: Callable[[np.ndarray], float], start: np.ndarray) -> np.ndarray:
    """Return a local minimum near a start, by simplices that begin anew until nothing is gained."""
    for _ in range(4):
        start = minimize(
            function, start, method="Nelder-Mead", options={"maxiter": 400 * len(start), "adaptive": True}
        ).x
    return start


def _searched(function: Callable[[np.ndarray], float], size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the best of several local minima from random starts."""
    options = {"maxiter": 150 * size, "adaptive": True}
    found = [minimize(function, rng.standard_normal(size), method="Nelder-Mead", options=options) for _ in range(count)]
    return min(found, key=lambda one: one.fun).x


measure = measuring(_l2, _l2_tightest, _nested, _prior, _boundary, _growth, given=lambda data, cell: data.spectrum)


# -- what is shown -----------------------------------------------------------------------------------------------


def _over_bound(title: str, drawn: Results, named: Mapping[str, str]) -> Chart:
    """Draw condition numbers divided by bounds; `named` says which bound each ratio is to."""
    d = [cell["d"] for cell, _ in drawn]
    series = tuple(line(bound, d, values(drawn, name), kind="points") for name, bound in named.items())
    return Chart(title, "latent dimension k", "ratio", series, y_scale="log")


def _bound_measures(drawn: Results) -> dict[str, float | None]:
    """Return by how much a bound holds, and the bounds on the largest and smallest eigenvalue that it is made of."""
    return {
        "least_ratio": least(drawn, "ratio"),
        "least_ratio_given": least(drawn, "ratio_given"),
        "least_largest_ratio": least(drawn, "largest_ratio"),
        "worst_smallest_ratio": worst(drawn, "smallest_ratio"),
    }


def _grown(part: Results, kind: str, title: str) -> Chart:
    d = [cell["d"] for cell, _ in part]
    return Chart(
        title,
        "latent dimension k",
        "condition number",
        (
            line("Hessian", d, values(part, kind), ours=True),
            line("bound of the paper", d, values(part, f"{kind}_bound")),
        ),
        x_scale="log",
        y_scale="log",
    )


def _slope(part: Results, name: str) -> float:
    """Return the exponent of k between the two largest k."""
    (a, low), (b, high) = sorted(((cell["d"], found[name]) for cell, found in part))[-2:]
    return float(np.log(high / low) / np.log(b / a))


def nonuniform(settings: JsonObject, results: Results) -> Findings:
    """Report on the bound of section 4.3."""
    drawn, tight, edge, growth = (of_check(results, name) for name in ("l2", "l2_tightest", "boundary", "growth"))
    shown = edge[-1][1]
    margins = shown["margins"]
    boundary = Chart(
        "Problem (16) as its solution nears the boundary",
        "1 - lambda_k / sigma_k^2",
        "condition number",
        (
            line("Hessian at the solution of (16)", margins, shown["true"]),
            line("what (16) minimises", margins, shown["bounds"]),
            line("best Hessian found", margins, [shown["best"]] * len(margins), ours=True),
        ),
        x_scale="log",
        y_scale="log",
    )
    named = {"ratio": "section 4.3", "ratio_given": "(16)"}
    ratio = _over_bound("Condition number over bound, drawn penalties", drawn, named)
    return Findings(
        {
            **_bound_measures(drawn),
            "tightest_ratio": least(tight, "tightest"),
            "bound_falls": all(values(edge, "bound_falls")),
            **extremes(
                edge,
                largest=("spectral_over_best", "conditioned_over_best"),
                smallest=("nearest_over_best", "family_over_best"),
            ),
            "growth_exponent": _slope(growth, "l2"),
        },
        (_grown(growth, "l2", "Growth with k, sigma even from 4 to 1"), ratio, boundary),
    )


def nested(settings: JsonObject, results: Results) -> Findings:
    """Report on the bound of section 5."""
    drawn, growth = of_check(results, "nested"), of_check(results, "growth")
    named = {"ratio": "section 5", "ratio_given": "appendix D, prior given"}
    ratio = _over_bound("Condition number over bound", drawn, named)
    return Findings(
        {
            **_bound_measures(drawn),
            "growth_exponent": _slope(growth, "nested"),
            "growth_over_square": min(found["nested"] / found["nested_bound"] for _, found in growth),
        },
        (_grown(growth, "nested", "Growth with k, uniform prior"), ratio),
    )


def prior(settings: JsonObject, results: Results) -> Findings:
    """Report on the prior of appendix D."""
    part = of_check(results, "prior")
    shown = part[-1][1]
    lasts = shown["lasts"]
    chart = Chart(
        "The prior of appendix D, by its mass at k",
        "probability of keeping all k",
        "condition number",
        (
            line("Hessian", lasts, shown["true"]),
            line("bound at that prior, in the limit", lasts, [shown["limit"]] * len(lasts)),
            line("best Hessian found", lasts, [shown["best"]] * len(lasts), ours=True),
        ),
        x_scale="log",
        y_scale="log",
    )
    names = ("boundary_over_best", "geometric_over_best", "uniform_over_best")
    table = Table(
        "Condition number over the best found",
        ("k", "appendix D, mass 1e-9 at k", "geometric, 0.9", "uniform"),
        tuple((cell["d"], *rounded(found[name] for name in names)) for cell, found in part),
    )
    measures = {
        **extremes(
            part,
            largest=("bound_over_limit", "geometric_over_best", "uniform_over_best"),
            smallest=("others_over_limit", "limit_over_final", "boundary_over_best"),
        ),
    }
    return Findings(measures, (chart, table))
