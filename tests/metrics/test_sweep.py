"""The compiled sweep finds the rows that numpy finds: ties, exclusions, short prefixes and all."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.metrics import _sweep

pytest.importorskip("numba")
RNG = np.random.default_rng(11)


def found(monkeypatch, large, Z_ref, Z, ks, n, **settings):
    monkeypatch.setattr(_sweep, "_LARGE", large)
    rows = np.full((len(Z), len(ks), n), -1)
    for queries, places, block in _sweep.nearest(Z_ref, Z, ks, n, **settings):
        rows[queries, places] = block
    return rows


def both(monkeypatch, *arguments, **settings):
    return [found(monkeypatch, large, *arguments, **settings) for large in (np.inf, 0)]


def codes(kind, n, d, dtype):
    if kind == "plain":
        return RNG.normal(size=(n, d)).astype(dtype) * np.geomspace(1, 0.1, d, dtype=dtype)
    if kind == "signs":
        return np.sign(RNG.normal(size=(n, d))).astype(dtype)
    if kind == "counts":  # with rows and prefixes of zeros
        return RNG.poisson(0.3, size=(n, d)).astype(dtype)
    if kind == "sorted":
        return np.sort(RNG.normal(size=(n, d)), axis=0).astype(dtype)
    if kind == "off centre":
        return (RNG.normal(size=(n, d)) * 0.01 + 3.0).astype(dtype)
    copies = RNG.normal(size=(n // 8 + 1, d)).astype(dtype)[RNG.integers(0, n // 8 + 1, n)]
    return np.nextafter(copies, np.where(RNG.random(copies.shape) < 0.5, -np.inf, np.inf).astype(dtype))


@pytest.mark.parametrize("n", [1, 4, 10])
@pytest.mark.parametrize("kind", ["plain", "signs", "counts", "sorted", "off centre", "copies"])
def test_the_same_rows_as_numpy(kind, n, monkeypatch):
    Z_ref, Z = codes(kind, 333, 40, np.float32), codes(kind, 71, 40, np.float32)
    slow, quick = both(monkeypatch, Z_ref, Z, np.arange(1, 41), n)
    np.testing.assert_array_equal(slow, quick)


@pytest.mark.parametrize("kind", ["plain", "signs", "copies"])
def test_the_same_rows_of_float64(kind, monkeypatch):
    Z_ref, Z = codes(kind, 250, 24, np.float64), codes(kind, 50, 24, np.float64)
    slow, quick = both(monkeypatch, Z_ref, Z, np.arange(1, 25), 3)
    np.testing.assert_array_equal(slow, quick)


@pytest.mark.parametrize("kind", ["plain", "signs", "counts"])
@pytest.mark.parametrize("ks", [[1], [2], [40], [3, 17, 40], [1, 2, 3, 39]])
def test_the_same_rows_at_some_lengths_without_a_row_itself(ks, kind, monkeypatch):
    Z = codes(kind, 130, 40, np.float32)
    own = np.arange(130)
    own[::7] = -1  # no reference
    slow, quick = both(monkeypatch, Z, Z, np.array(ks), 5, exclude=own)
    np.testing.assert_array_equal(slow, quick)
    assert not (quick == np.where(own < 0, 999, own)[:, None, None]).any()


@pytest.mark.parametrize("kind", ["plain", "signs", "copies"])
def test_the_same_sets_where_order_does_not_matter(kind, monkeypatch):
    Z_ref, Z = codes(kind, 300, 48, np.float32), codes(kind, 40, 48, np.float32)
    slow, quick = both(monkeypatch, Z_ref, Z, np.arange(1, 49), 10, ordered=False)
    np.testing.assert_array_equal(np.sort(slow), np.sort(quick))


def test_all_references_and_few_of_them(monkeypatch):
    for count in (1, 2, 15, 16, 17):
        Z_ref, Z = codes("plain", count, 20, np.float32), codes("plain", 9, 20, np.float32)
        slow, quick = both(monkeypatch, Z_ref, Z, np.arange(1, 21), count)
        np.testing.assert_array_equal(slow, quick)
    own = np.arange(9) % count  # as many as there are, and one of them is excluded: it comes last
    slow, quick = both(monkeypatch, Z_ref, Z, np.arange(1, 21), count, exclude=own)
    np.testing.assert_array_equal(slow, quick)
    assert (quick[:, :, -1] == own[:, None]).all()


@pytest.mark.parametrize("size", [1e-25, 1e15, 1e25])
def test_codes_of_any_size(size, monkeypatch):
    scale = np.float32(size)
    Z_ref, Z = codes("plain", 100, 12, np.float32) * scale, codes("plain", 30, 12, np.float32) * scale
    slow, quick = both(monkeypatch, Z_ref, Z, np.arange(1, 13), 2)
    np.testing.assert_array_equal(slow, quick)


def test_a_prefix_that_is_next_to_nothing_beside_the_rest(monkeypatch):
    Z_ref, Z = codes("plain", 100, 12, np.float32), codes("plain", 30, 12, np.float32)
    for side in (Z_ref, Z):
        side[:, :4] *= np.float32(1e-25)
    slow, quick = both(monkeypatch, Z_ref, Z, np.arange(1, 13), 2)
    np.testing.assert_array_equal(slow, quick)


def test_notes_for_few_queries_at_a_time_change_nothing(monkeypatch):
    from firstk.metrics import _sweep_compiled

    Z_ref, Z = codes("copies", 200, 30, np.float32), codes("plain", 50, 30, np.float32)
    whole = found(monkeypatch, 0, Z_ref, Z, np.arange(1, 31), 4)
    monkeypatch.setattr(_sweep_compiled, "_NOTES", 1)
    monkeypatch.setattr(_sweep_compiled, "_ROOM", 12)
    monkeypatch.setattr(_sweep_compiled, "cores", lambda: 1)
    np.testing.assert_array_equal(whole, found(monkeypatch, 0, Z_ref, Z, np.arange(1, 31), 4))
