"""Data sets and files of vectors: synthetic and embedded sets, splits, precisions.

Statistics of the data are in `moments`; dask collections are in `integrations`; readers of MNIST, CIFAR-10 and other
sets from a folder are in `firstk_papers.datasets`. Names are loaded when they are first
used: a model needs the precisions, and none of the readers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "firstk.data.embedded": ["load_banking", "load_digits"],
    "firstk.data.precision": ["Precision", "read_precision", "resolve_precision"],
    "firstk.data.sets": ["ImageSet", "LabelledEmbeddings", "LabelledTexts"],
    "firstk.data.splits": ["Split", "split"],
    "firstk.data.stamp": ["CodeStamp"],
    "firstk.data.synthetic": ["SyntheticSet", "evenly_spaced", "two_blocks"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from firstk.data.embedded import load_banking, load_digits
    from firstk.data.precision import Precision as Precision
    from firstk.data.precision import read_precision as read_precision
    from firstk.data.precision import resolve_precision as resolve_precision
    from firstk.data.sets import ImageSet, LabelledEmbeddings, LabelledTexts
    from firstk.data.splits import Split, split
    from firstk.data.stamp import CodeStamp as CodeStamp
    from firstk.data.synthetic import SyntheticSet, evenly_spaced, two_blocks

__all__ = [
    "ImageSet",
    "LabelledEmbeddings",
    "LabelledTexts",
    "Split",
    "SyntheticSet",
    "evenly_spaced",
    "load_banking",
    "load_digits",
    "split",
    "two_blocks",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'firstk.data' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
