"""alignment(k) on images and texts (figure 2, equation (7), corollary 1.2), with what chance has in it.

All of it is read off the eigenvectors of the scatter: nothing is trained. One cell is one set of rows with its task.
"""

from __future__ import annotations

import numpy as np

from firstk import Moments
from firstk_papers.balestriero2024.alignment import FORMS, align, aligned, raw_axes
from firstk_papers.balestriero2024.axes import Axes, Readout, principal_axes
from firstk_papers.datasets.tasks import Task, task, title
from firstk_papers.frame.panels import Chart, Findings, Mark, Series, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

REVISION = 1
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
POINTS = 60
FIFTH = "20 %"
BALANCED = ("fashion-mnist", "cifar10")


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell for each line of `tasks`: set, and where given rows, pool and whether labels are shuffled."""
    return [
        {"rows": None, "pool": 1, **line, "seed": settings["seed"], "revision": REVISION} for line in settings["tasks"]
    ]


def measure(cell: JsonObject) -> JsonDict:
    """Return alignment(k) in all forms, about the mean and about the origin, and held-out R^2."""
    rows = task(cell)
    moments = rows.moments()
    axes, raw = principal_axes(moments), raw_axes(moments)
    found = align(axes)
    ks = thinned(axes.rank)
    return {
        "rank": axes.rank,
        "width": moments.p,
        "n": len(rows.X),
        "r2": found.r2,
        "by_chance": found.by_chance,
        "area": found.area,
        "at_share": found.at_share,
        "corrected": found.corrected,
        "k": ks,
        "centred": {curve.label: rounded([curve.at(k) for k in ks]) for curve in found.curves},
        "raw": _raw(raw, ks),
        "held_out": held_out(axes, rows),
        **_checks(axes, raw),
    }


def thinned(rank: int) -> list[int]:
    """Return some prefix lengths from 1 to the rank, even on a logarithmic and on a linear scale.

    Examples
    --------
    >>> thinned(4)
    [1, 2, 3, 4]
    """
    both = np.r_[np.geomspace(1, rank, POINTS // 2), np.linspace(1, rank, POINTS // 2)]
    return np.unique(np.rint(both).astype(int)).tolist()


def held_out(axes: Axes, rows: Task) -> JsonDict:
    """Return R^2 on test rows of the readouts of the first k principal coordinates, at shares of the rank."""
    ks = np.unique([max(1, round(share * axes.rank)) for share in SHARES])
    scores = Readout(axes).scores(axes.whitened(rows.X_test), rows.y_test, ks, "r2").mean(axis=0)
    return {"k": ks.tolist(), "r2": rounded(scores)}


def _raw(axes: Axes, ks: list[int]) -> JsonDict:
    """Return curves about the origin, as the paper prints them; their rank may differ by one from the other."""
    curves = [aligned(axes, form) for form in FORMS]
    return {curve.label: rounded([curve.at(min(k, axes.rank)) for k in ks]) for curve in curves}


def _checks(axes: Axes, raw: Axes) -> dict[str, float]:
    """Return what corollary 1.2 says of every curve, at every k, and how far the forms are apart."""
    curves = {form: np.array(aligned(axes, form).score) for form in FORMS}
    printed = np.array(aligned(raw, "equation_7").score)
    steps = [float(np.diff(curve, prepend=0.0).min()) for curve in (*curves.values(), printed)]
    return {
        "least_step": min(steps),
        "last": float(printed[-1]),
        "last_of_code": float(aligned(raw, "code").score[-1]),
        "forms_apart": float(np.abs(curves["proof"] - curves["equation_7"]).max()),
        "first": float(printed[0]),
    }


# -- reports ---------------------------------------------------------------------------------------------------------


def report(settings: JsonObject, results: Results) -> Findings:
    """Report figure 2: alignment against k and against k over the width, and the same with chance taken off."""
    named = {cell["set"]: found for cell, found in results}
    measures: JsonDict = {}
    for name, found in named.items():
        measures |= {
            f"{name}_at_20": at_width(found, 0.2),
            f"{name}_corrected_at_20": found["corrected"].get(FIFTH),
            f"{name}_r2": found["r2"],
            f"{name}_by_chance": found["by_chance"],
            f"{name}_area": found["area"],
        }
    plain = ("mnist", "fashion-mnist")
    measures["without_background_at_20"] = min(measures[f"{name}_at_20"] for name in plain)
    measures["realistic_deficit"] = measures["without_background_at_20"] - measures["cifar10_at_20"]
    measures["realistic_deficit_corrected"] = _difference(
        [measures[f"{name}_corrected_at_20"] for name in plain], measures["cifar10_corrected_at_20"]
    )
    measures["tinyimagenet_linear"] = None
    return Findings(measures=rounded_measures(measures), panels=_figure_2(results), notes=_notes(results))


def corollary_12(settings: JsonObject, results: Results) -> Findings:
    """Report corollary 1.2: every curve rises and ends at 1; which form is the supervised error."""
    found = [result for _, result in results]
    # Rows drawn at random leave no set balanced.
    balanced = [one["forms_apart"] for cell, one in results if cell["set"] in BALANCED and not cell["rows"]]
    measures = {
        "least_step": min(one["least_step"] for one in found),
        "furthest_end_from_one": max(abs(one["last"] - 1) for one in found),
        "least_end_of_code": min(one["last_of_code"] for one in found),
        "balanced_forms_apart": max(balanced) if balanced else None,
        "unbalanced_forms_apart": max(one["forms_apart"] for cell, one in results if cell["set"] not in BALANCED),
        **counterexamples(),
    }
    panels = tuple(
        Chart(
            f"{title(cell)}: three forms", "k", "alignment(k), about the origin",
            tuple(Series(form.replace("_", " "), tuple(one["k"]), tuple(one["raw"][form])) for form in FORMS),
            x_scale="log",
        )
        for cell, one in results[:4]
    )  # fmt: skip
    return Findings(measures=rounded_measures(measures), panels=panels)


def counterexamples() -> dict[str, float]:
    """Return alignment(2), by equation (7), of targets that are aligned with five rows, and of ones that are not.

    The rows are diag(5, 4, 3, 2, 1), whose right singular vectors are the unit vectors. So are those of the first
    targets, in the same order. The others have two, each half way between the first two unit vectors and later ones.
    """
    X = np.diag([5.0, 4.0, 3.0, 2.0, 1.0])
    between = np.zeros_like(X)
    between[0, [0, 2]], between[1, [1, 3]] = 5.0, 4.0
    targets = {"aligned_at_2": X, "misaligned_at_2": between}  # (q, n)
    moments = {name: Moments("float64").update(X, targets=Y.T) for name, Y in targets.items()}
    return {name: aligned(raw_axes(one), "equation_7").at(2) for name, one in moments.items()}


def factors(settings: JsonObject, results: Results) -> Findings:
    """Report section 3.1: resolution, the number of rows, and shuffled labels, at the same images."""
    first = results[0][0]
    true = [(cell, found) for cell, found in results if not cell.get("shuffled")]
    by_pool = {cell["pool"]: found for cell, found in true if cell["rows"] == first["rows"]}
    by_rows = {found["n"]: found for cell, found in true if cell["pool"] == first["pool"]}
    fine, coarse = by_pool[min(by_pool)], by_pool[max(by_pool)]
    few, many = by_rows[min(by_rows)], by_rows[max(by_rows)]
    measures = {
        "resolution_loss_at_20": at_width(coarse, 0.2) - at_width(fine, 0.2),
        "resolution_loss_corrected": _difference([coarse["corrected"].get(FIFTH)], fine["corrected"].get(FIFTH)),
        "rows_gain_at_20": at_width(many, 0.2) - at_width(few, 0.2) if len(by_rows) > 1 else None,
    }
    measures["shuffled_at_20"] = next(found["at_share"][FIFTH] for cell, found in results if cell.get("shuffled"))
    for name, one in ((key(cell), found) for cell, found in true):
        measures |= {f"{name}_at_20": at_width(one, 0.2), f"{name}_corrected_at_20": one["corrected"].get(FIFTH)}
    return Findings(measures=rounded_measures(measures), panels=_figure_2(results)[1:], notes=_notes(results))


def key(cell: JsonObject) -> str:
    """Name a cell in measures."""
    pool, rows = cell["pool"], cell["rows"]
    return cell["set"] + (f"_pool{pool}" if pool > 1 else "") + (f"_rows{rows}" if rows else "")


def at_width(found: JsonObject, share: float) -> float:
    """Return alignment, equation (7) about the origin, at the k nearest to this share of the input dimension."""
    k = np.array(found["k"])
    return float(found["raw"]["equation_7"][int(np.argmin(np.abs(k - share * found["width"])))])


def rounded_measures(measures: JsonObject) -> JsonDict:
    """Round the numbers among measures to six digits."""
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in measures.items()}


def _difference(those: list[float | None], other: float | None) -> float | None:
    known = [value for value in those if value is not None]
    return None if other is None or not known else min(known) - other


def _figure_2(results: Results) -> tuple[Chart, ...]:
    printed = [(title(cell), one["k"], one["raw"]["equation_7"], one["width"]) for cell, one in results]
    by_k = tuple(Series(name, tuple(k), tuple(y)) for name, k, y, _ in printed)
    by_share = tuple(
        Series(name, tuple((np.array(k) / width).round(6).tolist()), tuple(y)) for name, k, y, width in printed
    )
    corrected = tuple(
        Series(title(cell), tuple(float(share.split()[0]) / 100 for share in one["corrected"]),
               tuple(rounded(list(one["corrected"].values()))), kind="line", ours=True)
        for cell, one in results if one["corrected"]
    )  # fmt: skip
    held = tuple(
        Series(title(cell), tuple((np.array(one["held_out"]["k"]) / one["rank"]).round(6).tolist()),
               tuple(None if r2 < -1 else r2 for r2 in one["held_out"]["r2"]), ours=True)
        for cell, one in results
    )  # fmt: skip
    a_fifth = (Mark(0.2, axis="x", label="20 %"),)
    return (
        Chart("Equation (7) against k", "k", "alignment(k)", by_k, x_scale="log"),
        Chart("Equation (7) against k / D", "k / D", "alignment(k)", by_share, marks=a_fifth),
        Chart("Proof's form, without what chance gives", "k / rank", "alignment(k)", corrected, x_scale="log",
              marks=a_fifth),
        Chart("R^2 on test rows of the same readouts", "k / rank", "R^2, held out", held, x_scale="log"),
    )  # fmt: skip


def _notes(results: Results) -> tuple[str, ...]:
    return tuple(
        f"{title(cell)}: R^2 of all {one['rank']} directions {one['r2']:.3f} in sample, of which random labels would "
        f"reach {one['by_chance']:.3f}; on test rows {one['held_out']['r2'][-1]:.3f}, and at best "
        f"{max(one['held_out']['r2']):.3f} with k = {one['held_out']['k'][int(np.argmax(one['held_out']['r2']))]}."
        for cell, one in results
    )
