"""Columns in files of their own."""

import numpy as np
import pytest

from firstk.data.files.column_files import open_column
from firstk.exceptions import InvalidInputError


def test_a_column_in_parts_gives_the_rows_that_are_asked_for(tmp_path):
    whole = np.arange(10) * 3
    np.save(tmp_path / "part-0.npy", whole[:4])
    np.save(tmp_path / "part-1.npy", whole[4:])
    column = open_column(tmp_path)
    assert len(column) == 10
    for rows in ([], [0], [2, 3], [3, 4], [1, 5, 9], [4], range(10)):
        rows = np.array(rows, dtype=np.int64)
        np.testing.assert_array_equal(column.take(rows), whole[rows])
    np.testing.assert_array_equal(column.whole(), whole)


def test_a_single_number_is_no_column(tmp_path):
    np.save(tmp_path / "labels.npy", np.float64(3))
    with pytest.raises(InvalidInputError, match="single number"):
        open_column(tmp_path / "labels.npy")
