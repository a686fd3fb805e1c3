"""Files that are empty, lack rows, hold text, repeat a name or have another encoding: each is told what it is."""

import gzip
import tracemalloc

import numpy as np
import pytest

from firstk import PrefixEncoder, transform_files
from firstk.data.files import open_codes, open_vectors, write_vectors
from firstk.data.files.column_files import load_columns
from firstk.data.files.vector_table import FORMATS
from firstk.exceptions import InvalidInputError

pa = pytest.importorskip("pyarrow", reason="the formats of the extra 'tables' need pyarrow")
import pyarrow.parquet as pq  # noqa: E402


def numpy_array(array):
    return lambda path: np.save(path, array)


def arrays(**held):
    return lambda path: np.savez(path, **held)


def tensors(**held):
    from safetensors.numpy import save_file

    return lambda path: save_file(held, path)


def parquet(names, *columns):
    return lambda path: pq.write_table(pa.Table.from_arrays(list(map(pa.array, columns)), names=names), path)


def arrow(names, *columns):
    def write(path):
        table = pa.Table.from_arrays(list(map(pa.array, columns)), names=names)
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)

    return write


def text(content, encoding="utf-8"):
    return lambda path: path.write_bytes(content.encode(encoding))


@pytest.mark.parametrize("ending", [ending for form in FORMATS for ending in form.endings])
@pytest.mark.parametrize("reads", [open_vectors, load_columns])
def test_an_empty_file(tmp_path, ending, reads):
    (tmp_path / f"a{ending}").touch()
    with pytest.raises(InvalidInputError, match=r"it is empty \(0 bytes\)"):
        reads(tmp_path / f"a{ending}")


NO_ROWS = "it has no rows"
NO_VECTOR = "none of its columns is a vector or a coordinate"
TWICE = "it has two columns called 'a'. Rename one"
UTF8 = "it is not UTF-8 text (it holds byte 0x"
WRONG = {
    "a header alone": ("a.csv", text("x0,x1\n"), NO_ROWS),
    "a header without a line end": ("a.csv", text("x0,x1"), NO_ROWS),
    "a header alone, tabs": ("a.tsv", text("x0\tx1\n"), NO_ROWS),
    "blank lines": ("a.csv", text("\n\r\n\n"), NO_ROWS),
    "blank lines of JSON": ("a.jsonl", text("\n  \n"), NO_ROWS),
    "a schema alone": ("a.parquet", parquet(["e"], pa.array([], pa.list_(pa.float32()))), NO_ROWS),
    "a schema alone, arrow": ("a.arrow", arrow(["e"], pa.array([], pa.list_(pa.float32()))), NO_ROWS),
    "no rows of numpy": ("a.npy", numpy_array(np.empty((0, 3))), NO_ROWS),
    "no rows of an archive": ("a.npz", arrays(e=np.empty((0, 3))), NO_ROWS),
    "no rows of tensors": ("a.safetensors", tensors(e=np.empty((0, 3), np.float32)), NO_ROWS),
    "text": ("a.csv", text("x0,x1\na,b\n"), NO_VECTOR),
    "text of JSON": ("a.jsonl", text('{"e": ["a", "b"]}\n'), NO_VECTOR),
    "a vector in base64": ("a.jsonl", text('{"embedding": "AAAAAAAAgD8="}\n'), NO_VECTOR),
    "lists of text": ("a.parquet", parquet(["e"], [["a", "b"]]), NO_VECTOR),
    "lists of text, arrow": ("a.arrow", arrow(["e"], [["a", "b"]]), NO_VECTOR),
    "text of numpy": ("a.npy", numpy_array(np.array([["a", "b"]])), "not numbers"),
    "text of an archive": ("a.npz", arrays(e=np.array([["a", "b"]])), "it holds no matrix of numbers"),
    "too few cells": ("a.csv", text("x0,x1\n1,2\n3\n"), "row 1 has 1 cells, and the first line 2"),
    "too many cells": ("a.csv", text("x0,x1\n1,2\n3,4,5\n"), "row 1 has 3 cells, and the first line 2"),
    "lists of two lengths": ("a.parquet", parquet(["e"], [[1.0, 2.0], [1.0]]), "and row 1 has 1"),
    "lists of two lengths, arrow": ("a.arrow", arrow(["e"], [[1.0, 2.0], [1.0]]), "and row 1 has 1"),
    "lists of two lengths, JSON": ("a.jsonl", text("[1.0, 2.0]\n[1.0]\n"), "line 2 has 1 numbers"),
    "a name twice": ("a.csv", text("a,b,a\n1,2,3\n"), TWICE),
    "a name twice, tabs": ("a.tsv", text("a\tb\ta\n1\t2\t3\n"), TWICE),
    "a name twice, parquet": ("a.parquet", parquet(["a", "a"], [1.0], [2.0]), TWICE),
    "a name twice, arrow": ("a.arrow", arrow(["a", "a"], [1.0], [2.0]), TWICE),
    "a name twice, JSON": ("a.jsonl", text('{"a": 1, "a": 2}\n'), "line 1 has two fields called 'a'. Rename one"),
    "UTF-16": ("a.csv", text("x0,x1\n1,2\n", "utf-16"), UTF8),
    "UTF-16 of JSON": ("a.jsonl", text("[1.0, 2.0]\n", "utf-16"), UTF8),
    "Latin-1": ("a.csv", text("x0,x1,name\n1,2,é\n", "latin-1"), UTF8),
    "a quote that is never closed": ("a.csv", text('x0,x1,t\n1,2,"a\n3,4,b\n'), "a quote is opened and never closed"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_told_what_it_is(tmp_path, kind):
    name, write, sentence = WRONG[kind]
    write(tmp_path / name)
    with pytest.raises(InvalidInputError) as caught:
        open_vectors(tmp_path / name).read()
    assert sentence in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind, case in WRONG.items() if case[2] == TWICE])
