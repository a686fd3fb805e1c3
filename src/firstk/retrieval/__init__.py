"""Funnel search: a shortlist from short prefixes, reranked on longer ones, down to the exact distance.

Metrics of retrieval live in `metrics`, indexes of other programs in `integrations`. See docs/retrieval.md.
"""

from firstk.retrieval.index import FunnelIndex, SearchResult
from firstk.retrieval.schedule import OrderWarning, Schedule, Stage

__all__ = ["FunnelIndex", "OrderWarning", "Schedule", "SearchResult", "Stage"]
