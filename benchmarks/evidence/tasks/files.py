"""Files of vectors by set and model, and what is the same for all models: labels, pairs, judgements."""

from __future__ import annotations

import getpass
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.evidence.data import check_open
from firstk.data import ImageSet
from firstk_papers.datasets import data_folder, load_fashion_mnist

MODELS = ("minilm", "potion", "mpnet", "wordllama")
IMAGE_MODELS = {"fashion-mnist": "pixels", "cifar10": "efficientnet"}
_PLACES = {"banking77": "banking77", "sts": "stsb", "scifact": "retrieval-scifact"}
_STEMS = {"banking77": "banking77", "sts": "stsb", "scifact": "scifact"}


def cache_folder() -> Path:
    """Return the folder of embeddings and runs that were made here."""
    return Path(tempfile.gettempdir()) / f"firstk-evidence-{getpass.getuser()}"


def vector_file(name: str, model: str) -> Path:
    """Return the file of a set's vectors: in the data folder, or made by `embed` in the cache."""
    held = data_folder() / _PLACES[name] / f"{_STEMS[name]}_{model}.npz"
    return held if held.exists() else cache_folder() / f"{_STEMS[name]}_{model}.npz"


def vectors(name: str, model: str, key: str) -> np.ndarray:
    """Return an array of vectors, float32."""
    return _read(vector_file(name, model), key).astype(np.float32)


def about(name: str, key: str) -> np.ndarray:
    """Return labels, pairs, scores or judgements, which are the same for all models."""
    return _read(data_folder() / _PLACES[name] / f"{_STEMS[name]}_minilm.npz", key)


def image_vectors(name: str, model: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of images and labels of a part."""
    if model == "pixels":
        if part == "test":
            check_open(f"the test part of {name}")
        images = _pixels()
        return getattr(images, f"X_{part}").astype(np.float32), getattr(images, f"y_{part}")
    path = image_file(name, model)
    return _read(path, f"X_{part}").astype(np.float32), _read(path, f"y_{part}")


def image_file(name: str, model: str) -> Path:
    """Return the file of features of images, in the cache."""
    return cache_folder() / f"{name}_{model}.npz"


@lru_cache(maxsize=1)
def _pixels() -> ImageSet:
    return load_fashion_mnist()


def _read(path: Path, key: str) -> np.ndarray:
    """Return an array of a file; one of a test part only where nothing is being fitted, and it is not remembered."""
    if "test" in key:
        check_open(f"{key} of {path.name}")
        with np.load(path) as held:
            return np.asarray(held[key])
    return _remembered(path, key)


@lru_cache(maxsize=16)
def _remembered(path: Path, key: str) -> np.ndarray:
    with np.load(path) as held:
        return np.asarray(held[key])


def part_of(n: int, share: float, seed: int, groups: np.ndarray | None = None) -> np.ndarray:
    """Return a mask of a share of n rows, drawn at random; with groups, of each group."""
    rng, chosen = np.random.default_rng(seed), np.zeros(n, dtype=bool)
    for group in [np.arange(n)] if groups is None else [np.flatnonzero(groups == g) for g in np.unique(groups)]:
        chosen[rng.permutation(group)[: round(share * len(group))]] = True
    return chosen
