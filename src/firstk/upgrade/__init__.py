"""Two models, one ordered code: translations between the vectors of an old model and a new one, and their evaluation.

`prefix_alignment` has the estimator, `methods/` one file per method, `auto` the choice between them. `evaluate` scores
alignments on a user's own searches, next to staying and re-embedding; `verdict` decides what to do, and `words` says so
for the terminal and the `page`. A wing: nothing of the rest imports it. Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firstk.upgrade.data import UpgradeData
    from firstk.upgrade.evaluate import UpgradeResult, evaluate_upgrade
    from firstk.upgrade.fitted import FittedAlignment
    from firstk.upgrade.mixing import worth
    from firstk.upgrade.page import render_upgrade
    from firstk.upgrade.prefix_alignment import PrefixAlignment
    from firstk.upgrade.records import Option, Pool, ScoredOption, UpgradeReport
    from firstk.upgrade.verdict import Terms, Verdict, verdict_of

_HOME_OF = {
    "FittedAlignment": "fitted",
    "Option": "records",
    "Pool": "records",
    "PrefixAlignment": "prefix_alignment",
    "ScoredOption": "records",
    "Terms": "verdict",
    "UpgradeData": "data",
    "UpgradeReport": "records",
    "UpgradeResult": "evaluate",
    "Verdict": "verdict",
    "evaluate_upgrade": "evaluate",
    "render_upgrade": "page",
    "verdict_of": "verdict",
    "worth": "mixing",
}

__all__ = [
    "FittedAlignment",
    "Option",
    "Pool",
    "PrefixAlignment",
    "ScoredOption",
    "Terms",
    "UpgradeData",
    "UpgradeReport",
    "UpgradeResult",
    "Verdict",
    "evaluate_upgrade",
    "render_upgrade",
    "verdict_of",
    "worth",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'firstk.upgrade' has no attribute {name!r}")
    return getattr(importlib.import_module(f"firstk.upgrade.{_HOME_OF[name]}"), name)
