"""``check`` with labels: as many rows as people have decide, because each of them asks."""

import numpy as np

from firstk.data.task import Rows
from firstk.metrics.profile import _groups


def test_every_row_of_a_group_asks_once_and_never_finds_itself():
    X, y = np.arange(12.0)[:, None], np.arange(12)
    groups = list(_groups(X, y, "1nn_accuracy", 4))
    assert np.array_equal(np.sort(np.concatenate([one.X[:, 0] for one in groups])), X[:, 0])
    for one in groups:
        assert isinstance(one.reference, Rows)
        assert not np.intersect1d(one.X, one.reference.X).size
        assert len(one.X) == len(one.reference.X) == 2
