"""A diagnosis takes the shapes of a task as it takes their arrays."""

import numpy as np
import pytest

from firstk import Pairs, Rows, Search, Task, diagnose, read
from firstk.exceptions import InvalidInputError

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 5)), np.arange(60) % 3
JUDGED = np.stack([np.arange(40), np.arange(40), np.ones(40, dtype=int)], axis=1)


@pytest.mark.parametrize(
    ("shape", "arrays"),
    [
        (Rows(X, Y), {"X": X, "y": Y}),
        (Task(Rows(X), None), {"X": X}),
        (Pairs(X, X + 0.1, Y * 1.0, documents=X), {"X": X, "pairs": (X, X + 0.1, Y * 1.0)}),
        (Search(X[:40] + 0.1, X, JUDGED), {"search": Search(X[:40] + 0.1, X, JUDGED)}),
    ],
)
def test_a_shape_is_diagnosed_as_its_arrays(shape, arrays):
    found, same = diagnose(shape, compare=False), diagnose(**arrays, compare=False)
    assert (found.kind, found.vectors) == (same.kind, same.vectors)


def test_a_task_of_a_file_is_diagnosed_as_its_rows(tmp_path):
    np.savez(tmp_path / "rows.npz", e=X, label=Y)
    found = diagnose(read(tmp_path / "rows.npz", label="label"), compare=False)
    assert (found.kind, found.vectors) == ("labels", diagnose(X, Y, compare=False).vectors)


def test_a_task_and_labels_of_their_own_are_refused():
    with pytest.raises(InvalidInputError, match="go with an array"):
        diagnose(Rows(X), Y)
