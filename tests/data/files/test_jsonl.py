"""JSON lines: the shapes that embedding services return, types of fields, and errors that name the line."""

import gzip
import json
import tracemalloc

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.advice.inputs import VectorSource, read_rows
from firstk.advice.judgements import read_judged
from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.column_files import load_columns, open_column
from firstk.data.files.contract import exactly
from firstk.estimator.transform_files import transform_files
from firstk.exceptions import InvalidInputError

X = np.random.default_rng(0).normal(size=(12, 3))


def lines(path, records, end="\n"):
    text = end.join(record if isinstance(record, str) else json.dumps(record) for record in records) + end
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def records(**fields):
    return [
        {"embedding": row.tolist(), **{name: values[i] for name, values in fields.items()}} for i, row in enumerate(X)
    ]


def responses():
    """The same vectors in the shapes of a service's answers."""
    items = [{"object": "embedding", "index": i, "embedding": row.tolist()} for i, row in enumerate(X)]
    return {
        "an object a vector": records(),
        "an array a line": X.tolist(),
        "responses": [{"object": "list", "model": "m", "data": items[i : i + 5]} for i in range(0, 12, 5)],
        "a batch": [
            {"custom_id": f"q{i}", "response": {"status_code": 200, "body": {"data": [item]}}, "error": None}
            for i, item in enumerate(items)
        ],
    }


@pytest.mark.parametrize("ending", [".jsonl", ".ndjson", ".jsonl.gz"])
@pytest.mark.parametrize("shape", responses())
def test_what_services_return_is_read(tmp_path, shape, ending):
    table = open_vectors(lines(tmp_path / f"a{ending}", responses()[shape]))
    assert (table.rows, table.width) == X.shape
    for size in (1, 5, 100):
        np.testing.assert_array_equal(np.concatenate([batch.vectors for batch in table.batches(size)]), X)
    expected = {"a batch": ("custom_id", "index"), "responses": ("index",)}.get(shape, ())
    assert table.columns == expected
    if shape == "a batch":
        assert table.read().columns["custom_id"].tolist() == [f"q{i}" for i in range(12)]


def test_a_request_that_failed_is_a_row_without_a_vector(tmp_path):
    held = responses()["a batch"]
    held[4]["response"] = {"status_code": 400, "body": {"error": {"message": "too long"}}}
    held[0]["response"] = None
    path = lines(tmp_path / "a.jsonl", held)
    with pytest.raises(InvalidInputError, match=r"\(row 0, 4\)"):
        open_vectors(path).read()
    np.testing.assert_array_equal(open_vectors(path, nan="drop").read().vectors, np.delete(X, [0, 4], axis=0))


