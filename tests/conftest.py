"""Fixtures for every test folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _find_data() -> Path | None:
    """Return FIRSTK_DATA, else shared/data beside the repository, where one of them is a folder."""
    candidates = []
    if os.environ.get("FIRSTK_DATA"):
        candidates.append(Path(os.environ["FIRSTK_DATA"]).expanduser())
    candidates.append(Path(__file__).resolve().parents[2] / "shared" / "data")
    return next((c for c in candidates if c.is_dir()), None)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the real data sets; without one the test is skipped."""
    folder = _find_data()
    if folder is None:
        pytest.skip("needs the real data sets: set FIRSTK_DATA, or put them into ../shared/data")
    return folder
