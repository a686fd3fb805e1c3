"""Image sets by name, read once a process."""

from __future__ import annotations

from functools import lru_cache

from firstk.data import ImageSet
from firstk_papers.datasets import load_cifar10, load_fashion_mnist, load_mnist
from firstk_papers.frame.checks import check_choice

_LOADERS = {"mnist": load_mnist, "fashion-mnist": load_fashion_mnist, "cifar10": load_cifar10}


@lru_cache(maxsize=len(_LOADERS))  # a worker of a run over all papers comes back to each of them
def images(name: str) -> ImageSet:
    """Return an image set; its arrays are shared, and so must not be written to."""
    return _LOADERS[check_choice(name, _LOADERS, "name", "images")]()
