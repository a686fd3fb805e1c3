"""Sparse rows that stay sparse: the axes of the dense fit, from products with vectors alone."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from firstk import Fisher, PrefixEncoder, Similarity
from firstk._base import memory
from firstk.encoder import fitted
from firstk.estimator import problem
from firstk.exceptions import InvalidInputError, RankWarning

D = 6


def texts(rows, columns, seed=0, words=25):
    """Return rows of unit norm with few nonzero numbers, some columns far more frequent than others."""
    rng = np.random.default_rng(seed)
    where = (columns * rng.random((rows, words)) ** 4).astype(int)
    X = sparse.csr_matrix(
        (rng.random(where.size) + 0.5, (np.repeat(np.arange(rows), words), where.ravel())), shape=(rows, columns)
    )
    return sparse.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))))


@pytest.fixture
def always_sparse(monkeypatch):
    monkeypatch.setattr(problem, "_DENSE_BYTES", 0)


@pytest.mark.parametrize("objective", ["reconstruction", Similarity(keep="dot_products")], ids=["pca", "dot_products"])
@pytest.mark.parametrize("shape", [(60, 200), (200, 60)], ids=["wide", "tall"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_axes_of_the_dense_fit(always_sparse, objective, shape, dtype, weighted):
    X = texts(*shape).astype(dtype)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, shape[0]) if weighted else None
    found = PrefixEncoder(D, objective=objective).fit(X, sample_weight=weight)
    dense = PrefixEncoder(D, objective=objective).fit(X.toarray().astype(np.float64), sample_weight=weight)
    np.testing.assert_allclose(found.components_, dense.components_, atol=1e-6)  # order and signs as well
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(D), atol=1e-12)
    np.testing.assert_allclose(found.spectrum_, dense.spectrum_, rtol=1e-6)
    np.testing.assert_allclose(found.mean_, dense.mean_, atol=1e-7)
    np.testing.assert_allclose(found.transform(X), dense.transform(X.toarray()), atol=1e-5)
    rebuilt = found.inverse_transform(found.transform(X.astype(np.float64)))
    np.testing.assert_allclose(rebuilt, dense.inverse_transform(dense.transform(X.toarray().astype(float))), atol=1e-6)
    assert found.encoder_.record.rows == shape[0]


def test_the_same_rows_give_the_same_bytes(always_sparse):
    X = texts(80, 300)
    first, second = (PrefixEncoder(D).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)


def test_the_rank_of_the_rows_is_the_limit(always_sparse):
    X = sparse.csr_matrix(texts(4, 100).toarray()[np.arange(60) % 4])  # four distinct rows: rank 3 about the mean
    with pytest.warns(RankWarning, match="numerical rank 3"):
        assert PrefixEncoder(D).fit(X).n_components_ == 3


def test_large_rows_are_never_dense():
    X = texts(2000, 20_000)  # 320 MB as a dense array
    tracemalloc.start()
    encoder = PrefixEncoder(16).fit(X)
    codes = encoder.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert codes.shape == (2000, 16)
    assert peak < 60e6


def test_more_rows_than_columns_need_no_scatter():
    X = texts(7000, 6500, words=5)  # a scatter of 338 MB
    tracemalloc.start()
    PrefixEncoder(8).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


def test_what_does_not_fit_says_what_would(always_sparse, monkeypatch):
    X, y = texts(100, 400), np.arange(100) % 3
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(InvalidInputError, match="reduce the columns first") as raised:
        PrefixEncoder(2, objective=Fisher(shrinkage=0.5)).fit(X, y)
    assert "GiB are free" in str(raised.value)
    for width in (None, 90):
        with pytest.raises(InvalidInputError, match="pass n_components of at most 25"):
            PrefixEncoder(width).fit(X)


def test_it_does_not_learn_on(always_sparse):
    X = texts(80, 300)
    encoder = PrefixEncoder(D).partial_fit(X[:40])
    encoder.fit(X)
    with pytest.raises(InvalidInputError, match="fitted on a large sparse matrix"):
        encoder.partial_fit(X)


def test_missing_numbers_are_named(always_sparse):
    X = texts(80, 300)
    X.data[X.indptr[7]] = np.nan
    with pytest.raises(InvalidInputError, match="row 7"):
        PrefixEncoder(D).fit(X)


def test_sparse_and_dense_codes_agree(monkeypatch):
    X = texts(50, 400)
    encoder = PrefixEncoder(D, objective="reconstruction").fit(X)
    sparse_codes = encoder.transform(X)
    monkeypatch.setattr(fitted, "_SPARSE_SHARE", 0)
    np.testing.assert_allclose(sparse_codes, encoder.transform(X), atol=1e-13)
