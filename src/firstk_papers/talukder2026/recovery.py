"""Recovery of PCA and LDA axes (Talukder et al. 2026 section 3): which fits figures 1, 3, 4, 5 and Table 1 need.

All of them read the configurations of ``talukder2026/table1.toml``, so that equal fits are done once. What is made of
them is in
:mod:`firstk_papers.talukder2026.recovery_reports`.
"""

from __future__ import annotations

from firstk_papers.frame.specs import HERE, read_spec
from firstk_papers.frame.types import JsonDict, JsonObject
from firstk_papers.talukder2026.recovery_fits import facts, fit, fit_as_code
from firstk_papers.talukder2026.recovery_reports import (
    angles_and_pairs,
    configurations,
    heatmaps,
    largest_cosines,
    methods_of,
    training_losses,
)

__all__ = ["angles_and_pairs", "cells", "configurations", "heatmaps", "largest_cosines", "measure", "training_losses"]

REVISION = 1


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one fit for each configuration and method that the settings name."""
    table = table_1(settings["tier"], settings.get("more", {}))
    return [
        cell_of(table, name, method, settings["seed"])
        for name in settings["configurations"]
        for method in methods_of(settings, name)
    ]


def table_1(tier: str, more: JsonObject | None = None) -> JsonDict:
    """Return the settings of Table 1 in a tier, with further configurations."""
    settings = read_spec(HERE / "talukder2026" / "table1.toml").settings(tier)
    return settings | {"table": settings["table"] | dict(more or {})}


def cell_of(table: JsonObject, name: str, method: str, seed: int) -> JsonDict:
    """Return everything that a fit depends on, and nothing that it does not."""
    row = table["table"][name]
    cell = {"revision": REVISION, "seed": seed, "method": method, "rows": table["rows"][row["data"]]}
    cell |= {key: row[key] for key in ("data", "family", "d")}
    if "patience" in table:
        cell["code"] = True
    if row["family"] == "fisher":
        cell["eps"] = row["eps"]
    if method == "closed_form":
        return cell
    if method == "ours":
        return cell | ({"length": table["ours"][name]} if "ours" in table else {})
    length = table["lengths"][name]
    cell |= {"batch": row["batch"], "length": table["capped"].get(f"{name}/{method}", length)}
    cell |= {key: table[key] for key in ("learning_rate", "weight_decay")}
    if "patience" in table:
        cell["patience"] = table["patience"][name]
    if method == "sparse_prefix":
        cell["prefixes"] = row["prefixes"]
    if method == "monotone_l1":
        cell["alpha"] = row["alpha"]
    return cell


def measure(cell: JsonObject) -> JsonDict:
    """Do one fit; or return what the data have of Table 1."""
    if cell["method"] == "closed_form":
        return facts(cell)
    return fit_as_code(cell) if "patience" in cell else fit(cell)
