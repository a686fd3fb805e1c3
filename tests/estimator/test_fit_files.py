"""A streamed fit with a part held out is the fit on the other rows."""

import numpy as np
import pytest

from firstk import Fisher, PrefixEncoder, Similarity
from firstk.data import load_digits
from firstk.estimator.fit_files import MOST_HELD, MOST_REFERENCE, draw, fit_files, fit_stream
from firstk.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    return found.X, found.y


def batches(X, y=None, size=400):
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        yield {"X": X[rows]} if y is None else {"X": X[rows], "y": y[rows]}


def test_parts_are_disjoint_drawn_by_seed_and_bounded():
    one, same, other = draw(1000, 0.2, 1), draw(1000, 0.2, 1), draw(1000, 0.2, 2)
    np.testing.assert_array_equal(one.held, same.held)
    assert not np.array_equal(one.held, other.held)
    assert len(one.held) == 200
    assert np.array_equal(np.sort(np.concatenate([one.held, one.reference])), np.arange(1000))
    big = draw(10**7, 0.2, 0)
    assert (len(big.held), len(big.reference)) == (MOST_HELD, MOST_REFERENCE)
    assert not np.isin(big.held, big.reference).any()
    assert np.unique(big.held).size == MOST_HELD


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan"), "x"])
def test_a_wrong_share_is_a_sentence(share):
    with pytest.raises(InvalidInputError, match="a share of the rows"):
        draw(100, share)


def test_a_share_that_is_no_row_is_a_sentence():
    with pytest.raises(InvalidInputError, match="no row at all"):
        draw(3, 0.1)


@pytest.mark.parametrize("size", [97, 400, 5000])
def test_streamed_is_fitted_on_the_other_rows(digits, size):
    X, y = digits
    parts = draw(len(X), 0.2, 3)
    done = fit_stream(PrefixEncoder(8, objective="fisher"), batches(X, y, size), parts)
    rest = np.setdiff1d(np.arange(len(X)), parts.held)
    slow = PrefixEncoder(8, objective="fisher").fit(X[rest], y[rest])
    size = np.abs(slow.components_).max()  # single-precision sums, taken in another order
    np.testing.assert_allclose(done.encoder.components_ / size, slow.components_ / size, atol=1e-4)
    np.testing.assert_array_equal(done.held["X"], X[parts.held])
    np.testing.assert_array_equal(done.held["y"], y[parts.held])
    np.testing.assert_array_equal(done.reference["X"], X[parts.reference])
    assert done.rows == len(rest)


def test_auto_settings_do_not_depend_on_batches(digits):
    X, y = digits
    fits = [
        fit_stream(PrefixEncoder(8, objective=Fisher(shrinkage="auto")), batches(X, y, size), draw(len(X), 0.2))
        for size in (150, 1797)
    ]
    assert fits[0].encoder.objective_ == fits[1].encoder.objective_


def test_labels_are_kept_for_judging_where_the_objective_does_not_take_them(digits):
    X, y = digits
    done = fit_stream(PrefixEncoder(8), batches(X, y), draw(len(X), 0.2))
    assert done.data.y is not None
    assert done.encoder.encoder_.config["objective"] == "reconstruction"


def test_a_file_of_ones_own_is_held_out_and_all_rows_are_fitted(digits):
    X, _ = digits
    done = fit_stream(PrefixEncoder(8), batches(X[:1000]), draw(1000, 0.0), {"X": X[1000:]})
    assert done.rows == 1000
    np.testing.assert_array_equal(done.data.X, X[1000:])


def test_half_precision_is_fitted_as_single(digits):
    X, _ = digits
    half = fit_stream(PrefixEncoder(8), batches(X.astype(np.float16)), draw(len(X), 0.2))
    single = fit_stream(PrefixEncoder(8), batches(X), draw(len(X), 0.2))
    np.testing.assert_allclose(np.abs(half.encoder.components_), np.abs(single.encoder.components_), atol=2e-2)
    assert half.held["X"].dtype == np.float32


def test_pairs_stream_too():
    rng = np.random.default_rng(0)
    left = rng.normal(size=(120, 6))
    right = left + rng.normal(size=(120, 6))
    scores = np.sum(left * right, axis=1)
    whole = {"left": left, "right": right, "scores": scores}
    parts = draw(120, 0.25, 0)
    objective = Similarity(shrinkage=0.5, neighbor_weight=0.0)
    done = fit_stream(PrefixEncoder(2, objective=objective), [whole], parts)
    rest = np.setdiff1d(np.arange(120), parts.held)
    slow = PrefixEncoder(2, objective=objective).fit_pairs(left[rest], right[rest], scores[rest])
    np.testing.assert_allclose(done.encoder.components_, slow.components_, atol=1e-6)
    assert len(done.data.left) == len(done.data.scores) == 30


def test_nothing_to_fit_is_a_sentence():
    with pytest.raises(InvalidInputError, match="no row to fit on"):
        fit_stream(PrefixEncoder(), [], draw(0, 0.0))


def test_what_is_trained_sees_all_rows_and_an_interruption_is_no_result(digits, monkeypatch):
    pytest.importorskip("torch", reason="training needs torch: pip install 'firstk[torch]'")
    import threading
    from contextlib import contextmanager

    from firstk.solvers import Gradient
    from firstk.solvers.gradient import loop as _loop

    X, y = digits
    make = lambda: PrefixEncoder(4, objective=Fisher(), solver=Gradient(epochs=60), random_state=0)  # noqa: E731
    done = fit_stream(make(), batches(X, y), draw(len(X), 0.2))
    assert done.encoder.solver_ == "gradient"
    assert done.rows == 1438

    @contextmanager
    def already_interrupted():
        flag = threading.Event()
        flag.set()
        yield flag

    monkeypatch.setattr(_loop, "interruptible", already_interrupted)
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        fit_stream(make(), batches(X, y), draw(len(X), 0.2))


def test_fit_files_takes_an_estimator_that_has_not_been_fitted(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 5))
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(InvalidInputError, match="'encoder' parameter of fit_files must be a PrefixEncoder"):
        fit_files("fisher", tmp_path / "rows.npy")
    fitted = fit_files(PrefixEncoder(2), tmp_path / "rows.npy")
    with pytest.raises(InvalidInputError, match=r"has not been fitted, and this one has.*clone"):
        fit_files(fitted, tmp_path / "rows.npy")
