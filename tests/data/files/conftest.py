"""Rows that tests of object storage write and read."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def X() -> np.ndarray:
    rows = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    rows.flags.writeable = False
    return rows
