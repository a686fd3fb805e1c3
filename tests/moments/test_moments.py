"""Moments: every statistic against its definition, whatever the input, the batching and the order of merging."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from firstk import Moments
from firstk.exceptions import InvalidInputError
from firstk.moments import moments
from slow_reference import EPS, class_scatters, classes_of, correlated, frozen, scatter

N, P, Q = 83, 6, 3


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = correlated(rng, N, P) + rng.standard_normal(P)
    Y = X @ rng.standard_normal((P, Q)) + rng.standard_normal((N, Q))
    return frozen(X, Y, classes_of(rng, N, 4), rng.uniform(0.1, 3.0, N))


def same(a, b, rtol=1e-12):
    """Compare two sets of moments by everything that follows from them."""
    assert a.rows == b.rows
    np.testing.assert_allclose(a.n, b.n, rtol=rtol)
    np.testing.assert_allclose(a.mean, b.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.St, b.St, rtol=0, atol=rtol * np.abs(a.St).max())
    np.testing.assert_allclose(a.Sw, b.Sw, rtol=0, atol=rtol * np.abs(a.St).max())
    np.testing.assert_array_equal(a.group_labels, b.group_labels)
    np.testing.assert_allclose(a.class_means, b.class_means, rtol=rtol, atol=rtol)
    if a.q:
        np.testing.assert_allclose(a.Sxy, b.Sxy, rtol=0, atol=rtol * np.abs(a.Sxy).max())
        np.testing.assert_allclose(a.Syy, b.Syy, rtol=0, atol=rtol * np.abs(a.Syy).max())


def test_rows_against_the_definition(data):
    X, _, _, _ = data
    m = Moments().update(X)
    assert (m.rows, m.n, m.p, m.q, m.classes) == (N, float(N), P, 0, None)
    np.testing.assert_allclose(m.mean, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(m.St, scatter(X), rtol=0, atol=1e-13)
    np.testing.assert_allclose(m.St, np.cov(X.T, bias=True), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(m.Sw, m.St)  # one group: all of the scatter is within it


@pytest.mark.parametrize("labels", ["ints", "strings", "booleans"])
def test_classes_against_the_definition(data, labels):
    X, _, y, _ = data
    if labels == "strings":
        y = np.array(["d", "b", "a", "c"])[y]
    elif labels == "booleans":
        y = y > 1
    m = Moments().update(X, y)
    Sw, Sb = class_scatters(X, y)
    np.testing.assert_array_equal(m.classes, np.unique(y))
    np.testing.assert_allclose(m.class_means, [X[y == c].mean(axis=0) for c in np.unique(y)], rtol=1e-12)
    np.testing.assert_allclose(m.class_shares, [np.mean(y == c) for c in np.unique(y)], rtol=1e-14)
    np.testing.assert_allclose(m.Sw, Sw, rtol=0, atol=1e-13)
    np.testing.assert_allclose(m.Sb, Sb, rtol=0, atol=1e-13)
    np.testing.assert_allclose(m.St, scatter(X), rtol=0, atol=1e-13)
    np.testing.assert_allclose(m.between_factor @ m.between_factor.T, Sb, rtol=0, atol=1e-13)


def test_targets_against_the_definition(data):
    X, Y, _, _ = data
    m = Moments().update(X, targets=Y)
    np.testing.assert_allclose(m.target_mean, Y.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(m.Sxy, scatter(X, Y), rtol=0, atol=1e-12)
    np.testing.assert_allclose(m.Syy, scatter(Y), rtol=0, atol=1e-12)
    np.testing.assert_allclose(m.St, scatter(X), rtol=0, atol=1e-13)
    one = Moments().update(X, targets=Y[:, 0])
    np.testing.assert_allclose(one.Sxy, m.Sxy[:, :1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("beside", ["nothing", "labels", "targets"])
def test_whole_weights_are_repeated_rows(data, beside):
    X, Y, y, _ = data
    times = np.random.default_rng(1).integers(0, 4, N)
    weighted, repeated = {
        "nothing": ({}, {}),
        "labels": ({"y": y}, {"y": np.repeat(y, times)}),
        "targets": ({"targets": Y}, {"targets": np.repeat(Y, times, axis=0)}),
    }[beside]
    a = Moments().update(X, **weighted, sample_weight=times)
    b = Moments().update(np.repeat(X, times, axis=0), **repeated)
    assert a.n == b.n == times.sum()
    b.rows = a.rows  # rows counts what was seen; the weights say how often
    same(a, b)


def test_weights_against_the_definition(data):
    X, Y, y, w = data
    m = Moments().update(X, y, sample_weight=w)
    Sw, Sb = class_scatters(X, y, w)
    np.testing.assert_allclose(m.mean, np.average(X, axis=0, weights=w), rtol=1e-12)
    np.testing.assert_allclose(m.Sw, Sw, rtol=0, atol=1e-13)
    np.testing.assert_allclose(m.Sb, Sb, rtol=0, atol=1e-13)
    t = Moments().update(X, targets=Y, sample_weight=w)
    np.testing.assert_allclose(t.Sxy, scatter(X, Y, w), rtol=0, atol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_huge_offsets_in_float64(data, offset):
    # The rows themselves lose offset * eps; the reference is taken from the rows as they then are.
    X, Y, y, _ = data
    moved = X + offset * np.array([1, -1, 1, 0.5, 1, 0])
    np.testing.assert_allclose(Moments().update(moved).St, scatter(moved), rtol=0, atol=1e-12)
    m = Moments().update(moved, y, targets=Y + offset)
    Sw, Sb = class_scatters(moved, y)
    np.testing.assert_allclose(m.Sw, Sw, rtol=0, atol=1e-12)
    # Class means near the offset are themselves rounded to offset * eps, which enters linearly.
    rounding = 8 * offset * EPS
    np.testing.assert_allclose(m.Sb, Sb, rtol=0, atol=rounding)
    np.testing.assert_allclose(m.St, scatter(moved), rtol=0, atol=rounding)
    np.testing.assert_allclose(m.Sxy, scatter(moved, Y + offset), rtol=0, atol=rounding)


@pytest.mark.parametrize("shape", [(5000, 40), (800_000, 4)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("beside", ["nothing", "labels", "weights"])
def test_float32_error_bound(shape, offset, beside):
    """The fast path is off by less than 8 units of float32 precision (1e-6) of the largest eigenvalue."""
    rng = np.random.default_rng(2)
    X = (correlated(rng, *shape, decay=0.9) + offset).astype(np.float32)
    extra = {
        "nothing": {},
        "labels": {"y": rng.integers(0, 5, len(X))},
        "weights": {"sample_weight": rng.uniform(0, 2, len(X))},
    }[beside]
    fast, exact = Moments().update(X, **extra), Moments(precision="float64").update(X, **extra)
    if beside == "nothing" and len(X) == 5000:
        np.testing.assert_allclose(exact.St, scatter(X), rtol=0, atol=1e-12)
    largest = np.linalg.eigvalsh(exact.St)[-1]
    for name in ("St", "Sw"):
        error = np.linalg.norm(getattr(fast, name) - getattr(exact, name), 2)
        assert error < 8 * np.finfo(np.float32).eps * largest, name
    assert fast.St.dtype == fast.within.dtype == np.float64
    assert (fast.eps, exact.eps) == (np.finfo(np.float32).eps, EPS)


def test_rows_without_weight_leave_no_trace(data, monkeypatch):
    monkeypatch.setattr("firstk.moments.moments._BLOCK_ENTRIES", 1)  # 64 rows a block: the first one weighs nothing
    X, _, y, _ = data
    wild = np.vstack([np.full((128, P), 1e12), X])
    w = np.append(np.zeros(128), np.ones(N))
    a, b = Moments().update(wild, np.append(np.zeros(128, int), y), sample_weight=w), Moments().update(X, y)
    b.rows = a.rows
    same(a, b)


def test_float64_rows_never_take_the_fast_path(data):
    X, _, _, _ = data
    np.testing.assert_array_equal(Moments().update(X).St, Moments(precision="float64").update(X).St)


def test_float16_and_whole_numbers():
    rng = np.random.default_rng(3)
    half = rng.standard_normal((50, 4)).astype(np.float16)
    np.testing.assert_allclose(Moments().update(half).St, scatter(half), rtol=0, atol=1e-6)
    whole = rng.integers(0, 255, (50, 4)).astype(np.uint8)
    np.testing.assert_allclose(Moments().update(whole).St, scatter(whole), rtol=1e-13)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e8 + 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parts", [1, 5])
def test_constant_columns_are_exactly_zero(data, value, dtype, parts):
    X, _, y, w = data
    X = X.astype(dtype)
    X[:, 2] = value
    m = Moments()
    for rows in np.array_split(np.arange(N), parts):
        m.update(X[rows], y[rows], sample_weight=w[rows])
    for S in (m.St, m.Sw):
        assert not S[2].any()
        assert not S[:, 2].any()
        assert (np.delete(np.diag(S), 2) > 0).all()


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "csr_array"])
def test_sparse_rows(kind):
    rng = np.random.default_rng(4)
    dense = rng.standard_normal((90, 7)) * (rng.random((90, 7)) < 0.2)
    y = classes_of(rng, 90, 3)
    rows = sparse.csr_array(dense) if kind == "csr_array" else sparse.csr_matrix(dense).asformat(kind)
    same(Moments().update(rows, y), Moments().update(dense, y))


def test_sparse_rows_become_dense_one_block_at_a_time(monkeypatch):
    monkeypatch.setattr("firstk.moments.moments._BLOCK_ENTRIES", 64)
    seen = []
    original = sparse.csr_matrix.toarray
    monkeypatch.setattr(
        sparse.csr_matrix, "toarray", lambda self, *a, **k: (seen.append(self.shape), original(self, *a, **k))[1]
    )
    rng = np.random.default_rng(5)
    dense = rng.standard_normal((6400, 9)) * (rng.random((6400, 9)) < 0.1)
    m = Moments().update(sparse.csr_matrix(dense))
    assert sum(n == 64 for n, _ in seen) == 100
    assert max(n for n, _ in seen) < 520  # a few rows spread over the whole, to centre by
    np.testing.assert_allclose(m.St, scatter(dense), rtol=0, atol=1e-14)


def test_memory_maps(tmp_path, data):
    X, _, y, _ = data
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    same(Moments().update(mapped, y), Moments().update(X, y))


def test_batches_larger_than_a_block(monkeypatch, data):
    X, Y, y, w = data
    whole = Moments().update(X, y, targets=Y, sample_weight=w)
    monkeypatch.setattr("firstk.moments.moments._BLOCK_ENTRIES", 1)  # 64 rows a block
    same(Moments().update(X, y, targets=Y, sample_weight=w), whole)


BAD = {
    "a NaN in the last block": lambda X, y: {"X": np.where(np.arange(N)[:, None] == N - 1, np.nan, X), "y": y},
    "another width": lambda X, y: {"X": X[:, :-1], "y": y},
    "no labels": lambda X, y: {"X": X},
    "too few labels": lambda X, y: {"X": X, "y": y[:-1]},
    "bad weights": lambda X, y: {"X": X, "y": y, "sample_weight": -np.ones(N)},
    "targets out of nowhere": lambda X, y: {"X": X, "y": y, "targets": X},
}


@pytest.mark.parametrize("bad", BAD)
def test_a_failing_update_changes_nothing(data, monkeypatch, bad):
    X, _, y, _ = data
    monkeypatch.setattr("firstk.moments.moments._BLOCK_ENTRIES", 1)
    m = Moments().update(X, y)
    before = copy.deepcopy(m.__dict__)
    with pytest.raises(InvalidInputError):
        m.update(**BAD[bad](X, y))
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(m, name), value, err_msg=name)


def test_a_failing_merge_changes_neither(data):
    X, _, y, _ = data
    m, other = Moments().update(X, y), Moments().update(X[:, :-1], y)
    before = copy.deepcopy((m.__dict__, other.__dict__))
    with pytest.raises(InvalidInputError, match="cannot take in"):
        m.merge(other)
    for thing, state in zip((m, other), before, strict=True):
        for name, value in state.items():
            np.testing.assert_array_equal(getattr(thing, name), value, err_msg=name)


def test_merge_leaves_the_other_as_it_was(data):
    X, _, y, _ = data
    left, right = Moments().update(X[:40], y[:40]), Moments().update(X[40:], y[40:])
    before = pickle.dumps(right)
    taken = Moments().merge(right)  # an empty object must not share arrays with what it took in
    taken.merge(left)
    left.merge(right)
    assert pickle.dumps(right) == before


def test_merging_nothing_is_nothing(data):
    X, _, _, _ = data
    m = Moments().update(X)
    same(m.merge(Moments()), Moments().update(X))
    same(Moments().merge(m), m)


def test_merging_with_itself_counts_every_row_twice(data):
    X, _, y, _ = data
    m = Moments().update(X, y)
    same(m.merge(m), Moments().update(np.vstack([X, X]), np.append(y, y)))


def test_classes_may_first_appear_late(data):
    X, _, y, _ = data
    order = np.argsort(y, kind="stable")
    m = Moments()
    for rows in np.array_split(order, 9):
        m.update(X[rows], y[rows])
    same(m, Moments().update(X, y))


def test_inputs_are_not_written_into(data):
    X, Y, y, w = data  # read-only: a write would raise
    copies = [part.copy() for part in data]
    Moments().update(X, y, targets=Y, sample_weight=w).update(X, y, targets=Y, sample_weight=w)
    for part, original in zip(data, copies, strict=True):
        np.testing.assert_array_equal(part, original)


def test_lifted_moments_are_those_of_lifted_rows(data):
    X, Y, y, _ = data
    basis = np.linalg.qr(np.random.default_rng(6).standard_normal((11, P)))[0]
    same(Moments().update(X, y, targets=Y).from_basis(basis), Moments().update(X @ basis.T, y, targets=Y), rtol=1e-11)


def test_unknown_precision_raises_an_error():
    with pytest.raises(InvalidInputError, match=r"must be one of 'auto', 'float64'. Got 'float32' instead"):
        Moments(precision="float32")


@st.composite
def partitions(draw, n):
    """An assignment of rows to parts, and an order in which pairs of parts are merged until one is left."""
    parts = draw(st.integers(2, 6))
    owner = np.array(draw(st.lists(st.integers(0, parts - 1), min_size=n, max_size=n)))
    joins = [draw(st.tuples(st.integers(0, left - 1), st.integers(0, left - 2))) for left in range(parts, 1, -1)]
    return owner, parts, joins


@settings(max_examples=60, deadline=None, derandomize=True)
@given(partitions(40), st.sampled_from([0.0, 1e6]), st.integers(0, 99))
def test_any_partition_in_any_merge_order(plan, offset, seed):
    owner, parts, joins = plan
    rng = np.random.default_rng(seed)
    X = correlated(rng, 40, 4) + offset
    y, Y, w = rng.integers(0, 5, 40), rng.standard_normal((40, 2)), rng.integers(1, 4, 40)
    chunks = [
        Moments().update(X[owner == i], y[owner == i], targets=Y[owner == i], sample_weight=w[owner == i])
        if (owner == i).any()
        else Moments()
        for i in range(parts)
    ]
    for into, taken in joins:
        target = chunks.pop(into)
        chunks[taken] = target.merge(chunks[taken])  # both orders occur: the result replaces the part taken in
    whole = Moments().update(X, y, targets=Y, sample_weight=w)
    same(chunks[0], whole, rtol=1e-9 if offset else 1e-12)


@pytest.mark.parametrize("scale", [1e-22, 1e-24, 1e-30])
def test_tiny_float32_rows_keep_their_digits(scale):
    X = np.random.default_rng(8).normal(size=(300, 5)).astype(np.float32)
    tiny = Moments().update(X * np.float32(scale))
    np.testing.assert_allclose(tiny.St / scale**2, Moments("float64").update(X).St, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("offset", [1e7, -3e9])
def test_targets_are_constant_by_their_own_precision(offset):
    """Targets of float64 beside rows of float32: what float32 would call constant is not."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(2000, 8)), rng.normal(size=2000)
    single = Moments().update(X.astype(np.float32), targets=t + offset)
    np.testing.assert_allclose(single.Syy, [[np.var(t)]], rtol=1e-5)
    assert np.all(single.Sxy != 0)
    again = Moments.from_arrays(Moments().merge(single).to_arrays())
    np.testing.assert_array_equal(again.Syy, single.Syy)
    blurred = Moments().update(X.astype(np.float32), targets=(t + offset).astype(np.float32))
    assert not blurred.Syy.any()


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("weight", [1e4, 1e8, 1e12])
def test_a_row_that_outweighs_the_others(weight, dtype, rtol, labelled):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(3000, 6)) + 3).astype(dtype)
    w, y = np.ones(3000), np.arange(3000) % 3 if labelled else np.zeros(3000, int)
    w[[1234, 77]] = weight, weight / 7
    exact = np.zeros((6, 6), np.longdouble)
    for c in np.unique(y):
        rows, share = X[y == c].astype(np.longdouble), w[y == c].astype(np.longdouble)
        centred = rows - share @ rows / share.sum()
        exact += (share[:, None] * centred).T @ centred
    found = Moments().update(X, y if labelled else None, sample_weight=w).within
    np.testing.assert_allclose(found, exact.astype(float), atol=rtol * float(np.abs(exact).max()))


