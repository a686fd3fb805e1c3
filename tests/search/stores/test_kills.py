"""Pushes that are killed (SIGKILL) resume without duplicates or gaps.

Once here, in the stores of the two kinds, files and servers; ``python -m benchmarks.stores`` and the tests marked
'full' take every store, and twenty kills.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.stores import killed_pushes, prepare, wrong_rows


def killed(address, folder, kills, rows):
    prepare(folder, rows, 24)
    killed_pushes(address, folder, kills, batch=20)
    assert wrong_rows(address, folder) == []


@pytest.mark.parametrize("store", ["sqlite_vec", "pgvector"])
def test_rows_are_there_once_after_a_kill(store, address, tmp_path):
    killed(address(store), tmp_path, 1, 400)


@pytest.mark.full
def test_rows_are_there_once_after_twenty_kills(store, address, tmp_path):
    killed(address(store), tmp_path, 20, 3000)


def test_what_is_wrong_is_noticed(engine, address, tmp_path):
    """The check itself can fail: a row that is missing, and one with the code of another."""
    from benchmarks.stores import payload

    from firstk import PrefixEncoder
    from firstk.search.stores import push

    place = address("sqlite_vec")
    prepare(tmp_path, 200, 24)
    encoder, X = PrefixEncoder.load(tmp_path / "model"), np.load(tmp_path / "rows.npy")
    store = push(encoder, X, engine("sqlite_vec", place), 8, 16, payloads=[payload(i) for i in range(200)])
    assert wrong_rows(place, tmp_path) == []
    store.push(X[5:6], [7], [payload(7)])
    store.delete([11])
    assert {"row 7 differs", "row 11 is missing"} <= set(wrong_rows(place, tmp_path))
