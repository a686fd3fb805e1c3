"""Diagnosis: which tasks the order by variance serves (Balestriero and LeCun 2024), findings before numbers.

Metrics live in `metrics`; the command that prints a diagnosis lives in `cli`.
"""

from firstk.evaluation.diagnosis.alignment import FORMS, alignment
from firstk.evaluation.diagnosis.gathering import Gathered, Gathering, gather, gather_batches
from firstk.evaluation.diagnosis.report import PARTS, Diagnosis, diagnose, diagnose_gathered, settled_kind

__all__ = [
    "FORMS",
    "PARTS",
    "Diagnosis",
    "Gathered",
    "Gathering",
    "alignment",
    "diagnose",
    "diagnose_gathered",
    "gather",
    "gather_batches",
    "settled_kind",
]