def test_unusual_rows_at_the_head_of_a_file_cost_no_digits():
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    X[:256] += 1e4
    found = Moments().update(X.astype(np.float32)).St
    np.testing.assert_allclose(found, np.cov(X.T, bias=True), atol=1e-5 * found.max())


def test_shifted_moments_are_those_of_shifted_rows(data):
    X, Y, y, w = data
    offset = np.arange(1.0, P + 1)
    m = Moments().update(X, y, targets=Y, sample_weight=w)
    m.moved(offset)
    same(m, Moments().update(X + offset, y, targets=Y, sample_weight=w), rtol=1e-12)
    np.testing.assert_array_equal(m.target_mean, Moments().update(X, y, targets=Y, sample_weight=w).target_mean)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("dtype", "way_out"), [(np.float32, r"offset, or convert to float64 first\.$"), (float, r"offset\.$")]
)
def test_columns_that_vary_by_a_few_roundings_are_not_called_constant(dtype, way_out, sign):
    eps = np.finfo(dtype).eps
    blurred = (sign * (1 + 4 * eps * (np.arange(20) % 2))[:, None]).astype(dtype)
    m = Moments().update(blurred)
    assert not m.variances().any()
    with pytest.raises(InvalidInputError, match=rf"ten roundings.*about its mean {sign}.*{way_out}"):
        m.check_digits(m.variances())
    Moments().update(np.full((20, 1), sign, dtype)).check_digits(np.zeros(1))  # constant indeed
    m.check_digits(np.array([0.0, 1.0]))  # something varies: nothing to say


