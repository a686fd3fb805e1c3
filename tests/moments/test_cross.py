"""Cross moments against numpy on all rows, on any partition, in any order."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.moments.cross import CrossMoments
from upgrade.pairs import pairs


def slow(old, new, weight=None):
    """Return means and covariances of the joint rows, divided by n."""
    weight = np.ones(len(old)) if weight is None else weight
    joint = np.hstack([old, new])
    mean = weight @ joint / weight.sum()
    return mean, ((joint - mean) * weight[:, None]).T @ (joint - mean) / weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_they_are_those_of_the_joint_rows(weighted, p, q):
    old, new = pairs(p=p, q=q)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(old)) if weighted else None
    mean, S = slow(old, new, weight)
    found = CrossMoments().update(old, new, weight)
    assert (found.rows, found.p, found.q) == (len(old), p, q)
    np.testing.assert_allclose(np.concatenate([found.old_mean, found.new_mean]), mean, rtol=1e-12)
    np.testing.assert_allclose(found.old_scatter, S[:p, :p], atol=1e-12)
    np.testing.assert_allclose(found.new_scatter, S[p:, p:], atol=1e-12)
    np.testing.assert_allclose(found.cross, S[:p, p:], atol=1e-12)
    about_zero = found.about_zero()
    joint = np.hstack([old, new])
    weight = np.ones(len(old)) if weight is None else weight
    np.testing.assert_allclose(
        about_zero.cross, ((joint * weight[:, None]).T @ joint / weight.sum())[:p, p:], atol=1e-12
    )
    turned = found.exchanged()
    np.testing.assert_array_equal(turned.cross, found.cross.T)
    np.testing.assert_array_equal(turned.old_scatter, found.new_scatter)
    np.testing.assert_array_equal(turned.old_mean, found.new_mean)


def test_partitions_and_order_change_nothing_beyond_rounding():
    old, new = pairs(n=1000)
    whole = CrossMoments().update(old, new)
    order = np.random.default_rng(1).permutation(1000)
    for cuts in ([500], [1, 2, 990], list(range(50, 1000, 50))):
        parts = [CrossMoments().update(old[rows], new[rows]) for rows in np.split(order, cuts)]
        merged = CrossMoments()
        for part in parts[::-1]:
            merged.merge(part)
        for name in ("old_mean", "new_mean", "old_scatter", "new_scatter", "cross"):
            np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=0, atol=1e-12)


def test_what_is_left_without_a_part_is_that_of_the_rest():
    old, new = pairs()
    left = CrossMoments().update(old, new).without(CrossMoments().update(old[:80], new[:80]))
    rest = CrossMoments().update(old[80:], new[80:])
    np.testing.assert_allclose(left.cross, rest.cross, atol=1e-12)
    np.testing.assert_allclose(left.new_scatter, rest.new_scatter, atol=1e-12)


@pytest.mark.parametrize(
    "kinds", [("float32", "float64"), ("float64", "float32"), ("float16", "float64"), ("int64", "float32")]
)
def test_mixed_types_are_taken_in_the_finer_one(kinds):
    old, new = pairs()
    old, new = (np.round(side * 8).astype(kind) for side, kind in zip((old, new), kinds, strict=True))
    found = CrossMoments().update(old, new)
    expected = slow(old.astype(float), new.astype(float))[1]
    np.testing.assert_allclose(found.cross, expected[: found.p, found.p :], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_correspond_are_told_from_rows_that_do_not(seed):
    old, new = pairs(seed=seed)
    assert CrossMoments().update(old, new).correlated
    shuffled = np.random.default_rng(seed).permutation(len(new))
    assert not CrossMoments().update(old, new[shuffled]).correlated


def test_bad_pairs_are_errors_and_change_nothing():
    old, new = pairs()
    found = CrossMoments("somebody").update(old, new)
    before = found.cross.copy()
    holed = new.copy()
    holed[3, 1] = np.nan
    for bad_old, bad_new, message in [
        (old, holed, "somebody takes finite numbers; 'new' has NaN or infinity in 1 of 400 rows"),
        (old, new[:10], "somebody needs as many rows in 'old' as in 'new'. Got 400 and 10"),
        (old, new[:, :0], "somebody needs at least one row and one column in 'new'"),
        (old[:, :3], new, "widths 7 and 5 cannot take in pairs of 3 and 5"),
    ]:
        with pytest.raises(InvalidInputError) as caught:
            found.update(bad_old, bad_new)
        assert message in str(caught.value)
    np.testing.assert_array_equal(found.cross, before)
    assert found.rows == 400


def test_statistics_survive_storage_and_have_the_same_sample_in_any_order():
    old, new = pairs(n=300)
    whole = CrossMoments.sampled(old, new)
    order = np.random.default_rng(2).permutation(300)
    parts = CrossMoments()
    for rows in np.array_split(order, 4):
        parts.merge(CrossMoments.sampled(old[rows], new[rows]))
    np.testing.assert_array_equal(parts.sample["left"], whole.sample["left"])
    np.testing.assert_array_equal(parts.sample["right"], whole.sample["right"])
    again = CrossMoments.from_arrays(whole.to_arrays())
    np.testing.assert_array_equal(again.cross, whole.cross)
    with pytest.raises(CorruptModelError):
        CrossMoments.from_arrays({name: part for name, part in whole.to_arrays().items() if "within" not in name})


def test_a_number_in_place_of_group_labels_is_a_damaged_file():
    arrays = CrossMoments().update(*pairs()).to_arrays() | {"moments.group_labels": np.array(3)}
    with pytest.raises(CorruptModelError, match="do not fit together"):
        CrossMoments.from_arrays(arrays)
