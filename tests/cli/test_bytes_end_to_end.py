"""Few bytes per vector: what curve promises is what the files that transform writes keep."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from command_line import firstk
from firstk import Choice, PrefixEncoder, Similarity
from firstk.data import load_digits
from firstk.data.files import open_vectors, write_vectors
from firstk.metrics import ndcg
from firstk_papers.datasets import MissingDataError, load_scifact

pytest.importorskip("pyarrow", reason="the extra 'tables' is not installed")


def digits():
    """Digits that ask for digits; those of the same class are relevant."""
    made = load_digits()
    same = made.y_test[:60, None] == made.y_train[None]
    judged = np.column_stack([*np.nonzero(same), np.ones(same.sum(), int)])
    ids = [np.array([f"{side}{i}" for i in range(n)]) for side, n in (("d", len(made.X_train)), ("q", 60))]
    return SimpleNamespace(
        documents=made.X_train, queries=made.X_test[:60], document_ids=ids[0], query_ids=ids[1], judgements_test=judged
    )


@pytest.fixture(scope="module", params=["digits", pytest.param("scifact", marks=pytest.mark.full)])
def place(request, tmp_path_factory):
    try:
        data, limit = (digits(), 8) if request.param == "digits" else (load_scifact(), 32)
    except MissingDataError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("judged")
    write_vectors(folder / "docs.parquet", data.documents, {"id": data.document_ids})
    write_vectors(folder / "queries.parquet", data.queries, {"id": data.query_ids})
    lines = [f"{data.query_ids[q]}\t{data.document_ids[d]}\t{grade}" for q, d, grade in data.judgements_test]
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\tgrade\n" + "\n".join(lines) + "\n")
    PrefixEncoder(objective=Similarity(keep="dot_products")).fit(data.documents).save(folder / "model")
    return folder, data, limit


def done(*arguments, cwd):
    run = firstk(*arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_advised_score_is_that_of_the_written_file(place):
    folder, data, limit = place
    judged = ("--queries", "queries.parquet", "--relevance", "qrels.tsv")
    limits = ("--bytes-per-vector", limit, "--precision", "embedded")
    found = json.loads(done("curve", "model", "docs.parquet", *judged, *limits, "--json", cwd=folder))
    choice = Choice.from_dict(found["choice"])
    point = choice.point
    assert (point.precision, found["metric"]) == ("embedded", "ndcg@10")
    assert limit / 2 <= point.bytes <= limit  # the best of them within the limit
    text = done(
        "transform", "model", "docs.parquet", "--bytes-per-vector", point.bytes, "-o", "short.parquet", cwd=folder
    )
    assert f"{point.bytes} bytes each" in text
    done(
        "transform", "model", "queries.parquet", "--like", "short.parquet", "--side", "query", "-o", "q.parquet",
        cwd=folder,
    )  # fmt: skip
    codes, asked = open_vectors(folder / "short.parquet").read(("id",)), open_vectors(folder / "q.parquet").read(())
    np.testing.assert_array_equal(codes.columns["id"], data.document_ids)
    k = codes.vectors.shape[1]
    score = float(ndcg(codes.vectors, asked.vectors, data.judgements_test, ks=[k])[-1])
    assert score == pytest.approx(point.score, abs=2e-3)
    assert choice.own.low <= score / choice.reference_score <= choice.own.high