def test_a_name_twice_in_a_file_of_labels(tmp_path, kind):
    name, write, sentence = WRONG[kind]
    write(tmp_path / name)
    with pytest.raises(InvalidInputError, match=sentence):
        load_columns(tmp_path / name)


READ = {
    "a mark at the start": ("a.csv", b"\xef\xbb\xbfx0,x1\n1,2\n3,4\n"),
    "line ends of Windows": ("a.csv", b"x0,x1\r\n1,2\r\n3,4\r\n"),
    "line ends of old Macs": ("a.csv", b"x0,x1\r1,2\r3,4\r"),
    "no last line end": ("a.csv", b"x0,x1\n1,2\n3,4"),
    "blank lines first": ("a.csv", b"\n\nx0,x1\n\n1,2\n3,4\n\n"),
    "a line for the spreadsheet": ("a.csv", b"sep=;\r\nx0;x1\r\n1;2\r\n3;4\r\n"),
    "tabs with a mark": ("a.tsv", b"\xef\xbb\xbfx0\tx1\r\n1\t2\r\n3\t4\r\n"),
    "JSON with a mark": ("a.jsonl", b"\xef\xbb\xbf[1.0, 2.0]\r\n[3.0, 4.0]\r\n"),
    "JSON of old Macs": ("a.jsonl", b"[1.0, 2.0]\r[3.0, 4.0]\r"),
}


@pytest.mark.parametrize("kind", READ)
def test_marks_and_line_ends_of_other_systems(tmp_path, kind):
    name, content = READ[kind]
    (tmp_path / name).write_bytes(content)
    table = open_vectors(tmp_path / name)
    assert table.rows == 2
    np.testing.assert_array_equal(table.read().vectors, [[1, 2], [3, 4]])


@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz", "safetensors"])
@pytest.mark.parametrize("precision", ["int8", "embedded"])
def test_a_flipped_bit_in_a_file_of_codes_changes_no_number(tmp_path, ending, precision):
    """What is read of a damaged file is what was written, or an error."""
    X = np.random.default_rng(0).normal(size=(64, 12)).astype(np.float32)
    write_vectors(tmp_path / "X.npy", X)
    path = tmp_path / f"codes.{ending}"
    wish = {"precision": "int8"} if precision == "int8" else {"bytes_per_vector": 6}
    transform_files(PrefixEncoder().fit(X), tmp_path / "X.npy", path, **wish)
    whole, written = path.read_bytes(), open_vectors(path).read(()).vectors
    silent = []
    rng = np.random.default_rng(1)
    for place in rng.choice(len(whole), min(400, len(whole)), replace=False):
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        try:
            read = open_codes(path).table.read(()).vectors
        except InvalidInputError:
            continue
        if not np.array_equal(read, written):
            silent.append(int(place))
    assert not silent


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv.gz"])
def test_a_line_without_an_end_costs_bounded_memory(ending, tmp_path):
    """64 MB of one line are 64 kB in gzip."""
    path, line = tmp_path / f"long{ending}", b"a,b\n" + b"0.5," * (1 << 24)
    path.write_bytes(gzip.compress(line) if ending.endswith(".gz") else line)
    tracemalloc.start()
    with pytest.raises(InvalidInputError, match="line 2 is longer than 16,777,216 characters"):
        open_vectors(path)
    assert tracemalloc.get_traced_memory()[1] < 1.5e8
    tracemalloc.stop()
