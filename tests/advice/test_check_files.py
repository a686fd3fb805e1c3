"""Files of new rows are checked as arrays are, in whatever shards they come."""

from __future__ import annotations

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.advice.check_files import check_files
from firstk.exceptions import InvalidInputError


def test_shards_are_checked_as_one_array(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 12)) / np.arange(1, 13)
    encoder = PrefixEncoder().fit(X[:1000])
    (tmp_path / "new").mkdir()
    np.save(tmp_path / "new" / "a.npy", X[1000:1200])
    np.save(tmp_path / "new" / "b.npy", X[1200:])
    told = []
    saved = PrefixEncoder.load(encoder.save(tmp_path / "model"))
    found = check_files(saved.encoder_, tmp_path / "new", k=4, progress=told.append)
    assert sum(told) == 1000
    expected = saved.check(X[1000:], k=4)
    assert found.worst.ratio == pytest.approx(expected.worst.ratio, abs=1e-12)
    assert found.share_now == pytest.approx(expected.share_now, rel=1e-10)


def test_another_width_is_told(tmp_path):
    encoder = PrefixEncoder().fit(np.random.default_rng(0).standard_normal((100, 4)))
    np.save(tmp_path / "x.npy", np.ones((100, 5)))
    with pytest.raises(InvalidInputError, match="5 numbers, and the encoder takes 4"):
        check_files(encoder.encoder_, tmp_path / "x.npy")
