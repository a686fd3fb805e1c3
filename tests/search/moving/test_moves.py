"""Rows arrive with ids, payloads and codes, from every store and file to every other."""

from __future__ import annotations

import dataclasses
import json
from contextlib import closing

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.contract import CodeRecord
from firstk.exceptions import InvalidInputError
from firstk.search.moving import Recode, move, plan
from firstk.search.stores import PrefixStore, connect, push


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def test_vectors_become_codes_in_every_store_and_come_back(store, address, coder, X, payloads, rows_file, tmp_path):
    place, out = address(store), tmp_path / "back.parquet"
    moved = move(rows_file, place, Recode(coder, k=8, full=12), batch=40)
    assert (moved.rows, moved.written, moved.k, moved.verified) == (150, 150, 12, True)
    with PrefixStore.open(connect(place), coder) as there:
        found = there.search(X[:5], 1, shortlist=50)
        assert [one[0] for one in found.ids] == [f"doc {i}" for i in range(5)]
        assert found.payloads[3][0] == {"year": 3, "score": pytest.approx(3 / 7)}
        back = move(there.engine, out, batch=64)
    assert back.rows == 150
    table = open_vectors(out).read()
    order = np.argsort([int(key.split()[1]) for key in table.columns["id"]])
    wanted = unit(coder.encode(X, 12))
    assert np.allclose(table.vectors[order], wanted, atol=1e-6)
    assert table.columns["year"][order].tolist() == list(range(150))
    assert table.columns["score"][order].tolist() == pytest.approx([i / 7 for i in range(150)], abs=0)


def test_codes_are_cut_on_the_way_by_the_encoder_that_made_them(address, coder, X):
    first, second = address("sqlite_vec"), address("duckdb")
    with connect_closing(first) as engine:
        push(coder, X, engine, 12, verbose=False)
    with pytest.raises(InvalidInputError, match=r"12 coordinates.*only that encoder knows.*--model"):
        move(first, second, Recode(k=4))
    moved = move(first, second, Recode(coder, k=4))
    assert moved.k == 4
    with PrefixStore.open(connect(second), coder) as there:
        codes = np.concatenate([part.codes for part in there.rows()])
    assert np.allclose(codes, unit(coder.encode(X, 4)), atol=1e-6)


def test_both_lengths_of_a_store_are_carried_over(address, coder, X):
    first, second, third = address("sqlite_vec"), address("duckdb"), address("faiss")
    with connect_closing(first) as engine:
        push(coder, X, engine, 4, 12, verbose=False)
        layout = engine.layout()
    assert move(first, second).k == 12
    with connect_closing(second) as engine:
        assert engine.layout() == layout
    with PrefixStore.open(connect(second), coder) as there:
        found = there.search(X[:5], 3, shortlist=20)
    with PrefixStore.open(connect(first), coder) as here:
        assert found.ids == here.search(X[:5], 3, shortlist=20).ids
    move(first, third, Recode(coder, k=6))
    with connect_closing(third) as engine:
        assert (engine.layout().short, engine.layout().full) == (6, None)


def test_codes_of_another_encoder_are_not_cut(address, coder, X):
    place = address("sqlite_vec")
    with connect_closing(place) as engine:
        push(coder, X, engine, 12, verbose=False)
    other = PrefixEncoder(16, objective="reconstruction").fit(X)
    with pytest.raises(InvalidInputError, match="cannot be compared"):
        move(place, address("duckdb"), Recode(other, k=4))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl", "csv", "tsv.gz", "npz"])
def test_payloads_become_columns_of_every_format_that_has_them(ending, address, coder, X, payloads, tmp_path):
    pytest.importorskip("pyarrow")
    place, out = address("sqlite_vec"), tmp_path / f"out.{ending}"
    held = [dict(one, tags=["a", i]) for i, one in enumerate(payloads)]
    if ending == "npz":  # which has no way to lack an entry
        held = [{"year": i, "kind": "x" * (i % 3 + 1)} for i in range(len(X))]
    with connect_closing(place) as engine:
        push(coder, X, engine, 8, payloads=held, verbose=False)
    assert move(place, out, batch=64).verified
    table = open_vectors(out, None if ending in ("parquet", "arrow", "npz", "jsonl") else "code", beside=("id",)).read()
    assert table.columns["id"].tolist() == list(range(150))
    assert [str(one) for one in table.columns["kind"]] == [one["kind"] for one in held]
    if ending == "parquet":
        years = table.columns["year"].tolist()
        assert years[0] is None
        assert years[1] == 1991
        assert json.loads(table.columns["tags"][7]) == ["a", 7]
        assert table.columns["open"].dtype == bool


