"""Queries of a log: their own mean, shrunken, subtracted from queries where held-out ones find more."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from firstk import PrefixEncoder, Search, Similarity, fit_files
from firstk.exceptions import FewRowsWarning, InvalidInputError
from slow_reference import correlated

RNG = np.random.default_rng(0)
# What documents have in common, and questions about them have not.
COMMON = np.linspace(1.5, -1.5, 12)
DOCUMENTS = correlated(RNG, 600, 12) + COMMON
QUERIES = DOCUMENTS[RNG.permutation(600)[:300]] + 0.1 * RNG.standard_normal((300, 12)) - COMMON
# Questions that have it too.
ALIKE = QUERIES + COMMON
OBJECTIVES = {"pca": "reconstruction", "neighbors": Similarity(), "variance": Similarity(keep="variance")}


@pytest.fixture(scope="module", params=OBJECTIVES)
def objective(request):
    return OBJECTIVES[request.param]


def shrunken(queries, mean):
    return (len(queries) * queries.mean(axis=0) + 30 * mean) / (len(queries) + 30)


def recalled(enc, queries, k):
    """Mean share of the ten full-width neighbors that k coordinates find, counted one query at a time."""

    def unit(X):
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    near = np.argsort(-unit(queries) @ unit(DOCUMENTS).T, axis=1)[:, :10]
    found = np.argsort(-unit(enc.encode_query(queries, k)) @ unit(enc.transform(DOCUMENTS, k)).T, axis=1)[:, :10]
    return np.mean([len(np.intersect1d(*pair)) / 10 for pair in zip(near, found, strict=True)])


def test_queries_have_their_own_mean_where_held_out_ones_find_more(objective):
    plain = PrefixEncoder(objective=objective).fit(DOCUMENTS)
    enc = PrefixEncoder(objective=objective).fit(DOCUMENTS, queries=QUERIES[:200])
    np.testing.assert_allclose(enc.encoder_.query_mean, shrunken(QUERIES[:200], plain.mean_), atol=1e-12)
    np.testing.assert_array_equal(enc.transform(DOCUMENTS), plain.transform(DOCUMENTS))
    for k in (2, 4, 8):
        assert recalled(enc, QUERIES[200:], k) > recalled(plain, QUERIES[200:], k) + 0.03
    same = PrefixEncoder(objective=objective).fit(Search(QUERIES[:200], DOCUMENTS))
    np.testing.assert_array_equal(same.encoder_.query_mean, enc.encoder_.query_mean)


def test_the_mean_of_documents_stays_where_queries_are_like_them(objective):
    enc = PrefixEncoder(objective=objective).fit(DOCUMENTS, queries=ALIKE)
    np.testing.assert_array_equal(enc.encoder_.query_mean, enc.mean_)


def test_objectives_that_subtract_nothing_subtract_nothing_from_queries():
    enc = PrefixEncoder(objective=Similarity(keep="dot_products")).fit(DOCUMENTS, queries=QUERIES)
    assert not enc.encoder_.query_mean.any()
    assert not enc.with_queries(QUERIES).encoder_.query_mean.any()


def test_queries_come_in_batches_and_are_merged_like_rows(tmp_path):
    whole = PrefixEncoder(4).fit(DOCUMENTS, queries=QUERIES).encoder_
    halves = [
        PrefixEncoder(4).partial_fit(DOCUMENTS[part], queries=QUERIES[part]) for part in (slice(250), slice(250, None))
    ]
    np.save(tmp_path / "documents.npy", DOCUMENTS)
    by_file = fit_files(PrefixEncoder(4), tmp_path / "documents.npy", queries=QUERIES).encoder_
    halves[0].save(tmp_path / "half", moments=True)
    loaded = PrefixEncoder.load(tmp_path / "half").merge(halves[1]).encoder_
    merged = halves[1].merge(halves[0]).encoder_
    assert not np.array_equal(whole.query_mean, whole.mean)
    for other in (by_file, loaded, merged):
        np.testing.assert_allclose(other.query_mean, whole.query_mean, atol=1e-12)
        np.testing.assert_array_equal(other.sample["queries"], whole.sample["queries"])
    # One store asked by two logs is one statistic, and a part without queries changes none.
    alone = PrefixEncoder(4).partial_fit(DOCUMENTS, queries=QUERIES).partial_fit(DOCUMENTS).encoder_
    np.testing.assert_array_equal(alone.sample["queries"], whole.sample["queries"])


def test_queries_are_added_to_an_encoder_whose_codes_are_stored(tmp_path):
    enc = PrefixEncoder(6).fit(DOCUMENTS)
    asked = enc.with_queries(QUERIES)
    fitted = PrefixEncoder(6).fit(DOCUMENTS, queries=QUERIES)
    np.testing.assert_array_equal(asked.encoder_.query_mean, fitted.encoder_.query_mean)
    np.testing.assert_array_equal(enc.encoder_.query_mean, enc.mean_)
    assert asked.encoder_.stamp() == enc.encoder_.stamp()
    np.testing.assert_array_equal(asked.quantizer(bytes=4).encode(DOCUMENTS), enc.quantizer(bytes=4).encode(DOCUMENTS))
    asked.save(tmp_path / "asked")
    kept = PrefixEncoder.load(tmp_path / "asked")
    np.testing.assert_array_equal(kept.encode_query(QUERIES, 3), asked.encode_query(QUERIES, 3))
    enc.save(tmp_path / "model")
    loaded = PrefixEncoder.load(tmp_path / "model")
    with pytest.raises(InvalidInputError, match=r"a loaded encoder has none.*rows=X"):
        loaded.with_queries(QUERIES)
    again = loaded.with_queries(QUERIES, rows=DOCUMENTS)
    np.testing.assert_array_equal(again.encoder_.query_mean, asked.encoder_.query_mean)


def test_embedded_bits_go_where_queries_look():
    enc = PrefixEncoder(8).fit(DOCUMENTS, queries=QUERIES)
    bits = PrefixEncoder(8).fit(DOCUMENTS).with_queries(QUERIES).quantizer(queries=QUERIES)
    np.testing.assert_array_equal(enc.quantizer(4).encode(DOCUMENTS), bits.at(4).encode(DOCUMENTS))
    plain = PrefixEncoder(8).fit(DOCUMENTS).quantizer(4)
    assert (enc.quantizer(4).encode(DOCUMENTS) != plain.encode(DOCUMENTS)).any()


def test_few_queries_warn_and_very_few_change_nothing():
    with pytest.warns(FewRowsWarning, match="29 queries are too few to estimate a mean"):
        PrefixEncoder(4).fit(DOCUMENTS, queries=QUERIES[:29])
    with pytest.warns(FewRowsWarning, match="3 queries"):
        enc = PrefixEncoder(4).fit(DOCUMENTS, queries=QUERIES[:3])
    np.testing.assert_array_equal(enc.encoder_.query_mean, enc.mean_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrefixEncoder(4).fit(DOCUMENTS, queries=QUERIES[:30])


def test_queries_of_another_width_and_bad_numbers_are_refused():
    with pytest.raises(InvalidInputError, match=r"'queries' with 12 columns. Got 11"):
        PrefixEncoder(4).fit(DOCUMENTS, queries=QUERIES[:, :11])
    with pytest.raises(InvalidInputError, match="queries"):
        PrefixEncoder(4).partial_fit(DOCUMENTS, queries=np.where(QUERIES > 1, np.nan, QUERIES))
    with pytest.raises(InvalidInputError, match="'queries' with 12 columns"):
        PrefixEncoder(4).fit(DOCUMENTS).with_queries(QUERIES[:, :5])