def test_groups_without_weight_do_not_spoil_the_others(data):
    X, _, _, _ = data
    y = np.arange(N) % 3
    weight = (y != 1).astype(float)
    m = Moments().update(X, y, sample_weight=weight)
    np.testing.assert_allclose(m.Sw, Moments().update(X[y != 1], y[y != 1]).Sw, rtol=0, atol=1e-13)


@pytest.mark.parametrize("labelled", [False, True])
def test_weights_that_add_up_to_less_than_one(labelled):
    rng = np.random.default_rng(0)  # more rows than the rough means are taken from
    X, y, w = rng.normal(size=(1500, 3)), np.arange(1500) % 4 if labelled else None, rng.uniform(0.1, 3.0, 1500)
    few = Moments().update(X + 5.0, y, sample_weight=w * 1e-6)
    many = Moments().update(X + 5.0, y, sample_weight=w)
    np.testing.assert_allclose(few.St, many.St, rtol=0, atol=1e-12)
    np.testing.assert_allclose(few.class_means, many.class_means, rtol=1e-12)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
@pytest.mark.parametrize("kind", [np.zeros, sparse.csr_matrix])
def test_no_rows_or_no_columns_raise_an_error(kind, shape):
    with pytest.raises(InvalidInputError, match=r"at least one.*Got shape \("):
        Moments().update(kind(shape))


