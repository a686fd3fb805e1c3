"""Diagnosis: which objective to fit, and which tasks the order by variance suits (Balestriero and LeCun 2024).

Metrics are in `metrics`; the command that prints a diagnosis is in `cli`.
"""

from firstk.advice.diagnosis.alignment import FORMS, align, aligned, alignment, raw_axes
from firstk.advice.diagnosis.axes import Axes, Readout, Target, principal_axes
from firstk.advice.diagnosis.comparison import compare_objectives
from firstk.advice.diagnosis.folds import Trials, judged_trials, pair_trials, row_trials, trials_of
from firstk.advice.diagnosis.gathering import Gathered, gather, gather_batches
from firstk.advice.diagnosis.noise import denoising_axes, effect_of
from firstk.advice.diagnosis.ranking import Margin, Ranking, Trial
from firstk.advice.diagnosis.report import PARTS, Diagnosis, diagnose, diagnose_gathered

__all__ = [
    "FORMS",
    "PARTS",
    "Axes",
    "Diagnosis",
    "Gathered",
    "Margin",
    "Ranking",
    "Readout",
    "Target",
    "Trial",
    "Trials",
    "align",
    "aligned",
    "alignment",
    "compare_objectives",
    "denoising_axes",
    "diagnose",
    "diagnose_gathered",
    "effect_of",
    "gather",
    "gather_batches",
    "judged_trials",
    "pair_trials",
    "principal_axes",
    "raw_axes",
    "row_trials",
    "trials_of",
]
