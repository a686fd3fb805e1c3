"""Statistics that are additive over rows: moments, samples, fingerprints, and the streams that accumulate them.

Nothing here knows an objective: what is learned from statistics lives in `objectives` and `solvers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.moments.cross": ["CrossMoments", "check_two_sides"],
        "firstk.moments.fingerprint": ["row_priorities"],
        "firstk.moments.statistics": ["RowSample"],
        "firstk.moments.stream": ["chunk_rows"],
        "firstk.moments.targets": ["check_none_missing"],
    },
)

if TYPE_CHECKING:
    from firstk.moments.cross import CrossMoments as CrossMoments
    from firstk.moments.cross import check_two_sides as check_two_sides
    from firstk.moments.fingerprint import row_priorities as row_priorities
    from firstk.moments.statistics import RowSample as RowSample
    from firstk.moments.stream import chunk_rows as chunk_rows
    from firstk.moments.targets import check_none_missing as check_none_missing