@pytest.mark.parametrize("precision", ["float16", "int8", "int4", "binary"])
def test_codes_are_rounded_on_the_way_to_a_file(precision, address, coder, X, tmp_path):
    pytest.importorskip("pyarrow")
    place = address("sqlite_vec")
    with connect_closing(place) as engine:
        push(coder, X, engine, 8, verbose=False)
    for target in (tmp_path / "a.parquet", tmp_path / "folder"):
        moved = move(place, target, Recode(precision=precision), batch=64)
        assert moved.verified
        table = open_vectors(target)
        assert (table.rows, table.width) == (150, 8)


def test_embedded_bits_of_vectors_in_a_store(address, coder, X, rows_file, tmp_path):
    place = address("sqlite_vec")
    assert move(rows_file, place).k == 24  # as they are
    moved = move(place, tmp_path / "bits.parquet", Recode(coder, bytes_per_vector=4))
    assert (moved.bytes_per_vector, moved.verified) == (4, True)
    direct = move(rows_file, tmp_path / "direct.parquet", Recode(coder, bytes_per_vector=4))
    assert direct.verified
    a, b = (open_vectors(tmp_path / name).as_stored().read(()).vectors for name in ("bits.parquet", "direct.parquet"))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("wish", [{"precision": "int4", "k": 7}, {"precision": "float16"}, {"bytes_per_vector": 6}])
def test_codes_go_from_file_to_file_byte_for_byte(wish, coder, rows_file, tmp_path):
    made, out = tmp_path / "made.parquet", tmp_path / "out.parquet"
    first = move(rows_file, made, Recode(coder, **wish))
    planned, moved = plan(made, out), move(made, out, batch=40)
    assert moved.verified
    assert moved.decoded_from is None
    assert moved.bytes_per_vector == moved.source_bytes_per_vector == first.bytes_per_vector
    assert planned.source_bytes == planned.target_bytes == 150 * first.bytes_per_vector
    here, there = open_vectors(made), open_vectors(out)
    assert np.array_equal(here.as_stored().read(()).vectors, there.as_stored().read(()).vectors)
    one, other = (CodeRecord.read(table.path, table.metadata) for table in (here, there))
    assert (one.stamp, one.k, one.side, one.metric) == (other.stamp, other.k, other.side, other.metric)


def test_columns_go_from_file_to_file_as_they_are(coder, X, tmp_path):
    days = np.datetime64("2020-01-01") + np.arange(150)
    held = {"id": np.arange(150, dtype=np.int32), "day": days, "name": np.array([f"row {i}" for i in range(150)])}
    rows = write_vectors(tmp_path / "rows.parquet", X, held)
    for source, target, recode in (
        (rows, "codes.parquet", Recode(coder, k=4)),
        ("codes.parquet", "copy.parquet", None),
    ):
        assert move(tmp_path / source, tmp_path / target, recode, batch=40).verified
    before, after = (open_vectors(tmp_path / name).read() for name in ("rows.parquet", "copy.parquet"))
    assert after.columns.keys() == before.columns.keys()
    for name, column in before.columns.items():
        assert np.asarray(after.columns[name]).dtype == np.asarray(column).dtype
        assert np.array_equal(after.columns[name], column)
    plain = write_vectors(tmp_path / "rows.npy", X)
    assert move(plain, tmp_path / "short.npy", Recode(coder, k=4), batch=40).rows == 150
    np.testing.assert_allclose(np.load(tmp_path / "short.npy"), coder.encode(X, 4), rtol=1e-5)


def test_embedded_bits_are_cut_from_file_to_file_and_do_not_go_to_a_store(address, coder, X, rows_file, tmp_path):
    made, short = tmp_path / "made.parquet", tmp_path / "short.parquet"
    move(rows_file, made, Recode(coder, bytes_per_vector=6))
    assert move(made, short, Recode(coder, bytes_per_vector=2)).bytes_per_vector == 2
    assert np.array_equal(open_vectors(short).as_stored().read(()).vectors, coder.quantizer(2).encode(X))
    width = open_vectors(made).width
    for recode in (Recode(), Recode(coder, k=4)):
        with pytest.raises(InvalidInputError, match=rf"6 bytes a row.*{4 * width} bytes a row.*--model and -k"):
            move(made, address("sqlite_vec"), recode)
    for wish in ({"k": 4}, {"precision": "int8"}):
        with pytest.raises(InvalidInputError, match="mbedded bits"):
            move(made, tmp_path / "no.parquet", Recode(**wish))
    other = PrefixEncoder(16, objective="reconstruction").fit(X)
    with pytest.raises(InvalidInputError, match="cannot be compared"):
        move(made, tmp_path / "no.parquet", Recode(other))


