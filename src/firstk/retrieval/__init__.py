"""Search on codes: a funnel over prefixes, down to the exact distance, and a flat search on embedded bytes.

Metrics of retrieval live in `metrics`, indexes of other programs in `integrations`. See docs/retrieval.md.
"""

from firstk.retrieval.code_fit import FitWarning
from firstk.retrieval.code_index import CodeIndex
from firstk.retrieval.index import FunnelIndex, SearchResult
from firstk.retrieval.schedule import OrderWarning, Schedule, Stage

__all__ = ["CodeIndex", "FitWarning", "FunnelIndex", "OrderWarning", "Schedule", "SearchResult", "Stage"]
