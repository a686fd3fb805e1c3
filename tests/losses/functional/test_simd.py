"""The vector vocabulary: accuracy over the whole range, and the edges."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from firstk._base.simd import (  # noqa: E402
    LANES,
    above,
    add,
    exp2,
    exp2_small,
    fma,
    larger,
    load,
    log2,
    lowest_bit,
    max_lanes,
    mul,
    splat,
    store,
    sub,
    sum_lanes,
)

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="vector instructions have no plain Python form")


@numba.njit
def apply_exp2(x, out):
    for i in range(0, len(x), LANES):
        store(out, i, exp2(load(x, i)))


@numba.njit
def apply_exp2_small(x, out):
    for i in range(0, len(x), LANES):
        store(out, i, exp2_small(load(x, i)))


@numba.njit
def apply_log2(x, out):
    for i in range(0, len(x), LANES):
        store(out, i, log2(load(x, i)))


@numba.njit
def arithmetic(x, y, out):
    a, b = load(x, 0), load(y, 0)
    store(out, 0, fma(a, b, sub(larger(a, b), mul(add(a, b), splat(x[3])))))
    return sum_lanes(a), max_lanes(b)


@numba.njit
def exceeding(x, y):
    bits = above(load(x, 0), load(y, 0))
    return bits, lowest_bit(bits) if bits else -1


@pytest.mark.parametrize(("dtype", "span", "limit"), [(np.float32, 125, 2.5e-7), (np.float64, 1020, 5e-16)])
def test_exp2_over_the_range(dtype, span, limit):
    """Within two units in the last place, from the smallest power to the largest."""
    x = np.linspace(-span, span, 1 << 20).astype(dtype)
    out = np.empty_like(x)
    apply_exp2(x, out)
    wanted = np.exp2(x.astype(np.longdouble))
    assert np.abs(out / wanted - 1).max() < limit


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 2.5e-7), (np.float64, 5e-16)])
def test_exp2_small_over_the_range(dtype, limit):
    """Within two units in the last place on [-1, 1]; 2^0 is exact, and NaN stays NaN."""
    x = np.linspace(-1, 1, 1 << 16).astype(dtype)
    x[:2] = 0, np.nan
    out = np.empty_like(x)
    apply_exp2_small(x, out)
    assert out[0] == 1
    assert np.isnan(out[1])
    assert np.abs(out[2:] / np.exp2(x[2:].astype(np.longdouble)) - 1).max() < limit


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -125), (np.float64, -1021)])
def test_exp2_edges(dtype, lowest):
    x = np.array([0, 1, -1, 10, -20, lowest, lowest - 1, -1e30, -np.inf, np.nan, *[0] * 6], dtype=dtype)
    out = np.empty_like(x)
    apply_exp2(x, out)
    assert out[:6].tolist() == [1, 2, 0.5, 1024, 2.0**-20, 2.0**lowest]
    assert (out[6:9] == dtype(2.0**lowest)).all()
    assert np.isnan(out[9])


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 3e-7), (np.float64, 5e-16)])
def test_log2_over_the_range(dtype, limit):
    x = np.exp2(np.linspace(-100, 100, 1 << 18)).astype(dtype)
    x[: 1 << 10] = np.linspace(0.5, 2, 1 << 10)
    out = np.empty_like(x)
    apply_log2(x, out)
    wanted = np.log2(x.astype(np.longdouble))
    assert (np.abs(out - wanted) <= limit * np.maximum(np.abs(wanted), 1)).all()
    ones = np.ones(LANES, dtype)
    apply_log2(ones, ones)
    assert (ones == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arithmetic(dtype):
    x, y = np.random.default_rng(0).normal(size=(2, LANES)).astype(dtype)
    out = np.empty(LANES, dtype)
    total, top = arithmetic(x, y, out)
    np.testing.assert_allclose(out, x * y + (np.maximum(x, y) - (x + y) * x[3]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(total, x.sum(), rtol=1e-5, atol=1e-6)
    assert top == y.max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_which_lanes_exceed(dtype):
    """Equal lanes and NaN do not exceed anything."""
    x, y = np.zeros((2, LANES), dtype)
    x[[3, 5, 15]], x[4], x[6], y[5] = 1, -1, np.nan, 1
    assert exceeding(x, y) == ((1 << 3) | (1 << 15), 3)
    assert exceeding(y, y) == (0, -1)
