"""Commands that the command line prints for what it recommends."""

import pytest

from firstk.advice.inputs import VectorSource
from firstk.quality.choice import RAW, Point
from firstk.words.commands import VECTORS, commands_for, recorded_options


def test_a_baseline_is_fitted_for_as_many_bytes_as_were_asked_for():
    point = Point(40, "int8", 40, 0.9, code="PCA")
    judged = {VECTORS: "rows.npy", "--queries": "q.npy", "--relevance": "r.csv"}
    fit, transform, queries = commands_for(point, "model", judged, 64)
    assert fit.startswith("firstk fit rows.npy --objective reconstruction")
    assert fit.endswith("--queries q.npy --relevance r.csv --bytes-per-vector 64 -o pca")
    assert transform == "firstk transform pca rows.npy -k 40 --precision int8 -o short.npz"
    assert queries == "firstk transform pca q.npy --side query -k 40 -o short_queries.npz"
    without, _ = commands_for(point, "model", {VECTORS: "rows.npy"})
    assert "--bytes-per-vector" not in without


@pytest.mark.parametrize(
    ("point", "queries"),
    [
        (Point(9, "embedded", 12, 0.9), ["m q.npy --side query --like short.npz"]),
        (Point(9, "embedded", 12, 0.9, code=RAW), ["raw q.npy --side query --like short.npz"]),
        (Point(9, "int8", 9, 0.9, code=RAW), []),
        (Point(9, "int8", 9, 0.9, code="plain truncation"), ["raw q.npy --side query -k 9"]),
        (Point(8, "binary", 1, 0.9, queries="binary"), ["m q.npy --side query --like short.npz"]),
        (Point(8, "binary", 1, 0.9, code=RAW, queries="binary"), ["raw q.npy --side query --like short.npz"]),
    ],
    ids=["own bits", "raw bits", "raw, rounded", "truncated", "binary queries", "raw, binary queries"],
)
def test_queries_are_encoded_as_they_were_evaluated(point, queries):
    _, *found = commands_for(point, "m", {VECTORS: "rows.npy", "--queries": "q.npy"})
    assert found == [f"firstk transform {command} -o short_queries.npz" for command in queries]


def test_queries_are_not_written_over_themselves():
    point = Point(9, "int8", 9, 0.9)
    _, found = commands_for(point, "m", {VECTORS: "rows.npy", "--queries": "short_queries.npz"})
    assert found.endswith(" -o shorter_queries.npz")


@pytest.mark.parametrize("shared", [True, False])
def test_what_is_recorded_has_no_credentials(shared):
    secret = "https://me:secret@host/{}?X-Amz-Signature=secret"
    place = VectorSource(secret.format("v.npy"), queries=secret.format("q.npy"), relevance=secret.format("r.tsv"))
    found = recorded_options(place, shared=shared)
    assert set(found) == {VECTORS, "--queries", "--relevance"}
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("../data/docs.npz", "../data/docs.npz"),
        ("parts/*.npy", "parts/*.npy"),
        ("/home/me/docs.npz", "docs.npz"),
        ("/home/me/*.npy", None),
        ("s3://bucket/private/docs.parquet", "docs.parquet"),
        ("/", None),
    ],
)
def test_a_model_keeps_relative_paths_alone(given, named):
    assert recorded_options(VectorSource(given), shared=True).get(VECTORS) == named


def test_row_numbers_are_recorded():
    place = VectorSource("docs.npz", queries="q.npz", relevance="/home/me/qrels.tsv:query,doc", by_row=True)
    words = [word for pair in recorded_options(place, shared=True).items() for word in pair]
    assert words[-5:] == ["q.npz", "--relevance", "qrels.tsv:query,doc", "--id", ":row"]
