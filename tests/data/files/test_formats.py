"""Every format gives back what was put in, in batches of any size, and says what is wrong in sentences."""

import csv
import os
import platform
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firstk._base import atomic_file as atomic_files
from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.column_files import load_columns, open_column
from firstk.data.files.vector_table import FORMATS, rows_with_nan
from firstk.exceptions import FirstkError, InvalidInputError, MissingExtraError

pa = pytest.importorskip("pyarrow", reason="the formats of the extra 'tables' need pyarrow")
import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

ENDINGS = [ending for form in FORMATS for ending in form.endings]
HOLDS = {ending: form.holds for form in FORMATS for ending in form.endings}
TEXTS = [ending for ending in ENDINGS if ending.startswith((".csv", ".tsv", ".tab", ".jsonl", ".ndjson"))]


def rows(n=100, p=5, dtype="float32", seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)).astype(dtype)


def columns_for(ending, n):
    columns = {
        "label": np.arange(n) % 7,
        "score": np.linspace(-1, 1, n),
        "text": np.array([f'a "quoted", {i}\nline' for i in range(n)]),
    }
    kept = {"nothing": (), "numbers": ("label", "score")}.get(HOLDS[ending], tuple(columns))
    return {name: columns[name] for name in kept}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip(tmp_path, ending, dtype):
    X, columns = rows(dtype=dtype), columns_for(ending, 100)
    name = "vectors" if ending == ".npy" else "embedding"
    write_vectors(tmp_path / f"a{ending}", X, columns, name=name)
    table = open_vectors(tmp_path / f"a{ending}")
    assert (table.rows, table.width, table.vectors, table.columns) == (100, 5, name, tuple(columns))
    assert table.dtype == ("float64" if ending in TEXTS else dtype)  # text has no type
    found = table.read()
    np.testing.assert_array_equal(found.vectors.astype(dtype), X)
    for key, column in columns.items():
        np.testing.assert_array_equal(found.columns[key], column)
        assert found.columns[key].dtype.kind == column.dtype.kind
    assert os.listdir(tmp_path) == [f"a{ending}"]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(1, 40), p=st.integers(1, 12), size=st.integers(1, 50))
@pytest.mark.parametrize("ending", ENDINGS)
def test_batches_of_any_size_are_the_file_in_order(tmp_path, ending, n, p, size):
    X, columns = rows(n, p), columns_for(ending, n)
    write_vectors(tmp_path / f"a{ending}", X, columns)
    batches = list(open_vectors(tmp_path / f"a{ending}").batches(size, tuple(columns)))
    assert all(len(batch) <= size for batch in batches)
    np.testing.assert_array_equal(np.concatenate([batch.vectors for batch in batches]).astype("float32"), X)
    np.testing.assert_array_equal(np.concatenate([batch.rows for batch in batches]), np.arange(n))
    assert [batch.start for batch in batches] == np.cumsum([0, *map(len, batches)])[:-1].tolist()
    for name, column in columns.items():
        np.testing.assert_array_equal(np.concatenate([batch.columns[name] for batch in batches]), column)


def test_foreign_files_are_read(tmp_path):
    """What other programs write: lists of any kind, streams, packed archives, Fortran order, lists in cells."""
    X = rows(20, 3)
    lists = {
        "list": pa.array(X.tolist(), pa.list_(pa.float32())),
        "large": pa.array(X.tolist(), pa.large_list(pa.float32())),
        "fixed": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 3),
        "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(X),
    }
    for name, array in lists.items():
        pq.write_table(pa.table({"e": array, "id": range(20)}), tmp_path / f"{name}.parquet", row_group_size=7)
    feather.write_feather(pa.table({"e": lists["list"]}), tmp_path / "packed.feather", compression="zstd")
    with pa.ipc.new_stream(tmp_path / "stream.arrow", pa.schema([("e", pa.list_(pa.float32()))])) as stream:
        stream.write_table(pa.table({"e": lists["list"]}))
    np.savez_compressed(tmp_path / "packed.npz", e=X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    with (tmp_path / "cells.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["e", "id"], *([str(row), i] for i, row in enumerate(X.tolist()))])
    with (tmp_path / "numpy.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["e"], *([np.array2string(row, floatmode="unique")] for row in X)])
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(3)}), tmp_path / "wide.parquet")
    for path in sorted(tmp_path.iterdir()):
        found = open_vectors(path).read(())
        np.testing.assert_array_equal(found.vectors.astype("float32"), X, err_msg=path.name)


