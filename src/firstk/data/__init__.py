"""Data sets and files of vectors: embedded sets, precisions.

Statistics of the data are in `moments`; dask collections are in `integrations`; synthetic sets, splits and readers of
MNIST, CIFAR-10 and others from a folder are in `firstk_papers.datasets`. Names are loaded when they are first used: a
model needs the precisions, and none of the readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

if TYPE_CHECKING:
    from firstk.data.embedded import load_banking, load_digits
    from firstk.data.precision import Precision as Precision
    from firstk.data.precision import read_precision as read_precision
    from firstk.data.precision import resolve_precision as resolve_precision
    from firstk.data.sets import ImageSet, LabelledEmbeddings, LabelledTexts
    from firstk.data.stamp import CodeStamp as CodeStamp
    from firstk.data.stores import find_store as find_store

__all__ = [
    "ImageSet",
    "LabelledEmbeddings",
    "LabelledTexts",
    "load_banking",
    "load_digits",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.data.embedded": ["load_banking", "load_digits"],
        "firstk.data.precision": ["Precision", "read_precision", "resolve_precision"],
        "firstk.data.sets": ["ImageSet", "LabelledEmbeddings", "LabelledTexts"],
        "firstk.data.stamp": ["CodeStamp"],
        "firstk.data.stores": ["find_store"],
    },
)