def test_rounded_codes_are_decoded_for_a_store_which_opens(address, coder, X, rows_file, tmp_path):
    made, place = tmp_path / "made.parquet", address("duckdb")
    move(rows_file, made, Recode(coder, k=8, precision="int8"))
    moved = move(made, place)
    assert (moved.decoded_from, moved.source_bytes_per_vector, moved.bytes_per_vector) == ("int8", 8, 32)
    with PrefixStore.open(connect(place), coder) as there:
        assert there.search(X[:1], 1).ids[0] == ["doc 0"]


def test_rows_of_a_file_without_ids_are_numbered_and_nan_is_dropped(address, coder, X, tmp_path):
    held = X.copy()
    held[3, 2] = np.nan
    path = write_vectors(tmp_path / "rows.npy", held)
    with pytest.raises(InvalidInputError, match="NaN"):
        move(path, address("sqlite_vec"), Recode(coder, k=4))
    moved = move(path, place := address("sqlite_vec"), Recode(coder, k=4), nan="drop")
    assert (moved.rows, moved.dropped) == (149, 1)
    with connect_closing(place) as engine:
        ids = [key for part in engine.read(1000) for key in part.ids]
    assert ids == [0, 1, 2, *range(4, 150)]


def test_ids_that_come_twice_raise_before_anything_is_written(address, coder, X, tmp_path):
    path = write_vectors(tmp_path / "rows.npz", X, {"id": np.r_[np.arange(149), 7]})
    place = address("sqlite_vec")
    with pytest.raises(InvalidInputError, match="unique, and 1 came before"):
        move(path, place, Recode(coder, k=4))
    with connect_closing(place) as engine:
        assert engine.layout() is None


def test_a_target_that_is_there_is_kept_unless_resumed_or_replaced(address, coder, rows_file, tmp_path):
    place = address("sqlite_vec")
    move(rows_file, place, Recode(coder, k=4))
    with pytest.raises(InvalidInputError, match=r"150 rows.*--resume.*--force"):
        move(rows_file, place, Recode(coder, k=4))
    assert move(rows_file, place, Recode(coder, k=4), resume=True).there_before == 150
    with pytest.raises(InvalidInputError, match="short=4"):
        move(rows_file, place, Recode(coder, k=5), resume=True)
    assert move(rows_file, place, Recode(coder, k=5), force=True).written == 150
    out = tmp_path / "out.parquet"
    move(place, out)
    with pytest.raises(InvalidInputError, match="there already"):
        move(place, out)
    assert move(place, out, force=True).rows == 150


def test_what_was_changed_in_the_target_is_noticed_on_resuming(address, coder, X, rows_file):
    place = address("duckdb")
    move(rows_file, place, Recode(coder, k=4))
    with PrefixStore.open(connect(place), coder) as there:
        there.push(X[5:6], ["doc 7"], [{"year": 7, "score": 2.0}], verbose=False)
    with pytest.raises(InvalidInputError, match=r"does not hold what was moved.*payloads"):
        move(rows_file, place, Recode(coder, k=4), resume=True)
    with PrefixStore.open(connect(place), coder) as there:
        there.push(X[5:6], ["doc 7"], [{"year": 7, "score": 7 / 7}], verbose=False)
    with pytest.raises(InvalidInputError, match=r"does not hold what was moved.*codes"):
        move(rows_file, place, Recode(coder, k=4), resume=True)
    with PrefixStore.open(connect(place), coder) as there:
        there.push(X[5:6], ["more"], [{}], verbose=False)
    with pytest.raises(InvalidInputError, match="150 rows came in, and 151 are there"):
        move(rows_file, place, Recode(coder, k=4), resume=True)


def test_a_plan_writes_nothing(store, address, coder, rows_file, tmp_path):
    place = address(store)
    planned = plan(rows_file, place, Recode(coder, k=4, full=8))
    assert (planned.rows, planned.width, planned.k) == (150, 24, 8)
    assert (planned.source_bytes, planned.target_bytes) == (150 * 96, 150 * 32)
    assert planned.reading > 0
    assert (planned.writing is None) == (store == "pgvector")
    with connect_closing(place) as engine:
        assert engine.layout() is None


@pytest.mark.parametrize(
    ("recode", "said"),
    [
        ({"k": 99}, r"\[1, 16\]"),
        ({"k": 8, "full": 4}, "above 8"),
        ({"bytes_per_vector": 4}, "stay in files"),
        ({"precision": "int8"}, r"'precision' \(--precision\) is 'int8', and DuckDB indexes codes as float32 only"),
        ({"metric": "hamming"}, "metric"),
    ],
)
def test_wishes_that_a_store_cannot_meet_raise(recode, said, address, coder, rows_file):
    with pytest.raises(InvalidInputError, match=said):
        move(rows_file, address("duckdb"), Recode(coder, **recode))