def test_bfloat16_is_read_as_float32(tmp_path):
    torch = pytest.importorskip("torch", reason="writing bfloat16 needs torch")
    from safetensors.torch import save_file

    X = torch.randn(6, 4).to(torch.bfloat16)
    save_file({"e": X, "label": torch.arange(6)}, tmp_path / "b.safetensors")
    table = open_vectors(tmp_path / "b.safetensors")
    assert (table.dtype, table.columns) == (np.float32, ("label",))
    np.testing.assert_array_equal(table.read().vectors, X.float().numpy())


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "decimal"])
def test_whole_numbers_become_floats(tmp_path, kind):
    X = np.arange(6).reshape(3, 2)
    if kind == "decimal":
        table = pa.table({f"x{j}": pa.array(X[:, j]).cast(pa.decimal128(20, 0)) for j in range(2)})
    else:
        table = pa.table({"e": pa.array(X.tolist(), pa.list_(getattr(pa, kind)()))})
    pq.write_table(table, tmp_path / "a.parquet")
    found = open_vectors(tmp_path / "a.parquet").read().vectors
    np.testing.assert_array_equal(found, X)
    assert found.dtype == (np.float32 if kind in ("int8", "uint16") else np.float64)


# -- shards ------------------------------------------------------------------------------------------------------------


def test_a_folder_and_a_pattern_are_one_table_in_natural_order(tmp_path):
    X = rows(30, 4)
    for i in range(12):
        write_vectors(tmp_path / f"part-{i}.parquet", X[i : i + 2], {"id": [i, i]})
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part.crc").write_text("x")
    for source in (tmp_path, f"{tmp_path}/part-*.parquet", f"{tmp_path}/**/*.parquet"):
        table = open_vectors(source)
        assert table.rows == 24
        batch = table.read()
        np.testing.assert_array_equal(batch.columns["id"], np.repeat(np.arange(12), 2))  # 2 before 10
        np.testing.assert_array_equal(batch.rows, np.arange(24))


def test_a_shard_without_rows_is_no_obstacle(tmp_path):
    kind = pa.schema([("e", pa.list_(pa.float32()))])
    pq.write_table(kind.empty_table(), tmp_path / "a-0.parquet")
    pq.write_table(pa.table({"e": rows(3, 4).tolist()}, schema=kind), tmp_path / "a-1.parquet")
    assert open_vectors(tmp_path).read().vectors.shape == (3, 4)


def test_more_shards_than_open_files_are_read(tmp_path):
    import resource

    for i in range(80):
        write_vectors(tmp_path / f"{i}.parquet", rows(2, 3))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 30, before[1]))
    try:
        assert len(open_vectors(tmp_path).read()) == 160
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


BAD_SHARDS = {
    "another width": (rows(2, 4), {}, "has 4 numbers in 'vectors', and others have 3 in 'vectors'"),
    "another type": (rows(2, 3, "float64"), {}, "(float64), and others vectors (float32)"),
    "another column": (rows(2, 3), {"id": [1, 2]}, "has columns vectors, id (float32), and others vectors (float32)"),
}


@pytest.mark.parametrize("kind", BAD_SHARDS)
def test_shards_must_be_alike(tmp_path, kind):
    X, columns, sentence = BAD_SHARDS[kind]
    write_vectors(tmp_path / "a.parquet", rows(2, 3))
    write_vectors(tmp_path / "b.parquet", X, columns)
    with pytest.raises(InvalidInputError) as caught:
        open_vectors(tmp_path)
    assert sentence in str(caught.value)
    assert "b.parquet" in str(caught.value)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("content", [b"", b"\0", b"not what it says\n" * 50, b"PAR1" * 30, b"ARROW1\0\0" * 20])
def test_damaged_files_raise_an_error(tmp_path, ending, content):
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError) as caught:
        open_vectors(path).read()
    assert f"Cannot read vectors from '{path}'" in str(caught.value)


@pytest.mark.parametrize("ending", [form.endings[0] for form in FORMATS])
def test_any_damage_is_noticed_or_harmless(tmp_path, ending):
    """Cut and overwrite at seeded places: a sentence or a table, never another error."""
    path = tmp_path / f"a{ending}"
    write_vectors(path, rows(60, 4), columns_for(ending, 60))
    content, rng, sentences = path.read_bytes(), np.random.default_rng(0), 0
    for trial in range(80):
        at = int(rng.integers(len(content)))
        path.write_bytes(content[:at] + (rng.bytes(4) + content[at + 4 :] if trial % 2 else b""))
        try:
            open_vectors(path).read()
        except FirstkError:
            sentences += 1
    assert sentences >= 20


