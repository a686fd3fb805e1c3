"""The fitted encoder, which is what a user keeps after a fit: readouts, networks, curve and storage; numpy suffices.

How it is found lives in `solvers`, how good it is in `metrics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.encoder.fitted": ["SEARCH_METRIC", "FittedEncoder", "check_fitted"],
    },
)

if TYPE_CHECKING:
    from firstk.encoder.fitted import SEARCH_METRIC as SEARCH_METRIC
    from firstk.encoder.fitted import FittedEncoder as FittedEncoder
    from firstk.encoder.fitted import check_fitted as check_fitted
