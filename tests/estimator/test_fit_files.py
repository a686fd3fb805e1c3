"""A streamed fit with a part held out is the fit on the other rows."""

import numpy as np
import pytest

from firstk import Fisher, PrefixEncoder
from firstk.data import load_digits
from firstk.estimator.fit_files import MOST_HELD, MOST_REFERENCE, Stream, draw, fit_files, fit_stream
from firstk.exceptions import InvalidInputError


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    return found.X, found.y


def batches(X, y=None, size=400):
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        yield {"X": X[rows]} if y is None else {"X": X[rows], "y": y[rows]}


def fitted(encoder, X, y=None, *, size=400, share=0.2, seed=0):
    """Fit on batches of rows with a share held out, and return the encoder with its stream."""
    stream = Stream(batches(X, y, size), parts=draw(len(X), share, seed))
    return fit_stream(encoder, stream), stream


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
    with pytest.raises(InvalidInputError, match="less than one row"):
        draw(3, 0.1)


@pytest.mark.parametrize("size", [97, 400, 5000])
def test_streamed_is_fitted_on_the_other_rows(digits, size):
    X, y = digits
    parts = draw(len(X), 0.2, 3)
    encoder, stream = fitted(PrefixEncoder(8, objective="fisher"), X, y, size=size, seed=3)
    rest = np.setdiff1d(np.arange(len(X)), parts.held)
    slow = PrefixEncoder(8, objective="fisher").fit(X[rest], y[rest])
    size = np.abs(slow.components_).max()  # single-precision sums, taken in another order
    np.testing.assert_allclose(encoder.components_ / size, slow.components_ / size, atol=1e-4)
    np.testing.assert_array_equal(stream.held.X, X[parts.held])
    np.testing.assert_array_equal(stream.held.y, y[parts.held])
    np.testing.assert_array_equal(stream.reference.X, X[parts.reference])
    assert stream.seen == len(X)
    assert encoder.encoder_.record.rows == len(rest)


def test_auto_settings_do_not_depend_on_batches(digits):
    X, y = digits
    fits = [fitted(PrefixEncoder(8, objective=Fisher(shrinkage="auto")), X, y, size=size)[0] for size in (150, 1797)]
    assert fits[0].objective_ == fits[1].objective_


def test_labels_are_kept_for_judging_where_the_objective_does_not_take_them(digits):
    X, y = digits
    encoder, stream = fitted(PrefixEncoder(8), X, y)
    assert stream.held.y is not None
    assert encoder.encoder_.record.objective == "reconstruction"


def test_half_precision_is_fitted_as_single(digits):
    X, _ = digits
    half, stream = fitted(PrefixEncoder(8), X.astype(np.float16))
    single, _ = fitted(PrefixEncoder(8), X)
    np.testing.assert_allclose(np.abs(half.components_), np.abs(single.components_), atol=2e-2)
    assert stream.held.X.dtype == np.float32


def test_nothing_to_fit_is_a_sentence():
    with pytest.raises(InvalidInputError, match="no row to fit on"):
        fit_stream(PrefixEncoder(), Stream([]))


def test_what_is_trained_sees_all_rows_and_an_interruption_is_no_result(digits, monkeypatch):
    pytest.importorskip("torch", reason="training needs torch: pip install 'firstk[torch]'")
    import threading
    from contextlib import contextmanager

    from firstk.solvers import Gradient
    from firstk.solvers.gradient import loop as _loop

    X, y = digits
    make = lambda: PrefixEncoder(4, objective=Fisher(), solver=Gradient(epochs=60), random_state=0)  # noqa: E731
    encoder, stream = fitted(make(), X, y)
    assert encoder.solver_ == "gradient"
    assert (stream.seen, stream.held.n) == (len(X), len(X) - 1438)

    @contextmanager
    def already_interrupted():
        flag = threading.Event()
        flag.set()
        yield flag

    monkeypatch.setattr(_loop, "interruptible", already_interrupted)
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        fitted(make(), X, y)


def test_fit_files_takes_an_estimator_that_has_not_been_fitted(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 5))
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(InvalidInputError, match="'encoder' parameter of fit_files must be a PrefixEncoder"):
        fit_files("fisher", tmp_path / "rows.npy")
    fitted = fit_files(PrefixEncoder(2), tmp_path / "rows.npy")
    with pytest.raises(InvalidInputError, match=r"has not been fitted, and this one has.*clone"):
        fit_files(fitted, tmp_path / "rows.npy")
