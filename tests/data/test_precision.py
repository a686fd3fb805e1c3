"""Precisions: what is stored against a loop over single numbers, what it costs, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from firstk.data.precision import PRECISIONS, read_precision, resolve_precision
from firstk.exceptions import InvalidInputError

NAMES = list(PRECISIONS)
codes = arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 19)),
    elements=st.floats(-1000, 1000, width=32, allow_subnormal=False),
)


def sample(k=11, n=50, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, k)) * np.linspace(2, 0.1, k) + 0.3).astype(np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_are_those_of_the_stored_array(name):
    for k in (1, 7, 8, 9, 64, 383):
        Z = sample(k, n=500)
        fitted = PRECISIONS[name].fit(Z)
        assert fitted.quantise(Z).nbytes == len(Z) * fitted.bytes_per_vector(k)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "embedded"])  # whose bytes are cut (test_embedded)
def test_cutting_and_rounding_commute(name):
    """The first k of a restored code are the restored first k, so a stored code can be cut again."""
    Z = sample(24)
    fitted = PRECISIONS[name].fit(Z)
    whole = fitted.restore(fitted.quantise(Z))
    stored = fitted.quantise(Z)
    short = stored[:, : fitted.bytes_per_vector(8) // stored.itemsize]
    record = {key: value[:8] if isinstance(value, list) else value for key, value in fitted.record().items()}
    np.testing.assert_array_equal(read_precision(record).restore(short), whole[:, :8])


@given(codes)
@settings(max_examples=60, deadline=None)
def test_int8_is_the_nearest_step(Z):
    int8 = PRECISIONS["int8"].fit(Z)
    stored = int8.quantise(Z)
    assert stored.dtype == np.int8
    step = max(abs(float(z)) for z in Z.ravel()) / 127 or 1 / 127
    for z, s in zip(Z.ravel().tolist(), stored.ravel().tolist(), strict=True):
        # The nearest of all steps, by trying them; two are as near where z lies half way.
        assert abs(z - s * step) <= min(abs(z - i * step) for i in range(-127, 128)) + 1e-4 * step
    np.testing.assert_allclose(int8.restore(stored), stored * step, rtol=1e-6)


def test_int8_clips_what_is_larger_than_what_it_saw():
    int8 = PRECISIONS["int8"].fit([[1.0, -2.0]])
    assert int8.quantise([[9.0, -9.0]]).tolist() == [[127, -127]]


def test_int8_of_zeros_is_zeros():
    int8 = PRECISIONS["int8"].fit(np.zeros((3, 2)))
    assert int8.restore(int8.quantise(np.zeros((3, 2)))).tolist() == [[0, 0]] * 3


def test_int8_integers_have_the_cosines_of_what_they_stand_for():
    Z = sample()
    int8 = PRECISIONS["int8"].fit(Z)
    stored = int8.quantise(Z)

    def cosines(A):
        A = A.astype(float) / np.linalg.norm(A.astype(float), axis=1, keepdims=True)
        return A @ A.T

    np.testing.assert_allclose(cosines(stored), cosines(int8.restore(stored)), atol=1e-6)


@given(codes)
@settings(max_examples=60, deadline=None)
def test_int4_steps_and_levels(Z):
    int4 = PRECISIONS["int4"].fit(Z)
    stored, restored = int4.quantise(Z), int4.restore(int4.quantise(Z))
    assert stored.dtype == np.uint8
    for j in range(Z.shape[1]):
        column = [float(z) for z in Z[:, j]]
        mean = sum(column) / len(column)
        step = 0.3352 * (sum((z - mean) ** 2 for z in column) / len(column)) ** 0.5
        # The middles of 16 intervals of that length around the mean, and the ends of the intervals.
        middles = [mean + (level - 7.5) * step for level in range(16)]
        for i, z in enumerate(column):
            level = stored[i, j // 2] >> (4 if j % 2 else 0) & 15
            assert restored[i, j] == pytest.approx(middles[level], rel=1e-4, abs=1e-3)
            if step > 1e-2:
                assert abs(z - middles[level]) <= min(abs(z - middle) for middle in middles) + 1e-4 * step + 1e-4
    if Z.shape[1] % 2:
        assert not (stored[:, -1] >> 4).any()


def test_int4_restores_a_constant_coordinate_as_it_is():
    Z = np.column_stack([np.full(5, 0.25), np.arange(5.0)])
    int4 = PRECISIONS["int4"].fit(Z)
    assert int4.restore(int4.quantise(Z + np.array([3.0, 0.0])))[:, 0].tolist() == [0.25] * 5


def test_int4_step_is_the_best_for_gaussian_numbers():
    z = np.random.default_rng(0).standard_normal((100_000, 1))
    fitted = PRECISIONS["int4"].fit(z)

    def error(step):
        tried = read_precision({"precision": "int4", "mean": [0.0], "step": [step]})
        return np.mean((tried.restore(tried.quantise(z)) - z) ** 2)

    assert error(float(fitted.step[0])) < min(error(0.25), error(0.30), error(0.37), error(0.45))


@given(codes)
@settings(max_examples=60, deadline=None)
def test_binary_bits_and_levels(Z):
    binary = PRECISIONS["binary"].fit(Z)
    means = [sum(float(z) for z in column) / len(Z) for column in Z.T]
    scale = sum(abs(float(z) - m) for row in Z for z, m in zip(row, means, strict=True)) / Z.size
    stored, restored = binary.quantise(Z), binary.restore(binary.quantise(Z))
    for i, j in np.ndindex(Z.shape):
        bit = stored[i, j // 8] >> (7 - j % 8) & 1
        if abs(Z[i, j] - means[j]) > 1e-3:  # not where rounding of the mean decides
            assert bit == (Z[i, j] > means[j])
        assert restored[i, j] == pytest.approx(means[j] + (scale if bit else -scale), rel=1e-4, abs=1e-3)


def test_float16_rounds_and_refuses_what_it_cannot_hold():
    Z = np.array([[0.1, -65504.0]])
    assert PRECISIONS["float16"].restore(PRECISIONS["float16"].quantise(Z)).tolist() == [
        [float(np.float16(0.1)), -65504.0]
    ]
    with pytest.raises(InvalidInputError, match=r"up to 65504; 'Z' has 70000"):
        PRECISIONS["float16"].quantise([[70000.0]])


@pytest.mark.parametrize("name", NAMES)
def test_a_record_goes_through_json(name):
    Z = sample()
    fitted = PRECISIONS[name].fit(Z)
    again = read_precision(json.loads(json.dumps(fitted.record())))
    stored = fitted.quantise(Z)
    np.testing.assert_array_equal(again.quantise(Z), stored)
    np.testing.assert_array_equal(again.restore(stored), fitted.restore(stored))
    assert again.name == name


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_alone(name):
    Z = sample()
    before = Z.copy()
    fitted = PRECISIONS[name].fit(Z)
    stored = fitted.quantise(Z)
    kept = stored.copy()
    fitted.restore(stored)
    np.testing.assert_array_equal(Z, before)
    np.testing.assert_array_equal(stored, kept)


@pytest.mark.parametrize("name", ["int8", "int4", "binary"])
def test_unfitted_raises_an_error(name):
    for use in (lambda p: p.quantise([[1.0]]), lambda p: p.restore(np.zeros((1, 1), "int8")), lambda p: p.record()):
        with pytest.raises(InvalidInputError, match="must be fitted before use"):
            use(PRECISIONS[name])


@pytest.mark.parametrize("name", NAMES)
def test_bad_codes_raise_errors(name):
    fitted = PRECISIONS[name].fit(sample(2))
    for bad, words in (
        ([[np.nan, 1.0]], "NaN or infinity"),
        ([1.0, 2.0], "two-dimensional"),
        ([["a", "b"]], "numbers"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            fitted.quantise(bad)
        with pytest.raises(InvalidInputError, match=words):
            fitted.fit(bad)
    with pytest.raises(InvalidInputError, match=r"restores? codes stored as"):
        fitted.restore(np.zeros((2, 2), dtype=np.int64))
    for k in (0, 1.5, True):
        with pytest.raises(InvalidInputError, match="at least 1"):
            fitted.bytes_per_vector(k)


def test_wrong_width_raises_an_error():
    for name, width in (("binary", 2), ("int4", 5)):
        fitted = PRECISIONS[name].fit(sample(9))
        with pytest.raises(InvalidInputError, match=r"9 columns\. Got 8"):
            fitted.quantise(sample(8))
        with pytest.raises(InvalidInputError, match=rf"shape \(n, {width}\)"):
            fitted.restore(np.zeros((3, 1), dtype=np.uint8))


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        {"precision": "int2"},
        {"precision": "int4"},
        {"precision": "int4", "mean": [1.0], "step": [1.0, 2.0]},
        {"precision": "int4", "mean": [1.0], "step": [-1.0]},
        {"precision": "int4", "mean": [1.0], "step": []},
        {"precision": ["int8"]},
        {"precision": "int8"},
        {"precision": "int8", "scale": 0},
        {"precision": "int8", "scale": float("nan")},
        {"precision": "int8", "scale": "1"},
        {"precision": "binary", "scale": 1.0, "mean": []},
        {"precision": "binary", "scale": 1.0, "mean": [1, "2"]},
        {"precision": "float32", "scale": 1.0},
    ],
)
def test_bad_records_raise_errors(record):
    with pytest.raises(InvalidInputError):
        read_precision(record)


def test_names_are_resolved_at_the_edge():
    assert resolve_precision("int8", "transform") is PRECISIONS["int8"]
    with pytest.raises(InvalidInputError, match="'precision' parameter of transform must be one of 'binary'"):
        resolve_precision("int2", "transform")
