"""An upgrade of the embedding model, evaluated: stay with the old one, translate its vectors, or embed them anew.

Alignments themselves are fitted in `alignment`; here they are scored on a user's own searches, next to staying and to
re-embedding, and the result is a record with a verdict.
"""

from firstk.advice.upgrade.evaluation import UpgradeResult, evaluate_upgrade
from firstk.advice.upgrade.records import Estimate, Option, Pool, ScoredOption, UpgradeReport
from firstk.advice.upgrade.searches import UpgradeData
from firstk.advice.upgrade.verdict import Terms, Verdict, verdict_of
from firstk.advice.upgrade.worth import worth

__all__ = [
    "Estimate",
    "Option",
    "Pool",
    "ScoredOption",
    "Terms",
    "UpgradeData",
    "UpgradeReport",
    "UpgradeResult",
    "Verdict",
    "evaluate_upgrade",
    "verdict_of",
    "worth",
]
