"""The evaluation that ``firstk curve --json`` prints, read back as the report that a page shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstk._base.input_file import check_there
from firstk._base.json_records import strict_json
from firstk.advice.records import Report
from firstk.exceptions import InvalidInputError

AGAIN = "Write it again with: firstk curve MODEL VECTORS --json > curve.json"


def read_curve(path: str | Path, config: Mapping[str, Any]) -> Report:
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
    if not isinstance(values, dict) or "report" not in values:
        raise InvalidInputError(f"'{path}' is not what 'firstk curve --json' prints. {AGAIN}")
    report = Report.from_json(json.dumps(values["report"]), again=AGAIN)
    widest = max(point.k for point in report.lead.prefixes)
    if widest > int(config["d"]):
        raise InvalidInputError(
            f"'{path}' evaluates a code of {widest:,} coordinates, and this model has {config['d']:,}. Give the model "
            "that was evaluated."
        )
    return report
