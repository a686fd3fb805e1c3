"""The recipe for LanceDB: two vector columns, a shortlist by the short one, the order by the full one."""

import numpy as np
import pytest

lancedb = pytest.importorskip("lancedb", reason="needs the package 'lancedb'")
pa = pytest.importorskip("pyarrow", reason="needs the extra 'tables'")

SHORT, FULL = 8, 32


def column(Z):
    return pa.FixedSizeListArray.from_arrays(pa.array(Z.astype(np.float32).ravel()), Z.shape[1])


def rows(encoder, X, ids):
    codes = {"short": column(encoder.transform(X, SHORT)), "full": column(encoder.transform(X, FULL))}
    return pa.table({"id": np.asarray(ids)} | codes)


def search(table, encoder, query, n, shortlist):
    first = table.search(encoder.encode_query(query, SHORT)[0].astype(np.float32), vector_column_name="short")
    hits = first.distance_type("dot").limit(shortlist).select(["id", "full", "_distance"]).to_arrow()
    scores = np.stack(hits["full"].to_numpy()) @ encoder.encode_query(query, FULL)[0]
    best = np.argsort(-scores)[:n]
    return hits["id"].to_numpy()[best], scores[best]


def test_two_stages_are_those_of_the_slow_way_after_a_round_trip(encoder, digits, tmp_path):
    X = digits.X_train[:500]
    lancedb.connect(tmp_path).create_table("digits", rows(encoder, X, np.arange(500) + 1000))
    table = lancedb.connect(tmp_path).open_table("digits")
    assert table.count_rows() == 500
    by_short = encoder.transform(digits.X_test, SHORT) @ encoder.transform(X, SHORT).T
    by_full = encoder.transform(digits.X_test, FULL) @ encoder.transform(X, FULL).T
    for i in range(15):
        ids, scores = search(table, encoder, digits.X_test[i : i + 1], 5, 40)
        shortlist = np.argsort(-by_short[i])[:40]
        wanted = shortlist[np.argsort(-by_full[i, shortlist])[:5]]
        assert np.array_equal(ids - 1000, wanted)
        assert np.abs(scores - by_full[i, wanted]).max() < 1e-5


def test_a_row_with_the_same_id_is_replaced(encoder, digits, tmp_path):
    table = lancedb.connect(tmp_path).create_table("digits", rows(encoder, digits.X_train[:10], np.arange(10)))
    fresh = rows(encoder, digits.X_train[10:12], [9, 10])
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(fresh)
    assert table.count_rows() == 11
    ids, scores = search(table, encoder, digits.X_train[10:11], 1, 11)
    assert (ids[0], scores[0]) == (9, pytest.approx(1, abs=1e-5))


def test_codes_of_another_width_raise_in_the_table(encoder, digits, tmp_path):
    table = lancedb.connect(tmp_path).create_table("digits", rows(encoder, digits.X_train[:10], np.arange(10)))
    wrong = pa.table({"id": [11], "short": column(np.ones((1, 5))), "full": column(np.ones((1, FULL)))})
    with pytest.raises((RuntimeError, ValueError, OSError, TypeError)):
        table.add(wrong)
    assert table.count_rows() == 10
