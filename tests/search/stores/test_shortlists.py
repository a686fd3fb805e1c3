"""The plan of a funnel in the words of stores: what it says is what a store does, at the recall that is measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

from firstk import FunnelIndex, PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk.search.funnel.schedule import Stage
from firstk.search.stores.shortlists import Shortlists, measured_recall
from search.stores.slow_search import closeness, unit


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    return (rng.normal(size=(3000, 32)) * np.arange(1, 33) ** -0.9).astype(np.float32)


@pytest.fixture(scope="module")
def index(rows):
    encoder = PrefixEncoder(24, objective="similarity").fit(rows)
    return FunnelIndex.fit(rows, encoder=encoder, recall=0.95, metric="cosine")


@pytest.mark.parametrize("metric", ["cosine", "inner_product", "l2"])
def test_recall_is_that_of_the_slow_way(rows, metric):
    codes, stages = rows[:200], (Stage(4, 60), Stage(12, 25))
    found = []
    for i in range(200):
        others = np.setdiff1d(np.arange(200), [i])
        left = others
        for k, size in stages:
            Z = unit(codes[:, :k].astype(float)) if metric == "cosine" else codes[:, :k].astype(float)
            left = left[np.argsort(-closeness(Z[i : i + 1], Z[left], metric)[0], kind="stable")[:size]]
        Z = unit(codes.astype(float)) if metric == "cosine" else codes.astype(float)
        truth = others[np.argsort(-closeness(Z[i : i + 1], Z[others], metric)[0], kind="stable")[:10]]
        found.append(np.isin(truth, left).mean())
    assert measured_recall(codes, stages, 10, metric) == pytest.approx(np.mean(found), abs=2e-3)


def test_a_plan_reads_the_schedule_and_says_its_recall(index):
    plan = Shortlists.of(index)
    assert [tuple(stage) for stage in plan.stages] == [tuple(stage) for stage in index.schedule.stages]
    assert 0.8 < plan.recall <= 1
    assert plan.asked == 0.95
    assert f"recall@10 {plan.recall:.3f} (asked for 0.95)" in str(plan)
    assert str(plan.stages[0].size) in str(plan)


def test_sql_finds_what_the_plan_promises(index, rows, postgres):
    """The statement runs on pgvector without an index, and keeps the recall that was measured."""
    psycopg = pytest.importorskip("psycopg")
    from pgvector import Vector
    from pgvector.psycopg import register_vector

    plan = Shortlists.of(index, 10)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(connection)
        connection.execute("DROP TABLE IF EXISTS planned")
        connection.execute(f"CREATE TABLE planned (id bigint, code vector({plan.full}))")
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO planned VALUES (%s, %s)", [(i, Vector(code)) for i, code in enumerate(index.codes)]
            )
        found = []
        for i in range(60):
            cut = connection.execute(plan.sql("planned"), {"query": Vector(index.codes[i])}).fetchall()
            truth = np.argsort(-(index.codes @ index.codes[i]), kind="stable")[:10]
            assert len(cut) == 10
            found.append(len({row[0] for row in cut} & set(truth.tolist())) / 10)
    assert np.mean(found) >= plan.recall - 0.03  # other queries, and a row counts as its own neighbor


def test_qdrant_takes_the_body(index):
    models = pytest.importorskip("qdrant_client").models
    plan = Shortlists.of(index)
    codes = {f"k{k}": [0.1] * k for k in [stage.k for stage in plan.stages]} | {"full": [0.1] * plan.full}

    def filled(body):
        inner = {"prefetch": filled(body["prefetch"])} if "prefetch" in body else {}
        return body | {"query": codes[body["query"]]} | inner

    request = models.QueryRequest(**filled(plan.qdrant()))
    assert request.limit == 10
    assert request.prefetch.limit == plan.stages[-1].size
    json.dumps(plan.qdrant())


def test_elasticsearch_knows_the_queries_of_the_body(index):
    """Its client knows names of queries, and passes their settings on as they are: these are not run by a server."""
    dsl = pytest.importorskip("elasticsearch.dsl")
    body = Shortlists.of(index).lucene()
    assert dsl.Search.from_dict(body).to_dict() == body
    assert body["knn"]["k"] <= body["knn"]["num_candidates"]
    for part in body["rescore"]:
        assert dsl.query.Q(part["query"]["rescore_query"]).to_dict() == part["query"]["rescore_query"]
    assert [part["window_size"] for part in body["rescore"]][-1] == Shortlists.of(index).stages[-1].size


def test_bad_requests_for_a_plan(rows):
    with pytest.raises(InvalidInputError, match=r"takes a FunnelIndex\. Got str"):
        Shortlists.of("index")
    with pytest.raises(InvalidInputError, match=r"\[1, 10\]"):
        Shortlists.of(FunnelIndex.fit(rows[:500]), 11)


def test_two_shortlists_are_nested():
    plan = Shortlists((Stage(4, 100), Stage(8, 30)), 16, 5, "cosine", 1000, 0.9)
    assert plan.qdrant()["prefetch"]["prefetch"] == {"query": "k4", "using": "k4", "limit": 100}
    assert plan.sql().index("LIMIT 100") < plan.sql().index("LIMIT 30") < plan.sql().index("LIMIT 5")
    assert [part["window_size"] for part in plan.lucene()["rescore"]] == [100, 30]
    assert Shortlists((), 16, 5, "cosine", 1000, 1.0).sql().count("SELECT") == 1