def test_a_precision_that_a_store_does_not_take_names_the_option_and_those_that_it_takes(address, coder, rows_file):
    place = address("sqlite_vec")
    said = r"'precision' \(--precision\) is 'int8', and SqliteVec indexes codes as float32 or binary"
    with pytest.raises(InvalidInputError, match=said):
        move(rows_file, place, Recode(coder, k=8, precision="int8"))
    assert move(rows_file, place, Recode(coder, k=8, precision="binary")).verified
    assert move(rows_file, address("duckdb"), Recode(coder, k=8, precision="float32")).verified


def test_other_wrong_input_raises(address, coder, rows_file, tmp_path, X):
    narrow = write_vectors(tmp_path / "narrow.npy", X[:, :5])
    for source, target, said in [
        (str(narrow), address("duckdb"), "5 numbers, and the encoder takes 24"),
        (address("duckdb"), address("sqlite_vec"), "There is no store at"),
        (rows_file, str(tmp_path / "out.npy"), "vectors only"),
        (rows_file, rows_file, "the same place"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            move(source, target, Recode(coder, k=4))


def test_a_source_is_not_replaced_by_itself_under_another_name(address, coder, rows_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = address("sqlite_vec")
    move(rows_file, place, Recode(coder, k=4))
    path, _, table = place.partition(":")[2].partition("#")
    file = path.rpartition("/")[2]
    move(place, "codes")  # a folder of parquet files
    with closing(connect(place)) as engine:
        for source, target in [
            (place, f"sqlite:./{file}#{table}"),
            (engine, engine),
            ("codes", tmp_path / "x" / ".." / "codes"),
            ("codes/part-000000.parquet", "codes"),
            ("faiss:one", "faiss:./one#other"),
            ("postgresql://me:secret@host/db#t", "postgresql://host/db#t"),
        ]:
            with pytest.raises(InvalidInputError, match="the same place"):
                move(source, target, force=True)
        assert engine.count() == open_vectors("codes").rows == 150


def test_a_folder_of_others_is_not_deleted(address, coder, rows_file, tmp_path):
    place, folder = address("sqlite_vec"), tmp_path / "thesis"
    move(rows_file, place, Recode(coder, k=4))
    folder.mkdir()
    (folder / "chapter1.txt").write_text("It was")
    plain = tmp_path / "notes"
    plain.write_text("mine")
    for target in (folder, plain):
        with pytest.raises(InvalidInputError, match=r"firstk did not make it.*another name"):
            move(place, target, force=True)
    assert (folder / "chapter1.txt").read_text() == "It was"
    assert plain.read_text() == "mine"
    for _ in range(2):  # an own folder is replaced
        assert move(place, tmp_path / "codes", force=True).written == 150
    (tmp_path / "link").symlink_to(tmp_path / "codes")
    with pytest.raises(InvalidInputError, match=r"is a link.*Remove the link"):
        move(place, tmp_path / "link", force=True)
    assert (tmp_path / "codes").is_dir()


def test_what_was_compared_is_told(address, coder, rows_file, tmp_path):
    stored = move(rows_file, address("sqlite_vec"), Recode(coder, k=4))
    assert stored.compared == ("rows", "ids", "payloads", "codes")
    copied = move(rows_file, tmp_path / "codes.parquet", Recode(coder, k=4))
    assert (copied.compared, copied.checksum) == (("rows", "codes"), "")
    assert move(rows_file, tmp_path / "more.parquet", Recode(coder, k=4), verify=False).compared == ()


def test_the_engine_of_a_caller_stays_open_and_an_own_one_is_closed(address, coder, rows_file, monkeypatch):
    place = address("sqlite_vec")
    with closing(connect(place)) as engine:
        closed = []
        monkeypatch.setattr(type(engine), "close", lambda self: closed.append(self))
        with pytest.raises(InvalidInputError, match="is not there"):
            move(engine, address("sqlite_vec"), Recode(coder, k=4))
        assert engine not in closed
        with pytest.raises(InvalidInputError, match="is not there"):
            move(place, address("sqlite_vec"), Recode(coder, k=4))
        assert closed
        monkeypatch.undo()


def test_a_move_is_described_by_plain_values(address, coder, rows_file):
    moved = move(rows_file, address("sqlite_vec"), Recode(coder, k=4))
    assert json.loads(json.dumps(dataclasses.asdict(moved)))["rows"] == 150


def connect_closing(place):
    return closing(connect(place))
