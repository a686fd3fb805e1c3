"""Funnel search: a shortlist from short prefixes, reranked on longer ones, down to the exact distance.

Codes whose first coordinates say most need few of them to tell which rows cannot be neighbors. See docs/retrieval.md.
"""

from firstk.retrieval.index import FunnelIndex
from firstk.retrieval.results import SearchResult
from firstk.retrieval.schedule import OrderWarning, Schedule, Stage

__all__ = ["FunnelIndex", "OrderWarning", "Schedule", "SearchResult", "Stage"]
