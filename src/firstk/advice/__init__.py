"""Evaluation of codes on held-out data: baselines, operating points, precisions, overlap, diagnosis and the report.

Metrics and curves live in `metrics`; commands that print results live in `cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.advice.inputs": ["File", "RowsOfFile", "VectorSource"],
        "firstk.advice.judgements": [
            "Judged",
            "RowNames",
            "read_columns",
            "column_of",
            "read_judged",
            "read_side",
            "usual",
        ],
    },
)

if TYPE_CHECKING:
    from firstk.advice.inputs import File as File
    from firstk.advice.inputs import RowsOfFile as RowsOfFile
    from firstk.advice.inputs import VectorSource as VectorSource
    from firstk.advice.judgements import Judged as Judged
    from firstk.advice.judgements import RowNames as RowNames
    from firstk.advice.judgements import column_of as column_of
    from firstk.advice.judgements import read_columns as read_columns
    from firstk.advice.judgements import read_judged as read_judged
    from firstk.advice.judgements import read_side as read_side
    from firstk.advice.judgements import usual as usual
