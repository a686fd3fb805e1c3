"""Moments of pairs: each statistic against its definition, on any partition and in any merge order."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk import PairMoments
from firstk.exceptions import InvalidInputError
from slow_reference import frozen, scatter, third_comoment

N, P = 57, 5


def draw(seed=0, n=N, offset=0.0):
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((n, P)) + rng.standard_normal(P) + offset
    right = 0.7 * left + rng.standard_normal((n, P)) - offset / 2
    return frozen(left, right, rng.uniform(0, 5, n))


def same(a, b, rtol=1e-12):
    assert a.rows == b.rows
    for name in ("left_mean", "right_mean", "St", "positive", "third"):
        x, z = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, z, rtol=0, atol=rtol * max(1.0, np.abs(z).max()), err_msg=name)


def test_statistics_against_the_definition():
    left, right, s = draw()
    m = PairMoments().update(left, right, s)
    cross = scatter(left, right)
    np.testing.assert_allclose(m.left_mean, left.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(m.right_mean, right.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(m.St, (scatter(left) + scatter(right)) / 2, rtol=0, atol=1e-13)
    np.testing.assert_allclose(m.positive, (cross + cross.T) / 2, rtol=0, atol=1e-13)
    third = third_comoment(left, right, s)
    np.testing.assert_allclose(m.third, third, rtol=0, atol=1e-11)
    np.testing.assert_allclose(m.agreement, (third + third.T) / 2 / N, rtol=0, atol=1e-13)
    assert (m.n, m.rows, m.p, m.scored) == (N, N, P, True)


def test_huge_offsets():
    left, right, s = draw(offset=1e6)
    m = PairMoments().update(left[:20], right[:20], s[:20]).update(left[20:], right[20:], s[20:])
    np.testing.assert_allclose(m.third, third_comoment(left, right, s), rtol=0, atol=1e-6)
    np.testing.assert_allclose(m.St, (scatter(left) + scatter(right)) / 2, rtol=0, atol=1e-8)


@pytest.mark.parametrize("scores", [None, np.full(N, 0.3), np.full(N, 7)])
def test_equal_scores_are_no_scores(scores):
    left, right, _ = draw()
    m = PairMoments().update(left[:9], right[:9], None if scores is None else scores[:9])
    m.update(left[9:], right[9:], None if scores is None else scores[9:])
    assert not m.scored
    same(m, PairMoments().update(left, right))


def test_float32_is_close_to_float64():
    left, right, s = draw()
    narrow = [part.astype(np.float32) for part in (left, right)]
    fast = PairMoments().update(*narrow, s)
    exact = PairMoments("float64").update(*narrow, s)
    np.testing.assert_allclose(fast.St, exact.St, rtol=0, atol=4e-7 * np.linalg.eigvalsh(exact.St)[-1])
    np.testing.assert_allclose(fast.agreement, exact.agreement, rtol=0, atol=1e-5 * np.abs(exact.agreement).max())
    assert (fast.eps, exact.eps) == (np.finfo(np.float32).eps, np.finfo(np.float64).eps)


def test_mixed_precisions_are_taken_as_the_finer():
    left, right, s = draw()
    mixed = PairMoments().update(left.astype(np.float32), right, s)
    same(mixed, PairMoments().update(left.astype(np.float32).astype(float), right, s))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 3), min_size=24, max_size=24), st.permutations(range(4)), st.booleans())
def test_any_partition_in_any_merge_order(owner, order, nested):
    left, right, s = draw(1, 24)
    owner = np.array(owner)
    parts = []
    for i in order:
        mine = owner == i
        parts.append(PairMoments().update(left[mine], right[mine], s[mine]) if mine.any() else PairMoments())
    if nested:
        merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    else:
        merged = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
    same(merged, PairMoments().update(left, right, s), rtol=1e-11)


def test_merge_leaves_the_other_as_it_was():
    left, right, s = draw()
    a, b = PairMoments().update(left[:20], right[:20], s[:20]), PairMoments().update(left[20:], right[20:], s[20:])
    before = copy.deepcopy(b)
    PairMoments().merge(b).merge(a)
    a.merge(b)
    same(b, before, rtol=0)


def test_lifted_moments_are_those_of_lifted_pairs():
    left, right, s = draw()
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((9, P)))[0]
    lifted = PairMoments().update(left, right, s).from_basis(basis)
    same(lifted, PairMoments().update(left @ basis.T, right @ basis.T, s), rtol=1e-11)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda left, right, s: (left, right[:, :-1], s), "takes 'right' with 5 columns. Got 4"),
        (lambda left, right, s: (left, right[:-1], s), "as many rows in 'left' as in 'right'. Got 57 and 56"),
        (lambda left, right, s: (left, right, s[:-1]), r"one score a pair: shape \(57,\). Got shape \(56,\)"),
        (lambda left, right, s: (left, right, s[:, None]), r"one score a pair: shape \(57,\). Got shape \(57, 1\)"),
        (lambda left, right, s: (left, right, np.where(s > 1, s, np.nan)), "'scores' has NaN or infinity"),
        (lambda left, right, s: (left[0], right, s), "takes a two-dimensional 'left'"),
        (lambda left, right, s: (left + np.inf, right, s), "'left' has NaN or infinity in 57 of 57 rows"),
        (lambda left, right, s: (left[:, :3], right[:, :3], s), "Pairs of 5 columns cannot take in pairs of 3 columns"),
    ],
)
def test_bad_pairs_raise_an_error_and_change_nothing(change, message):
    pairs = draw()
    m = PairMoments().update(*pairs)
    with pytest.raises(InvalidInputError, match=message):
        m.update(*change(*pairs))
    same(m, PairMoments().update(*pairs), rtol=0)


def test_pairs_with_and_without_scores_do_not_mix():
    rng = np.random.default_rng(5)
    left, right = rng.normal(size=(2, 8, 3))
    with pytest.raises(InvalidInputError, match="Some pairs came with scores and some without"):
        PairMoments().update(left, right).update(left, right, np.arange(8.0))
    with pytest.raises(InvalidInputError, match="Give scores to all"):
        PairMoments().update(left, right, np.arange(8.0)).merge(PairMoments().update(left, right))


def test_scores_far_from_zero_keep_their_digits_beside_float32():
    rng = np.random.default_rng(0)
    left, right, scores = rng.normal(size=(200, 3)), rng.normal(size=(200, 3)), rng.normal(size=200)
    plain = PairMoments().update(left, right, scores)
    single = PairMoments().update(left.astype(np.float32), right.astype(np.float32), scores + 1e7)
    assert single.scored
    np.testing.assert_allclose(single.agreement, plain.agreement, atol=1e-6)


@pytest.mark.parametrize("scores", [None, "given"])
def test_pairs_come_back_from_arrays(scores):
    left, right, s = draw()
    m = PairMoments().update(left, right, None if scores is None else s)
    back = PairMoments.from_arrays(m.to_arrays())
    same(back, m, rtol=0)
    assert back.with_scores is m.with_scores


def test_no_pairs_come_back_from_arrays_and_go_on():
    empty = PairMoments.from_arrays(PairMoments().to_arrays())
    assert (empty.rows, empty.with_scores, empty.third.shape) == (0, None, (0, 0))
    same(empty.update(*draw()), PairMoments().update(*draw()), rtol=0)


def test_shifted_pairs():
    left, right, s = draw()
    m = PairMoments().update(left, right, s)
    m.moved(np.arange(P))
    same(m, PairMoments().update(left + np.arange(P), right + np.arange(P), s), rtol=1e-11)


@pytest.mark.parametrize("scored", [True, False])
def test_pairs_without_some_of_them(scored):
    left, right, s = draw(seed=3, offset=20.0)
    gone = np.arange(N) % 5 == 2
    some, rest, whole = (
        PairMoments().update(left[rows], right[rows], s[rows] if scored else None)
        for rows in (gone, ~gone, np.ones(N, dtype=bool))
    )
    before = copy.deepcopy(whole)
    same(whole.without(some), rest, rtol=1e-11)
    same(whole, before, rtol=0)