@pytest.mark.parametrize(
    ("scale", "weight", "message"),
    [
        (1e-150, None, "met numbers too small"),
        (1e-150, 1.0, "met numbers too small"),
        (1.0, 1e-300, "weights too small for their precision: the largest is 1.0e-300"),
    ],
)
def test_what_is_too_small_is_named(data, scale, weight, message):
    X = data[0] / np.abs(data[0]).max() * scale
    with pytest.raises(InvalidInputError, match=message):
        Moments().update(X, sample_weight=None if weight is None else np.full(N, weight))


def test_numbers_whose_squares_overflow_raise_an_error(data):
    with pytest.raises(InvalidInputError, match="numbers too large for their precision: scale the columns down"):
        Moments().update(data[0] * 1e200)


def test_variances_are_the_diagonals_of_the_scatters(data):
    X, Y, y, w = data
    m = Moments().update(X, y, targets=Y, sample_weight=w)
    np.testing.assert_allclose(m.variances(), np.diag(m.St), rtol=1e-12)
    np.testing.assert_allclose(m.variances(within=True), np.diag(m.Sw), rtol=1e-12)


@pytest.mark.parametrize(("roundings", "varies"), [(8, False), (16, True)])
def test_ten_roundings_are_constant(roundings, varies):
    column = 1 + 2 * roundings * EPS * (np.arange(20) % 2)
    assert Moments().update(column[:, None]).variances().astype(bool).tolist() == [varies]


