"""``firstk curve --tokens``: files of a vector a token give the curve that Python gives, and wrong calls raise."""

from __future__ import annotations

import json

import numpy as np
import pytest

import command_line
from firstk import PrefixEncoder, TokenVectors, compare_tokens
from firstk.data.files import write_vectors


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, tokens of 40 documents and 12 queries named by text, and judgements, in files."""
    folder = tmp_path_factory.mktemp("tokens")
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(6, 10))
    sizes = rng.integers(2, 9, 40)
    documents = np.concatenate([topics[i % 6] + rng.normal(size=(n, 10)) for i, n in enumerate(sizes)])
    queries = np.concatenate([topics[i % 6] + rng.normal(size=(3, 10)) for i in range(12)])
    names = np.repeat([f"d{i}" for i in range(40)], sizes)
    asked = np.repeat([f"q{i}" for i in range(12)], 3)
    judged = [(q, d) for q in range(12) for d in range(40) if q % 6 == d % 6]
    write_vectors(folder / "docs.parquet", documents.astype(np.float32), {"of": names})
    write_vectors(folder / "queries.parquet", queries.astype(np.float32), {"of": asked})
    lines = ["query-id\tcorpus-id\tscore", *(f"q{q}\td{d}\t1" for q, d in judged)]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n")
    PrefixEncoder(6, objective="similarity").fit(documents.astype(np.float32)).save(folder / "model")
    sides = [
        TokenVectors.from_column(part.astype(np.float32), of)[0] for part, of in ((queries, asked), (documents, names))
    ]
    return folder, sides, np.array([(q, d, 1) for q, d in judged])


def curve(folder, *more):
    files = ("--queries", folder / "queries.parquet", "--relevance", folder / "qrels.tsv")
    return command_line.firstk("curve", folder / "model", folder / "docs.parquet", "--tokens", "of", *files, *more)


def test_the_curve_is_that_of_python(place):
    folder, (queries, documents), relevance = place
    found = json.loads(curve(folder, "--json", "--confidence", "0").stdout)
    wanted = compare_tokens(PrefixEncoder.load(folder / "model"), queries, documents, relevance, ks=found["curve"]["k"])
    assert found["metric"] == "MaxSim ndcg@10"
    for shown, curve_of in zip([found["curve"], *found["baselines"]], wanted.values(), strict=True):
        np.testing.assert_allclose(shown["score"], curve_of.score)
        assert shown["label"] == curve_of.label
    assert "12 queries of 36 tokens, among 40 documents" in found["judged"]


def test_the_text_names_the_fewest_coordinates(place):
    said = curve(place[0], "--keep", "0.5", "--metric", "mrr@10", "--no-baselines").stdout
    assert "coordinates a token are the fewest of these that keep 50 %" in said
    assert "PCA" not in said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--label", "of"], "--tokens does not go with --label"),
        (["--metric", "recall@10"], "'metric' parameter of curve_tokens"),
        (["--keep", "1"], "No prefix keeps"),
    ],
)
def test_wrong_calls_raise(place, more, message):
    failed = curve(place[0], *more)
    assert failed.returncode != 0
    assert message in failed.stderr


def test_searches_are_needed(place):
    folder = place[0]
    failed = command_line.firstk("curve", folder / "model", folder / "docs.parquet", "--tokens", "of")
    assert "--tokens needs --queries and --relevance" in failed.stderr
