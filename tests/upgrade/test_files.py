"""Rows of two files are paired by ids or by order; rows that do not belong together are refused."""

import csv

import numpy as np
import pytest

from firstk.advice.inputs import VectorSource, read_rows
from firstk.data.files import write_vectors
from firstk.exceptions import InvalidInputError
from firstk.upgrade.read import UpgradeFiles, check_correspond, paired, read_upgrade, write_order
from fixtures.made_upgrade import made_upgrade

N, M, PAIRS = 300, 80, 200
DATA = made_upgrade(N, M, pairs=PAIRS)
IDS = np.array([f"d{i}" for i in np.random.default_rng(5).permutation(N)])
QUERY_IDS = np.array([f"q{i}" for i in range(M)])


@pytest.fixture
def folder(tmp_path):
    """A store, and its pairs and queries in an order of their own."""
    order, asked = np.random.default_rng(6).permutation(PAIRS), np.random.default_rng(7).permutation(M)
    write_vectors(tmp_path / "old.parquet", DATA.old, {"id": IDS, "part": np.arange(N) % 2})
    write_vectors(tmp_path / "new.parquet", DATA.new[order], {"id": IDS[DATA.paired][order]})
    write_vectors(tmp_path / "q_old.parquet", DATA.queries_old, {"id": QUERY_IDS, "part": np.arange(M) % 2})
    write_vectors(tmp_path / "q_new.parquet", DATA.asked.queries[asked], {"id": QUERY_IDS[asked]})
    lines = [f"{QUERY_IDS[q]}\t{IDS[d]}\t{g}\n" for q, d, g in DATA.asked.relevance]
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return tmp_path


def files(folder, **given):
    named = {"queries_old": folder / "q_old.parquet", "queries_new": folder / "q_new.parquet"}
    judged = {"relevance": str(folder / "qrels.tsv")}
    return upgrade_files(folder / "old.parquet", folder / "new.parquet", **(named | judged | given))


def upgrade_files(old, new, *, queries_old=None, queries_new=None, nan="refuse", **given):
    place = VectorSource(old, queries=queries_old, nan=nan, **given)
    return UpgradeFiles(place, new, queries_new)


def test_rows_are_joined_by_their_ids(folder):
    data, said = read_upgrade(files(folder))
    np.testing.assert_array_equal(data.old, DATA.old)
    np.testing.assert_array_equal(data.new, DATA.new)
    np.testing.assert_array_equal(data.paired, DATA.paired)
    np.testing.assert_array_equal(data.asked.queries, DATA.asked.queries)
    np.testing.assert_array_equal(data.asked.relevance, DATA.asked.relevance)
    assert said == ("200 rows are paired by their 'id'.", "80 queries are paired by their 'id'.")


def test_without_judgements_queries_are_joined_alike(folder):
    data, _ = read_upgrade(files(folder, relevance=None))
    np.testing.assert_array_equal(data.asked.queries, DATA.asked.queries)
    assert data.asked.relevance is None
    alone, _ = read_upgrade(files(folder, relevance=None, queries_old=None, queries_new=None))
    assert alone.asked is None


def test_the_old_models_queries_may_be_missing(folder):
    data, _ = read_upgrade(files(folder, queries_old=None))
    assert data.queries_old is None
    row = {name: i for i, name in enumerate(read_columns(folder / "q_new.parquet"))}
    wanted = {(row[str(QUERY_IDS[q])], d) for q, d, _ in DATA.asked.relevance}
    assert {(q, d) for q, d, _ in data.asked.relevance.tolist()} == wanted


def read_columns(path):
    from firstk.data.files.column_files import load_columns

    return [str(one) for one in load_columns(path)["id"]]


def test_filters_and_weights_are_read(folder):
    data, _ = read_upgrade(files(folder, filter="part"))
    assert data.asked.query_field.tolist()[:2] == ["0", "1"]
    within, _ = read_upgrade(files(folder, filter="part=1"))
    assert within.asked.document_field.tolist() == (np.arange(N) % 2 == 1).tolist()
    assert within.asked.query_field.all()


def test_rows_without_ids_are_paired_in_their_order(tmp_path):
    np.save(tmp_path / "old.npy", DATA.old[DATA.paired])
    np.save(tmp_path / "new.npy", DATA.new)
    data, said = read_upgrade(upgrade_files(tmp_path / "old.npy", tmp_path / "new.npy"))
    np.testing.assert_array_equal(data.paired, np.arange(PAIRS))
    assert "in the order of the files" in said[0]


