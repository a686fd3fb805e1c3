"""The cut-off on short codes for a raw cosine, against a loop over all pairs; estimates against new rows."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from firstk import PrefixEncoder, Rows, Search
from firstk.data.precision import PRECISIONS
from firstk.exceptions import InvalidInputError
from firstk.metrics import calibration, matched_threshold, nearest_neighbors
from firstk.objectives import Similarity
from firstk.quality.choice import Choice, Limits, Offer, Point


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(260, 8)) * np.arange(1, 9) ** -1.0).astype(np.float32)
    return PrefixEncoder(8, objective="similarity").fit(X[:200]), X[200:], X[:200]


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.parametrize("alone", [False, True])
def test_rates_are_those_of_a_loop_over_pairs(task, alone):
    encoder, X, reference = task
    data = Rows(X) if alone else Rows(X, reference=Rows(reference))
    found = matched_threshold(encoder, data, 0.8, k=3)

    stored = X if alone else reference
    raw, short = (
        unit(X) @ unit(stored).T,
        unit(encoder.encode_document(X)[:, :3]) @ unit(encoder.encode_document(stored)[:, :3]).T,
    )
    pairs = [(i, j) for i in range(1, len(X), 2) for j in range(len(stored)) if not (alone and i == j)]
    both = sum(raw[p] >= 0.8 and short[p] >= found.cut for p in pairs)
    matches, above = sum(raw[p] >= 0.8 for p in pairs), sum(short[p] >= found.cut for p in pairs)
    assert found.matches == matches
    assert found.misses == pytest.approx(1 - both / matches, abs=0.01)
    assert found.false_matches == pytest.approx(1 - both / above, abs=0.01)
    assert found.miss_ends[0] <= found.misses <= found.miss_ends[1]
    even = [(i, j) for i in range(0, len(X), 2) for j in range(len(stored)) if not (alone and i == j)]
    as_many = sum(short[p] >= found.cut for p in even), sum(raw[p] >= 0.8 for p in even)
    assert as_many[0] == pytest.approx(as_many[1], abs=3)


def test_all_coordinates_keep_the_threshold(task):
    _, X, reference = task
    exact = PrefixEncoder(8, objective=Similarity(keep="dot_products")).fit(reference)
    found = matched_threshold(exact, Search(X, reference, None), 0.7, k=8)

    assert found.cut == pytest.approx(0.7, abs=0.01)
    assert found.misses < 0.02
    assert str(found).startswith("A raw cosine of 0.7 is ")


@pytest.mark.parametrize("cosine", [1.2, -2, "0.8", float("nan")])
def test_no_cosine_is_refused(task, cosine):
    encoder, X, _ = task
    with pytest.raises(InvalidInputError, match=r"a number in \[-1, 1\]"):
        matched_threshold(encoder, Rows(X), cosine, k=3)


def test_a_cosine_that_no_pair_has_is_refused(task):
    encoder, X, _ = task
    with pytest.raises(InvalidInputError, match="nothing to match"):
        matched_threshold(encoder, Rows(X), 1.0, k=3)


def test_an_encoder_says_its_thresholds(task):
    encoder, X, reference = task
    assert encoder.threshold(0.8, 3, X, reference) == matched_threshold(
        encoder, Rows(X, reference=Rows(reference)), 0.8, 3
    )
    assert encoder.threshold(0.8, 3, X) == matched_threshold(encoder, Rows(X), 0.8, 3)


def signs(codes):
    return 2.0 * (codes > 0) - 1


def int8(codes, of):
    precision = PRECISIONS["int8"].fit(of)
    return precision.restore(precision.quantise(codes))


STORED = {
    "int8": (Point(4, "int8", 4, 0.5), lambda q, z: (q, int8(z, z))),
    "int8, both sides": (
        Point(4, "int8", 4, 0.5, queries="int8", form="byte"), lambda q, z: (int8(q, z), int8(z, z))
    ),
    "bits of a store": (Point(7, "binary", 1, 0.5, queries="binary", form="bit"), lambda q, z: (signs(q), signs(z))),
    "rescored bits": (Point(4, "binary", 20, 0.5, queries="binary", form="bq", oversampling=3), lambda q, z: (q, z)),
    "embedded bits": (Point(8, "embedded", 3, 0.5), None),
}  # fmt: skip


@pytest.mark.parametrize("name", STORED)
def test_a_choice_says_the_threshold_of_what_it_stores(task, name):
    encoder, X, reference = task
    point, codes = STORED[name]
    choice = Choice("recall@10", "raw vectors", 1.0, (Offer(point, "cheapest", 0.99),), Limits())
    found = choice.threshold(0.8, encoder, X, reference)

    if codes is None:
        quantizer = encoder.encoder_.quantizer(point.bytes)
        asked, stored = quantizer.encode_query(X), quantizer.decode(quantizer.encode(reference))
    else:
        asked, stored = codes(*(encoder.encode_document(part)[:, : point.k] for part in (X, reference)))
    raw, short = unit(X)[1::2] @ unit(reference).T, unit(asked)[1::2] @ unit(stored).T
    matches, above = raw >= 0.8, short >= found.cut - 1e-6
    assert found.misses == pytest.approx(1 - (matches & above).sum() / matches.sum(), abs=0.01)
    assert found.false_matches == pytest.approx(1 - (matches & above).sum() / above.sum(), abs=0.01)
    assert found.codes == (str(point) if codes else "embedded bits in 3 bytes")


def test_codes_whose_cosines_nobody_knows_are_refused(task):
    encoder, X, _ = task
    for point in (Point(4, "scalar", 4, 0.5, form="SQ8"), Point(4, "int8", 4, 0.5, code="PCA")):
        with pytest.raises(InvalidInputError, match=r"knows no cosines of .* Give k\."):
            encoder.threshold(0.8, point, X)


@pytest.mark.parametrize("alone", [False, True])
def test_estimates_have_the_mean_of_raw_cosines_of_new_results(alone):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(4000, 24)) * np.arange(1, 25) ** -0.4).astype(np.float32)
    encoder = PrefixEncoder(24, objective=Similarity(keep="dot_products")).fit(X)
    known, new, stored = X[:500], X[500:900], X[900:]
    data = Rows(X[:3000]) if alone else Rows(known, reference=Rows(stored))

    estimate = calibration(encoder, data, k=6)

    short, held = (encoder.encode_document(part)[:, :6] for part in (new, stored))
    rows = nearest_neighbors(held, short, 10)
    scores = np.take_along_axis(unit(short) @ unit(held).T, rows, axis=1)
    raw = np.take_along_axis(unit(new) @ unit(stored).T, rows, axis=1)
    assert (scores - raw).mean() > 0.2, "cosines of short codes are far too high"
    assert abs((estimate(scores) - raw).mean()) < 0.02
    assert (np.diff(estimate(np.linspace(-1, 1, 100))) >= 0).all()


def test_estimates_by_loops(task):
    encoder, X, reference = task
    estimate = calibration(encoder, Rows(X, reference=Rows(reference)), k=3)
    short = unit(encoder.encode_document(X)[:, :3]) @ unit(encoder.encode_document(reference)[:, :3]).T
    raw = unit(X) @ unit(reference).T
    pairs = np.array(sorted((short[i, j], raw[i, j]) for i in range(60) for j in np.argsort(-short[i])[:10]))
    groups = np.array([group.mean(axis=0) for group in np.array_split(pairs, 64)])
    expected = IsotonicRegression().fit_transform(*groups.T)
    np.testing.assert_allclose(estimate(groups[:, 0]), expected, atol=1e-4)
    assert estimate(-1.0) == pytest.approx(expected[0], abs=1e-4)
