"""``firstk sample`` and ``firstk transform`` on real files: what they write and refuse, and what a kill leaves."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command_line import firstk
from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.contract import exactly
from firstk.data.precision import PRECISIONS
from firstk.data.samples import write_sample

pytest.importorskip("pyarrow", reason="the extra 'tables' is not installed")

COMMAND = [sys.executable, "-c", "from firstk.cli import main; main()"]
# Precisions that round each coordinate; embedded bits have no k (test_transform_bytes).
ROUNDED = [name for name in PRECISIONS if name != "embedded"]
FORMATS = ["parquet", "arrow", "feather", "npz", "npy", "csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "safetensors"]


def done(*arguments, cwd):
    run = firstk(*arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run.stdout


def refused(*arguments, cwd):
    return checked_refusal(firstk(*arguments, cwd=cwd))


def checked_refusal(run):
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stderr.startswith("firstk: ")
    assert "Traceback" not in run.stderr
    assert run.stdout == ""
    return run.stderr


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def encoder(digits):
    return PrefixEncoder(12, objective="mixture").fit(digits.X_train, digits.y_train)


@pytest.fixture
def place(tmp_path, encoder):
    encoder.save(tmp_path / "model")
    return tmp_path


# -- sample ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_sample_writes_every_format(tmp_path, digits, ending):
    said = done("sample", "digits", "-o", f"d.{ending}", cwd=tmp_path)
    table = open_vectors(tmp_path / f"d.{ending}")
    found = table.read()
    np.testing.assert_array_equal(found.vectors, digits.X)
    assert said.startswith(f"1,797 vectors of 64 in d.{ending}")
    if ending != "npy":
        np.testing.assert_array_equal(found.columns["label"], digits.y)
    if ending not in ("npy", "safetensors"):
        assert (found.columns["part"] == "test").sum() == 360


def test_sample_writes_a_part(tmp_path, digits):
    assert write_sample("digits", tmp_path / "t.npz", "test")["rows"] == 360
    np.testing.assert_array_equal(open_vectors(tmp_path / "t.npz").read().vectors, digits.X_test)
    assert "'digits'" in refused("sample", "mnist", "-o", "t.npz", cwd=tmp_path)
    assert ".parquet" in refused("sample", "digits", "-o", "t.doc", cwd=tmp_path)


# -- transform: what is written ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_transform_between_formats(place, digits, encoder, ending):
    name = "vectors" if ending == "npy" else "pixels"
    columns = {} if ending == "npy" else {"label": digits.y_test}
    write_vectors(place / f"in.{ending}", digits.X_test, columns, name=name)
    said = done("transform", "model", f"in.{ending}", "-k", 5, "-o", f"out.{ending}", cwd=place)
    assert "360 vectors of 64 written to" in said
    table = open_vectors(place / f"out.{ending}")
    found = table.read()
    np.testing.assert_allclose(found.vectors, encoder.transform(digits.X_test, 5), atol=1e-5)
    assert table.vectors == name  # the vector column keeps its name
    for key, column in columns.items():
        np.testing.assert_array_equal(found.columns[key], column)
    assert sorted(os.listdir(place)) == [f"in.{ending}", "model", f"out.{ending}"]


def test_other_columns_travel_with_their_types(place, digits):
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = 50
    columns = {
        "when": pa.array(np.arange(n), pa.timestamp("ms", "UTC")),
        "tags": pa.array([["a", "b"][: i % 3] for i in range(n)]),
        "maybe": pa.array([None if i % 4 else f"t{i}" for i in range(n)]),
        "kind": pa.array([f"k{i % 3}" for i in range(n)]).dictionary_encode(),
        "nested": pa.array([{"x": i, "y": str(i)} for i in range(n)]),
        "ids": pa.array([[i, i + 1] for i in range(n)]),  # whole numbers beside float vectors: no candidate
    }
    vectors = pa.array(digits.X[:n].tolist(), pa.list_(pa.float32()))
    table = pa.table({"when": columns["when"], "e": vectors} | columns)
    pq.write_table(table, place / "in.parquet")
    for ending in ("parquet", "arrow"):
        done("transform", "model", "in.parquet", "-k", 3, "-o", f"out.{ending}", cwd=place)
    written = pq.read_table(place / "out.parquet")
    assert set(written.column_names) == {"e", *columns}
    for name, column in columns.items():
        assert written.column(name).combine_chunks().to_pylist() == column.to_pylist()
        assert written.schema.field(name).type == column.type
    done("transform", "model", "in.parquet", "-k", 3, "-o", "few.parquet", "--columns", "maybe", cwd=place)
    assert pq.read_table(place / "few.parquet").column_names == ["e", "maybe"]
    done("transform", "model", "in.parquet", "-k", 3, "-o", "none.parquet", "--columns", "", cwd=place)
    assert pq.read_table(place / "none.parquet").column_names == ["e"]
    said = done("transform", "model", "in.parquet", "-k", 3, "-o", "few.npz", cwd=place)
    assert "left out: tags, maybe, nested" in said


@pytest.mark.parametrize("precision", ["float16", "int8", "int4", "binary"])
@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz", "safetensors"])
def test_precisions_are_read_back(place, digits, encoder, precision, ending):
    write_vectors(place / "in.npy", digits.X_test)
    said = done("transform", "model", "in.npy", "-o", f"s.{ending}", "--precision", precision, "--json", cwd=place)
    outcome = json.loads(said)
    Z = encoder.transform(digits.X_test)
    fitted = PRECISIONS[precision].fit(Z)
    assert outcome["bytes_per_vector"] == fitted.bytes_per_vector(12)
    found = open_vectors(place / f"s.{ending}").read().vectors
    np.testing.assert_allclose(found.astype("float32"), fitted.restore(fitted.quantise(Z)), atol=1e-5)


def test_numbers_beyond_the_sample_of_int8_are_counted(place, digits, encoder, monkeypatch):
    """The scale comes from the first rows; the last ones are ten times as large."""
    monkeypatch.setattr("firstk.estimator.transform_files._SAMPLE_ROWS", 100)
    X = digits.X_test.copy()
    X[200:] *= 10
    write_vectors(place / "in.npy", X)
    order = ("transform", "model", "in.npy", "--force", "-o", "out.npz", "--precision")
    Z = encoder.transform(X)
    expected = int((np.rint(np.abs(Z) / (np.abs(Z[:100]).max() / 127)) > 127).sum())
    assert expected > 100
    assert json.loads(done(*order, "int8", "--json", cwd=place))["clipped"] == expected
    assert f"{expected:,} numbers (" in done(*order, "int8", cwd=place)
    assert json.loads(done(*order, "binary", "--json", cwd=place))["clipped"] == 0
    write_vectors(place / "in.npy", X[::-1].copy())
    assert json.loads(done(*order, "int8", "--json", cwd=place))["clipped"] == 0


def test_precisions_that_need_a_note_are_refused_where_there_is_no_room(place, digits):
    write_vectors(place / "in.npy", digits.X_test)
    for ending in ("npy", "csv"):
        said = refused("transform", "model", "in.npy", "-o", f"s.{ending}", "--precision", "int8", cwd=place)
        assert f"{ending} cannot store the int8 scale; use parquet, arrow, npz or safetensors." in said


def test_queries_and_documents(tmp_path, digits):
    rng = np.random.default_rng(0)
    left, right = digits.X_train, digits.X_train + 0.3 + rng.normal(size=digits.X_train.shape).astype("f4") * 0.1
    pairs = PrefixEncoder(4, objective="similarity").fit_pairs(left, right)
    pairs.save(tmp_path / "model")
    write_vectors(tmp_path / "in.npy", digits.X_test)
    for side, encode in (("query", pairs.encode_query), ("document", pairs.encode_document)):
        done("transform", "model", "in.npy", "-o", "s.npy", "--force", "--side", side, cwd=tmp_path)
        np.testing.assert_allclose(open_vectors(tmp_path / "s.npy").read().vectors, encode(digits.X_test), atol=1e-5)
    assert "'document', 'query'" in refused("transform", "model", "in.npy", "-o", "t.npy", "--side", "x", cwd=tmp_path)
    said = done("transform", "model", "in.npy", "-o", "u.npy", cwd=tmp_path)
    assert "They were encoded as documents; this model encodes queries another way: --side query." in said
    assert "--side query" not in done("transform", "model", "in.npy", "-o", "v.npy", "--side", "document", cwd=tmp_path)


# -- transform: queries rounded like documents, and vectors that are only truncated ---------------------------------


@pytest.mark.parametrize("precision", ROUNDED)
def test_queries_take_length_and_rounding_from_the_documents(place, digits, encoder, precision):
    """Few queries have means and scales of their own, and rounded by those they would be other codes."""
    write_vectors(place / "docs.npy", digits.X_train)
    write_vectors(place / "queries.npy", digits.X_test[:7] * 0.5)
    said = done("transform", "model", "docs.npy", "-k", 6, "--precision", precision, "-o", "short.parquet", cwd=place)
    assert ("--like short.parquet" in said) == (precision in ("int8", "int4", "binary"))
    said = done("transform", "model", "queries.npy", "--like", "short.parquet", "-o", "q.parquet", cwd=place)
    assert "Rounded like short.parquet" in said
    Z, Q = encoder.transform(digits.X_train, 6), encoder.transform(digits.X_test[:7] * 0.5, 6)
    fitted = PRECISIONS[precision].fit(Z)
    found = open_vectors(place / "q.parquet").read().vectors
    np.testing.assert_allclose(found.astype("f4"), fitted.restore(fitted.quantise(Q)), rtol=1e-3, atol=1e-5)
    outcome = json.loads(
        done("transform", "model", "queries.npy", "--like", "short.parquet", "-o", "r.npz", "--json", cwd=place)
    )
    assert (outcome["k"], outcome["precision"], outcome["fitted_on"]) == (6, precision, 0)
    assert outcome["like"] == "short.parquet"


def test_what_cannot_be_like_the_documents_is_refused(place, digits, encoder):
    write_vectors(place / "in.npy", digits.X_test)
    encoder[:3].save(place / "shorter")
    PrefixEncoder(12).fit(digits.X_train).save(place / "other")
    done("transform", "model", "in.npy", "-k", 6, "-o", "short.npz", cwd=place)
    done("transform", "model", "in.npy", "-k", 6, "-o", "short.npy", cwd=place)
    for arguments, sentence in [
        (["model", "--like", "short.npy"], "does not say how its codes were made"),
        (["model", "--like", "in.npy"], "does not say how its codes were made"),
        (["model", "--like", "gone.npz"], "There is no file 'gone.npz'"),
        (["model", "--like", "short.npz", "-k", "6"], "Leave out -k, or --like"),
        (["model", "--like", "short.npz", "--precision", "int8"], "Leave out --precision, or --like"),
        (["shorter", "--like", "short.npz"], "holds codes of 6 coordinates, and these have 3 at most"),
        (["other", "--like", "short.npz"], "were made by encoder"),
        (["raw", "--like", "short.npz"], "were made by encoder"),
    ]:
        model, *options = arguments
        assert sentence in refused("transform", model, "in.npy", *options, "-o", "out.npz", cwd=place)
    assert not (place / "out.npz").exists()


def test_queries_of_pairs_must_be_named_as_such(tmp_path, digits):
    pairs = PrefixEncoder(4, objective="similarity").fit_pairs(digits.X_train, digits.X_train + 0.3)
    pairs.save(tmp_path / "model")
    write_vectors(tmp_path / "in.npy", digits.X_test)
    done("transform", "model", "in.npy", "-o", "short.npz", cwd=tmp_path)
    order = ("transform", "model", "in.npy", "--like", "short.npz", "-o", "q.npz")
    assert "--side query" in refused(*order, cwd=tmp_path)
    done(*order, "--side", "query", cwd=tmp_path)
    np.testing.assert_allclose(
        open_vectors(tmp_path / "q.npz").read().vectors, pairs.encode_query(digits.X_test), atol=1e-5
    )


def test_a_folder_of_queries_is_rounded_like_a_folder_of_documents(shards, digits):
    write_vectors(shards / "queries.npz", digits.X_test)
    done("transform", "model", "queries.npz", "--precision", "binary", "-o", "one.npz", cwd=shards)
    (shards / "more").mkdir()
    for i in range(2):
        write_vectors(shards / "more" / f"{i}.npz", digits.X_test[i::2])
    done("transform", "model", "more", "--like", "one.npz", "-o", "out", cwd=shards)
    found = open_vectors(shards / "out").read().vectors
    expected = open_vectors(shards / "one.npz").read().vectors
    np.testing.assert_array_equal(found, np.concatenate([expected[0::2], expected[1::2]]))


@pytest.mark.parametrize("precision", ROUNDED)
def test_raw_vectors_are_truncated_and_rounded(tmp_path, digits, precision):
    write_vectors(tmp_path / "in.parquet", digits.X_test, {"id": digits.y_test})
    order = ("transform", "raw", "in.parquet", "--precision", precision)
    for options, k in (([], 64), (["-k", 9], 9)):
        done(*order, *options, "-o", f"out{k}.parquet", cwd=tmp_path)
        found, X = open_vectors(tmp_path / f"out{k}.parquet").read(), digits.X_test[:, :k]
        fitted = PRECISIONS[precision].fit(X)
        np.testing.assert_array_equal(found.vectors.astype("f4"), fitted.restore(fitted.quantise(X)))
        np.testing.assert_array_equal(found.columns["id"], digits.y_test)
    done("transform", "raw", "in.parquet", "--like", "out9.parquet", "-o", "again.parquet", cwd=tmp_path)
    np.testing.assert_array_equal(
        open_vectors(tmp_path / "again.parquet").read().vectors, open_vectors(tmp_path / "out9.parquet").read().vectors
    )
    assert "an int in [1, 64]" in refused("transform", "raw", "in.parquet", "-k", 65, "-o", "x.npy", cwd=tmp_path)


@pytest.mark.parametrize("precision", ["int8", "int4", "binary"])
@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz", "safetensors"])
def test_a_file_takes_about_the_bytes_of_its_codes(tmp_path, precision, ending):
    rng = np.random.default_rng(0)
    write_vectors(tmp_path / "in.npy", rng.standard_normal((4000, 128)).astype("f4"))
    outcome = json.loads(
        done("transform", "raw", "in.npy", "--precision", precision, "-o", f"s.{ending}", "--json", cwd=tmp_path)
    )
    # Beyond the codes: means and steps as text, and what the format itself takes.
    assert (tmp_path / f"s.{ending}").stat().st_size < 1.25 * 4000 * outcome["bytes_per_vector"] + 10_000


def test_a_model_called_raw_is_a_model(place, digits, encoder):
    (place / "model").rename(place / "raw")
    write_vectors(place / "in.npy", digits.X_test)
    done("transform", "raw", "in.npy", "-o", "out.npy", cwd=place)
    np.testing.assert_allclose(
        open_vectors(place / "out.npy").read().vectors, encoder.transform(digits.X_test), atol=1e-5
    )


# -- transform: what is refused ----------------------------------------------------------------------------------------


def test_what_is_refused_is_refused_before_anything_is_written(place, digits):
    X = digits.X_test
    write_vectors(place / "in.parquet", X, {"label": digits.y_test}, name="pixels")
    write_vectors(place / "narrow.parquet", X[:, :60])
    (place / "empty.parquet").touch()
    (place / "none.csv").write_text("x0,x1\n")
    (place / "damaged.parquet").write_bytes((place / "in.parquet").read_bytes()[:-20])
    before = sorted(os.listdir(place))
    for arguments, sentence in [
        (["model", "narrow.parquet"], "have 60 numbers, and the encoder takes 64"),
        (["model", "empty.parquet"], "it is empty (0 bytes)"),
        (["model", "none.csv"], "it has no rows"),
        (["model", "damaged.parquet"], "it is damaged or no parquet file"),
        (["model", "gone.parquet"], "There is no file 'gone.parquet'"),
        (["gone", "in.parquet"], "is not a firstk model"),
        (["model", "in.parquet", "-k", "13"], "an int in [1, 12]"),
        (["model", "in.parquet:texts"], "has no column 'texts'. It has: 'pixels', 'label'"),
        (["model", "in.parquet", "--columns", "intent"], "has no column 'intent'"),
        (["model", "in.parquet", "--precision", "int2"], "'binary', 'embedded', 'float16', 'float32', 'int4', 'int8'"),
        (["model", "in.parquet", "--nan", "keep"], "'drop', 'refuse'"),
    ]:
        said = refused("transform", *arguments, "-o", "out.parquet", cwd=place)
        assert sentence in said.replace("none of its columns is a vector or a coordinate", "it has no rows")
    assert "must end in one of" in refused("transform", "model", "in.parquet", "-o", "out.doc", cwd=place)
    onto_itself = ("transform", "model", "in.parquet", "-o", "in.parquet")
    assert "Pass --force to replace it" in refused(*onto_itself, cwd=place)
    assert "is the file that is read" in refused(*onto_itself, "--force", cwd=place)
    assert firstk("transform", "model", "in.parquet", cwd=place).returncode == 2  # wrong usage: no -o
    assert sorted(os.listdir(place)) == before


def test_nan_rows_are_refused_with_their_numbers_or_dropped(place, digits, encoder):
    X = digits.X.copy()
    X[[70, 1500]] = np.nan
    write_vectors(place / "in.parquet", X, {"row": np.arange(len(X))})
    assert "(row 70, 1500)" in refused("transform", "model", "in.parquet", "-o", "out.parquet", cwd=place)
    assert not (place / "out.parquet").exists()
    said = done("transform", "model", "in.parquet", "-o", "out.parquet", "--nan", "drop", cwd=place)
    assert "2 vectors with NaN, infinity or missing numbers were left out" in said
    found, kept = open_vectors(place / "out.parquet").read(), np.setdiff1d(np.arange(len(X)), [70, 1500])
    np.testing.assert_array_equal(found.columns["row"], kept)
    np.testing.assert_allclose(found.vectors, encoder.transform(X[kept]), atol=1e-5)
    write_vectors(place / "all.npy", np.full((4, 64), np.nan))
    said = refused("transform", "model", "all.npy", "-o", "out.npy", "--nan", "drop", cwd=place)
    assert "there is nothing to write" in said
    assert not (place / "out.npy").exists()


def test_ragged_lists_are_refused_and_leave_nothing(place, digits):
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = digits.X.tolist()
    cells[1234] = cells[1234][:-1]
    pq.write_table(pa.table({"e": cells}), place / "in.parquet")
    assert "row 1234 has 63" in refused("transform", "model", "in.parquet", "-o", "out.parquet", cwd=place)
    assert sorted(os.listdir(place)) == ["in.parquet", "model"]


def test_a_disk_that_is_full_leaves_nothing(place, digits):
    """A limit on the size of files stands for a full disk: both fail in write(2)."""
    import resource

    write_vectors(place / "in.npy", np.tile(digits.X, (20, 1)))
    (place / "out.npy").write_text("what was there before")
    run = subprocess.run(
        [*COMMAND, "transform", "model", "in.npy", "-o", "out.npy", "--force"],
        capture_output=True,
        text=True,
        cwd=place,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    said = checked_refusal(run)
    assert "Cannot write 'out.npy': " in said
    assert "Nothing was left half-written" in said
    assert sorted(os.listdir(place)) == ["in.npy", "model", "out.npy"]
    assert (place / "out.npy").read_text() == "what was there before"


# -- transform: shards, and being killed -------------------------------------------------------------------------------


@pytest.fixture
def shards(place, digits):
    (place / "in").mkdir()
    for i in range(6):
        write_vectors(place / "in" / f"part-{i}.npy", np.tile(digits.X[i * 250 : (i + 1) * 250], (40, 1)))
    return place


def test_a_folder_gives_a_folder_and_a_file_name_gives_a_file(shards, encoder):
    outcome = json.loads(done("transform", "model", "in", "-k", 4, "-o", "out", "--json", cwd=shards))
    assert (outcome["files"], outcome["rows"], outcome["finished_before"]) == (6, 60_000, 0)
    assert sorted(os.listdir(shards / "out")) == ["_firstk.json", *(f"part-{i}.npy" for i in range(6))]
    expected = encoder.transform(open_vectors(shards / "in").read().vectors, 4)
    np.testing.assert_allclose(open_vectors(shards / "out").read().vectors, expected, atol=1e-5)
    done("transform", "model", "in/*.npy", "-k", 4, "-o", "one.parquet", cwd=shards)
    np.testing.assert_allclose(open_vectors(shards / "one.parquet").read().vectors, expected, atol=1e-5)


def slow_job(cwd, target):
    """Start a transform that takes a while at each batch, so that it can be killed in the middle."""
    code = (
        "import time, firstk.estimator.transform_files as s\n"
        "s._BATCH_NUMBERS = 64 * 500\n"
        "encode = s.Encoding.__call__\n"
        "s.Encoding.__call__ = lambda self, batch: (time.sleep(0.02), encode(self, batch))[1]\n"
        "from firstk.cli import main; main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, "transform", "model", "in", "-k", "4", "-o", target],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition, looks=6000):
    """Look again and again; looks are counted, not seconds, as a busy machine may hold up the one who looks."""
    for _ in range(looks):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not happen")


SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}


@pytest.mark.full  # a folder of files is interrupted in every run
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_killed_in_the_middle_of_one_file(shards, encoder, number):
    job = slow_job(shards, "out.parquet")
    wait_for(lambda: list(shards.glob(".firstk-*.partial")) or job.poll() is not None)
    time.sleep(0.2)
    job.send_signal(number)
    _, said = job.communicate(timeout=60)
    assert job.returncode == SIGNALS[number], said
    assert "Traceback" not in said
    assert not (shards / "out.parquet").exists()
    left = [name for name in os.listdir(shards) if name not in ("in", "model")]
    # Nobody can clean up after SIGKILL; what is left is hidden, and the next run removes it.
    assert left == [] or (number == signal.SIGKILL and all(name.endswith(".partial") for name in left))
    done("transform", "model", "in", "-k", 4, "-o", "out.parquet", cwd=shards)
    assert sorted(os.listdir(shards)) == ["in", "model", "out.parquet"]
    assert open_vectors(shards / "out.parquet").rows == 60_000


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_killed_in_the_middle_of_a_folder_and_resumed(shards, encoder, number):
    job = slow_job(shards, "out")
    draft = shards / "out.partial"
    wait_for(lambda: (draft / "part-1.npy").exists() or job.poll() is not None)
    job.send_signal(number)
    _, said = job.communicate(timeout=60)
    assert job.returncode == SIGNALS[number], said
    assert not (shards / "out").exists()  # under its own name it is whole or not there
    finished = {path.name: path.stat().st_mtime_ns for path in draft.glob("part-*.npy")}
    assert 2 <= len(finished) < 6
    for name in finished:
        assert open_vectors(draft / name).rows == 10_000
    assert "--resume" in refused("transform", "model", "in", "-k", 4, "-o", "out", cwd=shards)
    for option, sentence in (
        (("-k", 5), "k was 4 and is now 5"),
        (("-k", 4, "--side", "query"), "side was 'document'"),
    ):
        said = refused("transform", "model", "in", *option, "-o", "out", "--resume", cwd=shards)
        assert sentence in said
    outcome = json.loads(done("transform", "model", "in", "-k", 4, "-o", "out", "--resume", "--json", cwd=shards))
    recorded = len(json.loads((shards / "out" / "_firstk.json").read_text())["done"])
    assert recorded == 6
    assert outcome["finished_before"] + outcome["files"] == 6
    assert outcome["finished_before"] >= len(finished) - 1  # the last one may not have been noted yet
    assert not draft.exists()
    kept = [name for name, when in finished.items() if (shards / "out" / name).stat().st_mtime_ns == when]
    assert len(kept) == outcome["finished_before"]
    expected = encoder.transform(open_vectors(shards / "in").read().vectors, 4)
    np.testing.assert_allclose(open_vectors(shards / "out").read().vectors, expected, atol=1e-5)
    assert not [name for name in os.listdir(shards / "out") if name.endswith(".partial")]


@pytest.mark.parametrize("when", ["in the first shard", "in the record"])
def test_killed_before_a_shard_is_there_and_resumed(shards, when):
    """Exit as SIGKILL does, without any cleaning up: in the first shard, or while the record is written before it."""
    code = (
        "import os, pathlib, sys\n"
        "from firstk.encoder.fitted import FittedEncoder\n"
        "from firstk.estimator.transform_files import transform_files\n"
        "if sys.argv[1] == 'in the record':\n"
        "    pathlib.Path.write_text = lambda path, *_, **__: (path.touch(), os._exit(9))\n"
        "encoder = FittedEncoder.load('model')\n"
        "transform_files(encoder, 'in', 'out', k=4, progress=lambda rows: os._exit(9))"
    )
    assert subprocess.run([sys.executable, "-c", code, when], cwd=shards, check=False).returncode == 9
    left = os.listdir(shards / "out.partial")
    assert any(name.startswith(".") for name in left)
    if when == "in the first shard":
        assert "_firstk.json" in left
        said = refused("transform", "model", "in", "-k", 4, "-o", "out", cwd=shards)
        assert "Go on with it by --resume, or remove it" in said
    outcome = json.loads(done("transform", "model", "in", "-k", 4, "-o", "out", "--resume", "--json", cwd=shards))
    assert (outcome["files"], outcome["finished_before"]) == (6, 0)
    assert sorted(os.listdir(shards / "out")) == ["_firstk.json", *(f"part-{i}.npy" for i in range(6))]


@pytest.mark.parametrize(
    "record",
    ["[]", '{"job": [], "learned": {}, "done": {}}', '{"job": {}, "learned": {}, "done": {"part-0.npy": 3}}', "["],
)
def test_a_record_that_is_none(shards, record):
    (shards / "out.partial").mkdir()
    (shards / "out.partial" / "_firstk.json").write_text(record)
    said = refused("transform", "model", "in", "-k", 4, "-o", "out", "--resume", cwd=shards)
    assert "has no readable _firstk.json, so it is not known what its files are. Remove it" in said


def test_resuming_what_is_complete(shards, digits):
    run = ("transform", "model", "in", "-k", 4, "-o", "out")
    done(*run, cwd=shards)
    outcome = json.loads(done(*run, "--resume", "--json", cwd=shards))
    assert (outcome["files"], outcome["rows"], outcome["finished_before"]) == (0, 0, 6)
    assert "is there already. Choose another name" in refused(*run, cwd=shards)
    write_vectors(shards / "in" / "part-3.npy", digits.X)
    said = refused(*run, "--resume", cwd=shards)
    assert "part-3.npy' is new or was changed since" in said
    (shards / "out" / "_firstk.json").write_text("{")
    assert "has no readable _firstk.json" in refused(*run, "--resume", cwd=shards)


def test_a_shard_that_changed_is_done_again(shards, digits, encoder):
    job = slow_job(shards, "out")
    wait_for(lambda: (shards / "out.partial" / "part-2.npy").exists() or job.poll() is not None)
    job.kill()
    job.communicate(timeout=60)
    write_vectors(shards / "in" / "part-0.npy", digits.X)
    done("transform", "model", "in", "-k", 4, "-o", "out", "--resume", cwd=shards)
    found = open_vectors(shards / "out" / "part-0.npy").read().vectors
    np.testing.assert_allclose(found, encoder.transform(digits.X, 4), atol=1e-5)


def test_shards_share_one_scale_across_runs(place, digits, encoder):
    (place / "in").mkdir()
    for i in range(4):
        write_vectors(place / "in" / f"{i}.npz", digits.X[i * 400 : (i + 1) * 400] * (1 + i))
    done("transform", "model", "in", "-o", "out", "--precision", "int8", cwd=place)
    notes = {open_vectors(path).metadata["firstk"] for path in (place / "out").glob("*.npz")}
    assert len(notes) == 1
    scale = json.loads(notes.pop())["stored"]["scale"]
    sampled = np.concatenate([open_vectors(place / "in" / f"{i}.npz").read().vectors for i in range(4)])
    assert scale == pytest.approx(np.abs(encoder.transform(sampled)).max() / 127, rel=1e-5)


def test_two_files_of_one_name_get_two_names(place, digits):
    for folder in ("a", "b"):
        (place / folder).mkdir()
        write_vectors(place / folder / "x.npy", digits.X[:5])
    done("transform", "model", "[ab]/x.npy", "-k", 2, "-o", "out", cwd=place)
    assert sorted(os.listdir(place / "out")) == ["_firstk.json", "a-x.npy", "b-x.npy"]


IDS = ["0001", "01234", "1.10", "12345678901234567890123", "4611686018427387905", ""]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "npz"])
def test_cells_of_a_csv_travel_as_text(place, ending):
    """No code, price or key is read as a number on the way: leading zeros, digits and empty cells stay."""
    rows = [f"{i}.5,2,{0.25 * i},{cell},{4611686018427387905 + i if i else ''}" for i, cell in enumerate(IDS)]
    (place / "in.csv").write_text("x0,x1,x2,code,id\n" + "\n".join(rows) + "\n")
    PrefixEncoder(2).fit(np.random.default_rng(0).normal(size=(9, 3))).save(place / "three")
    done("transform", "three", "in.csv", "-o", f"out.{ending}", cwd=place)
    table = open_vectors(place / f"out.{ending}")
    (batch,) = table.batches(columns=("code", "id"))
    found = {name: exactly(batch.columns, name).tolist() for name in ("code", "id")}
    assert found == {"code": IDS, "id": ["", *(str(4611686018427387905 + i) for i in range(1, 6))]}


def test_whole_numbers_with_a_hole_stay_exact(place, digits):
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = [4611686018427387905, None, 7]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(digits.X_test[:3].reshape(-1)), 64)
    pq.write_table(pa.table({"e": vectors, "id": pa.array(ids, pa.int64())}), place / "holes.parquet")
    done("transform", "model", "holes.parquet", "-k", 2, "-o", "holes.csv", cwd=place)
    assert [line.rpartition(",")[2] for line in (place / "holes.csv").read_text().splitlines()] == [
        "id", "4611686018427387905", "", "7"
    ]  # fmt: skip
    for ending in ("npz", "safetensors"):  # no place for a hole: said, never a float
        said = done("transform", "model", "holes.parquet", "-k", 2, "-o", f"holes.{ending}", cwd=place)
        assert "no room for were left out: id" in said
        assert open_vectors(place / f"holes.{ending}").columns == ()
    assert open_vectors(place / "holes.parquet").read().columns["id"].tolist() == ids


def test_a_hole_that_comes_late_is_refused(place, digits, monkeypatch):
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr("firstk.estimator.transform_files._BATCH_NUMBERS", 64)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(digits.X_test[:3].reshape(-1)), 64)
    pq.write_table(pa.table({"e": vectors, "id": pa.array([1, 2, None], pa.int64())}), place / "late.parquet")
    said = refused("transform", "model", "late.parquet", "-o", "late.npz", cwd=place)
    assert "column 'id' holds something else, or lacks entries" in said
    assert not (place / "late.npz").exists()
