"""``firstk transform --bytes-per-vector``: what is written, cut, read back and refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from command_line import firstk
from firstk import CodeIndex, PrefixEncoder
from firstk.data import load_digits
from firstk.data.files import open_codes, open_vectors, write_vectors
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.transform_files import transform_files

pa = pytest.importorskip("pyarrow", reason="the extra 'tables' is not installed")
pq = pytest.importorskip("pyarrow.parquet")


def done(*arguments, cwd):
    run = firstk(*arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run.stdout


def refused(*arguments, cwd):
    run = firstk(*arguments, cwd=cwd)
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stderr.startswith("firstk: ")
    assert run.stdout == ""
    return run.stderr


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def encoder(digits):
    return PrefixEncoder(24).fit(digits.X_train).encoder_


@pytest.fixture(scope="module")
def place(tmp_path_factory, digits, encoder):
    folder = tmp_path_factory.mktemp("bytes")
    encoder.save(folder / "model")
    replace(FittedEncoder.load(folder / "model"), cells=None).save(folder / "older")
    PrefixEncoder(24, objective="fisher").fit(digits.X_train, digits.y_train).save(folder / "other")
    ids = np.array([f"row {i}" for i in range(len(digits.X_train))])
    write_vectors(folder / "docs.parquet", digits.X_train, {"id": ids, "y": digits.y_train}, name="embedding")
    write_vectors(folder / "queries.npy", digits.X_test)
    said = done("transform", "model", "docs.parquet", "--bytes-per-vector", 12, "-o", "short.parquet", cwd=folder)
    (folder / "said").write_text(said)
    return folder


def column_of(path, name="embedding"):
    return np.stack([np.frombuffer(code, np.uint8) for code in pq.read_table(path).column(name).to_pylist()])


def test_a_column_of_bytes_with_the_others_beside_it(place, digits, encoder):
    table = pq.read_table(place / "short.parquet")
    assert table.schema.field("embedding").type == pa.binary(12)
    assert table.column_names == ["embedding", "id", "y"]
    assert table.column("id").to_pylist()[3] == "row 3"
    np.testing.assert_array_equal(table.column("y").to_numpy(), digits.y_train)
    quantizer = encoder.quantizer(12)
    np.testing.assert_array_equal(column_of(place / "short.parquet"), quantizer.encode(digits.X_train))
    record = json.loads(table.schema.metadata[b"firstk"])
    assert (record["encoder"], record["metric"], record["bytes"]) == (quantizer.fingerprint, "cosine", 12)
    said = (place / "said").read_text()
    assert "12 bytes each" in said
    assert "firstk transform model QUERIES --side query --like short.parquet -o queries.npz" in said
    assert "of their ten nearest neighbors" in said


@pytest.mark.wings
def test_lancedb_takes_the_table_as_it_is(place, tmp_path, digits, encoder):
    lancedb = pytest.importorskip("lancedb", reason="the extra 'stores' is not installed")
    made = lancedb.connect(tmp_path / "db").create_table("codes", pq.read_table(place / "short.parquet"))
    held = made.to_arrow()
    assert held.schema.field("embedding").type == pa.binary(12)
    codes = np.stack([np.frombuffer(code, np.uint8) for code in held.column("embedding").to_pylist()])
    stamp = json.loads(held.schema.metadata[b"firstk"])["encoder"]
    index = CodeIndex.from_codes(codes, encoder.quantizer(12), stamp=stamp)
    expected = CodeIndex.fit(digits.X_train, encoder=encoder, bytes=12)
    found, same = (each.search(digits.X_test, 5) for each in (index, expected))
    np.testing.assert_array_equal(found.ids, same.ids)


def test_read_back_as_what_the_bits_stand_for(place, digits, encoder):
    table = open_vectors(place / "short.parquet")
    quantizer = encoder.quantizer(12)
    assert (table.vectors, table.width, table.columns) == ("embedding", quantizer.k, ("id", "y"))
    expected = quantizer.decode(quantizer.encode(digits.X_train))
    np.testing.assert_array_equal(table.read().vectors, expected)
    np.testing.assert_array_equal(table.as_stored().read().vectors, quantizer.encode(digits.X_train))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "npz", "safetensors", "npy"])
@pytest.mark.parametrize("metric", ["cosine", "inner_product", "l2"])
def test_every_format_and_metric(place, tmp_path, digits, encoder, ending, metric):
    target, quantizer = tmp_path / f"s.{ending}", encoder.quantizer(7, metric)
    outcome = transform_files(encoder, place / "docs.parquet", target, bytes_per_vector=7, metric=metric)
    assert outcome.bytes_per_vector == 7
    codes = quantizer.encode(digits.X_train)
    if ending == "npy":
        np.testing.assert_array_equal(np.load(target), codes)
        assert np.load(target).dtype == np.uint8
        return
    np.testing.assert_array_equal(open_vectors(target).read(()).vectors, quantizer.decode(codes))
    done("transform", "model", "queries.npy", "--like", target, "--side", "query", "-o", tmp_path / "q.npz", cwd=place)
    asked = open_vectors(tmp_path / "q.npz").read().vectors
    expected = quantizer.encode_query(digits.X_test)
    np.testing.assert_allclose(asked, expected, rtol=0, atol=1e-5)  # sums of one thread, and of some


def test_products_with_queries_like_the_file_are_scores(place, tmp_path, digits, encoder):
    said = done(
        "transform", "model", "queries.npy", "--like", "short.parquet", "--side", "query", "-o", tmp_path / "q.npz",
        cwd=place,
    )  # fmt: skip
    assert "are scores" in said
    asked = open_vectors(tmp_path / "q.npz").read().vectors
    stored = open_vectors(place / "short.parquet").read(()).vectors
    quantizer = encoder.quantizer(12)
    expected = quantizer.scores(quantizer.encode_query(digits.X_test), quantizer.encode(digits.X_train))
    np.testing.assert_allclose(asked @ (stored / np.linalg.norm(stored, axis=1)[:, None]).T, expected, rtol=1e-4)


def test_documents_like_the_file_are_bits_of_as_many_bytes(place, tmp_path, digits, encoder):
    done(
        "transform", "model", "queries.npy", "--like", "short.parquet", "--side", "document",
        "-o", tmp_path / "more.npz", cwd=place,
    )  # fmt: skip
    found = open_vectors(tmp_path / "more.npz").as_stored().read().vectors
    np.testing.assert_array_equal(found, encoder.quantizer(12).encode(digits.X_test))


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_a_stored_file_is_cut_without_the_model(place, tmp_path, digits, encoder, ending):
    said = done(
        "transform", "raw", "short.parquet", "--bytes-per-vector", 5, "-o", tmp_path / f"cut.{ending}", cwd=place
    )
    assert "5 bytes each" in said
    quantizer = encoder.quantizer(5)
    table = open_vectors(tmp_path / f"cut.{ending}")
    codes = quantizer.encode(digits.X_train)
    np.testing.assert_array_equal(table.as_stored().read(()).vectors, codes)
    np.testing.assert_array_equal(table.read(()).vectors, quantizer.decode(codes))
    assert table.columns == ("id", "y")
    assert json.loads(table.metadata["firstk"])["encoder"] == quantizer.fingerprint


def test_a_column_cut_by_hand_is_read_by_what_the_file_says(place, tmp_path, digits, encoder):
    table = pq.read_table(place / "short.parquet")
    codes = column_of(place / "short.parquet")[:, :4]
    cut = pa.array([row.tobytes() for row in codes], pa.binary(4))
    table = table.set_column(0, "embedding", cut)
    pq.write_table(table, tmp_path / "cut.parquet")
    found = open_vectors(tmp_path / "cut.parquet").read(()).vectors
    np.testing.assert_array_equal(found, encoder.quantizer(4).decode(codes))


def test_missing_codes_are_refused_or_dropped_with_their_numbers(place, tmp_path):
    table = pq.read_table(place / "short.parquet").slice(0, 20)
    held = table.column("embedding").to_pylist()
    held[3] = None
    pq.write_table(table.set_column(0, "embedding", pa.array(held, pa.binary(12))), tmp_path / "holes.parquet")
    whole = open_vectors(place / "short.parquet").read(()).vectors[:20]
    with pytest.raises(ValueError, match=r"row 3\)"):
        open_vectors(tmp_path / "holes.parquet").read(())
    found = open_vectors(tmp_path / "holes.parquet", nan="drop").read(()).vectors
    np.testing.assert_array_equal(found, np.delete(whole, 3, axis=0))


def test_raw_vectors_as_bits(place, tmp_path, digits):
    order = ("transform", "raw", "docs.parquet", "--bytes-per-vector", 16)
    done(*order, "-o", tmp_path / "raw.parquet", cwd=place)
    found = open_vectors(tmp_path / "raw.parquet").read(()).vectors
    X = digits.X_train
    assert found.shape == X.shape
    assert np.mean((found - X) ** 2) < 0.3 * X.var(axis=0).mean()
    assert "npy cannot store the embedded scale" in refused(*order, "-o", tmp_path / "raw.npy", cwd=place)
    done("transform", "raw", "queries.npy", "--like", tmp_path / "raw.parquet", "--side", "query",
         "-o", tmp_path / "q.npz", cwd=place)  # fmt: skip
    np.testing.assert_array_equal(open_vectors(tmp_path / "q.npz").read().vectors, digits.X_test.astype("f4"))


def test_a_folder_of_shards_is_gone_on_with(place, tmp_path, digits, encoder):
    (tmp_path / "in").mkdir()
    for i in range(3):
        write_vectors(tmp_path / "in" / f"{i}.parquet", digits.X_test[i::3])
    order = ("transform", "model", tmp_path / "in", "-o", tmp_path / "out", "--bytes-per-vector")
    done(*order, 6, cwd=place)
    found = open_vectors(tmp_path / "out").as_stored().read().vectors
    expected = encoder.quantizer(6).encode(np.concatenate([digits.X_test[i::3] for i in range(3)]))
    np.testing.assert_array_equal(found, expected)
    assert "3 files were finished before" in done(*order, 6, "--resume", cwd=place)
    assert "bytes was 6 and is now 5" in refused(*order, 5, "--resume", cwd=place)


def test_all_bytes_that_the_code_has(place, tmp_path, encoder):
    said = done(
        "transform", "model", "queries.npy", "--precision", "embedded", "-o", tmp_path / "all.npz", "--json", cwd=place
    )
    assert json.loads(said)["bytes_per_vector"] == encoder.quantizer(None).bytes


def test_what_is_refused(place, tmp_path, encoder):
    most = encoder.quantizer(None).bytes
    write_vectors(tmp_path / "nan.npy", np.full((5, 64), np.nan))
    for arguments, sentences in [
        (["model", "queries.npy", "--bytes-per-vector", 0], [f"[1, {most}]", "Got 0"]),
        (["model", "queries.npy", "--bytes-per-vector", 5000], [f"[1, {most}]", "bytes that the code has"]),
        (
            ["model", "queries.npy", "--bytes-per-vector", 8, "-k", 4],
            ["8 bytes have no k (4)", "Leave out -k, or --bytes"],
        ),
        (["model", "queries.npy", "--bytes-per-vector", 8, "--precision", "int8"], ["not int8", "--precision"]),
        (["model", "queries.npy", "--bytes-per-vector", 8, "--precision", "int9"], ["must be one of"]),
        (["model", "queries.npy", "--bytes-per-vector", 8, "--side", "query"], ["--like short.parquet --side query"]),
        (["model", "queries.npy", "--bytes-per-vector", 8, "--like", "short.parquet"], ["are in that file"]),
        (["model", "queries.npy", "--like", "short.parquet"], ["Say which these are"]),
        (["other", "queries.npy", "--like", "short.parquet", "--side", "query"], ["were made by encoder"]),
        (["raw", "queries.npy", "--like", "short.parquet", "--side", "query"], ["were made by encoder"]),
        (["model", "short.parquet", "--bytes-per-vector", 8], ["holds codes already", "by --bytes-per-vector"]),
        (["raw", "short.parquet", "--bytes-per-vector", 13], ["[1, 12]"]),
        (["older", "queries.npy", "--bytes-per-vector", 8], ["saved without them", "with_cells(X).save(path)"]),
        (["model", tmp_path / "nan.npy", "--bytes-per-vector", 8], ["NaN"]),
    ]:
        said = refused("transform", *arguments, "-o", tmp_path / "out.npz", cwd=place)
        for sentence in sentences:
            assert sentence in said, (arguments, said)
    assert not (tmp_path / "out.npz").exists()


def test_bytes_of_another_kind_are_no_codes(tmp_path):
    table = pa.table({"key": pa.array([b"x" * 16, b"y" * 16], pa.binary(16)), "x": [[1.0, 2.0], [3.0, 4.0]]})
    pq.write_table(table, tmp_path / "in.parquet")
    found = open_vectors(tmp_path / "in.parquet")
    assert (found.vectors, found.columns) == ("x", ("key",))
    with pytest.raises(ValueError, match="'key' holds 16 bytes a row, and the file does not say what they are"):
        open_vectors(tmp_path / "in.parquet", "key")


def test_info_of_a_file_and_of_a_model(place, tmp_path, encoder):
    said = done("info", "short.parquet", cwd=place)
    used = np.count_nonzero(encoder.quantizer(12).embedded.bits)
    assert f"1,437 document codes in column 'embedding': embedded bits of {used} coordinates" in said
    assert "12 bytes each" in said
    facts = json.loads(done("info", "short.parquet", "--json", cwd=place))
    assert (facts["encoder"], facts["metric"]) == (encoder.quantizer(12).fingerprint, "cosine")
    assert (facts["rows"], facts["columns"], facts["bytes_per_vector"]) == (1437, ["id", "y"], 12)
    assert "does not say how its codes were made" in refused("info", "queries.npy", cwd=place)
    most = encoder.quantizer(None).bytes
    assert f"1 to {most} as embedded bits" in done("info", "model", cwd=place)
    assert json.loads(done("info", "model", "--json", cwd=place))["bytes_per_vector"]["embedded"] == most
    assert "embedded" not in done("info", "older", cwd=place)


@pytest.mark.parametrize("precision", ["float16", "int8", "int4", "binary", "embedded"])
def test_codes_are_opened_as_stored_and_decoded(place, tmp_path, digits, precision):
    target = tmp_path / "short.npz"
    done("transform", "model", "docs.parquet", "--precision", precision, "-o", target, cwd=place)
    file = open_codes(target)
    codes = file.codes()
    assert codes.dtype == np.load(target)["embedding"].dtype
    np.testing.assert_array_equal(codes, np.load(target)["embedding"])
    np.testing.assert_array_equal(file.decode(codes), open_vectors(target).read(()).vectors)
