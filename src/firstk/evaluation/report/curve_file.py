"""The evaluation that ``firstk curve --json`` prints, as the record that a page shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstk import __version__
from firstk._base.input_file import check_there
from firstk._base.json_records import strict_json
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.recommendation import Recommendation
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.records import Comparison, HeldOutReport
from firstk.exceptions import InvalidInputError

AGAIN = "Write it again with: firstk curve MODEL VECTORS --json > curve.json"


def read_curve(path: str | Path, config: Mapping[str, Any]) -> HeldOutReport:
    """Read what ``firstk curve --json`` printed.

    Parameters
    ----------
    path : path
        The file with the JSON document.
    config : mapping
        That of the model which was evaluated.
    """
    check_there(str(path))
    try:
        values = strict_json(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"'{path}' is no JSON document that can be read ({error}). {AGAIN}") from None
    if not isinstance(values, dict) or not {"curve", "baselines", "precisions"} <= set(values):
        raise InvalidInputError(f"'{path}' is not what 'firstk curve --json' prints. {AGAIN}")
    widest = _widest(values["curve"])
    if widest > int(config["d"]):
        raise InvalidInputError(
            f"'{path}' evaluates a code of {widest:,} coordinates, and this model has {config['d']:,}. Give the model "
            "that was evaluated."
        )
    return report_of_curve(values, int(config["p"]))


def _widest(curve: object) -> int:
    ks = curve.get("k") if isinstance(curve, Mapping) else None
    return max((k for k in ks if isinstance(k, int)), default=0) if isinstance(ks, list) else 0


def report_of_curve(values: Mapping[str, Any], columns: int) -> HeldOutReport:
    """Return the record of an evaluation on files.

    Parameters
    ----------
    values : mapping
        The document that ``firstk curve --json`` prints.
    columns : int
        Width of the raw vectors.
    """
    ours = PrefixCurve.from_dict(values["curve"])
    baselines = tuple(PrefixCurve.from_dict(curve) for curve in values["baselines"])
    table = PrecisionTable.from_dict(values["precisions"])
    advice = values.get("recommendation")
    stored = values.get("stored") or table.n_searched or table.n_evaluated or 1
    return HeldOutReport(
        facts=_facts(values, ours, columns),
        rows=values.get("rows") or stored,
        columns=columns,
        itemsize=max(1, (table.input_bytes or 4 * columns) // columns),
        held_out=str(values.get("judged") or ""),
        comparisons=(Comparison(ours, baselines),),
        precisions=table,
        notes=tuple(map(str, values.get("notes") or ())),
        recommendation=None if advice is None else Recommendation.from_dict(advice),
        options=_options(values.get("options") or {}),
    )


def _options(given: object) -> dict[str, str]:
    if isinstance(given, Mapping) and all(isinstance(text, str) for text in (*given, *given.values())):
        return dict(given)
    raise InvalidInputError(f"The 'options' of this evaluation are no texts by name. {AGAIN}")


def _facts(values: Mapping[str, Any], ours: PrefixCurve, columns: int) -> dict[str, str | int | float]:
    store = values.get("store")
    file = {"vectors": str(values.get("vectors"))} if store is None else {"file": str(store)}
    facts: dict[str, str | int | float] = {
        **file,
        "model": str(values.get("model")),
        "objective": ours.label or str(values.get("objective")),
        "columns": columns,
        "coordinates": ours.k[-1],
    }
    stored = values.get("stored")
    facts |= {"vectors searched or evaluated": stored} if isinstance(stored, int) else {}
    return facts | {"firstk": __version__}
