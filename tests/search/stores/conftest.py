"""Stores in a folder of the test, by their addresses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.search.stores import STORES, connect
from fixtures.store_addresses import FILES, PACKAGES


@pytest.fixture
def address(tmp_path, request):
    """Return a function from the name of a store to the address of a new one."""
    numbers = itertools.count()

    def make(store):
        for package in PACKAGES[store]:
            pytest.importorskip(package, reason="needs the extra 'stores'")
        name = f"documents{next(numbers)}"
        if store == "pgvector":
            # A name of its own: the server outlives the test.
            return f"{request.getfixturevalue('postgres')}#{tmp_path.name[-30:].replace('-', '_')}_{name}"
        return FILES[store].format(folder=tmp_path, name=name)

    return make


@pytest.fixture
def engine(address):
    """Return a function that makes an empty engine of a store, or opens an address; all are closed after the test."""
    opened = []

    def make(store, place=None, **settings):
        opened.append(connect(place or address(store), **settings))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture(params=sorted(STORES))
def store(request):
    """Return the name of each store in turn."""
    return request.param


@pytest.fixture(scope="session")
def vectors():
    """Return 600 vectors of 24 coordinates whose spectrum falls, and 20 queries; float32."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(620, 24)) * np.arange(1, 25) ** -0.7 + 0.2
    return X[:600].astype(np.float32), X[600:].astype(np.float32)


@pytest.fixture(scope="session")
def coder(vectors):
    return PrefixEncoder(16, objective="similarity").fit(vectors[0])


@pytest.fixture(scope="session")
def payloads():
    """Return payloads of all kinds of JSON values, some of them missing."""
    kinds = ("news", "blog", "naïve 'quoted' \"text\"")
    made = []
    for i in range(600):
        one = {"kind": kinds[i % 3], "year": 1990 + i % 40, "score": i / 7, "open": i % 2 == 0}
        if i % 5 == 0:
            del one["year"]
        made.append(one)
    return made
