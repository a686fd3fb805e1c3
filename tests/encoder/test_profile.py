"""The profile of rows: it survives arrays, cuts, saving and loading, and damage is told."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.profile import RowProfile, ScoreTable
from firstk.exceptions import CorruptModelError

X = np.random.default_rng(0).standard_normal((300, 6)) * [3, 2, 1.5, 1, 0.5, 0.2] + 1


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return PrefixEncoder().fit(X).save(tmp_path_factory.mktemp("profile") / "model")


def test_it_is_saved_with_the_model_and_read_again(model):
    profile = FittedEncoder.load(model).profile
    again = RowProfile.from_arrays(profile.to_arrays(), 6, 6)
    assert (again.rows, again.held_out) == (profile.rows, profile.held_out)
    for name, part in profile.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], part)
    np.testing.assert_allclose(profile.mean, X.mean(axis=0))
    assert profile.total == pytest.approx(X.var(axis=0).sum())


def test_a_cut_encoder_has_the_profile_of_its_prefix(model, tmp_path):
    encoder = FittedEncoder.load(model)
    cut = encoder[:4].profile
    np.testing.assert_array_equal(cut.share, encoder.profile.share[:4])
    assert cut.scores["recall@10"].k[-1] == 4
    saved = FittedEncoder.load(encoder[:4].save(tmp_path / "cut"))
    np.testing.assert_array_equal(saved.profile.share, cut.share)


def test_shares_between_lengths_are_interpolated():
    table = ScoreTable(
        np.array([64]), np.array([2, 8]), np.array([[0.4, 0.8]]), np.array([[0.1, 0.1]]), np.array([0.5])
    )
    assert table.kept(4, 64) == pytest.approx((0.6 / 0.5, 0.1 / 0.5))  # log2 4 is half way
    assert table.cut(4).kept(4, 64) == pytest.approx(table.kept(4, 64))


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("mean"),
        lambda arrays: arrays.update(mean=np.zeros(5)),
        lambda arrays: arrays.update(share=np.full(6, np.nan)),
        lambda arrays: arrays.update({"scores.recall@10.k": np.array([3.0, 1.0])}),
        lambda arrays: arrays.update({"scores.recall@10.raw": np.zeros(2)}),
    ],
)
def test_damage_is_told(model, change):
    arrays = FittedEncoder.load(model).profile.to_arrays()
    change(arrays)
    with pytest.raises((ValueError, KeyError)):
        RowProfile.from_arrays(arrays, 6, 6)


def test_a_damaged_profile_is_a_damaged_model(model, tmp_path):
    encoder = FittedEncoder.load(model)
    from dataclasses import replace

    wrong = replace(encoder, profile=replace(encoder.profile, share=np.ones(3)))
    with pytest.raises(CorruptModelError, match="damaged firstk model"):
        FittedEncoder.load(wrong.save(tmp_path / "wrong"))
