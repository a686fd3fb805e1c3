"""Diagnosis: what the data's own order serves (002), in sentences first and numbers after."""

from firstk.diagnosis.alignment import FORMS, alignment
from firstk.diagnosis.gathering import Gathered, Gathering, gather, gather_batches
from firstk.diagnosis.report import PARTS, Diagnosis, diagnose, diagnose_gathered, settled_kind

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
