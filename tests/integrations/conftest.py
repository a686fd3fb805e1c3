"""What the tests of exports share: the digits, and an encoder of them whose codes have unit norm."""

import pytest

from firstk import PrefixEncoder
from firstk.data import load_digits


@pytest.fixture(scope="session")
def digits():
    return load_digits()


@pytest.fixture(scope="session")
def encoder(digits):
    return PrefixEncoder(objective="similarity").fit(digits.X_train)
