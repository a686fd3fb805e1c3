"""Data sets and files of vectors: synthetic, embedded and downloaded sets, splits, precisions.

Statistics of the data are in `moments`; dask collections are in `integrations`.
"""

from firstk.data.embedded import load_digits
from firstk.data.folder import data_folder
from firstk.data.real import (
    load_banking77,
    load_cifar10,
    load_fashion_mnist,
    load_mnist,
    load_scifact,
    load_stsb,
)
from firstk.data.sets import ImageSet, LabelledEmbeddings, RetrievalSet, ScoredPairs
from firstk.data.splits import Split, split
from firstk.data.synthetic import SyntheticSet, evenly_spaced, two_blocks

__all__ = [
    "ImageSet",
    "LabelledEmbeddings",
    "RetrievalSet",
    "ScoredPairs",
    "Split",
    "SyntheticSet",
    "data_folder",
    "evenly_spaced",
    "load_banking77",
    "load_cifar10",
    "load_digits",
    "load_fashion_mnist",
    "load_mnist",
    "load_scifact",
    "load_stsb",
    "split",
    "two_blocks",
]
