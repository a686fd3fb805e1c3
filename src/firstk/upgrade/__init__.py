"""Two models, one ordered code: translations between the vectors of an old model and a new one, and their evaluation.

`prefix_alignment` has the estimator, `methods/` one file per family of methods, `auto` the choice between them.
`evaluate` scores alignments on a user's own searches, next to staying and re-embedding; `verdict` decides what to do,
and `words` says so for the terminal and the `page`. A wing: nothing of the rest imports it. Names are loaded when they
are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.upgrade.data": ["UpgradeData"],
        "firstk.upgrade.evaluate": ["UpgradeResult", "evaluate_upgrade"],
        "firstk.upgrade.fitted": ["FittedAlignment"],
        "firstk.upgrade.mixing": ["worth"],
        "firstk.upgrade.page": ["render_upgrade"],
        "firstk.upgrade.prefix_alignment": ["PrefixAlignment"],
        "firstk.upgrade.records": ["Option", "Pool", "ScoredOption", "UpgradeReport"],
        "firstk.upgrade.verdict": ["Terms", "Verdict", "verdict_of"],
    },
)

if TYPE_CHECKING:
    from firstk.upgrade.data import UpgradeData
    from firstk.upgrade.evaluate import UpgradeResult, evaluate_upgrade
    from firstk.upgrade.fitted import FittedAlignment
    from firstk.upgrade.mixing import worth
    from firstk.upgrade.page import render_upgrade
    from firstk.upgrade.prefix_alignment import PrefixAlignment
    from firstk.upgrade.records import Option, Pool, ScoredOption, UpgradeReport
    from firstk.upgrade.verdict import Terms, Verdict, verdict_of

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
