"""The embedded set, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from sklearn import datasets

import firstk.data
from firstk.data import load_digits


def test_digits_are_those_of_scikit_learn():
    digits, source = load_digits(), datasets.load_digits()
    np.testing.assert_array_equal(digits.X * 16, source.data)
    np.testing.assert_array_equal(digits.y, source.target)
    assert digits.X_train.dtype == np.float32
    assert digits.y_train.dtype == np.int64
    assert digits.image_shape == (8, 8)
    assert digits.class_names[3] == "3"
    assert (digits.X.min(), digits.X.max()) == (0, 1)


def test_the_test_part_has_all_classes_evenly():
    counts = np.bincount(load_digits().y_test)
    assert counts.sum() == 360
    assert counts.min() >= 33


def test_two_calls_share_nothing():
    first = load_digits()
    first.X_train[:] = 9
    assert load_digits().X_train.max() == 1


def test_importing_the_package_does_not_import_scikit_learn():
    code = "import sys, firstk.data; sys.exit('sklearn' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_exists_and_is_documented():
    for name in firstk.data.__all__:
        assert getattr(firstk.data, name).__doc__
