"""Curves of linear tasks against the loop over k."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from firstk.exceptions import InvalidInputError
from firstk.metrics import explained_variance, linear_probe_accuracy, linear_readout_r2, task


@pytest.fixture(params=[4096, 7], ids=["one block", "many blocks"])
def block_rows(request, monkeypatch):
    """Rows per block, so that the streaming of blocks is exercised on small data."""
    blocks = task._row_blocks
    monkeypatch.setattr(task, "_row_blocks", lambda n, size=0: blocks(n, request.param))
    return request.param


def explained_by_loop(X, Z, A):
    return [1 - np.sum((X - Z[:, :k] @ A[:, :k].T) ** 2) / np.sum(X**2) for k in range(1, Z.shape[1] + 1)]


def readout_by_loop(Z_fit, Y_fit, Z, Y):
    fits = (LinearRegression().fit(Z_fit[:, :k], Y_fit) for k in range(1, Z.shape[1] + 1))
    return [r2_score(Y, fit.predict(Z[:, :k]), multioutput="variance_weighted") for k, fit in enumerate(fits, start=1)]


def probe_by_loop(Z_fit, y_fit, Z, y):
    classes = np.unique(y_fit)
    onehot = (np.asarray(y_fit)[:, None] == classes).astype(float)
    accuracy = []
    for k in range(1, Z.shape[1] + 1):
        scores = LinearRegression().fit(Z_fit[:, :k], onehot).predict(Z[:, :k])
        accuracy.append(np.mean(classes[scores.argmax(axis=1)] == y))
    return accuracy


@pytest.mark.usefixtures("block_rows")
def test_explained_variance_equals_the_loop_for_any_decoder():
    rng = np.random.default_rng(0)
    X, Z, A = rng.normal(size=(30, 6)), rng.normal(size=(30, 4)), rng.normal(size=(6, 4))
    np.testing.assert_allclose(explained_variance(X, Z, A), explained_by_loop(X, Z, A), atol=1e-10)


@given(st.integers(0, 2**32 - 1))
def test_explained_variance_of_pca_never_falls_and_ends_at_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 5))
    X -= X.mean(axis=0)
    V = np.linalg.svd(X, full_matrices=False)[2].T
    curve = explained_variance(X, X @ V, V)
    assert (np.diff(curve) > -1e-12).all()
    assert curve[-1] == pytest.approx(1, abs=1e-12)


def test_explained_variance_in_float32_is_summed_in_float64():
    rng = np.random.default_rng(1)
    X = (1000 * rng.normal(size=(5000, 8))).astype(np.float32)
    A = np.eye(8, 3, dtype=np.float32)
    expected = explained_by_loop(X.astype(float), X[:, :3].astype(float), A.astype(float))
    np.testing.assert_allclose(explained_variance(X, X[:, :3], A), expected, atol=1e-12)


def test_explained_variance_of_one_row_and_one_coordinate():
    np.testing.assert_allclose(explained_variance([[3.0, 4.0]], [[3.0]], [[1.0], [0.0]]), [9 / 25])


def test_explained_variance_refuses():
    with pytest.raises(InvalidInputError, match=r"shape \(3, 2\).*Got \(2, 2\).*transposed"):
        explained_variance(np.ones((4, 3)), np.ones((4, 2)), np.ones((2, 2)))
    with pytest.raises(InvalidInputError, match=r"as many rows in 'X' as in 'Z'. Got 4 and 3"):
        explained_variance(np.ones((4, 3)), np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(InvalidInputError, match="All of its entries are 0"):
        explained_variance(np.zeros((4, 3)), np.ones((4, 2)), np.ones((3, 2)))


@pytest.mark.usefixtures("block_rows")
@pytest.mark.parametrize("targets", [1, 3])
def test_readout_equals_the_loop_in_and_out_of_sample(targets):
    rng = np.random.default_rng(2)
    Z_fit, Z = 5 + rng.normal(size=(40, 6)), 5 + rng.normal(size=(25, 6))
    W = rng.normal(size=(6, targets)) * np.array([1.0, 10, 0.1])[:targets]
    Y_fit, Y = Z_fit @ W + 3 + rng.normal(size=(40, targets)), Z @ W + 3 + rng.normal(size=(25, targets))
    inside = linear_readout_r2(Z_fit, Y_fit)
    np.testing.assert_allclose(inside, readout_by_loop(Z_fit, Y_fit, Z_fit, Y_fit), atol=1e-10)
    np.testing.assert_allclose(linear_readout_r2(Z_fit, Y_fit, Z, Y), readout_by_loop(Z_fit, Y_fit, Z, Y), atol=1e-10)


@pytest.mark.usefixtures("block_rows")
def test_readout_in_sample_is_one_minus_sse_over_total():
    rng = np.random.default_rng(3)
    Z, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    Zc, yc = Z - Z.mean(axis=0), y - y.mean()
    for k, value in enumerate(linear_readout_r2(Z, y), start=1):
        residual = yc - Zc[:, :k] @ np.linalg.lstsq(Zc[:, :k], yc, rcond=None)[0]
        assert value == pytest.approx(1 - residual @ residual / (yc @ yc), abs=1e-12)


@pytest.mark.usefixtures("block_rows")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dependent_columns_add_nothing_and_take_nothing(dtype):
    rng = np.random.default_rng(4)
    base, new = rng.normal(size=(50, 4)).astype(dtype), rng.normal(size=(30, 4)).astype(dtype)
    # 0, twice 0, constant, 1, sum of 0 and 1, zero, 2, 3
    widen = lambda Z: np.column_stack(  # noqa: E731
        [
            Z[:, 0],
            2 * Z[:, 0],
            np.full(len(Z), 0.1),
            Z[:, 1],
            Z[:, 0] + Z[:, 1],
            0 * Z[:, 0],
            Z[:, 2],
            Z[:, 3],
        ]
    ).astype(dtype)
    W = rng.normal(size=(4, 2))
    Y, Y_new = base @ W + rng.normal(size=(50, 2)), new @ W
    which = [0, 0, 0, 1, 1, 1, 2, 3]
    for args, wide in [
        ((base, Y), (widen(base), Y)),
        ((base, Y, new, Y_new), (widen(base), Y, widen(new), Y_new)),
    ]:
        np.testing.assert_allclose(linear_readout_r2(*wide), linear_readout_r2(*args)[which], atol=1e-6)


def test_more_coordinates_than_rows():
    rng = np.random.default_rng(5)
    Z, y = rng.normal(size=(5, 9)), rng.normal(size=5)
    curve = linear_readout_r2(Z, y)
    np.testing.assert_allclose(curve[3:], 1.0, atol=1e-10)
    assert curve[2] < 1 - 1e-6


def test_what_centring_leaves_of_a_constant_column_is_no_direction():
    rng = np.random.default_rng(7)
    constant = np.full((47, 1), 1e6 + 0.1)
    assert (constant - constant.mean(axis=0)).any(), "the mean is exact: choose another constant"
    y = rng.normal(size=47)
    assert linear_readout_r2(constant, y)[0] == 0
    blend = np.column_stack([constant, y])
    np.testing.assert_allclose(linear_readout_r2(blend, y, blend + np.array([1e3, 0]), y), [0, 1], atol=1e-9)


def test_a_code_without_signal_reads_out_the_mean():
    np.testing.assert_allclose(linear_readout_r2(np.ones((4, 2)), [1.0, 2, 3, 4]), [0, 0], atol=1e-15)


def test_readout_refuses():
    Z, y = np.eye(4)[:, :2], np.arange(4.0)
    with pytest.raises(InvalidInputError, match="together, or neither"):
        linear_readout_r2(Z, y, Z)
    with pytest.raises(InvalidInputError, match="constant over 4 rows"):
        linear_readout_r2(Z, np.ones(4))
    with pytest.raises(InvalidInputError, match=r"2 coordinates and 1 targets.*Got 3 and 1"):
        linear_readout_r2(Z, y, np.eye(4)[:, :3], y)


@pytest.mark.usefixtures("block_rows")
@pytest.mark.parametrize("labels", [np.array([3, 1, 7]), np.array(["b", "a", "c"])])
def test_probe_equals_the_loop(labels):
    rng = np.random.default_rng(6)
    centres = rng.normal(size=(3, 5))
    fit, test = rng.integers(0, 3, 60), rng.integers(0, 3, 40)
    Z_fit, Z = centres[fit] + rng.normal(size=(60, 5)), centres[test] + rng.normal(size=(40, 5))
    expected = probe_by_loop(Z_fit, labels[fit], Z, labels[test])
    assert min(expected) < max(expected)
    np.testing.assert_allclose(linear_probe_accuracy(Z_fit, labels[fit], Z, labels[test]), expected, atol=1e-12)


def test_probe_of_one_class_and_of_unknown_classes():
    Z = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(linear_probe_accuracy(Z, [1, 1, 1], Z, [1, 1, 2]), [2 / 3, 2 / 3])


def test_labels_of_two_types_are_refused():
    Z = np.eye(2)
    with pytest.raises(InvalidInputError, match="labels of one type"):
        linear_probe_accuracy(Z, [0, 1], Z, ["0", "1"])
    with pytest.raises(InvalidInputError, match=r"'y_fit' must have shape \(2,\). Got \(3,\)"):
        linear_probe_accuracy(Z, [0, 1, 1], Z, [0, 1])
    with pytest.raises(InvalidInputError, match="NaN in 1 of 2"):
        linear_probe_accuracy(Z, [0, np.nan], Z, [0, 1])


@pytest.mark.parametrize("kind", ["ordinary", "collinear", "constant", "far from the origin"])
def test_the_readout_of_the_whole_code_is_the_last_of_all_prefixes(kind):
    rng = np.random.default_rng(0)
    Z, new = rng.standard_normal((80, 6)), rng.standard_normal((30, 6))
    if kind == "collinear":
        Z[:, 3], new[:, 3] = Z[:, 0] + Z[:, 1], new[:, 0] + new[:, 1]
    if kind == "constant":
        Z[:, 2] = new[:, 2] = 7.0
    if kind == "far from the origin":
        Z, new = Z + 1e4, new + 1e4
    A = rng.standard_normal((6, 3))
    Y, wanted = Z @ A + rng.standard_normal((80, 3)), new @ A + rng.standard_normal((30, 3))
    every = task.readout_errors(Z, Y, new, wanted)
    np.testing.assert_allclose(task.readout_errors(Z, Y, new, wanted, whole=True), every[:, -1:], rtol=1e-6)
    design = np.column_stack([np.ones(80), Z])
    slow = np.column_stack([np.ones(30), new]) @ np.linalg.lstsq(design, Y, rcond=1e-10)[0]
    np.testing.assert_allclose(every[:, -1], np.sum((wanted - slow) ** 2, axis=1), rtol=1e-5)


def test_small_directions_of_single_precision_are_read_out():
    rng = np.random.default_rng(0)
    # Turned at random, so that no column is small and some directions are.
    turn, sizes = np.linalg.qr(rng.standard_normal((200, 200)))[0], np.geomspace(1, 3e-3, 200)
    Z = (rng.standard_normal((1500, 200)) * sizes @ turn).astype(np.float32)
    y = Z @ turn.T @ (rng.standard_normal(200) / sizes)
    fit, new = slice(0, 1000), slice(1000, 1500)
    every = task.readout_errors(Z[fit], y[fit], Z[new], y[new])
    whole = task.readout_errors(Z[fit], y[fit], Z[new], y[new], whole=True)
    np.testing.assert_allclose(whole.sum(), every[:, -1].sum(), atol=1e-3 * np.var(y) * 500)
    assert whole.sum() < 0.01 * np.var(y) * 500


@pytest.mark.parametrize("apart", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("constant", [False, True])
def test_nearly_dependent_columns_are_read_out_by_a_qr_and_others_by_normal_equations(apart, constant, monkeypatch):
    rng = np.random.default_rng(0)
    Z, Y = rng.normal(size=(300, 5)), rng.normal(size=(300, 3))
    Z[:, 3] = Z[:, 1] + apart * Z[:, 3]
    if constant:
        Z[:, 2] = 4.0
    Y += Z[:, [0, 1, 4]]
    used, stacked = [], task._stacked_readout
    monkeypatch.setattr(task, "_stacked_readout", lambda *given: used.append(1) or stacked(*given))
    found = task.readout_errors(Z[:200], Y[:200], Z[200:], Y[200:])
    assert bool(used) == (apart < task.APART)
    for k in range(1, 6):
        design = [np.column_stack([np.ones(len(part)), part[:, :k]]) for part in (Z[:200], Z[200:])]
        expected = Y[200:] - design[1] @ np.linalg.lstsq(design[0], Y[:200], rcond=None)[0]
        np.testing.assert_allclose(found[:, k - 1], np.sum(expected**2, axis=1), rtol=1e-5)
    whole = task.readout_errors(Z[:200], Y[:200], Z[200:], Y[200:], whole=True)
    np.testing.assert_allclose(whole[:, 0], found[:, -1], rtol=1e-5)