def test_a_row_that_outweighs_its_group_counts_where_other_groups_are_heavier():
    rng = np.random.default_rng(0)
    y = np.repeat(
        [0, 1], [601, 500]
    )  # the heavy row is the first of its group, and none of those spread over the batch
    X = (rng.normal(size=(1101, 2)) + 1000.0 * (np.arange(1101) > 601)[:, None]).astype(np.float32)
    weight = np.where(y == 0, 1e9, 1.0)
    weight[601] = 1e8
    inside = y == 1
    exact = Moments("float64").update(X[inside], sample_weight=weight[inside])
    both = Moments().update(X, y, sample_weight=weight)
    other = Moments("float64").update(X[~inside], sample_weight=weight[~inside])
    np.testing.assert_allclose(both.within - other.within, exact.within, rtol=1e-2, atol=0)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_moments_without_some_rows(data, offset):
    X, Y, y, w = data
    X = X + offset
    gone = (np.arange(N) % 5 == 1) | (y == y[0])  # one class as a whole
    some, rest, whole = (
        Moments().update(X[rows], y[rows], targets=Y[rows], sample_weight=w[rows])
        for rows in (gone, ~gone, np.ones(N, dtype=bool))
    )
    before = copy.deepcopy(whole)
    same(whole.without(some), rest, rtol=1e-11)
    assert y[0] not in rest.classes
    same(whole, before, rtol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1.0, 100.0])
