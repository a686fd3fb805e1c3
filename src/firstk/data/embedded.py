"""Data sets included in the package, without files or network, for examples, the demo and quick tests."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import numpy as np

from firstk.data.sets import ImageSet, LabelledTexts

_N_TRAIN = 1437


def load_digits() -> ImageSet:
    """Return scikit-learn's handwritten digits, 1797 images of 8 x 8 pixels.

    Returns
    -------
    ImageSet
        Pixels are divided by 16, their maximum. The set has no official test part; the last 360 rows are used.
        Rows keep their order, in which the rows of one writer are consecutive, so this test part is harder than a
        random one (1-NN accuracy 0.956 instead of 0.98 to 0.99); `X` and `y` are the set as in scikit-learn.

    Notes
    -----
    The test part of E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998
    (license CC BY 4.0), as shipped with scikit-learn.

    Examples
    --------
    >>> digits = load_digits()
    >>> digits.X_train.shape, digits.X_test.shape, digits.X.dtype.name
    ((1437, 64), (360, 64), 'float32')
    """
    from sklearn import datasets

    bunch = datasets.load_digits()
    X = (bunch.data / 16.0).astype(np.float32)  # sixteenths are exact in float32
    y = bunch.target.astype(np.int64)
    return ImageSet(
        name="digits",
        X_train=X[:_N_TRAIN],
        y_train=y[:_N_TRAIN],
        X_test=X[_N_TRAIN:],
        y_test=y[_N_TRAIN:],
        image_shape=(8, 8),
        class_names=tuple(str(c) for c in range(10)),
    )


def load_banking() -> LabelledTexts:
    """Return 4,000 questions of bank customers with their 77 intents, as sentence embeddings of 384 numbers.

    Returns
    -------
    LabelledTexts
        2,999 training and 1,001 test rows, the questions, and their intents as `class_names`. Vectors are those of
        all-MiniLM-L6-v2, rounded to eight bits with one scale a column; they have unit length up to that rounding.

    Notes
    -----
    Up to 39 training and 13 test questions for each intent, drawn from Banking77: I. Casanueva, T. Temcinas, D. Gerz,
    M. Henderson and I. Vulic, Efficient Intent Detection with Dual Sentence Encoders, NLP for ConvAI 2020 (license
    CC BY 4.0). The 13,083 questions of the full set are read by `firstk_papers.datasets.load_banking77`.

    Examples
    --------
    >>> bank = load_banking()
    >>> bank.X_train.shape, bank.X_test.shape, bank.X_train.dtype.name
    ((2999, 384), (1001, 384), 'float32')
    >>> bank.texts_test[0], bank.class_names[bank.y_test[0]]
    ('Is there a way to know when my card will arrive?', 'card_arrival')
    """
    home = Path(str(files("firstk.data"))) / "banking"
    with np.load(home / "vectors.npz") as stored:
        X = stored["vectors"] * stored["scale"]  # int8 times float32: float32
    with open(home / "questions.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = sorted({row["intent"] for row in rows})
    y = np.searchsorted(names, [row["intent"] for row in rows])
    texts, ids = (tuple(row[column] for row in rows) for column in ("question", "id"))
    n = sum(row["part"] == "train" for row in rows)
    return LabelledTexts(
        name="banking",
        X_train=X[:n],
        y_train=y[:n],
        X_test=X[n:],
        y_test=y[n:],
        class_names=tuple(names),
        texts_train=texts[:n],
        texts_test=texts[n:],
        ids_train=ids[:n],
        ids_test=ids[n:],
    )
