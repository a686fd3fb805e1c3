"""Data sets included in the package, without files or network, for examples, the demo and quick tests."""

from __future__ import annotations

import numpy as np

from firstk.data.sets import ImageSet

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
