"""Estimated relevance: the same partners for all encoders, and a store where fidelity and relevance part."""

import numpy as np
import pytest

from firstk import PrefixEncoder, Similarity
from firstk.evaluation.baselines import plain_truncation, principal_components
from firstk.evaluation.relevance import best_encoder, estimate_relevance
from firstk.exceptions import InvalidInputError
from firstk.metrics import EvaluationData, mined_judgements, mined_partners, ndcg, partner_ndcg, prefix_curve

P, TOPICS = 24, 12


def store(seed, n):
    """Documents of many topics in weak coordinates, under four strong ones that no topic has a part in."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(0).normal(size=(150, TOPICS))
    topics = centers[rng.integers(0, len(centers), n)] + 0.25 * rng.normal(size=(n, TOPICS))
    strong = 3.0 * rng.normal(size=(n, 4))
    weak = 0.25 * rng.normal(size=(n, P - TOPICS - 4))
    return np.column_stack([strong, topics, weak])


@pytest.fixture(scope="module")
def encoders():
    X = store(1, 900)
    return {
        "similarity": PrefixEncoder(objective=Similarity()).fit(X),
        "PCA": principal_components(X),
        "truncation": plain_truncation(X),
    }


def test_held_out_rows_look_for_their_partners_in_the_store(encoders):
    documents, held = store(1, 900), store(2, 200)
    curves = estimate_relevance(encoders, documents, held_out=held, ks=[4, 8])
    mined = mined_partners(held, documents)
    for name, curve in curves.items():
        encoder = getattr(encoders[name], "encoder_", encoders[name])
        Z_ref, Z = encoder.coordinates(documents), encoder.coordinates(held[mined.rows])
        np.testing.assert_allclose(curve.score, partner_ndcg(Z_ref, Z, mined.partners, ks=[4, 8]), rtol=1e-9)
        assert (curve.metric, curve.n_evaluated) == ("mined_ndcg@10", len(mined.rows))
        assert all(low <= score <= high for low, score, high in zip(curve.low, curve.score, curve.high, strict=True))


def test_queries_are_scored_by_mined_judgements(encoders):
    documents, queries = store(1, 900), store(3, 50)
    curves = estimate_relevance(encoders, documents, queries=queries, ks=[8], confidence=None)
    judgements = mined_judgements(queries, documents)
    expected = ndcg(documents, queries, judgements, ks=[8])
    assert curves["truncation"].score == pytest.approx(expected)
    assert curves["truncation"].metric == "mined_ndcg@10"
    assert curves["truncation"].low is None


def test_the_estimate_does_not_prefer_what_only_keeps_the_strong_directions(encoders):
    documents, held = store(1, 900), store(2, 300)
    curves = estimate_relevance(encoders, documents, held_out=held, ks=[12])
    data = EvaluationData(X=held, X_ref=documents)
    fidelity = {name: prefix_curve(encoder, data, "recall@10", ks=[12]).at(12) for name, encoder in encoders.items()}
    assert fidelity["PCA"] > fidelity["similarity"] + 0.1
    assert best_encoder(curves, 12) == "similarity"
    assert curves["similarity"].at(12) > curves["PCA"].at(12) + 0.1


def test_each_encoder_is_scored_at_the_lengths_that_it_has(encoders):
    mixed = {"short": encoders["PCA"][:4], "long": encoders["PCA"]}
    curves = estimate_relevance(mixed, store(1, 900), held_out=store(2, 200), ks=[4, 8])
    assert (curves["short"].k, curves["long"].k) == ((4,), (4, 8))
    assert best_encoder(curves, 8) == "long"


def test_of_equal_scores_the_first_is_best(encoders):
    twice = {"first": encoders["PCA"], "second": encoders["PCA"]}
    assert best_encoder(estimate_relevance(twice, store(1, 900), held_out=store(2, 200), ks=[4]), 4) == "first"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "queries=, or rows"),
        ({"held_out": store(2, 50), "ks": [99]}, "exceeds the width"),
    ],
)
def test_bad_input_raises(encoders, given, message):
    with pytest.raises(InvalidInputError, match=message):
        estimate_relevance(encoders, store(1, 900), **given)


def test_no_encoders_and_no_score_raise(encoders):
    with pytest.raises(InvalidInputError, match="Got none"):
        estimate_relevance({}, store(1, 900), held_out=store(2, 50))
    curves = estimate_relevance(encoders, store(1, 900), held_out=store(2, 50), ks=[4])
    with pytest.raises(InvalidInputError, match="no score at k = 5"):
        best_encoder(curves, 5)
