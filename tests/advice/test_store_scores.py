"""What stores hold, and scores under their own comparisons, against slow and obvious references."""

import numpy as np
import pytest

from firstk import PrefixEncoder, Rows, Search, evaluate
from firstk.advice.baselines import plain_truncation
from firstk.advice.store_scores import LIMIT, as_compared, columns_compared, rescored
from firstk.data.stores import FORMULAS, STORES, Form, find_store
from firstk.exceptions import InvalidInputError
from firstk.metrics.neighbors import nearest_neighbors

K = 16


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(330, K)) * np.arange(1, K + 1) ** -0.4 + 0.1).astype(np.float32)
    return X[:300], X[300:]


def order(storage, X, Q):
    return nearest_neighbors(storage.store(X), storage.ask(Q), 20)


def by_score(scores):
    return np.argsort(-scores, axis=1, kind="stable")[:, :20]


# -- formulas ------------------------------------------------------------------------------------------------------


def test_bits_rank_by_hamming_distance(rows):
    X, Q = rows
    expected = [sorted(range(len(X)), key=lambda i: (int(((X[i] > 0) != (q > 0)).sum()), i))[:20] for q in Q]

    assert order(as_compared("binary", X), X, Q).tolist() == expected


def test_integers_are_compared_as_integers(rows):
    X, Q = rows
    scale = np.abs(X).max() / 127
    stored, asked = (np.clip(np.rint(Z / scale), -127, 127).astype(int) for Z in (X, Q))

    assert (order(as_compared("int8", X), X, Q) == by_score(unit(asked) @ unit(stored).T)).all()


def test_rotated_bits_rank_by_the_estimated_distance(rows):
    X, Q = rows
    center = unit(X).mean(axis=0)
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(K, K)))[0].T
    scores = np.empty((len(Q), len(X)))
    for i, o in enumerate(unit(X) - center):
        signs = np.sign(R @ o) / np.sqrt(K)
        for j, q in enumerate(unit(Q) - center):
            # Gao and Long (2024): <q, o/|o|> is estimated by <R q, signs> / <R o/|o|, signs>.
            product = np.linalg.norm(o) * (R @ q) @ signs / ((R @ o / np.linalg.norm(o)) @ signs)
            scores[j, i] = 2 * product - o @ o

    assert (order(as_compared("rotated bits", X), X, Q) == by_score(scores)).mean() > 0.99


@pytest.mark.parametrize("precision", FORMULAS)
def test_columns_are_as_many_as_said(precision, rows):
    X, Q = rows
    storage = as_compared(precision, X)

    assert storage.store(X).shape[1] == storage.ask(Q).shape[1] == columns_compared(precision, K)


@pytest.mark.parametrize("part", [1, 4])
def test_rescored_ranking_is_that_of_two_searches(part, rows):
    X, Q = rows
    precision = "binary" if part == 1 else "float32"
    form = Form("two", precision, "", 100, rescored=True, part=part, widest=2)
    truth = nearest_neighbors(X, Q, LIMIT)
    factor, scores = rescored(plain_truncation(np.zeros((1, K))), Rows(Q, reference=Rows(X)), "recall@10", form, K)

    for j, q in enumerate(Q):
        near = [-((x > 0) != (q > 0)).sum() if part == 1 else unit(x[None, :4])[0] @ unit(q[None, :4])[0] for x in X]
        shortlist = sorted(range(len(X)), key=lambda i: (-near[i], i))[: factor * LIMIT]
        best = sorted(shortlist, key=lambda i: -(unit(X)[i] @ q))[:LIMIT]
        assert len(set(best) & set(truth[j].tolist())) == scores.values[j, 0]


@pytest.mark.parametrize("metric", ["ndcg@10", "mrr@10"])
def test_a_shortlist_of_all_rows_rescores_to_the_float32_score(metric, rows):
    X, Q = rows
    relevance = [[i, j, 1 + j % 2] for i in range(len(Q)) for j in nearest_neighbors(X, Q, 30)[i, ::9]]
    data = Search(Q, X, np.array(relevance))
    columns = plain_truncation(np.zeros((1, K)))
    form = Form("all", "binary", "", 100, rescored=True, widest=30)

    _, scores = rescored(columns, data, metric, form, K)

    expected = evaluate(columns, data, metric=metric, ks=[K], precisions=["float32"], baselines=False, draws=0)
    assert scores.score()[0] == pytest.approx(expected.points[0].score, abs=0.0026)


# -- the table ---------------------------------------------------------------------------------------------------


def test_bytes_are_those_of_the_documentation():
    held = {(store.name, form.name): form for store in STORES for form in store.forms}

    assert held["pgvector", "vector"].bytes(192) == 4 * 192 + 8
    assert held["pgvector", "halfvec"].bytes(12) == held["pgvector", "bit"].bytes(192) == 32
    assert held["pgvector", "vector, index of bits"].bytes(256) == 4 * 256 + 8 + 256 // 8 + 8
    assert held["elasticsearch", "byte"].bytes(64) == 64


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_each_form_says_what_creates_it(store):
    for form in store.forms:
        assert form.precision in FORMULAS
        assert "{" not in form.configuration(64, 4).replace('{"', "").replace("{{", "")
    assert len({form.name for form in store.forms}) == len(store.forms)
    assert find_store(store.name.upper()) is store


def test_an_unknown_store_suggests_the_nearest():
    with pytest.raises(InvalidInputError, match=r"no store 'pgvectr'.* Did you mean 'pgvector'\?"):
        find_store("pgvectr")
    with pytest.raises(InvalidInputError, match="the name of a store"):
        find_store(3)


# -- evaluations -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evaluated(rows):
    X, Q = rows
    encoder = PrefixEncoder(K).fit(X)
    data = Rows(Q, reference=Rows(X))
    return encoder, data, evaluate(encoder, data, store="pgvector", ks=[8, 16], draws=20)


def test_a_choice_for_a_store_is_what_it_holds(evaluated):
    _, _, found = evaluated
    choice = found.choose(bytes_per_vector=12)

    assert found.store == choice.store == "pgvector"
    assert found.metric == "recall@10"
    assert all(offer.point.form for offer in choice.offers)
    assert choice.own.point.bytes <= 12
    assert {point.form for point in found.points if point.code == "raw vectors"} >= {"vector", "halfvec", "bit"}
    assert type(found).from_json(found.to_json()) == found


def test_a_form_of_float32_has_the_score_of_float32(evaluated):
    _, _, found = evaluated
    plain = {point.k: point.score for point in found.own if not point.form}

    assert {point.k: point.score for point in found.own if point.form == "vector"} == {k: plain[k] for k in (8, 16)}


def test_a_saved_evaluation_is_asked_for_a_store(evaluated):
    encoder, data, _ = evaluated
    found = evaluate(
        encoder, data, metric="recall@10", precisions=["float32", "float16", "binary"], ks=[8, 16], draws=20
    )
    choice = found.choose(store="postgres", bytes_per_vector=24)

    assert choice.store == "pgvector"
    assert choice.own.point.form in ("vector", "halfvec", "bit")
    assert choice.own.point.bytes <= 24
    assert found.choose(store="file").store == ""
    with pytest.raises(InvalidInputError, match="does not say what qdrant"):
        found.at("pgvector").at("qdrant")


def test_a_metric_that_compares_nothing_is_refused(evaluated):
    encoder, data, _ = evaluated
    with pytest.raises(InvalidInputError, match="compares nothing"):
        evaluate(encoder, data, store="pgvector", metric="readback_variance")