FIELDS = {
    "id": ([*range(11), 2**62 + 1], np.int64),
    "score": ([1, *np.linspace(0, 1, 11).tolist()], np.float64),
    "good": ([True, False] * 6, np.bool_),
    "text": ([f"ä {i}\n" for i in range(12)], np.str_),
    "mixed": ([7, "007", *"abcdefghij"], np.str_),
    "huge": ([2**70 + i for i in range(12)], np.str_),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_has_the_type_that_holds_its_values(tmp_path, name):
    values, kind = FIELDS[name]
    path = lines(tmp_path / "a.jsonl", records(**{name: values}))
    shown = values if kind is not np.str_ else [str(value) for value in values]
    for found in (
        open_vectors(path, beside=(name,)).read().columns[name],
        load_columns(path)[name],
        open_column(path, name).whole(),
        np.concatenate([batch.columns[name] for batch in open_vectors(path, beside=(name,)).batches(3, (name,))]),
        read_rows(path, label=name).y,
    ):
        assert found.tolist() == shown
        assert found.dtype.kind == np.dtype(kind).kind


def test_a_late_label_of_another_type_makes_all_of_them_text(tmp_path):
    labels = [*([1, 2] * 200), "two"]
    rows = [{"e": [i, 0.5], "label": label} for i, label in enumerate(labels)]
    path = lines(tmp_path / "a.jsonl", rows)
    assert read_rows(path, label="label").y.tolist() == [str(label) for label in labels]


def test_fields_that_are_missing(tmp_path):
    held = records(id=range(12), score=[0.5] * 12, text=["a"] * 12)
    for name, value in {"id": None, "score": None, "text": "absent"}.items():
        if value is None:
            held[3][name] = None
        else:
            del held[3][name]
    found = open_vectors(lines(tmp_path / "a.jsonl", held)).read().columns
    assert found["id"].tolist() == [0, 1, 2, None, *range(4, 12)]
    assert found["text"].tolist() == ["a"] * 3 + [None] + ["a"] * 8
    assert np.flatnonzero(np.isnan(found["score"])).tolist() == [3]


def test_null_and_nan_in_vectors(tmp_path):
    held = records()
    held[1]["embedding"][0], held[2]["embedding"], held[5]["embedding"][1] = None, None, float("nan")
    path = lines(tmp_path / "a.jsonl", held)
    with pytest.raises(InvalidInputError, match=r"\(row 1, 2, 5\)"):
        open_vectors(path).read()
    assert open_vectors(path, nan="drop").read().rows.tolist() == [0, 3, 4, *range(6, 12)]


def test_numbered_fields_and_named_vectors(tmp_path):
    path = lines(tmp_path / "wide.jsonl", [{f"x{j}": value for j, value in enumerate(row)} for row in X.tolist()])
    np.testing.assert_array_equal(open_vectors(path).read().vectors, X)
    path = lines(tmp_path / "two.jsonl", [{"title": row, "body": row[:2]} for row in X.tolist()])
    with pytest.raises(InvalidInputError, match="Name one: vectors='title'"):
        open_vectors(path)
    table = open_vectors(path, "body")
    np.testing.assert_array_equal(table.read().vectors, X[:, :2])
    np.testing.assert_array_equal(table.read().columns["title"], X)
    tokens = [{"embedding": row, "tokens": list(range(1 + i % 3))} for i, row in enumerate(X.tolist())]
    table = open_vectors(lines(tmp_path / "tokens.jsonl", tokens))
    assert (table.vectors, table.read().columns["tokens"][1]) == ("embedding", "[0, 1]")


BAD = {
    "another width": ({"embedding": [1.0]}, "line 3 has 1 numbers in field 'embedding', and the first vector has 3"),
    "text for a vector": ({"embedding": "oops"}, r"line 3 holds no list of numbers in field 'embedding' \(\"oops\"\)"),
    "text in a vector": ({"embedding": [1.0, "a", 2.0]}, "line 3 holds no list of numbers"),
    "true in a vector": ({"embedding": [1.0, True, 2.0]}, "line 3 holds no list of numbers"),
    "a huge number": ('{"embedding": [1.0, 1' + "0" * 400 + ", 2.0]}", "line 3 holds no list of numbers"),
    "no JSON": ('{"embedding": [1.0, 2.0', "line 3 is not JSON"),
    "no object": ("3", "line 3 holds no object"),
    "a name twice": ('{"embedding": [1, 2, 3], "embedding": [1, 2, 4]}', "line 3 has two fields called 'embedding'"),
    "deep": ("[" * 100_000, "line 3 is not JSON"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("late", [False, True])
def test_errors_name_the_line(tmp_path, kind, late):
    bad, sentence = BAD[kind]
    held = [*records()[:2], bad, *records()[2:]]
    if late:
        held = [*([records()[0]] * 400), bad]
        sentence = sentence.replace("line 3", "line 401")
    with pytest.raises(InvalidInputError, match=sentence):
        open_vectors(lines(tmp_path / "a.jsonl", held)).read()


def test_a_document_over_several_lines_is_told_what_lines_are(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(records(), indent=2))
    with pytest.raises(InvalidInputError, match=r"line 1 is not JSON .* Write one JSON object a line"):
        open_vectors(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text(json.dumps(records()))
    with pytest.raises(InvalidInputError, match=r"line 1 holds a list of objects\. Write one"):
        open_vectors(tmp_path / "a.jsonl")


def test_blank_lines_marks_and_line_ends_of_other_systems(tmp_path):
    path = tmp_path / "a.jsonl"
    lines(path, [*records()[:6], "", *records()[6:], "  "], end="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    table = open_vectors(path)
    assert table.rows == 12
    np.testing.assert_array_equal(table.read().vectors, X)
    path.write_text("\n\n")
    with pytest.raises(InvalidInputError, match="it has no rows"):
        open_vectors(path)


def test_values_travel_as_they_are_to_the_same_format(tmp_path):
    payload = [{"a": [1, {"b": None}]}, None, "\ud800", 7, 7.5, True, [1, 2], [], "007", 2**70, "ä", {}]
    path = lines(tmp_path / "a.jsonl", records(id=range(12), payload=payload))
    encoder = PrefixEncoder(2).fit(X)
    transform_files(encoder.encoder_, path, tmp_path / "b.jsonl.gz")
    with gzip.open(tmp_path / "b.jsonl.gz", "rt") as file:
        found = [json.loads(line) for line in file]
    assert [record["payload"] for record in found] == payload
    assert [record["id"] for record in found] == list(range(12))
    np.testing.assert_allclose([record["embedding"] for record in found], encoder.transform(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv"])
def test_values_travel_to_other_formats(tmp_path, monkeypatch, ending):
    """Batch by batch, some of which have holes or nothing at all."""
    if ending != ".csv":
        pytest.importorskip("pyarrow", reason="the formats of the extra 'tables' need pyarrow")
    monkeypatch.setattr("firstk.estimator.transform_files._BATCH_NUMBERS", 6)
    ids = [0, 1, None, None, 4, None, *range(6, 12)]
    notes = [{"a": i} for i in range(12)]
    path = lines(tmp_path / "a.jsonl", records(id=ids, note=notes, late=[None] * 10 + ["b", "c"]))
    transform_files(PrefixEncoder(2).fit(X).encoder_, path, tmp_path / f"b{ending}")
    found = open_vectors(tmp_path / f"b{ending}").read().columns
    assert found["id"].tolist() == ids
    assert found["note"].tolist() == [json.dumps(note) for note in notes]
    assert found["late"].tolist()[-2:] == ["b", "c"]


def test_types_that_change_late_are_named_where_one_type_is_needed(tmp_path):
    pytest.importorskip("pyarrow", reason="parquet needs pyarrow")
    rows = [{"e": [i, 0.5, 1.0], "id": i} for i in range(400)] + [{"e": [1.0, 2.0, 3.0], "id": "x"}]
    path = lines(tmp_path / "a.jsonl", rows)
    encoder = PrefixEncoder(2).fit(X).encoder_
    with pytest.raises(InvalidInputError, match=r'line 401 holds "x" in field \'id\', and the first lines hold whole'):
        transform_files(encoder, path, tmp_path / "b.parquet")
    transform_files(encoder, path, tmp_path / "b.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[-1])["id"] == "x"


def test_a_field_that_comes_late_is_not_lost_silently(tmp_path):
    rows = [{"e": [i, 0.5, 1.0], "id": i} for i in range(400)] + [{"e": [1.0, 2.0, 3.0], "id": 1, "new": 2}]
    path = lines(tmp_path / "a.jsonl", rows)
    assert len(open_vectors(path).read(())) == 401  # who takes no columns loses none
    with pytest.raises(InvalidInputError, match="line 401 has a field 'new' that none of the first 256 rows has"):
        open_vectors(path).read()


def test_what_is_written_is_json_of_few_digits(tmp_path):
    values = np.array([[0.1, np.nan], [np.inf, 2.0]], np.float32)
    write_vectors(tmp_path / "a.jsonl", values, {"w": np.array([0.1, np.nan], np.float32), "t": ["a", "ü"]}, name="e")
    assert (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines() == [
        '{"e": [0.1, null], "w": 0.1, "t": "a"}',
        '{"e": [null, 2.0], "w": null, "t": "ü"}',
    ]


def test_a_file_is_read_in_bounded_memory(tmp_path, monkeypatch):
    """With room for 64 rows at a time, 6,000 rows take no more than 600 do."""
    monkeypatch.setattr("firstk.data.files.jsonl._NUMBERS", 64 * 64)

    def peak(rows):
        line = json.dumps({"e": np.arange(64).astype(float).tolist(), "text": "t" * 100})
        path = lines(tmp_path / f"{rows}.jsonl", [line] * rows)
        tracemalloc.start()
        for _ in open_vectors(path).batches(65536, ("text",)):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(6000) < 1.5 * peak(600)


def test_exact_columns_are_those_of_the_file(tmp_path):
    path = lines(tmp_path / "a.jsonl", records(id=[f"{i:03}" for i in range(12)]))
    (batch,) = open_vectors(path).batches(columns=("id",))
    assert exactly(batch.columns, "id").tolist() == [f"{i:03}" for i in range(12)]
    assert "id" in batch.columns
    assert len(batch.columns) == 1


def test_labels_and_pairs_in_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    labels = [f"class {i % 3}" for i in range(12)]
    lines(tmp_path / "y.jsonl.gz", [{"id": i, "y": label, "more": {"a": 1}} for i, label in enumerate(labels)])
    assert read_rows("x.npy", labels="y.jsonl.gz:y").y.tolist() == labels
    with pytest.raises(InvalidInputError, match=r"Name one: y\.jsonl\.gz:id"):
        read_rows("x.npy", labels="y.jsonl.gz")
    lines(tmp_path / "p.jsonl", [{"left": i, "right": (i + 1) % 12, "score": i / 12} for i in range(12)])
    pairs = read_judged(VectorSource("x.npy", pairs="p.jsonl:left,right,score", by_row=True))
    np.testing.assert_array_equal(pairs.data.left, X)
    np.testing.assert_array_equal(pairs.data.right, np.roll(X, -1, axis=0))
    assert pairs.data.scores.tolist() == [i / 12 for i in range(12)]
