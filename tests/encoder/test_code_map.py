"""A function in the place of an encoder: files of its codes say what made them, and others are not like them."""

import numpy as np
import pytest

from firstk import transform_files
from firstk.data.files import open_vectors
from firstk.encoder.code_map import CodeMap
from firstk.exceptions import InvalidInputError


def doubled(made_by="doubling"):
    return CodeMap(3, 3, lambda X, k: 2 * X[:, :k], made_by, "A doubling")


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "vectors.npz", e=np.arange(12.0).reshape(4, 3))
    return tmp_path


def test_codes_are_what_the_function_gives(folder):
    outcome = transform_files(doubled(), folder / "vectors.npz", folder / "codes.npz", k=2)
    assert (outcome.k, outcome.width, outcome.rows) == (2, 3, 4)
    X = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(open_vectors(folder / "codes.npz").read().vectors, 2 * X[:, :2])


def test_codes_like_those_of_another_function_are_refused(folder):
    transform_files(doubled(), folder / "vectors.npz", folder / "codes.npz", k=2, precision="int8")
    transform_files(doubled(), folder / "vectors.npz", folder / "more.npz", like=folder / "codes.npz")
    with pytest.raises(InvalidInputError, match=r"made by encoder doubling .* by encoder other"):
        transform_files(doubled("other"), folder / "vectors.npz", folder / "no.npz", like=folder / "codes.npz")


def test_it_has_no_embedded_bits(folder):
    with pytest.raises(InvalidInputError, match="A doubling has no embedded bits"):
        transform_files(doubled(), folder / "vectors.npz", folder / "bits.npz", bytes_per_vector=2)
