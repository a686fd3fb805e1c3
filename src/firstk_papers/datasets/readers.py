"""Readers of real data sets: MNIST, Fashion-MNIST, CIFAR-10, and three sets of sentence embeddings.

Each searches one folder (`data_folder`). If the set is missing, the error message lists the expected files and how to
get them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from firstk.data import ImageSet, LabelledEmbeddings
from firstk_papers.datasets import openml
from firstk_papers.datasets.folder import (
    as_column,
    as_rows,
    as_vectors,
    data_folder,
    locate,
    missing,
    read_idx,
    read_npz,
    unusable,
)
from firstk_papers.datasets.sets import RetrievalSet, ScoredPairs

_Folder = str | os.PathLike[str] | None
_Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

_IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_DIGIT_NAMES = tuple(str(c) for c in range(10))
_FASHION_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
_CIFAR_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def load_mnist(folder: _Folder = None, *, download: bool = False) -> ImageSet:
    """Return MNIST: 60,000 training and 10,000 test images of 28 x 28 pixels, ten digits.

    Parameters
    ----------
    folder : path, optional
        The data folder (see `data_folder`); the four idx files, packed or not, lie in its `mnist/`.
    download : bool
        Fetch the set from OpenML when the files are missing, and keep it in `openml/` of the data folder.

    Returns
    -------
    ImageSet
        float32 pixels in [0, 1].

    Raises
    ------
    MissingDataError
        The files are not there, or cannot be fetched.
    InvalidInputError
        A file is damaged.
    """
    return _load_images("MNIST", "mnist", _IDX_FILES, _idx_parts, openml.MNIST, _DIGIT_NAMES, folder, download)


def load_fashion_mnist(folder: _Folder = None, *, download: bool = False) -> ImageSet:
    """Return Fashion-MNIST: 60,000 training and 10,000 test images of 28 x 28 pixels, ten kinds of clothing.

    Talukder et al. 2026 (C.1) splits all 70,000 images anew: ``split(fashion.X, fashion.y)``.

    Parameters
    ----------
    folder : path, optional
        The data folder (see `data_folder`); the four idx files, packed or not, lie in its `fashion-mnist/`.
    download : bool
        Fetch the set from OpenML when the files are missing, and keep it in `openml/` of the data folder.

    Returns
    -------
    ImageSet
        float32 pixels in [0, 1].

    Raises
    ------
    MissingDataError
        The files are not there, or cannot be fetched.
    InvalidInputError
        A file is damaged.
    """
    return _load_images(
        "Fashion-MNIST", "fashion-mnist", _IDX_FILES, _idx_parts, openml.FASHION_MNIST, _FASHION_NAMES,
        folder, download,
    )  # fmt: skip


def load_cifar10(folder: _Folder = None, *, download: bool = False) -> ImageSet:
    """Return CIFAR-10: color images of 32 x 32 pixels, ten classes of objects.

    Parameters
    ----------
    folder : path, optional
        The data folder (see `data_folder`); `cifar10_15k_10k.npz` lies in its `cifar10/`. That file holds the
        first 1,500 training images of each class, in the original order, and all 10,000 test images.
    download : bool
        Fetch the set from OpenML when the file is missing, and keep it in `openml/` of the data folder.
        This is the *full* set, with 50,000 training images.

    Returns
    -------
    ImageSet
        float32 pixels in [0, 1]; rows are flattened from (32, 32, 3), so the colors of a pixel are adjacent.

    Raises
    ------
    MissingDataError
        The file is not there, or cannot be fetched.
    InvalidInputError
        The file is damaged.
    """
    return _load_images(
        "CIFAR-10", "cifar10", ("cifar10_15k_10k.npz",), _cifar_parts, openml.CIFAR10, _CIFAR_NAMES,
        folder, download,
    )  # fmt: skip


def load_banking77(folder: _Folder = None) -> LabelledEmbeddings:
    """Return Banking77: 10,003 + 3,080 customers' questions in 77 intents, as 384-d sentence embeddings.

    Parameters
    ----------
    folder : path, optional
        The data folder (see `data_folder`); `banking77_minilm.npz` lies in its `banking77/`, with X_train,
        y_train, X_test, y_test and label_names. The vectors are those of all-MiniLM-L6-v2, of unit length.

    Returns
    -------
    LabelledEmbeddings
    """
    names = ("X_train", "y_train", "X_test", "y_test", "label_names")
    path, z = _embedding_file("Banking77", "banking77", "banking77_minilm.npz", names, folder)
    X_train = as_vectors(path, "X_train", z["X_train"])
    X_test = as_vectors(path, "X_test", z["X_test"], X_train.shape[1])
    classes = as_column(path, "label_names", z["label_names"], z["label_names"].size, "U")
    return LabelledEmbeddings(
        name="banking77",
        X_train=X_train,
        y_train=as_rows(path, "y_train", z["y_train"], (len(X_train),), len(classes)),
        X_test=X_test,
        y_test=as_rows(path, "y_test", z["y_test"], (len(X_test),), len(classes)),
        class_names=tuple(classes.tolist()),
    )


def load_stsb(folder: _Folder = None) -> ScoredPairs:
    """Return the STS benchmark: 5,749 + 1,500 + 1,379 pairs of sentences, scored 0 to 5, as 384-d embeddings.

    Parameters
    ----------
    folder : path, optional
        The data folder (see `data_folder`); `stsb_minilm.npz` lies in its `stsb/`, with E and, for each of
        train, dev and test, pairs_*, score_* and genre_*.

    Returns
    -------
    ScoredPairs
    """
    parts = ("train", "dev", "test")
    names = ("E", *(f"{kind}_{part}" for part in parts for kind in ("pairs", "score", "genre")))
    path, z = _embedding_file("The STS benchmark", "stsb", "stsb_minilm.npz", names, folder)
    vectors = as_vectors(path, "E", z["E"])
    columns: dict[str, np.ndarray] = {}
    for part in parts:
        pairs = as_rows(path, f"pairs_{part}", z[f"pairs_{part}"], (None, 2), len(vectors))
        scores = as_column(path, f"score_{part}", z[f"score_{part}"], len(pairs), "f")
        columns[f"pairs_{part}"] = pairs
        columns[f"scores_{part}"] = scores.astype(np.float32)
        columns[f"genres_{part}"] = as_column(path, f"genre_{part}", z[f"genre_{part}"], len(pairs), "U")
    return ScoredPairs(name="stsb", vectors=vectors, **columns)


def load_scifact(folder: _Folder = None) -> RetrievalSet:
    """Return SciFact (BEIR): 5,183 abstracts, 1,109 claims and their relevance judgements, as 384-d embeddings.

    Parameters
    ----------
    folder : path, optional
        The data folder (see `data_folder`); `scifact_minilm.npz` lies in its `retrieval-scifact/`, with D, Q,
        doc_ids, query_ids, qrels_train and qrels_test.

    Returns
    -------
    RetrievalSet
    """
    names = ("D", "Q", "doc_ids", "query_ids", "qrels_train", "qrels_test")
    path, z = _embedding_file("SciFact", "retrieval-scifact", "scifact_minilm.npz", names, folder)
    documents = as_vectors(path, "D", z["D"])
    queries = as_vectors(path, "Q", z["Q"], documents.shape[1])
    sizes = (len(queries), len(documents))
    return RetrievalSet(
        name="scifact",
        documents=documents,
        queries=queries,
        judgements_train=_judgements(path, "qrels_train", z["qrels_train"], sizes),
        judgements_test=_judgements(path, "qrels_test", z["qrels_test"], sizes),
        document_ids=as_column(path, "doc_ids", z["doc_ids"], len(documents), "U"),
        query_ids=as_column(path, "query_ids", z["query_ids"], len(queries), "U"),
    )


def _load_images(
    title: str,
    subfolder: str,
    files: tuple[str, ...],
    read: Callable[[list[Path], int], _Parts],
    source: openml.Source,
    class_names: tuple[str, ...],
    folder: _Folder,
    download: bool,
) -> ImageSet:
    """Read an image set from its files or, where allowed, from OpenML."""
    home = data_folder(folder)
    paths = locate(home, subfolder, files)
    if paths is not None:
        train, y_train, test, y_test = read(paths, len(class_names))
    elif download:
        train, y_train, test, y_test = openml.fetch(source, home)
    else:
        raise missing(title, home, subfolder, files, ", or download=True to fetch it from OpenML")
    return ImageSet(
        name=subfolder,
        X_train=_flat(train),
        y_train=y_train,
        X_test=_flat(test),
        y_test=y_test,
        image_shape=train.shape[1:],
        class_names=class_names,
    )


def _flat(images: np.ndarray) -> np.ndarray:
    """Return uint8 images as float32 rows in [0, 1]."""
    rows = images.reshape(len(images), -1)
    return np.divide(rows, np.float32(255), dtype=np.float32)


def _idx_parts(paths: list[Path], n_classes: int) -> _Parts:
    parts = []
    for image_path, label_path in (paths[:2], paths[2:]):
        images = read_idx(image_path, 3)
        labels = read_idx(label_path, 1)
        parts += [images, as_rows(label_path, "the label", labels, (len(images),), n_classes)]
    if parts[0].shape[1:] != parts[2].shape[1:]:
        raise unusable(paths[2], f"its images are {parts[2].shape[1:]}, those of {paths[0].name} {parts[0].shape[1:]}")
    return parts[0], parts[1], parts[2], parts[3]


def _cifar_parts(paths: list[Path], n_classes: int) -> _Parts:
    path = paths[0]
    z = read_npz(path, ("train_d", "train_y", "test_d", "test_y"))
    parts = []
    for part in ("train", "test"):
        differences = z[f"{part}_d"]
        shape = differences.shape
        if len(shape) != 4 or (shape[0], *shape[2:]) != (3, 32, 32) or differences.dtype != np.uint8 or not shape[1]:
            raise unusable(
                path,
                f"{part}_d must be bytes of shape (3, n, 32, 32); it is {differences.dtype} of {shape}",
            )
        labels = as_rows(path, f"{part}_y", z[f"{part}_y"], shape[1:2], n_classes)
        parts += [_undo_differences(differences), labels]
    return parts[0], parts[1], parts[2], parts[3]


def _undo_differences(differences: np.ndarray) -> np.ndarray:
    """Return (n, 32, 32, 3) colors from (3, n, 32, 32) differences, all modulo 256.

    The file holds green, red - green and blue - green, each differenced down the columns and along the rows.
    """
    planes = differences.cumsum(axis=2, dtype=np.uint8).cumsum(axis=3, dtype=np.uint8)
    green = planes[0]
    return np.stack([planes[1] + green, green, planes[2] + green], axis=-1)


def _judgements(path: Path, name: str, array: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """Return (m, 3) relevance judgements after checking their rows; relevance is any grade from 0 up."""
    judgements = as_rows(path, name, array, (None, 3), np.iinfo(np.int64).max)
    for column, (what, size) in enumerate(zip(("query", "document"), sizes, strict=True)):
        as_rows(path, f"the {what} row in {name}", judgements[:, column], (None,), size)
    return judgements


def _embedding_file(
    title: str, subfolder: str, file: str, names: tuple[str, ...], folder: _Folder
) -> tuple[Path, dict[str, np.ndarray]]:
    """Find and read the one npz file of an embedding set."""
    home = data_folder(folder)
    paths = locate(home, subfolder, (file,))
    if paths is None:
        way_out = "; embeddings cannot be downloaded, the documentation of the reader lists the arrays"
        raise missing(title, home, subfolder, (file,), way_out)
    return paths[0], read_npz(paths[0], names)
