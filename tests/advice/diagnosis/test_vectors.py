"""Facts about vectors against loops over rows and pairs, and a lossless re-projection that is lossless."""

import numpy as np
import pytest

from firstk import ClosedForm, PrefixEncoder, Similarity
from firstk.advice.diagnosis import diagnose
from slow_reference import correlated


def facts(X, y=None):
    return diagnose(X, y, compare=False).vectors


def test_mean_cosine_is_that_of_all_pairs():
    X = correlated(np.random.default_rng(0), 40, 5) + 0.3
    X[7] = 0
    kept = np.delete(X, 7, axis=0)
    unit = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    cosines = [unit[i] @ unit[j] for i in range(39) for j in range(39) if i != j]
    found = facts(X)
    assert found.mean_cosine == pytest.approx(np.mean(cosines), rel=1e-9)
    assert found.zero_rows == 1
    assert found.mean_share == pytest.approx(np.linalg.norm(X.mean(0)) / np.linalg.norm(X, axis=1).mean())


def test_effective_dimension_counts_equal_directions():
    rng = np.random.default_rng(1)
    flat = np.linalg.qr(rng.standard_normal((400, 6)))[0]
    flat -= flat.mean(0)
    values = np.linalg.eigvalsh(np.cov(flat.T))
    assert facts(flat).effective_dimension == pytest.approx(values.sum() ** 2 / np.sum(values**2), rel=1e-9)
    X = rng.standard_normal((4000, 8)) * [1, 1, 1, 0, 0, 0, 0, 0]
    assert facts(X).effective_dimension == pytest.approx(3, abs=0.02)


def test_copies_and_contradictions():
    X = np.random.default_rng(2).standard_normal((30, 4))
    X[5], X[9], X[20] = X[1], X[1], X[2]
    X[21] = [0.0, 1, 2, 3]
    X[22] = [-0.0, 1, 2, 3]
    y = np.arange(30) % 2
    y[[1, 5, 9]], y[[2, 20]], y[[21, 22]] = [0, 0, 1], [1, 1], [0, 1]
    found = facts(X, y)
    assert (found.copies, found.contradictions) == (4, 2)
    assert facts(X).contradictions == 0


def test_constant_and_offset_columns():
    X = np.random.default_rng(3).standard_normal((50, 5)).astype(np.float32)
    X[:, 1], X[:, 3] = 0.1, 5000 + X[:, 3]
    found = facts(X)
    assert found.constant_columns == (1,)
    assert 3 in found.offset_columns
    assert {"constant", "offset"} <= set(found.problems)


def test_unit_norms_survive_sixteen_bits():
    X = np.random.default_rng(4).standard_normal((60, 12))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert facts(X.astype(np.float16)).unit_norms
    assert not facts(2 * X).unit_norms


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_lower_rank_is_found_and_the_offered_code_is_lossless(dtype, offset):
    rng = np.random.default_rng(5)
    X = (rng.standard_normal((300, 9)) @ rng.standard_normal((9, 24)) + offset).astype(dtype)
    found = facts(X)
    assert found.rank == 9
    assert found.rank_with_mean == found.exact_width == (10 if offset else 9)
    assert found.lossless
    offer = diagnose(X, compare=False).explain()
    code = offer[offer.index("PrefixEncoder") : offer.index(" keeps all dot products")]
    Z = eval(code, {"PrefixEncoder": PrefixEncoder, "Similarity": Similarity, "ClosedForm": ClosedForm, "X": X})
    assert Z.shape == (300, found.exact_width)
    X64, eps = X.astype(float), np.finfo(dtype).eps
    size = np.abs(X64 @ X64.T).max()
    np.testing.assert_allclose(Z.astype(float) @ Z.astype(float).T, X64 @ X64.T, atol=50 * eps * size)


def test_full_rank_offers_nothing():
    found = facts(correlated(np.random.default_rng(6), 300, 10))
    assert found.rank == 10
    assert not found.lossless
    assert found.problems == ()


def test_few_rows_are_no_reason_to_cut():
    found = facts(np.random.default_rng(7).standard_normal((10, 30)))
    assert found.rank == 9
    assert not found.lossless
    assert "few rows" in found.problems


def test_a_small_column_is_not_called_rounding():
    """A column in other units is information: no claim of a lossless cut may drop it."""
    X = np.random.default_rng(8).standard_normal((200, 3)) * [1e9, 1.0, 1e-3]
    found = facts(X)
    assert found.rank == 3
    assert not found.lossless


def test_held_out_rows_count_for_the_rank():
    """One direction is filled by a single row; whichever side that row falls on, the rank knows it."""
    rng = np.random.default_rng(9)
    for seed in range(4):
        X = rng.standard_normal((100, 5)) @ rng.standard_normal((5, 8))
        X[seed] += rng.standard_normal(8)
        assert facts(X, np.arange(100) % 2).rank == 6


def test_one_copy_is_one_row_that_repeats():
    X = np.random.default_rng(0).normal(size=(200, 4))
    assert "1 row repeats an earlier row exactly (0.50%)" in str(diagnose(np.vstack([X[:-1], X[:1]])))
    assert "2 rows repeat an earlier row exactly" in str(diagnose(np.vstack([X[:-2], X[:2]])))
