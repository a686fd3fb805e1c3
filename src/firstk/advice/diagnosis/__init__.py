"""Diagnosis: which objective to fit, and what is unusual about the vectors.

The record is made here; its sentences are in `firstk.words`, and the rule of selection in `firstk.quality`.
"""

from firstk.advice.diagnosis.compare import Ranking, Trial, compare_objectives
from firstk.advice.diagnosis.folds import Trials, judged_trials, log_trials, pair_trials, row_trials, trials_of
from firstk.advice.diagnosis.report import Diagnosis, diagnose, diagnose_gathered
from firstk.advice.diagnosis.rows import Gathered, gather, gather_batches

__all__ = [
    "Diagnosis",
    "Gathered",
    "Ranking",
    "Trial",
    "Trials",
    "compare_objectives",
    "diagnose",
    "diagnose_gathered",
    "gather",
    "gather_batches",
    "judged_trials",
    "log_trials",
    "pair_trials",
    "row_trials",
    "trials_of",
]
