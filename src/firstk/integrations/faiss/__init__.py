"""Encoders and embedded bytes inside faiss indexes, which then take raw vectors.

Needs the extra "search". `vectors` puts an encoder in front of any index that faiss can build; `embedded` puts the
bytes of a :class:`firstk.CodeIndex` into one; `translation` lets new queries search an index of old vectors.
"""

from firstk.integrations.faiss.embedded import bytes_to_faiss
from firstk.integrations.faiss.translation import translate_queries
from firstk.integrations.faiss.vectors import as_side, ids_file, load, save, save_ids, takes_ids, to_faiss

__all__ = [
    "as_side",
    "bytes_to_faiss",
    "ids_file",
    "load",
    "save",
    "save_ids",
    "takes_ids",
    "to_faiss",
    "translate_queries",
]