def test_rows_near_the_origin_and_far_from_it(dtype, offset, monkeypatch):
    """Rows whose mean is small beside their spread are multiplied without a copy: 700 rows in blocks of 300."""
    rng = np.random.default_rng(3)
    X = frozen((correlated(rng, 700, P) + offset * rng.standard_normal(P)).astype(dtype))
    monkeypatch.setattr(moments, "_PLAIN_ROWS", 300)
    monkeypatch.setattr(moments, "_SUMMED_ROWS", 64)
    near = moments._is_near_origin(moments.check_batch(X, None, None, None, "auto"))
    assert near == (offset < 100)
    found, exact = Moments().update(X), X.astype(np.float64)
    rtol = 1e-12 if dtype is np.float64 else 1e-6
    np.testing.assert_allclose(found.mean, exact.mean(axis=0), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.St, scatter(exact), rtol=0, atol=rtol * np.abs(scatter(exact)).max())


def test_rows_near_the_origin_have_the_same_sums_on_any_number_of_cores(monkeypatch):
    X = np.random.default_rng(3).standard_normal((2000, P), dtype=np.float32)
    monkeypatch.setattr(moments, "_PLAIN_ROWS", 300)
    found = {}
    for count in (1, 2, 3):
        monkeypatch.setattr(moments, "cores", lambda count=count: count)
        with threadpool_limits(1, "blas"):
            found[count] = Moments().update(X)
    same(found[1], found[2], rtol=0)
    same(found[1], found[3], rtol=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_found_without_centring(bad, monkeypatch):
    monkeypatch.setattr(moments, "_PLAIN_ROWS", 128)
    X = np.random.default_rng(0).standard_normal((600, P), dtype=np.float32)
    X[401, 2] = bad
    with pytest.raises(InvalidInputError, match="401"):
        Moments().update(X)


def test_a_column_that_does_not_vary_is_centred():
    X = np.random.default_rng(0).standard_normal((600, P), dtype=np.float32)
    X[:, 1] = 3.0
    assert not moments._is_near_origin(moments.check_batch(X, None, None, None, "auto"))
    assert not Moments().update(X).St[1].any()
