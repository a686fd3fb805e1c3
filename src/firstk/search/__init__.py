"""Search: a funnel over prefixes, flat search on bytes, nine vector stores, and moves between them. A wing.

It imports what other rooms export, and they do not import it. `stores` are the stores, `moving` what the command
``firstk move`` does. Metrics of search live in `metrics`, encoders inside indexes of faiss in `integrations`.
See docs/retrieval.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.search.codes.cell_fit": ["FitWarning"],
        "firstk.search.codes.index": ["CodeIndex"],
        "firstk.search.codes.to_faiss": ["bytes_to_faiss"],
        "firstk.search.funnel.index": ["FunnelIndex"],
        "firstk.search.funnel.schedule": ["OrderWarning", "Schedule", "Stage"],
        "firstk.search.row_index": ["SearchResult"],
    },
)

if TYPE_CHECKING:
    from firstk.search.codes.cell_fit import FitWarning
    from firstk.search.codes.index import CodeIndex
    from firstk.search.codes.to_faiss import bytes_to_faiss
    from firstk.search.funnel.index import FunnelIndex
    from firstk.search.funnel.schedule import OrderWarning, Schedule, Stage
    from firstk.search.row_index import SearchResult

__all__ = [
    "CodeIndex",
    "FitWarning",
    "FunnelIndex",
    "OrderWarning",
    "Schedule",
    "SearchResult",
    "Stage",
    "bytes_to_faiss",
]