def npy(header, content=bytes(80)):
    """Return an npy file with a header of one's own."""
    header = header.encode("latin1") if isinstance(header, str) else header
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


HEADERS = {
    "no end": "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2",
    "a string without an end": "{'descr': '<f8, 'fortran_order': False, 'shape': (5, 2), }",
    "an indent": "{'descr': '<f8',\n  'shape': (5, 2)}\n    \n  x",
    "deep": "[" * 9000,
    "deep signs": "-" * 9000 + "1",
    "not text": bytes(range(256)),
    "no type": "{'descr': 'zz', 'fortran_order': False, 'shape': (5, 2), }",
    "a negative shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (-5, 2), }",
    "a shape of True": "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2), }",
    "more than there is": "{'descr': '<f8', 'fortran_order': False, 'shape': (50, 2), }",
    "more than any memory": "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 9223372036854775807), }",
    "more than 64 bits": "{'descr': '<f8', 'fortran_order': False, 'shape': (5, " + "9" * 99 + "), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (5, 2), }",
}


@pytest.mark.parametrize("name", HEADERS)
def test_damaged_headers_of_numpy(tmp_path, name):
    (tmp_path / "a.npy").write_bytes(npy(HEADERS[name]))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", npy(HEADERS[name]))
    for ending in (".npy", ".npz"):
        for reads in (open_vectors, lambda path: open_column(path).whole()):
            with pytest.raises(InvalidInputError, match=f"a{ending}"):
                reads(tmp_path / f"a{ending}")


def test_a_flipped_bit_in_a_page_of_parquet_is_noticed(tmp_path):
    X = rows(400, 8)
    path = write_vectors(tmp_path / "a.parquet", X, {"label": np.arange(400)}, name="e")
    whole, bits = path.read_bytes(), np.random.default_rng(0)
    start = whole.index(X[0].tobytes())  # floats are stored as they are
    for at in bits.integers(start, start + X.nbytes, 20):
        broken = bytearray(whole)
        broken[at] ^= 1 << int(bits.integers(8))
        path.write_bytes(broken)
        for reads in (lambda: open_vectors(path).read(), lambda: load_columns(path)["e"]):
            with pytest.raises(InvalidInputError, match=r"(?i)crc|checksum"):
                reads()


def test_parquet_without_checksums_is_read(tmp_path):
    pq.write_table(pa.table({"e": pa.array(rows(9, 3).tolist())}), tmp_path / "a.parquet", write_page_checksum=False)
    assert open_vectors(tmp_path / "a.parquet").rows == 9


def test_names_that_lead_nowhere(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    for path, sentence in {
        tmp_path / "gone.parquet": "There is no file",
        tmp_path / "*.parquet": "There is no file",
        tmp_path / "notes.txt": "must end in one of .npy, .npz, .parquet, .pq, .arrow, .feather, .ipc, .csv, .csv.gz",
        tmp_path / "empty": "the folder holds no file that ends in",
    }.items():
        with pytest.raises(InvalidInputError) as caught:
            open_vectors(path)
        assert sentence in str(caught.value)
    write_vectors(tmp_path / "a.npy", rows())
    write_vectors(tmp_path / "b.csv", rows())
    with pytest.raises(InvalidInputError, match=r"several formats \(csv, npy\)"):
        open_vectors(tmp_path)


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv"])
def test_ragged_lists_raise_an_error_with_their_rows(tmp_path, ending):
    cells = [[1.0, 2.0]] * 8
    cells[5], cells[6] = [1.0], [1.0, 2.0, 3.0]
    path = tmp_path / f"a{ending}"
    if ending == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["e"], *([str(cell)] for cell in cells)])
    else:
        {".parquet": pq.write_table, ".arrow": feather.write_feather}[ending](pa.table({"e": cells}), str(path))
    with pytest.raises(InvalidInputError) as caught:
        open_vectors(path).read()
    assert "its vectors are ragged: the first has 2 entries, and row 5" in str(caught.value)


