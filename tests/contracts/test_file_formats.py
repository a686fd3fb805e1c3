"""Every registered file format goes through the contract of `firstk.data.files.contract`.

A new format is one line in ``FORMATS``, and is tested here without another.
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from firstk.data.files import Layout, creating, open_vectors, write_vectors
from firstk.data.files.column_files import load_columns
from firstk.data.files.contract import Facts, Wanted
from firstk.data.files.vector_columns import PLAIN_NAME
from firstk.data.files.vector_table import FORMATS, format_of
from firstk.exceptions import InvalidInputError

pytest.importorskip("pyarrow", reason="some formats need the extra 'tables'")

N, P = 60, 4
X = np.random.default_rng(0).standard_normal((N, P)).astype(np.float32)
HELD = {
    "nothing": {},
    "numbers": {"label": np.arange(N) % 5},
    "arrays": {"label": np.arange(N) % 5, "text": np.array([f'row {i}, "quoted"\n' for i in range(N)])},
}
HELD["anything"] = HELD["arrays"]
each_format = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)


def written(folder, form, vectors=X, columns=None):
    columns = HELD[form.holds] if columns is None else columns
    return write_vectors(folder / f"a{form.endings[0]}", vectors, columns)


def test_endings_belong_to_one_format():
    endings = [ending for form in FORMATS for ending in form.endings]
    assert len(set(endings)) == len(endings)
    assert all(format_of(f"a{ending}").endings.count(ending) == 1 for ending in endings)
    assert all(form.holds in HELD for form in FORMATS)


@each_format
def test_a_reader_says_what_it_knows_and_reads_blocks(tmp_path, form):
    path, columns = written(tmp_path, form), HELD[form.holds]
    reader = form.read(path, Wanted())
    assert isinstance(reader.facts, Facts)
    assert (reader.facts.vectors, reader.facts.width, reader.facts.columns) == (PLAIN_NAME, P, tuple(columns))
    assert reader.count() == N
    for size in (1, 7, N, 3 * N):
        blocks = list(reader.blocks(size, tuple(columns)))
        assert all(0 < len(vectors) <= size for vectors, _ in blocks)
        np.testing.assert_array_equal(np.concatenate([vectors for vectors, _ in blocks]).astype(np.float32), X)
        for name, column in columns.items():
            np.testing.assert_array_equal(np.concatenate([beside[name] for _, beside in blocks]), column)


@each_format
def test_only_the_columns_that_are_asked_for_are_read(tmp_path, form):
    path, columns = written(tmp_path, form), HELD[form.holds]
    for name in columns:
        (batch,) = open_vectors(path).batches(N, (name,))
        assert set(batch.columns) == {name}
    with pytest.raises(InvalidInputError, match="nowhere"):
        list(open_vectors(path).batches(N, ("nowhere",)))
    with pytest.raises(InvalidInputError, match="nowhere"):
        open_vectors(path, "nowhere")


@each_format
def test_columns_are_loaded_one_by_one(tmp_path, form):
    path = written(tmp_path, form)
    held = load_columns(path)
    for name, column in HELD[form.holds].items():
        assert name in held
        np.testing.assert_array_equal(held[name], column)


@each_format
def test_facts_travel_where_there_is_room_for_them(tmp_path, form):
    path = tmp_path / f"a{form.endings[0]}"
    if not form.notes:
        with pytest.raises(InvalidInputError, match="cannot store metadata"):
            write_vectors(path, X, metadata={"firstk": "{}"})
        return
    write_vectors(path, X, metadata={"firstk": '{"a": 1}'})
    assert form.read(path, Wanted()).facts.metadata == {"firstk": '{"a": 1}'}


@each_format
def test_rows_in_several_writes_are_one_file(tmp_path, form):
    path, columns = tmp_path / f"a{form.endings[0]}", HELD[form.holds]
    with creating(path, Layout(PLAIN_NAME, P, X.dtype, tuple(columns))) as writer:
        for start in range(0, N, 25):
            rows = slice(start, start + 25)
            writer.write(X[rows], {name: column[rows] for name, column in columns.items()})
    np.testing.assert_array_equal(open_vectors(path).read().vectors.astype(np.float32), X)


@each_format
def test_a_file_without_rows_raises(tmp_path, form):
    path = tmp_path / f"a{form.endings[0]}"
    with creating(path, Layout(PLAIN_NAME, P, X.dtype, ())) as writer:
        writer.write(X[:0], {})
    with pytest.raises(InvalidInputError, match=r"no rows|is empty"):
        open_vectors(path)


@each_format
@pytest.mark.parametrize("shape", [(N,), (N, 0), (0, P), (2, 3, 4)])
def test_other_shapes_are_not_written(tmp_path, form, shape):
    with pytest.raises(InvalidInputError, match="takes a matrix of numbers"):
        write_vectors(tmp_path / f"a{form.endings[0]}", np.zeros(shape))
    with pytest.raises(InvalidInputError, match="as many rows"):
        write_vectors(tmp_path / f"a{form.endings[0]}", X, {"label": np.arange(N - 1)})
    assert not os.listdir(tmp_path)


@each_format
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, form):
    path = written(tmp_path, form)
    before = path.read_bytes()

    def interrupted():
        with creating(path, Layout(PLAIN_NAME, P, X.dtype, tuple(HELD[form.holds]))) as writer:
            writer.write(X[:10], {name: column[:10] for name, column in HELD[form.holds].items()})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@each_format
def test_the_same_rows_give_the_same_bytes(tmp_path, monkeypatch, form):
    first = written(tmp_path, form).read_bytes()
    real = time.localtime
    monkeypatch.setattr(time, "localtime", lambda *given: real((given or (time.time(),))[0] + 1e6))  # another day
    assert written(tmp_path, form).read_bytes() == first
