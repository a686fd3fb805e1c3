"""Integrations with optional packages, one module each: dask, faiss, Qdrant, ONNX, and others.

Parts that need no extra are elsewhere: search and stores in `search`, readers of files in `data`, saving in `encoder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.integrations._codes": ["METRICS", "Codes", "EncoderLike"],
        "firstk.integrations._documents": ["ID_COLUMN", "Documents"],
    },
)

if TYPE_CHECKING:
    from firstk.integrations._codes import METRICS as METRICS
    from firstk.integrations._codes import Codes as Codes
    from firstk.integrations._codes import EncoderLike as EncoderLike
    from firstk.integrations._documents import ID_COLUMN as ID_COLUMN
    from firstk.integrations._documents import Documents as Documents
