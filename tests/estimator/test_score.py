"""The single score of an encoder: one metric for all objectives, by y alone, or one that is named."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from firstk import Fisher, PrefixEncoder
from firstk.data import load_digits
from firstk.exceptions import InvalidInputError
from firstk.metrics import make_scorer

K = 4


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def slow_neighbor_accuracy(Z, y):
    """Deal the rows out to five parts; each row is labeled by the nearest one, by cosine, of the other four parts."""
    U = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    hits = 0
    for i in range(len(U)):
        others = [j for j in range(len(U)) if j % 5 != i % 5]
        hits += y[max(others, key=lambda j, i=i: U[i] @ U[j])] == y[i]
    return hits / len(U)


def test_neighbor_accuracy_among_the_rows_given(digits):
    enc = PrefixEncoder(8).fit(digits.X_train)
    X, y = digits.X_test[:100], digits.y_test[:100]
    expected = slow_neighbor_accuracy(enc.transform(X).astype(float)[:, :K], y)
    assert enc.score(X, y, metric="1nn_accuracy", k=K) == pytest.approx(expected, abs=0.011)  # a tie, at most
    assert make_scorer("1nn_accuracy", k=K)(enc, X, y) == enc.score(X, y, metric="1nn_accuracy", k=K)


def test_r2_is_of_rows_that_the_readout_has_not_seen(digits):
    enc = PrefixEncoder(30).fit(digits.X_train)
    X, Z = digits.X_test[:60], enc.transform(digits.X_test[:60])
    noise = np.random.default_rng(0).standard_normal(60)
    parts = np.arange(60) % 5
    expected = np.mean([
        LinearRegression().fit(Z[parts != p], noise[parts != p]).score(Z[parts == p], noise[parts == p])
        for p in range(5)
    ])  # fmt: skip
    assert expected < 0  # a readout fitted on these very rows would explain half of the noise
    assert enc.score(X, noise, metric="r2") == pytest.approx(expected, rel=1e-6)


def test_the_accuracy_of_predict_is_a_score(digits):
    enc = PrefixEncoder(objective="fisher").fit(digits.X_train, digits.y_train)
    X, y = digits.X_test, digits.y_test
    assert enc.score(X, y, metric="head_accuracy") == np.mean(enc.predict(X) == y)
    assert enc.score(X, y, metric="head_accuracy", k=K) == np.mean(enc.predict(X, k=K) == y)


@pytest.mark.parametrize(
    ("y", "metric"), [("labels", "1nn_accuracy"), ("text", "1nn_accuracy"), ("floats", "r2"), (None, "recall@10")]
)
def test_a_search_over_objectives_compares_one_metric(digits, y, metric):
    X, labels = digits.X_train[:300], digits.y_train[:300]
    given = {"labels": labels, "text": labels.astype(str), "floats": labels + 0.5, None: None}[y]
    names = {"floats": ["reconstruction", "regression", "mixture"], None: ["reconstruction", "similarity"]}.get(
        y, ["reconstruction", "fisher", "mixture"]
    )
    folds = KFold(2)
    found = GridSearchCV(PrefixEncoder(6), {"objective": names}, cv=folds, error_score="raise").fit(X, given)
    for objective, score in zip(names, found.cv_results_["mean_test_score"], strict=True):
        expected = []
        for fit, held in folds.split(X):
            target = None if given is None else given[fit]
            enc = PrefixEncoder(6, objective=objective).fit(X[fit], target)
            expected.append(enc.score(X[held], None if given is None else given[held], metric=metric))
        assert score == pytest.approx(np.mean(expected), abs=1e-12)


def test_how_an_objective_was_given_does_not_change_the_score(digits):
    X, y = digits.X_train, digits.y_train
    made = PrefixEncoder(6, objective=Fisher(0.1)).fit(X, y)
    changed = PrefixEncoder(6).set_params(objective="fisher").set_params(objective__shrinkage=0.1).fit(X, y)
    copied = clone(changed).fit(X, y)
    expected = made.score(digits.X_test, digits.y_test)
    assert expected == made.score(digits.X_test, digits.y_test, metric="1nn_accuracy")
    assert [changed.score(digits.X_test, digits.y_test), copied.score(digits.X_test, digits.y_test)] == [expected] * 2


def test_a_scorer_in_a_search_over_pipelines(digits):
    X, y = digits.X_train[:300], digits.y_train[:300]
    pipe, scorer = (
        make_pipeline(StandardScaler(), PrefixEncoder()),
        pickle.loads(pickle.dumps(make_scorer("1nn_accuracy", 4))),
    )
    grid = {"prefixencoder": [PrefixEncoder(), PrefixEncoder(objective=Fisher(0.1)), PrefixEncoder(2)]}
    search = GridSearchCV(pipe, grid, scoring=scorer, cv=KFold(2), error_score="raise").fit(X, y)
    expected = []
    for fit, held in KFold(2).split(X):
        scale = StandardScaler().fit(X[fit])
        enc = PrefixEncoder(objective=Fisher(0.1)).fit(scale.transform(X[fit]), y[fit])
        expected.append(enc.score(scale.transform(X[held]), y[held], metric="1nn_accuracy", k=4))
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(expected), abs=1e-12)


def test_what_cannot_be_scored_is_said(digits):
    X, y = digits.X_train[:60], digits.y_train[:60]
    enc = PrefixEncoder(4).fit(X)
    with pytest.raises(
        InvalidInputError, match=r"scored among the rows given and needs at least four. Got 3.*reference="
    ):
        enc.score(X[:3], y[:3], metric="1nn_accuracy")
    with pytest.raises(InvalidInputError, match=r"'k' parameter of PrefixEncoder.score must be an int in \[1, 4\]"):
        enc.score(X, y, k=5)
    with pytest.raises(InvalidInputError, match="'metric' parameter of make_scorer must be one of '1nn_accuracy'"):
        make_scorer("ndcg@10")
    with pytest.raises(InvalidInputError, match="'k' parameter of make_scorer"):
        make_scorer("r2", k=0)
    pipe = make_pipeline(PrefixEncoder(4), LogisticRegression(max_iter=1000)).fit(X, y)
    with pytest.raises(
        InvalidInputError, match=r"Got LogisticRegression: to score what follows an encoder.*'accuracy'"
    ):
        make_scorer("1nn_accuracy")(pipe, X, y)


@pytest.mark.parametrize("metric", ["head_accuracy", "explained_variance", "readback_variance"])
def test_a_weight_counts_as_often_as_a_row_is_there(digits, metric):
    objective = "fisher" if metric == "head_accuracy" else "reconstruction"
    enc = PrefixEncoder(6, objective=objective).fit(digits.X_train, digits.y_train)
    X, y = digits.X_test[:90], digits.y_test[:90]
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    if metric == "readback_variance":  # parts of rows that are all there once: the mean of parts by their weight
        number = np.arange(len(X)) % 5
        weight = 1 + number
        slow = [enc.curve(X[number == f], reference=X[number != f], metric=metric).at(6) for f in range(5)]
        expected = np.average(slow, weights=[weight[number == f].sum() for f in range(5)])
    else:
        several = np.repeat(np.arange(len(X)), weight)
        expected = enc.score(X[several], y[several], metric=metric)
    assert enc.score(X, y, weight, metric=metric) == pytest.approx(expected, abs=1e-12)
    assert enc.score(X, y, weight, metric=metric) != pytest.approx(enc.score(X, y, metric=metric), abs=1e-6)
    assert enc.score(X, y, 3.0 * weight, metric=metric) == pytest.approx(expected, abs=1e-12)


def test_weighted_neighbor_accuracy_is_the_weighted_mean_of_hits(digits):
    enc = PrefixEncoder(8).fit(digits.X_train)
    X, y = digits.X_test[:60], digits.y_test[:60]
    single = [enc.score(X, y, np.arange(60) == i) for i in range(60)]  # whether row i is answered rightly
    assert set(single) == {0.0, 1.0}
    weight = np.linspace(0, 2, 60)
    assert enc.score(X, y, weight) == pytest.approx(np.average(single, weights=weight))
    assert enc.score(X, y) == pytest.approx(np.mean(single))


@pytest.mark.parametrize("weight", [[1.0], -np.ones(30), np.zeros(30), "much"])
def test_weights_that_are_none_raise(digits, weight):
    with pytest.raises(InvalidInputError, match=r"'sample_weight' of PrefixEncoder.score"):
        PrefixEncoder(3).fit(digits.X_train).score(digits.X_test[:30], sample_weight=weight)
