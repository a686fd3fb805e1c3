"""Rows with ids and payloads, an encoder, and places to move to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.data.files import write_vectors
from firstk.search.stores import STORES
from fixtures.store_addresses import FILES, PACKAGES

ROWS, WIDTH = 150, 24


@pytest.fixture(scope="session")
def X():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(ROWS, WIDTH)) * np.arange(1, WIDTH + 1) ** -0.7 + 0.2).astype(np.float32)


@pytest.fixture(scope="session")
def coder(X):
    return PrefixEncoder(16, objective="similarity").fit(X).encoder_


@pytest.fixture(scope="session")
def payloads():
    """Return payloads of all kinds of JSON values that every store takes, some of them missing."""
    made = []
    for i in range(ROWS):
        one = {"kind": ("news", "naïve 'quoted' \"text\"")[i % 2], "year": 1990 + i, "score": i / 7, "open": i % 2 == 0}
        if i % 5 == 0:
            del one["year"]
        made.append(one)
    return made


@pytest.fixture
def rows_file(tmp_path, X):
    """Return a parquet file of the vectors, with text ids and two columns."""
    pytest.importorskip("pyarrow", reason="needs the extra 'tables'")
    columns = {"id": np.array([f"doc {i}" for i in range(ROWS)]), "year": np.arange(ROWS), "score": np.arange(ROWS) / 7}
    return str(write_vectors(tmp_path / "rows.parquet", X, columns))


@pytest.fixture(params=sorted(STORES))
def store(request):
    """Return the name of each store in turn."""
    for package in PACKAGES[request.param]:
        pytest.importorskip(package, reason="needs the extra 'stores'")
    return request.param


@pytest.fixture
def address(tmp_path, request):
    """Return a function from the name of a store to the address of a new one."""
    numbers = itertools.count()

    def make(store):
        name = f"moved{next(numbers)}"
        if store == "pgvector":
            return f"{request.getfixturevalue('postgres')}#{tmp_path.name[-30:].replace('-', '_')}_{name}"
        return FILES[store].format(folder=tmp_path, name=name)

    return make