def test_rows_with_nan_are_dropped_with_their_partners(tmp_path):
    old, new = DATA.old[DATA.paired].copy(), DATA.new.copy()
    old[3, 0], new[7, 1] = np.nan, np.inf
    np.save(tmp_path / "old.npy", old)
    np.save(tmp_path / "new.npy", new)
    both = upgrade_files(tmp_path / "old.npy", tmp_path / "new.npy")
    with pytest.raises(InvalidInputError, match="NaN"):
        read_upgrade(both)
    data, _ = read_upgrade(upgrade_files(both.old.source, both.new, nan="drop"))
    kept = np.setdiff1d(np.arange(PAIRS), [3, 7])
    np.testing.assert_array_equal(data.old[data.paired], old[kept])
    np.testing.assert_array_equal(data.new, new[kept])


def test_shuffled_rows_are_refused(tmp_path):
    np.save(tmp_path / "old.npy", DATA.old[DATA.paired])
    np.save(tmp_path / "new.npy", np.roll(DATA.new, 1, axis=0))
    with pytest.raises(InvalidInputError, match="do not seem to embed the same texts: cosines among 200 of them"):
        read_upgrade(upgrade_files(tmp_path / "old.npy", tmp_path / "new.npy"))


def test_correspondence_is_the_correlation_of_cosines():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 5))
    B = A @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert check_correspond(A, B, ("a", "b")) == pytest.approx(1.0)
    noisy = A + 0.5 * rng.normal(size=A.shape)
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (A, noisy)]
    upper = np.triu_indices(60, 1)
    slow = np.corrcoef(*((part @ part.T)[upper] for part in unit))[0, 1]
    assert check_correspond(A, noisy, ("a", "b")) == pytest.approx(slow)


@pytest.mark.parametrize("rows", [np.ones((60, 4)), np.zeros((60, 4))])
def test_constant_rows_say_nothing_and_are_refused(rows):
    with pytest.raises(InvalidInputError, match="do not seem to embed the same texts"):
        check_correspond(np.random.default_rng(0).normal(size=(60, 5)), rows, ("a", "b"))


def test_counts_that_differ_need_ids(tmp_path):
    np.save(tmp_path / "old.npy", DATA.old)
    np.save(tmp_path / "new.npy", DATA.new)
    with pytest.raises(InvalidInputError, match=r"300 rows and .* 200, and they share no column of ids"):
        paired(read_rows(tmp_path / "old.npy"), read_rows(tmp_path / "new.npy"), None)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (np.array([f"x{i}" for i in range(PAIRS)]), r"No id of .*new\.parquet' is in .*old\.parquet'"),
        (np.array(["d1"] * PAIRS), "199 ids twice, such as 'd1'"),
    ],
)
def test_ids_that_do_not_match_are_refused(folder, ids, words):
    write_vectors(folder / "new.parquet", DATA.new, {"id": ids})
    with pytest.raises(InvalidInputError, match=words):
        read_upgrade(files(folder))


def test_a_column_of_ids_that_one_file_lacks_is_named(folder):
    with pytest.raises(InvalidInputError, match="part"):
        read_upgrade(files(folder, ids="part"))


def test_rows_of_the_new_model_alone_are_left_out_and_counted(folder):
    ids = np.concatenate([IDS[DATA.paired], ["later1", "later2"]])
    write_vectors(folder / "new.parquet", np.concatenate([DATA.new, DATA.new[:2]]), {"id": ids})
    data, said = read_upgrade(files(folder))
    assert len(data.new) == PAIRS
    assert "2 of the new model are not in" in said[0]


def test_judged_queries_need_both_models(folder):
    write_vectors(folder / "q_new.parquet", DATA.asked.queries[:70], {"id": QUERY_IDS[:70]})
    with pytest.raises(InvalidInputError, match="lacks 10 of the queries"):
        read_upgrade(files(folder))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queries_new": None}, "--queries-old needs --queries-new"),
        ({"queries_new": None, "queries_old": None}, "--relevance judges documents for queries"),
        ({"relevance": None, "filter": "part"}, "--filter belong to --relevance"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder, given, words):
    with pytest.raises(InvalidInputError, match=words):
        read_upgrade(files(folder, **given))


def test_the_order_of_re_embedding_names_rows_by_their_ids(folder):
    worth = np.random.default_rng(0).random(N)
    assert write_order(folder / "order.csv", files(folder), worth, np.arange(N)) == N
    with (folder / "order.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["id", "worth"]
    assert [name for name, _ in rows[1:]] == IDS[np.argsort(-worth)].tolist()
