"""Data sets from a folder, and the tasks that the studies make of them.

None of the sets is shipped, because licenses differ: `load_mnist` and the others read files of `data_folder`.
"""

from firstk_papers.datasets.folder import data_folder
from firstk_papers.datasets.readers import (
    load_banking77,
    load_cifar10,
    load_fashion_mnist,
    load_mnist,
    load_scifact,
    load_stsb,
)
from firstk_papers.datasets.sets import RetrievalSet, ScoredPairs

__all__ = [
    "RetrievalSet",
    "ScoredPairs",
    "data_folder",
    "load_banking77",
    "load_cifar10",
    "load_fashion_mnist",
    "load_mnist",
    "load_scifact",
    "load_stsb",
]
