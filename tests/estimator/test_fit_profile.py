"""The profile of a fit: corrected for having been fitted on its rows, it predicts what new rows score."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder, Similarity
from firstk.exceptions import InvalidInputError
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
    enc = PrefixEncoder(4, solver="gradient", random_state=0).fit(rows(256, 0))
    assert not enc._profile().held_out
    assert "own rows" in " ".join(enc.check(rows(100, 1)).notes)


@pytest.mark.parametrize("n", [50, 255])
def test_fits_of_few_rows_have_none(n):
    enc = PrefixEncoder().fit(rows(n, 0))
    assert enc._profile() is None
    with pytest.raises(InvalidInputError, match="fewer than 256 rows"):
        enc.check(rows(300, 1))


def test_small_fits_in_many_columns_raise_no_alarm():
    """Fewer rows than would fill the columns twice: the correction is large, and so is its doubt."""
    wide = [np.random.default_rng(seed).standard_normal((900, 150)) / np.sqrt(np.arange(1, 151)) for seed in range(4)]
    assert not any(PrefixEncoder().fit(X[:256]).check(X[256:]).refit for X in wide)


def test_held_out_rows_have_the_moments_of_all_of_them():
    enc, held = PrefixEncoder().fit(rows(300, 0)), rows(9000, 1)
    profile = enc._profile(held)
    assert (profile.rows, profile.held_out) == (9000, True)
    np.testing.assert_allclose(profile.mean, held.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize(
    ("held_out", "message"),
    [
        (np.full((300, D), np.nan), "NaN"),
        ((rows(300, 1), np.zeros(30)), "Got 30 for 300 rows"),
        ((rows(300, 1), None, None), "a tuple of 3"),
        (np.ones((300, D)), "same vector"),
    ],
)
def test_bad_held_out_rows_are_refused(held_out, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        PrefixEncoder().fit(rows(300, 0)).save(tmp_path / "model", held_out=held_out)
    assert not (tmp_path / "model").exists()


def test_pairs_have_the_profile_of_documents():
    left = rows(400, 0)
    enc = PrefixEncoder(objective="similarity").fit_pairs(left, left + 0.1 * rows(400, 1))
    assert enc._profile() is not None
    assert enc.check(rows(500, 2)).rows == 500


def store_of(n=2000, m=300):
    """Return queries, documents and judgements of a few documents that differ from the others of their store."""
    documents = rows(n, 0)
    documents[:m] = documents[:m, ::-1] + 1.0
    queries = documents[:m] + 0.1 * rows(m, 1)
    return queries, documents, np.column_stack([np.arange(m), np.arange(m), np.ones(m, int)])


def test_the_profile_of_judged_searches_is_of_the_whole_store():
    queries, documents, relevance = store_of()
    encoder = PrefixEncoder(objective=Similarity(shrinkage=0.5, neighbor_weight=0.0))
    profile = encoder.fit_search(queries, documents, relevance)._profile()
    assert profile.rows == len(documents)
    assert profile.held_out
    np.testing.assert_allclose(profile.mean, documents.mean(axis=0), atol=1e-9)
    report = encoder.check(documents, k=8)
    assert report.verdict != "refit"
    assert report.worst.ratio == pytest.approx(1.0, abs=0.02)
    assert report.drift.mean_shift < 1e-9
    # Of the right sides alone the same documents would seem to have moved.
    pairs = PrefixEncoder(objective=encoder.objective).fit_pairs(queries, documents[: len(queries)])
    assert pairs.check(documents, k=8).drift.mean_shift > 0.1


def test_codes_of_judged_searches_have_codebooks_where_the_store_has_enough_documents():
    queries, documents, relevance = store_of(4200)
    encoder = PrefixEncoder(objective=Similarity(shrinkage=0.5, neighbor_weight=0.0))
    assert encoder.fit_search(queries, documents, relevance).encoder_.with_cells().cells.codebooks.levels
    order = np.random.default_rng(2).permutation(len(documents))
    place = np.argsort(order)
    shuffled = np.column_stack([relevance[:, 0], place[relevance[:, 1]], relevance[:, 2]])
    other = PrefixEncoder(objective=encoder.objective).fit_search(queries, documents[order], shuffled)
    np.testing.assert_array_equal(other.encoder_.sample["X"], encoder.encoder_.sample["X"])


def test_fewer_pairs_than_columns_leave_documents_as_they_are():
    """Such a fit is made in the space of the pairs, and the documents of the store are not in it."""
    queries, documents, relevance = store_of(m=6)
    encoder = PrefixEncoder(objective=Similarity(shrinkage=0.5, neighbor_weight=0.0))
    encoder.fit_search(queries, documents, relevance)
    assert encoder._statistics.basis is not None
    np.testing.assert_array_equal(np.sort(encoder.encoder_.sample["X"], axis=0), np.sort(documents, axis=0))
