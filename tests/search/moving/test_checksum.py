"""Checksums do not depend on the order of rows or on last bits, and show every row that is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from firstk._base.rows import unit_rows
from firstk.search.moving.checksum import Checksum


def checksum(ids, codes, payloads, size=7, **settings):
    made = Checksum(codes.shape[1], **settings)
    for start in range(0, len(ids), size):
        part = slice(start, start + size)
        made.add(ids[part], codes[part], payloads[part])
    return made


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    n = 5000
    return [f"id {i}" for i in range(n)], rng.normal(size=(n, 8)).astype(np.float32), [{"n": i} for i in range(n)]


def test_order_and_last_bits_do_not_matter(rows):
    ids, codes, payloads = rows
    order = np.random.default_rng(2).permutation(len(ids))
    rounded = np.nextafter(codes, np.float32(np.inf))
    other = checksum([ids[i] for i in order], rounded[order], [payloads[i] for i in order], size=100)
    mine = checksum(*rows)
    assert mine.difference(other) is None
    assert mine.text == other.text


def test_norms_do_not_matter_where_only_directions_are_kept(rows):
    ids, codes, payloads = rows
    scaled = codes * np.linspace(0.5, 2, len(ids), dtype=np.float32)[:, None]
    assert checksum(*rows, unit=True).difference(checksum(ids, scaled, payloads, unit=True)) is None
    assert "codes" in checksum(*rows).difference(checksum(ids, scaled, payloads))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ids, codes, payloads: (ids[1:], codes[1:], payloads[1:]), "5,000 rows came in, and 4,999 are there"),
        (lambda ids, codes, payloads: ([ids[1], *ids[1:]], codes, payloads), "ids"),
        (lambda ids, codes, payloads: (ids, codes, [{"n": 1}, *payloads[1:]]), "payloads"),
        (lambda ids, codes, payloads: (ids, codes[[1, 0, *range(2, len(ids))]], payloads), "codes"),
        (lambda ids, codes, payloads: (ids, np.vstack([codes[:1] * 1.001, codes[1:]]), payloads), "codes"),
    ],
)
def test_one_wrong_row_is_noticed(rows, change, said):
    assert said in checksum(*rows).difference(checksum(*change(*rows)))


def test_numbers_and_missing_values_are_compared_as_stores_keep_them():
    X = np.ones((1, 2), np.float32)
    mine = checksum([1], X, [{"a": 3.0, "b": None, "c": {"d": [1.0, None]}}])
    assert mine.difference(checksum([1], X, [{"a": 3, "c": {"d": [1, None]}}])) is None
    assert mine.difference(checksum([1], X, [{"a": 3, "c": {"d": [True, None]}}])) is not None


def test_sums_are_those_of_the_formula(rows):
    """Every bucket is the weighted sum of its rows, computed one by one."""
    import hashlib
    import json

    ids, codes, _ = (part[:300] for part in rows)
    sums = np.zeros((1024, 8))
    for key, code in zip(ids, codes, strict=True):
        digest = hashlib.blake2b(json.dumps(key).encode(), digest_size=16).digest()
        number = int.from_bytes(digest, "little")
        sums[number % 1024] += ((number >> 32) % 2**32 / 2**31 - 1) * code.astype(float)
    made = checksum(ids, codes, [{}] * 300)
    assert np.allclose(made._sums, sums, atol=1e-12)


@pytest.mark.parametrize("unit", [False, True])
def test_a_wrong_row_among_thousands_of_a_group_is_noticed_in_float16(monkeypatch, unit):
    """As many rows a group as of 2,000,000 rows: the largest sum of roundings would hide a code."""
    monkeypatch.setattr("firstk.search.moving.checksum._BUCKETS", 8)
    X = np.random.default_rng(0).normal(size=(16_000, 4)).astype(np.float32)
    kept = (unit_rows(X) if unit else X).astype(np.float16)
    wrong = kept.copy()
    wrong[7] = kept[8]
    ids, payloads, settings = range(len(X)), [{}] * len(X), {"size": len(X), "unit": unit, "precision": "float16"}
    sent = checksum(ids, X, payloads, **settings)
    assert sent.difference(checksum(ids, kept, payloads, **settings)) is None
    assert "codes" in sent.difference(checksum(ids, wrong, payloads, **settings))
