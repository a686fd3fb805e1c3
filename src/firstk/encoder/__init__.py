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
        "firstk.encoder.code_map": ["CodeMap"],
        "firstk.encoder.storage.folder": ["ALIGNMENT", "check_target", "read_extra_bytes", "read_model", "write_model"],
    },
)

if TYPE_CHECKING:
    from firstk.encoder.code_map import CodeMap as CodeMap
    from firstk.encoder.fitted import SEARCH_METRIC as SEARCH_METRIC
    from firstk.encoder.fitted import FittedEncoder as FittedEncoder
    from firstk.encoder.fitted import check_fitted as check_fitted
    from firstk.encoder.storage.folder import ALIGNMENT as ALIGNMENT
    from firstk.encoder.storage.folder import check_target as check_target
    from firstk.encoder.storage.folder import read_extra_bytes as read_extra_bytes
    from firstk.encoder.storage.folder import read_model as read_model
    from firstk.encoder.storage.folder import write_model as write_model
