"""What evaluate and the shapes do with unusual arguments: a clear error, or the number of a slower way."""

import numpy as np
import pytest

from firstk import Pairs, PrefixEncoder, Rows, Search, evaluate
from firstk.data import load_digits
from firstk.exceptions import InvalidInputError

DIGITS = load_digits()
DATA = Rows(DIGITS.X_test, DIGITS.y_test, reference=Rows(DIGITS.X_train, DIGITS.y_train))


@pytest.fixture(scope="module")
def encoder():
    return PrefixEncoder(16).fit(DIGITS.X_train)


def test_baselines_are_rounded_without_float32_too(encoder):
    alone = evaluate(encoder, DATA, precisions=["int8"], draws=20)
    both = evaluate(encoder, DATA, precisions=["float32", "int8"], draws=20)
    rounded = [[point.key for point in found if point.precision == "int8"] for found in (alone, both)]
    assert rounded[0] == rounded[1]
    assert any(point.code == "uncentred SVD" and point.precision == "int8" for point in alone)
    assert not any(point.own and point.precision == "float32" for point in alone)


def test_rows_that_change_are_scored_as_they_are(encoder):
    data = Rows(DIGITS.X_test[:200].copy())
    settings = {"metric": "recall@10", "ks": [4], "precisions": ["float32"], "baselines": False, "draws": 20}
    evaluate(encoder, data, **settings)
    data.X[:] = data.X[::-1] * np.arange(64)
    found = evaluate(encoder, data, **settings)
    assert found.points[0].score == evaluate(encoder, Rows(data.X.copy()), **settings).points[0].score


def test_an_evaluation_without_draws_has_no_intervals(encoder):
    found = evaluate(encoder, DATA, ks=[8], precisions=["float32"], baselines=False, draws=0)
    assert found.draws is None
    assert found.choose(keep=0.5).own.low is None
    with pytest.raises(InvalidInputError, match=r"'draws'.*an int of at least 0\. Got -1"):
        evaluate(encoder, DATA, draws=-1)


def test_baselines_may_be_estimators(encoder):
    other = PrefixEncoder(16, objective="fisher").fit(DIGITS.X_train, DIGITS.y_train)
    found = evaluate(encoder, DATA, ks=[4], precisions=["float32"], baselines={"LDA": other}, draws=20)
    assert found.curve("LDA").k == (4,)


def test_shapes_hold_their_own_labels_and_weights(encoder):
    for data in (Rows(DIGITS.X_train), Pairs(DIGITS.X[:9], DIGITS.X[1:10])):
        with pytest.raises(InvalidInputError, match="takes y and sample_weight with an array"):
            PrefixEncoder(2).fit(data, DIGITS.y_train)


def test_a_part_of_a_search_takes_a_mask_or_ascending_rows():
    search = Search(np.eye(3), np.eye(3), [(0, 1, 1), (1, 2, 1), (2, 0, 1)])
    for queries in ([0, 2], np.array([True, False, True])):
        np.testing.assert_array_equal(search.subset(queries).relevance, [(0, 1, 1), (1, 0, 1)])
    with pytest.raises(InvalidInputError, match="ascending order"):
        search.subset([2, 0])
