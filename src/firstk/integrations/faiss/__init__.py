"""Encoders and embedded bytes inside faiss indexes, which then take raw vectors.

Needs the extra "search". `vectors` puts an encoder in front of any index that faiss can build; `embedded` puts the
bytes of a :class:`firstk.CodeIndex` into one.
"""

from firstk.integrations.faiss.embedded import bytes_to_faiss
from firstk.integrations.faiss.vectors import as_side, ids_file, load, save, save_ids, takes_ids, to_faiss

__all__ = ["as_side", "bytes_to_faiss", "ids_file", "load", "save", "save_ids", "takes_ids", "to_faiss"]
