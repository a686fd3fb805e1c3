"""Diagnosis: which tasks the order by variance suits (Balestriero and LeCun 2024), findings before numbers.

Metrics are in `metrics`; the command that prints a diagnosis is in `cli`.
"""

from firstk.evaluation.diagnosis.alignment import FORMS, align, aligned, alignment, raw_axes
from firstk.evaluation.diagnosis.axes import Axes, Readout, Target, principal_axes
from firstk.evaluation.diagnosis.gathering import Gathered, gather, gather_batches
from firstk.evaluation.diagnosis.noise import denoising_axes, effect_of
from firstk.evaluation.diagnosis.report import PARTS, Diagnosis, diagnose, diagnose_gathered

__all__ = [
    "FORMS",
    "PARTS",
    "Axes",
    "Diagnosis",
    "Gathered",
    "Readout",
    "Target",
    "align",
    "aligned",
    "alignment",
    "denoising_axes",
    "diagnose",
    "diagnose_gathered",
    "effect_of",
    "gather",
    "gather_batches",
    "principal_axes",
    "raw_axes",
]
