"""Diagnosis: what the data's own order serves (Balestriero and LeCun 2024), in sentences first and numbers after."""

from firstk.evaluation.diagnosis.alignment import FORMS, alignment
from firstk.evaluation.diagnosis.gathering import Gathered, gather, gather_batches
from firstk.evaluation.diagnosis.report import PARTS, Diagnosis, diagnose, diagnose_gathered

__all__ = [
    "FORMS",
    "PARTS",
    "Diagnosis",
    "Gathered",
    "alignment",
    "diagnose",
    "diagnose_gathered",
    "gather",
    "gather_batches",
]
