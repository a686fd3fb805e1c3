"""Any batching, any partition, any merge order: the same encoder, for every objective."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk import ClosedForm, Denoising, Fisher, GaussianNoise, Masking, Mixture, PrefixEncoder, Regression, Similarity
from firstk.exceptions import InvalidInputError
from slow_reference import correlated

N, P = 120, 6
OBJECTIVES = {  # what a batch brings, the objective
    "reconstruction": ("rows", "reconstruction"),
    "fisher": ("labels", "fisher"),
    "fisher, auto": ("labels", Fisher(shrinkage="auto")),
    "regression": ("targets", "regression"),
    "regression, auto": ("targets", Regression(shrinkage="auto")),
    "mixture, targets": ("targets", Mixture(0.5)),
    "mixture, labels": ("labels", Mixture(0.5)),
    "gaussian": ("rows", Denoising(GaussianNoise(0.5))),
    "masking": ("rows", Denoising(Masking(0.5, (0, 0, 1, 1, 2, 2)))),
    "neighbors": ("rows", "similarity"),
    "neighbors, auto": ("rows", Similarity(shrinkage="auto")),
    "dot products": ("rows", Similarity(keep="dot_products")),
    "scored pairs": ("scores", Similarity(shrinkage=0.5, neighbor_weight=0.25)),
    "positive pairs": ("pairs", Similarity(shrinkage=None, neighbor_weight=0.0)),
    "scored pairs, auto": ("scores", "similarity"),
    "positive pairs, auto": ("pairs", "similarity"),
}


def draw(kind, dtype=np.float64, n=N, p=P):
    """Return the batchable columns of one kind, with eigengaps that are clear for every objective."""
    rng = np.random.default_rng(7)
    decay = 0.75 if p == P else 0.98
    X = correlated(rng, n, p, decay) + np.linspace(1, 2, p)
    y = np.arange(n) % 4
    Y = X @ rng.standard_normal((p, 3)) * [3.0, 1.5, 0.5] + 0.1 * rng.standard_normal((n, 3))
    if kind in ("labels", "targets", "rows"):
        X = X + rng.standard_normal((4, p))[y] * decay ** np.arange(p) * (kind == "labels")
        return {"rows": (X.astype(dtype),), "labels": (X.astype(dtype), y), "targets": (X.astype(dtype), Y)}[kind]
    degree = rng.uniform(0.3, 1.0, n)
    right = degree[:, None] * X + 0.3 * correlated(rng, n, p, decay)
    pairs = X.astype(dtype), right.astype(dtype)
    return pairs if kind == "pairs" else (*pairs, degree)


def empty(name, **parameters):
    return PrefixEncoder(objective=OBJECTIVES[name][1], **parameters)


def learn(enc, kind, columns, *, whole=False):
    suffix = "_pairs" if kind in ("pairs", "scores") else ""
    return getattr(enc, ("fit" if whole else "partial_fit") + suffix)(*columns)


def assert_same(a, b, tolerance):
    assert a.n_components_ == b.n_components_
    size = np.linalg.norm(b.components_, axis=1, keepdims=True)
    np.testing.assert_allclose(a.components_ / size, b.components_ / size, rtol=0, atol=tolerance)
    np.testing.assert_allclose(a.spectrum_, b.spectrum_, rtol=tolerance, atol=tolerance * np.abs(b.spectrum_).max())
    np.testing.assert_allclose(a.mean_, b.mean_, rtol=tolerance, atol=tolerance)
    assert a.objective_ == b.objective_
    assert a.encoder_.record.rows == b.encoder_.record.rows
    if b.encoder_.head is not None:
        np.testing.assert_allclose(
            a.encoder_.head.weight, b.encoder_.head.weight, atol=tolerance * np.abs(b.encoder_.head.weight).max()
        )


WHOLE = {}


def whole_of(name, dtype):
    """Return the encoder fitted in one go, once a name and precision."""
    if (name, dtype) not in WHOLE:
        kind = OBJECTIVES[name][0]
        WHOLE[name, dtype] = learn(empty(name), kind, draw(kind, dtype), whole=True)
    return WHOLE[name, dtype]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_any_batching_and_any_order_of_rows(name):
    kind = OBJECTIVES[name][0]
    columns = draw(kind)

    @settings(max_examples=3 if "auto" in name else 15, deadline=None, derandomize=True)
    @given(st.permutations(range(N)), st.lists(st.integers(1, N - 1), min_size=1, max_size=6, unique=True))
    def check(order, cuts):
        enc = empty(name)
        for rows in np.split(np.array(order), np.sort(cuts)):
            learn(enc, kind, [part[rows] for part in columns])
        assert_same(enc, whole_of(name, np.float64), 1e-9)

    check()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_any_partition_in_any_merge_order(name):
    kind = OBJECTIVES[name][0]
    columns = draw(kind)

    @settings(max_examples=3 if "auto" in name else 15, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, 3), min_size=N, max_size=N), st.permutations(range(4)), st.booleans())
    def check(owner, order, nested):
        owner = np.array(owner)
        parts = [learn(empty(name), kind, [part[owner == i] for part in columns]) for i in order if (owner == i).any()]
        merged = parts[0]
        if nested and len(parts) == 4:
            merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
        else:
            for part in parts[1:]:
                merged = merged.merge(part)
        assert_same(merged, whole_of(name, np.float64), 1e-9)

    check()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_float32_batches_on_the_fast_path(name):
    kind = OBJECTIVES[name][0]
    columns = draw(kind, np.float32)
    whole = whole_of(name, np.float32)
    for parts in (2, 7):
        batched, merged = empty(name), None
        for rows in np.array_split(np.random.default_rng(parts).permutation(N), parts):
            batch = [part[rows] for part in columns]
            learn(batched, kind, batch)
            chunk = learn(empty(name), kind, batch)
            merged = chunk if merged is None else chunk.merge(merged)
        assert_same(batched, whole, 1e-4)
        assert_same(merged, whole, 1e-4)
    # And the fast path is near the exact one.
    exact = learn(empty(name, solver=ClosedForm(precision="float64")), kind, columns, whole=True)
    assert_same(whole, exact, 1e-4)


@pytest.mark.parametrize("offset", [1e6])
@pytest.mark.parametrize("name", ["reconstruction", "fisher", "regression", "scored pairs"])
def test_offsets_do_no_harm_to_streams(name, offset):
    kind = OBJECTIVES[name][0]
    columns = draw(kind)
    sides = 2 if kind in ("pairs", "scores") else 1
    moved = [part + offset if i < sides else part for i, part in enumerate(columns)]
    # Neighbors by cosine are others far from the origin, so pairs go without them here.
    unmixed = Similarity(shrinkage=0.5, neighbor_weight=0.0)
    objective = unmixed if name == "scored pairs" else OBJECTIVES[name][1]
    there, here = PrefixEncoder(objective=objective), PrefixEncoder(objective=objective)
    for rows in np.array_split(np.arange(N), 5):
        learn(there, kind, [part[rows] for part in moved])
    learn(here, kind, columns, whole=True)
    # Adding the offset rounds the rows themselves to 1e-10.
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-7 * np.abs(here.components_).max())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_fewer_rows_than_columns_take_the_same_answer_from_both_routes(name):
    """`fit` works in a basis of the row space, `partial_fit` in full coordinates."""
    kind, objective = OBJECTIVES[name]
    if name == "masking":
        objective = Denoising(Masking(0.5))
    elif name == "positive pairs":  # without shrinkage, fewer pairs than columns agree perfectly in many directions
        objective = Similarity(shrinkage=0.3, neighbor_weight=0.0)
    columns = draw(kind, n=48, p=100)
    a, b, c = (PrefixEncoder(3, objective=objective) for _ in range(3))
    learn(a, kind, columns, whole=True)
    for rows in np.array_split(np.arange(48), 4):
        learn(b, kind, [part[rows] for part in columns])
    assert_same(a, b, 1e-7)
    # Merging what was fitted in two different bases.
    other = PrefixEncoder(3, objective=objective)
    first, second = (
        [part[:24] for part in columns],
        [part[24:] for part in columns],
    )
    merged = learn(c, kind, first, whole=True).merge(learn(other, kind, second, whole=True))
    assert_same(merged, a, 1e-7)


def test_partial_fit_after_fit_goes_on_and_fit_starts_anew():
    (X,) = draw("rows")
    both = PrefixEncoder().fit(X[:50]).partial_fit(X[50:])
    assert_same(both, PrefixEncoder().fit(X), 1e-9)
    fresh = PrefixEncoder().partial_fit(X[:50]).fit(X[50:])
    assert_same(fresh, PrefixEncoder().fit(X[50:]), 0)
    narrower = PrefixEncoder().partial_fit(X).fit(X[:, :3])
    assert narrower.n_features_in_ == 3


def test_components_are_solved_anew_after_each_batch():
    (X,) = draw("rows")
    enc = PrefixEncoder().partial_fit(X[:60])
    before = enc.components_.copy()
    enc.partial_fit(X[60:])
    assert np.abs(enc.components_ - before).max() > 1e-3
    assert enc.transform(X).shape == (N, P)


def test_merge_keeps_the_other_as_it_was():
    X, y = draw("labels")
    a, b = (PrefixEncoder(objective="fisher").partial_fit(X[rows], y[rows]) for rows in (slice(60), slice(60, N)))
    before = b.components_.copy()
    a.merge(b)
    b.__dict__.pop("_encoder")
    np.testing.assert_array_equal(b.components_, before)


def test_weights_stream_too():
    (X,) = draw("rows")
    w = np.random.default_rng(0).uniform(0.1, 2, N)
    for objective in ("reconstruction", "similarity"):
        whole = PrefixEncoder(objective=objective).fit(X, sample_weight=w)
        parts = PrefixEncoder(objective=objective)
        for rows in np.array_split(np.arange(N), 3):
            parts.partial_fit(X[rows], sample_weight=w[rows])
        assert_same(parts, whole, 1e-9)


def test_weights_may_come_with_some_batches_only():
    (X,) = draw("rows")
    ones = (
        PrefixEncoder(objective=Similarity(shrinkage="auto"))
        .partial_fit(X[:60])
        .partial_fit(X[60:], sample_weight=np.ones(60))
    )
    assert ones.n_components_ == whole_of("neighbors, auto", np.float64).n_components_


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda X: (X[:, :-1],), r"X has 5 features, but PrefixEncoder is expecting 6"),
        (lambda X: (np.where(np.arange(len(X))[:, None] == 3, np.nan, X),), "NaN or infinity in 1 of 30 rows"),
        (lambda X: (X, None, -np.ones(len(X))), "'sample_weight' of PrefixEncoder must be 30 finite numbers"),
    ],
)
def test_a_failing_batch_changes_nothing(spoil, sentence):
    (X,) = draw("rows")
    enc = PrefixEncoder().partial_fit(X[:90])
    with pytest.raises(ValueError, match=sentence):
        enc.partial_fit(*spoil(X[90:]))
    assert_same(enc, PrefixEncoder().fit(X[:90]), 1e-12)
    assert_same(enc.partial_fit(X[90:]), PrefixEncoder().fit(X), 1e-9)


def seen(name, **parameters):
    kind = OBJECTIVES[name][0]
    return learn(empty(name, **parameters), kind, draw(kind))


@pytest.mark.parametrize(
    ("into", "other", "sentence"),
    [
        (lambda: seen("reconstruction"), lambda: seen("fisher"), "merge takes encoders of one objective. Got 'recons"),
        (
            lambda: seen("mixture, targets"),
            lambda: seen("mixture, labels"),
            r"cannot take in",
        ),
        (lambda: seen("neighbors"), lambda: seen("positive pairs, auto"), "from rows or from pairs, not from both"),
        (
            lambda: seen("reconstruction"),
            lambda: PrefixEncoder().fit(draw("rows")[0][:, :4]),
            "merge takes encoders of one width. Got 6 and 4 columns",
        ),
        (
            lambda: seen("fisher"),
            lambda: PrefixEncoder(objective="fisher").fit(draw("labels")[0], draw("labels")[1].astype(str)),
            "Labels as text and labels as numbers cannot be matched",
        ),
        (lambda: seen("reconstruction"), PrefixEncoder, "merge takes a PrefixEncoder that has seen data"),
        (PrefixEncoder, lambda: seen("reconstruction"), "merge takes a PrefixEncoder that has seen data"),
        (lambda: seen("reconstruction"), lambda: "moments", "merge takes a PrefixEncoder that has seen data"),
        (lambda: seen("reconstruction")[:2], lambda: seen("reconstruction"), "merge takes a PrefixEncoder that has"),
    ],
)
def test_merges_that_mean_nothing(into, other, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        into().merge(other())


def test_masks_given_as_arrays_still_merge():
    (X,) = draw("rows")
    a, b = (
        PrefixEncoder(objective=Denoising(Masking(0.5, np.array([0, 0, 1, 1, 2, 2])))).partial_fit(rows)
        for rows in (X[:50], X[50:])
    )
    assert_same(a.merge(b), whole_of("masking", np.float64), 1e-9)


def test_a_cut_encoder_does_not_learn_on():
    (X,) = draw("rows")
    short = PrefixEncoder().fit(X)[:2]
    with pytest.raises(InvalidInputError, match="does not hold the moments of its data, so it cannot learn on"):
        short.partial_fit(X)


def test_rows_and_pairs_do_not_mix_in_one_stream():
    left, right = draw("pairs")
    with pytest.raises(InvalidInputError, match="learns from rows or from pairs, not from both"):
        PrefixEncoder(objective="similarity").partial_fit_pairs(left, right).partial_fit(left)
