"""Data whose principal axes are known exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

SPECTRUM = np.array([8.0, 5.0, 3.0, 2.0, 1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


@dataclass(frozen=True)
class Known:
    """Rows whose scatter has exactly this spectrum, and its first four axes as rows."""

    X: np.ndarray
    axes: np.ndarray
    spectrum: np.ndarray


@pytest.fixture(scope="session")
def known():
    rng = np.random.default_rng(0)
    p, n, d = len(SPECTRUM), 2000, 4
    U = np.linalg.qr(rng.normal(size=(p, p)))[0]
    white = rng.normal(size=(n, p))
    white = np.linalg.qr(white - white.mean(axis=0))[0] * np.sqrt(n)
    return Known(white * np.sqrt(SPECTRUM) @ U.T, U[:, :d].T, SPECTRUM[:d])
