"""Encoders inside faiss indexes, which then take raw vectors.

Needs the extra "search". `vectors` puts an encoder in front of any index that faiss can build; `translation` lets new
queries search an index of old vectors.
"""

from firstk.integrations.faiss.translation import translate_queries
from firstk.integrations.faiss.vectors import (
    Index,
    PreTransform,
    as_side,
    check_linear,
    ids_file,
    load,
    save,
    save_ids,
    takes_ids,
    to_faiss,
    transformed,
)

__all__ = [
    "Index",
    "PreTransform",
    "as_side",
    "check_linear",
    "ids_file",
    "load",
    "save",
    "save_ids",
    "takes_ids",
    "to_faiss",
    "transformed",
    "translate_queries",
]
