"""What only some engines have: signs in sqlite-vec, any index of faiss, precisions of usearch, indexes that lag."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk.search.stores import Chroma, DuckDB, Faiss, LanceDB, PrefixStore, SqliteVec, USearch, push
from search.stores.slow_search import recall, two_stages


def test_sqlite_vec_keeps_signs(coder, vectors, tmp_path):
    pytest.importorskip("sqlite_vec")
    X, Q = vectors
    with push(coder, X, SqliteVec(tmp_path / "a.db", precision="binary"), 16, None) as one:
        assert len(one.search(Q, 5).ids[0]) == 5
    engine = SqliteVec(tmp_path / "b.db", precision="binary")
    with push(coder, X, engine, 8, 16) as store:
        signs = np.sign(coder.encode_document(X, k=8)) > 0
        asked = np.sign(coder.encode_query(Q, k=8)) > 0
        found = store.search(Q, 10, shortlist=200)
        for ids, query in zip(found.ids, asked, strict=True):
            apart = (signs != query).sum(axis=1)
            assert apart[ids].max() <= np.sort(apart)[199], "the shortlist is by Hamming distance"
    with pytest.raises(InvalidInputError, match="multiple of 8"):
        PrefixStore.create(SqliteVec(tmp_path / "c.db", precision="binary"), coder, 6)
    with pytest.raises(InvalidInputError, match="at most 4096"):
        PrefixStore.open(engine, coder).search(Q, 5, shortlist=5000)
    engine.close()


def test_sqlite_files_that_are_none_raise(coder, vectors, tmp_path):
    pytest.importorskip("sqlite_vec")
    (tmp_path / "broken.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(InvalidInputError, match=r"broken.db' failed: file is not a database"):
        push(coder, vectors[0][:5], SqliteVec(tmp_path / "broken.db"), 4)
    with pytest.raises(InvalidInputError, match="unable to open"):
        push(coder, vectors[0][:5], SqliteVec(tmp_path / "no" / "such" / "a.db"), 4)


def test_a_python_without_extensions_of_sqlite_raises(coder, vectors, tmp_path, monkeypatch):
    pytest.importorskip("sqlite_vec")
    monkeypatch.setattr("sqlite3.Connection", type("Connection", (), {}))
    monkeypatch.setitem(sys.modules, "pysqlite3", None)
    with pytest.raises(InvalidInputError, match=r"built without loading of SQLite extensions.*firstk\[stores\]"):
        push(coder, vectors[0][:5], SqliteVec(tmp_path / "a.db"), 4)


def test_two_tables_share_a_file(coder, vectors, tmp_path):
    pytest.importorskip("sqlite_vec")
    X = vectors[0]
    with push(coder, X[:20], SqliteVec(tmp_path / "a.db", "one"), 4, 8) as one:
        with push(coder, X[:30], SqliteVec(tmp_path / "a.db", "two"), 6) as two:
            assert (one.count(), two.count()) == (20, 30)
        with pytest.raises(InvalidInputError, match="did not make it"):
            PrefixStore.open(SqliteVec(tmp_path / "a.db", "one_short"), coder)


@pytest.mark.parametrize("index", ["Flat", "HNSW32", "IVF8,Flat", "SQ8"])
def test_any_index_of_faiss(index, coder, vectors, payloads, tmp_path):
    pytest.importorskip("faiss")
    X, Q = vectors
    with push(coder, X, Faiss(tmp_path / "a", index=index), 8, 16, payloads=payloads) as store:
        found = store.search(Q, 5, shortlist=60)
        wanted, _ = two_stages(coder, X, Q, 5, 8, 16, 60)
        assert recall(found.ids, wanted) > 0.97
        few = store.search(Q, 5, shortlist=60, filter={"kind": "news"})
        assert {one["kind"] for row in few.payloads for one in row} == {"news"}


def test_an_index_that_faiss_does_not_know_raises(coder, vectors, tmp_path):
    pytest.importorskip("faiss")
    with pytest.raises(InvalidInputError, match="faiss cannot build 'Nonsense'"):
        push(coder, vectors[0][:50], Faiss(tmp_path / "a", index="Nonsense"), 4)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_precisions_of_usearch(precision, coder, vectors, tmp_path):
    pytest.importorskip("usearch")
    X, Q = vectors
    with push(coder, X, USearch(tmp_path / "a", precision=precision), 8, 16) as store:
        found = store.search(Q, 5, shortlist=60)
    assert recall(found.ids, two_stages(coder, X, Q, 5, 8, 16, 60)[0]) > 0.95


@pytest.mark.parametrize("kind", [Faiss, USearch], ids=["faiss", "usearch"])
def test_an_index_that_lags_is_brought_up_to_date(kind, coder, vectors, tmp_path):
    pytest.importorskip(kind.__name__.lower())
    X = vectors[0]
    store = push(coder, X[:100], kind(tmp_path / "a"), 8, 16, ids=list(range(100)))
    (saved,) = Path(tmp_path / "a").glob(f"index-*{kind.ending}")
    before = {path: path.read_bytes() for path in Path(tmp_path / "a").glob("index-*")}  # the index and its checksum
    store.push(X[100:120], list(range(100, 120)))  # new rows only: added
    store.close()
    (newer,) = Path(tmp_path / "a").glob(f"index-*{kind.ending}")
    assert newer.name != saved.name
    newer.unlink()
    for path, content in before.items():  # as if the process had been killed before the index was saved
        path.write_bytes(content)
    store = PrefixStore.open(kind(tmp_path / "a"), coder)
    assert [one[0] for one in store.search(X[:120], 1, shortlist=20).ids] == list(range(120))
    store.push(X[200:201], [5])  # a replaced row: made again
    store.close()
    for path in Path(tmp_path / "a").glob("index-*"):
        path.write_bytes(b"damaged")
    with PrefixStore.open(kind(tmp_path / "a"), coder) as store:
        assert store.search(X[200:201], 1, shortlist=20).ids == [[5]]
        assert store.count() == 120


def test_payloads_that_a_store_cannot_hold_raise(coder, vectors, tmp_path):
    X = vectors[0][:2]
    pytest.importorskip("chromadb")
    engine = Chroma(tmp_path / "chroma")
    with pytest.raises(InvalidInputError, match="'tags' is a list"):
        push(coder, X, engine, 4, payloads=[{"tags": ["a"]}, {}])
    with pytest.raises(InvalidInputError, match="at most 1000 rows at once"):
        push(coder, X, Chroma(tmp_path / "chroma", "other"), 4, 8).search(X, 1, shortlist=2000)
    engine.close()
    pytest.importorskip("lancedb")
    lance = LanceDB(tmp_path / "lance")
    with pytest.raises(InvalidInputError, match="'a' of the payload holds another"):
        push(coder, X, lance, 4, payloads=[{"a": 1}, {"a": "text"}])
    with pytest.raises(InvalidInputError, match="the name 'short'"):
        push(coder, X, lance, 4, payloads=[{"short": 1}, {}])
    with pytest.raises(InvalidInputError, match="without dots"):
        push(coder, X, lance, 4, payloads=[{"a.b": 1}, {}])


def test_unit_codes_by_distance_are_compared_by_cosine(vectors, tmp_path):
    """Scores are distances of unit vectors, also where the store compares angles."""
    pytest.importorskip("sqlite_vec")
    X, Q = vectors
    encoder = PrefixEncoder(16, objective="similarity").fit(X)
    with push(encoder, X, SqliteVec(tmp_path / "a.db"), 8, 16, metric="l2") as store:
        found = store.search(Q[:3], 4, shortlist=600)
    Z, q = encoder.encode_document(X), encoder.encode_query(Q[:3])
    for i in range(3):
        np.testing.assert_allclose(found.scores[i], np.sort(np.linalg.norm(Z - q[i], axis=1))[:4], atol=2e-4)


@pytest.mark.parametrize("kind", [DuckDB, SqliteVec])
def test_a_table_that_firstk_did_not_make_is_never_deleted(kind, coder, tmp_path):
    pytest.importorskip(kind.name)
    engine = kind(tmp_path / "a.db", "people")
    engine.connection.execute("CREATE TABLE people (name TEXT)")
    engine.connection.execute("INSERT INTO people VALUES ('Ada')")
    for replace in (False, True):
        with pytest.raises(InvalidInputError, match="did not make it"):
            PrefixStore.create(engine, coder, 4, 8, replace=replace)
    assert engine.connection.execute("SELECT * FROM people").fetchall() == [("Ada",)]
    engine.close()


def test_a_collection_of_chroma_whose_name_full_codes_need_is_left_alone(coder, vectors, tmp_path):
    pytest.importorskip("chromadb")
    X = vectors[0][:3]
    with push(coder, X, Chroma(tmp_path, "documents-full"), 4) as other:
        for replace in (False, True):
            with pytest.raises(InvalidInputError, match="needs the name 'documents-full'"):
                PrefixStore.create(Chroma(tmp_path), coder, 4, 8, replace=replace)
        with push(coder, X, Chroma(tmp_path), 4, ids=[0, 1, 2]) as store:
            assert store.delete([0, 1]) == 1
            assert [len(one.codes) for one in store.rows()] == [1]
        assert other.count() == 3


def test_an_index_without_its_rows_is_not_taken_for_that_of_others(coder, vectors, tmp_path):
    """As it is left by a process that was killed while it deleted a store."""
    pytest.importorskip("faiss")
    X, Q = vectors
    push(coder, X, Faiss(tmp_path / "a"), 8, 16).close()
    (tmp_path / "a" / "rows.sqlite").unlink()
    with push(coder, X[:50], Faiss(tmp_path / "a"), 8, 16) as store:
        assert store.search(Q, 5, shortlist=50).ids == two_stages(coder, X[:50], Q, 5, 8, 16, 50)[0]


@pytest.mark.parametrize("damage", ["payload = '{broken'", "code = x'616263'"])
@pytest.mark.parametrize("kind", [Faiss, SqliteVec])
def test_rows_that_were_damaged_raise(kind, damage, coder, vectors, tmp_path):
    pytest.importorskip(kind.name)
    push(coder, vectors[0][:20], kind(tmp_path / "a"), 8, 16).close()
    with sqlite3.connect(tmp_path / "a" / "rows.sqlite" if kind is Faiss else tmp_path / "a") as file:
        file.execute(f"UPDATE documents SET {damage} WHERE key = 5")
    file.close()
    store = PrefixStore.open(kind(tmp_path / "a"), coder)
    for call in (lambda: store.search(vectors[1], 20), lambda: list(store.rows())):
        with pytest.raises(InvalidInputError, match="failed: "):
            call()
    store.close()


@pytest.mark.parametrize("kind", ["faiss", "usearch"])
def test_a_damaged_index_is_built_again(kind, coder, vectors, tmp_path):
    """Libraries believe a damaged file, or crash: it is not given to them."""
    pytest.importorskip(kind)
    engine, (X, Q) = {"faiss": Faiss, "usearch": USearch}[kind], vectors
    with push(coder, X, engine(tmp_path / "store"), 4, 8) as store:
        wanted = store.search(Q, 5).ids
    (path,) = (tmp_path / "store").glob(f"index-*.{kind}")
    whole = path.read_bytes()
    # The codes in the second half of the file become others, which no library can know.
    path.write_bytes(whole[: len(whole) // 2] + bytes(255 - byte for byte in whole[len(whole) // 2 :]))
    with PrefixStore.open(engine(tmp_path / "store"), coder) as store:
        assert store.search(Q, 5).ids == wanted
        store.engine.finish()
    assert path.with_name(path.name + ".sha256").read_text() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_rows_out_of_order_in_a_damaged_file_end_with_a_message(coder, vectors, tmp_path):
    """Pages follow the last key: keys that do not ascend would begin them again, without end."""
    pytest.importorskip("faiss")
    engine = Faiss(tmp_path / "store")
    push(coder, vectors[0], engine, 4, verbose=False)
    engine.close()
    path = tmp_path / "store" / "rows.sqlite"
    held = bytearray(path.read_bytes())
    size = int.from_bytes(held[16:18], "big")
    for page in range(size, len(held), size):
        cells = int.from_bytes(held[page + 3 : page + 5], "big")
        if held[page] == 0x0D and cells > 10:  # a leaf: its cells in the other order
            places = [bytes(held[page + 8 + 2 * i : page + 10 + 2 * i]) for i in range(cells)]
            held[page + 8 : page + 8 + 2 * cells] = b"".join(reversed(places))
    path.write_bytes(held)
    engine = Faiss(tmp_path / "store")
    with pytest.raises(InvalidInputError, match="out of order"):
        list(islice(engine.read(50), 100))
    engine.close()