def test_text_where_numbers_should_be(tmp_path):
    (tmp_path / "late.csv").write_text("x0,x1\n" + "1,2\n" * 600 + "1,oops\n")
    with pytest.raises(InvalidInputError, match="row 600 of column 'x1' holds 'oops', not a number"):
        open_vectors(tmp_path / "late.csv").read()
    (tmp_path / "bare.csv").write_text("0.5,1.5\n2.5,3.5\n")
    with pytest.raises(InvalidInputError, match="first line holds numbers"):
        open_vectors(tmp_path / "bare.csv")
    np.save(tmp_path / "t.npy", np.array([["a", "b"]]))
    with pytest.raises(InvalidInputError, match="not numbers"):
        open_vectors(tmp_path / "t.npy")
    np.save(tmp_path / "o.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInputError, match="Cannot read vectors"):  # nothing is ever unpickled
        open_vectors(tmp_path / "o.npy")


# -- NaN ---------------------------------------------------------------------------------------------------------------


def with_holes(path):
    """Write 300 rows of which 3 (NaN), 120 (infinity) and 250 (missing, where the format can say so) are bad."""
    X = rows(300, 4)
    X[3, 1], X[120, 0], X[250] = np.nan, np.inf, np.nan
    if path.suffix in (".parquet", ".arrow"):
        cells = [None if i == 250 else row.tolist() for i, row in enumerate(X)]
        table = pa.table({"e": pa.array(cells, pa.list_(pa.float32(), 4)), "id": range(300)})
        {".parquet": pq.write_table, ".arrow": feather.write_feather}[path.suffix](table, str(path))
    elif path.suffix == ".npy":
        np.save(path, X)
    else:
        write_vectors(path, X, {"id": np.arange(300)}, name="e")
    return X


@pytest.mark.parametrize("ending", [form.endings[0] for form in FORMATS])
def test_nan_raises_an_error_with_the_rows_or_dropped(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    X = with_holes(path)
    with pytest.raises(InvalidInputError) as caught:
        open_vectors(path).read()
    assert "in 3 of the vectors from row 0 to row 299 (row 3, 120, 250)" in str(caught.value)
    assert "nan='drop'" in str(caught.value)
    kept = np.setdiff1d(np.arange(300), [3, 120, 250])
    batches = list(open_vectors(path, nan="drop").batches(100))
    assert [batch.dropped for batch in batches] == [1, 1, 1]
    whole = open_vectors(path, nan="drop").read()
    np.testing.assert_array_equal(whole.rows, kept)
    np.testing.assert_array_equal(whole.vectors.astype("float32"), X[kept])
    if "id" in whole.columns:
        np.testing.assert_array_equal(whole.columns["id"], kept)


def test_nan_in_a_later_batch_is_named_by_its_row_in_the_file(tmp_path):
    X = rows(300, 4)
    X[120, 0] = np.nan
    write_vectors(tmp_path / "a.npy", X[:100])
    write_vectors(tmp_path / "b.npy", X[100:])
    with pytest.raises(InvalidInputError, match=r"from row 100 to row 149 \(row 120\)"):
        list(open_vectors(tmp_path).batches(50))


def test_nothing_left_after_dropping(tmp_path):
    write_vectors(tmp_path / "a.npy", np.full((3, 2), np.nan))
    with pytest.raises(InvalidInputError, match="none of its vectors is free of NaN"):
        open_vectors(tmp_path / "a.npy", nan="drop").read()
    with pytest.raises(InvalidInputError, match="'refuse'"):
        open_vectors(tmp_path / "a.npy", nan="keep")


def test_missing_entries_and_cells_are_nan(tmp_path):
    pq.write_table(pa.table({"e": [[1.0, None], [3.0, 4.0]]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("x0,x1\n1,\n3,4\n")
    for path in tmp_path.iterdir():
        np.testing.assert_array_equal(open_vectors(path, nan="drop").read().vectors, [[3.0, 4.0]])


def test_sums_that_overflow_are_not_taken_for_infinity():
    X = np.full((4, 4), np.finfo(np.float32).max, np.float32)
    assert len(rows_with_nan(X)) == 0
    X[2, 1] = np.nan
    assert rows_with_nan(X).tolist() == [2]


# -- writing -----------------------------------------------------------------------------------------------------------


def draft_of(path, node=None, process=None):
    """Return the name of a draft, with the mark that tells drafts of one process apart being 0."""
    mark, owner = zlib.crc32(path.name.encode()), f"{node or atomic_files._process_space()}-{process or os.getpid()}"
    return path.with_name(f".firstk-{mark:08x}-{owner}-0.partial")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("ending", [form.endings[0] for form in FORMATS if form.name != "npz"])
def test_no_space_left_raises_an_error_and_leaves_nothing(tmp_path, monkeypatch, ending):
    path = tmp_path / f"a{ending}"
    monkeypatch.setattr(atomic_files, "_new_file", lambda temporary: temporary.symlink_to("/dev/full"))
    path.write_text("what was there before")
    with pytest.raises(
        InvalidInputError, match=r"there is no space left on the device\. Nothing was left half-written"
    ):
        write_vectors(path, rows(20_000, 20))
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "what was there before"


def test_drafts_of_dead_processes_are_swept(tmp_path):
    path = tmp_path / "a.npy"
    dead, another = (draft_of(tmp_path / name, process=999999999) for name in ("a.npy", "b.npy"))
    alive, foreign = draft_of(path, process=os.getppid()), draft_of(path, "elsewhere")
    # A host whose name begins with ours, and a container of our name with process numbers of its own.
    longer = draft_of(path, f"{atomic_files._process_space()}-999999998")
    container = draft_of(path, f"{platform.node()}-1", 999999999)
    for draft in (dead, Path(f"{dead}.vectors"), alive, foreign, another, longer, container):
        draft.touch()
    write_vectors(path, rows())
    assert sorted(tmp_path.iterdir()) == sorted([alive, foreign, another, longer, container, path])


def test_what_cannot_be_written_raises_an_error(tmp_path):
    X = rows(4, 2)
    for call, sentence in [
        (lambda: write_vectors(tmp_path / "a.npy", X, {"id": range(4)}), "holds vectors only"),
        (lambda: write_vectors(tmp_path / "a.csv", X, {"id": range(3)}), "as many rows"),
        (lambda: write_vectors(tmp_path / "a.csv", X[0]), "takes a matrix of numbers"),
        (lambda: write_vectors(tmp_path / "a.csv", X, {"vectors": range(4)}), "two columns called 'vectors'"),
        (lambda: write_vectors(tmp_path / "a.csv", X, metadata={"firstk": "{}"}), "cannot store metadata"),
        (lambda: write_vectors(tmp_path / "a.safetensors", X, {"t": list("abcd")}), "holds numbers only"),
        (lambda: write_vectors(tmp_path / "a.npz", X, {"t": np.array([None] * 4)}), "or lacks entries"),
        (lambda: write_vectors(tmp_path / "a.doc", X), "must end in one of"),
    ]:
        with pytest.raises(InvalidInputError) as caught:
            call()
        assert sentence in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    import importlib

    write_vectors(tmp_path / "a.parquet", rows())
    real = importlib.import_module

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    for call in (lambda: open_vectors(tmp_path / "a.parquet"), lambda: write_vectors(tmp_path / "b.parquet", rows())):
        with pytest.raises(MissingExtraError, match=r"firstk\[tables\]"):
            call()
    write_vectors(tmp_path / "b.csv", rows())  # needs no extra
    assert open_vectors(tmp_path / "b.csv").rows == 100
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "b.csv"]


def test_batches_at_even_distances_are_rows_of_all_files(tmp_path):
    X = np.arange(5 * 90, dtype=np.float32).reshape(90, 5)
    for number, part in enumerate(np.split(X, [40, 47])):  # the second file is shorter than a step
        write_vectors(tmp_path / f"part-{number}.npy", part)
    batches = list(open_vectors(tmp_path).spread(30, 6))
    assert [len(batch) for batch in batches] == [6, 6, 4, 6, 6]  # none goes on in the next file
    for batch in batches:
        np.testing.assert_array_equal(batch.vectors, X[batch.rows])
    assert [batch.start for batch in batches] == [0, 18, 36, 54, 72]


def test_formats_that_read_everything_offer_no_such_batches(tmp_path):
    write_vectors(tmp_path / "a.csv", np.ones((9, 2)))
    assert open_vectors(tmp_path / "a.csv").spread(3, 1) is None


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_that_are_not_finite_are_found_in_every_precision(dtype):
    X = np.array([[1, -65504], [np.inf, 0], [65504, 0], [0, -np.inf], [-0.0, 2], [np.nan, 1]], dtype)
    assert rows_with_nan(X).tolist() == [1, 3, 5]
    assert rows_with_nan(np.asfortranarray(X)[:, ::-1]).tolist() == [1, 3, 5]
    assert rows_with_nan(X[[0, 2, 4]]).tolist() == []
    for row in (1, 3, 5):
        assert rows_with_nan(X[[0, row]]).tolist() == [1]


def test_what_an_npz_says_about_itself_takes_one_byte_per_character(tmp_path):
    from firstk import transform_files

    write_vectors(tmp_path / "a.npz", np.eye(8, dtype=np.float32))
    transform_files(None, tmp_path / "a.npz", tmp_path / "short.npz", precision="int8")
    said = open_vectors(tmp_path / "short.npz").metadata["firstk"]
    with zipfile.ZipFile(tmp_path / "short.npz") as archive:
        assert archive.getinfo("firstk.npy").file_size < len(said) + 200
