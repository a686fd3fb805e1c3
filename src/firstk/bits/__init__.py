"""Embedded bits: every prefix of a string of bytes is the code for that many bytes.

Codebooks of the first coordinates (`codebooks`, by `k_means`), a binary tree of thresholds for each coordinate of what
they leave over (`trees`), the order in which coordinates get their bits (`allocation`, by the `weights` of their
errors), and bits as bytes (`bit_string`). `embedded` puts them together, as a precision of stored codes; `quantizer`
does so for the vectors of an encoder, by `encoding`.
Other precisions are in `data`, searches of bytes in `search`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.bits.embedded": ["Embedded", "read_embedded"],
        "firstk.bits.quantizer": ["METRICS", "EmbeddedQuantizer"],
    },
)

if TYPE_CHECKING:
    from firstk.bits.embedded import Embedded as Embedded
    from firstk.bits.embedded import read_embedded as read_embedded
    from firstk.bits.quantizer import METRICS as METRICS
    from firstk.bits.quantizer import EmbeddedQuantizer as EmbeddedQuantizer
