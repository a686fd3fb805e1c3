"""The profile of a fit: corrected for having been fitted on its rows, it predicts what new rows score."""

from __future__ import annotations

import numpy as np

from firstk import PrefixEncoder
from firstk.metrics.profile import measure_profile

D = 40
SCALE = 1 / np.sqrt(np.arange(1, D + 1))


def rows(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, D)) * SCALE


def test_the_correction_leads_to_the_score_of_new_rows():
    apparent, corrected, fresh = [], [], []
    for seed in range(5):
        enc = PrefixEncoder().fit(rows(300, seed))
        new = measure_profile(enc.encoder_, rows(2048, 100 + seed))
        seen = measure_profile(enc.encoder_, enc.encoder_.sample["X"])
        for profile, found in ((seen, apparent), (enc._profile(), corrected), (new, fresh)):
            found.append(np.append(profile.share[7], profile.scores["recall@10"].kept(8, 64)[0]))
    apparent, corrected, fresh = (np.mean(part, axis=0) for part in (apparent, corrected, fresh))
    assert (apparent > fresh).all()
    assert (np.abs(corrected - fresh) < 0.6 * np.abs(apparent - fresh)).all()


def test_many_rows_need_no_correction():
    enc = PrefixEncoder().fit(rows(300, 0))
    enc._statistics.moments.rows = 10**6
    seen = measure_profile(enc.encoder_, enc.encoder_.sample["X"])
    assert enc._profile().held_out
    np.testing.assert_array_equal(enc._profile().share, seen.share)


def test_trained_encoders_are_told_to_be_uncorrected():
    enc = PrefixEncoder(4, solver="gradient", random_state=0).fit(rows(80, 0))
    assert not enc._profile().held_out
    assert "own rows" in " ".join(enc.check(rows(100, 1)).notes)


def test_fits_of_few_rows_have_none():
    assert PrefixEncoder().fit(rows(50, 0))._profile() is None


def test_pairs_have_the_profile_of_documents():
    left = rows(400, 0)
    enc = PrefixEncoder(objective="similarity").fit_pairs(left, left + 0.1 * rows(400, 1))
    assert enc._profile() is not None
    assert enc.check(rows(500, 2)).rows == 500
