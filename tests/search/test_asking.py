"""firstk search: ids and scores from files, indexes and stores, and what they keep."""

import numpy as np
import pytest

from firstk import PrefixEncoder, metrics, transform_files
from firstk.data.files import open_vectors, write_vectors
from firstk.exceptions import InvalidInputError
from firstk.metrics import nearest_neighbors
from firstk.search import CodeIndex
from firstk.search.asking import ask, ranking_scores
from firstk.search.moving import Recode, move

pytestmark = pytest.mark.wings


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ask")
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(430, 12)) * np.arange(1, 13) ** -0.5).astype(np.float32)
    names = np.array([f"doc{i}" for i in range(400)])
    write_vectors(folder / "rows.parquet", X[:400], {"id": names})
    write_vectors(folder / "queries.parquet", X[400:], {"id": np.array([f"q{i}" for i in range(30)])})
    encoder = PrefixEncoder(12).fit(X[:400])
    encoder.save(folder / "model")
    return folder, X[:400], X[400:], encoder.encoder_, names


def ids_of(rows, names):
    return names[rows].tolist()


def test_a_file_of_vectors_is_searched_by_cosine(task):
    folder, X, Q, _, names = task

    found = ask(folder / "rows.parquet", open_vectors(folder / "queries.parquet"), 5)

    assert found.ids == ids_of(nearest_neighbors(X, Q, 5), names)
    cosines = np.sort((Q / np.linalg.norm(Q, axis=1)[:, None]) @ (X / np.linalg.norm(X, axis=1)[:, None]).T)[:, ::-1]
    np.testing.assert_allclose(found.scores, cosines[:, :5], rtol=1e-5)


@pytest.mark.parametrize("how", [{"k": 6}, {"k": 6, "precision": "int8"}, {"bytes_per_vector": 4}])
def test_a_short_file_is_searched_with_its_model(task, how):
    folder, _, Q, encoder, names = task
    short = folder / f"short-{'-'.join(map(str, how.values()))}.parquet"
    transform_files(encoder, folder / "rows.parquet", short, **how)
    codes, asked = open_vectors(short).read().vectors, encoder.encode(Q, side="query")[:, :6]
    if "bytes_per_vector" in how:
        asked = encoder.quantizer(4).encode_query(Q)

    found = ask(short, open_vectors(folder / "queries.parquet"), 5, model=encoder)

    assert found.ids == ids_of(nearest_neighbors(codes, asked, 5), names)
    with pytest.raises(InvalidInputError, match="--model"):
        ask(short, open_vectors(folder / "queries.parquet"), 5)


def test_a_saved_index_needs_no_model(task):
    folder, X, Q, encoder, _ = task
    index = CodeIndex.fit(X, encoder=encoder, bytes=4)
    index.save(folder / "codes.index")

    found = ask(folder / "codes.index", open_vectors(folder / "queries.parquet"), 5)

    assert found.ids == index.search(Q, 5).ids.tolist()


@pytest.mark.parametrize("model", [True, False])
def test_a_store_is_searched(task, model):
    pytest.importorskip("duckdb")
    folder, X, Q, encoder, names = task
    place = f"duckdb:{folder}/store{model}.db#rows"
    move(folder / "rows.parquet", place, Recode(encoder if model else None, k=6 if model else None))

    found = ask(place, open_vectors(folder / "queries.parquet"), 5, model=encoder if model else None)

    codes, asked = (encoder.encode(X)[:, :6], encoder.encode(Q, side="query")[:, :6]) if model else (X, Q)
    assert found.ids == ids_of(nearest_neighbors(codes, asked, 5), names)


def test_queries_of_another_width_are_refused(task):
    folder, _, Q, _, _ = task
    write_vectors(folder / "narrow.npz", Q[:, :7])

    with pytest.raises(InvalidInputError, match=r"rows.parquet' takes queries of 12 numbers\. Got 7"):
        ask(folder / "rows.parquet", open_vectors(folder / "narrow.npz"))


@pytest.mark.parametrize("place", ["short.npz", "codes.index", "duckdb:wide.db#rows"])
def test_queries_of_another_width_are_refused_wherever_codes_are(task, place, monkeypatch):
    folder, X, Q, encoder, _ = task
    monkeypatch.chdir(folder)
    write_vectors(folder / "narrow.npz", Q[:, :7])
    if place.startswith("duckdb"):
        pytest.importorskip("duckdb")
        move("rows.parquet", place, Recode(encoder, k=6), force=True)
    elif place == "short.npz":
        transform_files(encoder, "rows.parquet", place, k=6)
    else:
        CodeIndex.fit(X, encoder=encoder, bytes=4).save(place)
    with pytest.raises(InvalidInputError, match=r" takes queries of 12 numbers\. Got 7"):
        ask(place, open_vectors("narrow.npz"), model=None if place == "codes.index" else encoder)


def test_a_model_that_would_not_be_used_is_refused(task):
    folder, X, _, encoder, _ = task
    CodeIndex.fit(X, encoder=encoder, bytes=4).save(folder / "own.index")
    for place, why in (("rows.parquet", "holds raw vectors"), ("own.index", "has an encoder of its own")):
        with pytest.raises(InvalidInputError, match=rf"{why}, so the model would not be used"):
            ask(folder / place, open_vectors(folder / "queries.parquet"), model=encoder)


def test_scores_are_those_of_the_metrics(task):
    _, X, Q, _, names = task
    rng = np.random.default_rng(3)
    judged = np.unique(np.column_stack([rng.integers(0, 30, 90), rng.integers(0, 60, 90)]), axis=0)
    judged = np.column_stack([judged, 1 + judged.sum(axis=1) % 2])
    found = nearest_neighbors(X, Q, 10)
    grades = {(f"q{q}", str(names[d])): float(g) for q, d, g in judged}

    scores = ranking_scores(ids_of(found, names), [f"q{i}" for i in range(30)], grades, 10)

    assert scores["ndcg@10"] == pytest.approx(metrics.ndcg(X, Q, judged, ks=[12])[0])
    assert scores["recall@10"] == pytest.approx(metrics.relevant_recall(X, Q, judged, at=10, ks=[12])[0])


def test_the_command_writes_a_run(task):
    import typer
    from typer.testing import CliRunner

    from firstk.search.command import search

    app = typer.Typer()
    app.command()(search)
    folder, *_ = task
    (folder / "judged.tsv").write_text("query\tdocument\tgrade\nq0\tdoc1\t1\nq1\tdoc2\t2\n")
    words = [str(folder / "rows.parquet"), str(folder / "queries.parquet"), "-k", "10", "--force"]
    words += ["--against", str(folder / "rows.parquet"), "--relevance", str(folder / "judged.tsv")]

    for name in ("run.tsv", "run.parquet"):
        result = CliRunner().invoke(app, [*words, "-o", str(folder / name)])
        assert result.exit_code == 0, result.output
        assert "Found 100.0% of the raw vectors' 10 results" in result.output
        assert "100.0% of the raw vectors'" in result.output or "ndcg@10 0.0000" in result.output
    lines = (folder / "run.tsv").read_text().splitlines()
    assert len(lines) == 300
    assert lines[0].split()[3] == "1"
    assert lines[0].split()[1] == "Q0"
