"""Data sets from a folder, synthetic ones with known axes, and the tasks that the studies make of them.

None of the sets in files is shipped, because licenses differ: `load_mnist` and the others read files of `data_folder`.
"""

from firstk_papers.datasets.folder import MissingDataError, data_folder
from firstk_papers.datasets.readers import (
    load_banking77,
    load_cifar10,
    load_fashion_mnist,
    load_mnist,
    load_scifact,
    load_stsb,
)
from firstk_papers.datasets.sets import RetrievalSet, ScoredPairs
from firstk_papers.datasets.splits import Split, split
from firstk_papers.datasets.synthetic import SyntheticSet, evenly_spaced, two_blocks

__all__ = [
    "MissingDataError",
    "RetrievalSet",
    "ScoredPairs",
    "Split",
    "SyntheticSet",
    "data_folder",
    "evenly_spaced",
    "load_banking77",
    "load_cifar10",
    "load_fashion_mnist",
    "load_mnist",
    "load_scifact",
    "load_stsb",
    "split",
    "two_blocks",
]
