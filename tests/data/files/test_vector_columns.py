"""The vector column is found when there is one answer; otherwise the candidates are named."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from firstk.data.files import open_vectors, write_vectors
from firstk.data.files.contract import Wanted
from firstk.data.files.named_arrays import beside_matrix, choose_matrix
from firstk.data.files.vector_columns import choose
from firstk.exceptions import InvalidInputError

NUMBERED = {f"x{j}": "number" for j in range(12)}

FOUND = [
    ({"id": "number", "e": "vector", "tokens": "list"}, Wanted(), "e", ("e",)),  # whole numbers may be tokens
    ({"id": "number", "tokens": "list"}, Wanted(), "tokens", ("tokens",)),
    ({"a": "vector", "b": "vector"}, Wanted("b"), "b", ("b",)),
    ({"a": "vector", "b": "vector"}, Wanted(beside=("a",)), "b", ("b",)),
    ({"label": "number", "age": "number"} | NUMBERED, Wanted(), "x", tuple(NUMBERED)),
    ({"x10": "number", "x2": "number", "x1": "number"}, Wanted("x*"), "vectors", ("x10", "x2", "x1")),
    ({"b_2": "number", "b_1": "number", "name": "other"}, Wanted(), "b", ("b_1", "b_2")),  # in the order of numbers
    ({"0": "number", "1": "number", "2": "number"}, Wanted(), "vectors", ("0", "1", "2")),
    (
        {"height": "number", "width": "number", "label": "number", "id": "number"},
        Wanted(),
        "vectors",
        ("height", "width"),
    ),
    (
        {"height": "number", "width": "number", "grade": "number"},
        Wanted(beside=("grade",)),
        "vectors",
        ("height", "width"),
    ),
    ({"height": "number", "width": "number", "grade": "number"}, Wanted("width, grade"), "vectors", ("width", "grade")),
    ({"l0": "number", "l1": "number", "r0": "number", "r1": "number"}, Wanted("r"), "r", ("r0", "r1")),
    ({"a": "number", "b": "number", "c": "number", "d1": "number"}, Wanted(), "vectors", ("a", "b", "c", "d1")),
]


@pytest.mark.parametrize(("kinds", "wanted", "name", "members"), FOUND)
def test_found(kinds, wanted, name, members):
    choice = choose("file", kinds, wanted)
    assert (choice.name, choice.members) == (name, members)


REFUSED = [
    ({"a": "vector", "b": "vector"}, Wanted(), "2 columns that could be the vectors: 'a', 'b'. Name one: vectors='a'"),
    ({"l0": "number", "l1": "number", "r0": "number", "r1": "number"}, Wanted(), "could be the vectors: 'l', 'r'"),
    ({"a": "vector"}, Wanted("c"), "has no column 'c'. It has: 'a'."),
    ({"a": "vector", "t": "other"}, Wanted("t"), "column 't' does not hold numbers"),
    ({"a": "vector", "b": "vector"}, Wanted("a,b"), "names several columns, and not each is a coordinate"),
    ({"t": "other", "label": "number"}, Wanted(), "none of its columns is a vector or a coordinate"),
    ({}, Wanted(), "it has no columns"),
]


@pytest.mark.parametrize(("kinds", "wanted", "message"), REFUSED)
def test_refused(kinds, wanted, message):
    with pytest.raises(InvalidInputError) as caught:
        choose("file", kinds, wanted)
    assert message in str(caught.value)


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_arrays_with_names(tmp_path, ending):
    X, other = np.eye(3, dtype=np.float32), np.ones((3, 2), np.float32)
    path = tmp_path / f"a{ending}"
    write_vectors(path, X, {"other": other, "label": np.arange(3)}, name="e")
    with pytest.raises(InvalidInputError, match="2 columns that could be the vectors: 'e', 'other'"):
        open_vectors(path)
    table = open_vectors(path, "other")
    assert (table.width, set(table.columns)) == (2, {"e", "label"})
    np.testing.assert_array_equal(table.read().columns["e"], X)
    with pytest.raises(InvalidInputError, match="has no column 'x'"):
        open_vectors(path, "x")
    with pytest.raises(InvalidInputError, match="vectors are a matrix"):
        open_vectors(path, "label")


def test_columns_that_are_not_there(tmp_path):
    write_vectors(tmp_path / "a.npz", np.eye(3), {"label": np.arange(3)})
    with pytest.raises(InvalidInputError, match=r"has no column 'intent'. It has: 'vectors', 'label'"):
        open_vectors(tmp_path / "a.npz").read(["intent"])
    with pytest.raises(InvalidInputError, match="'size' parameter of batches must be a positive int"):
        next(open_vectors(tmp_path / "a.npz").batches(0))


def arrays(**described):
    """Return arrays as headers describe them: shape and numpy's letter of the type."""
    return {name: SimpleNamespace(shape=shape, kind=kind) for name, (shape, kind) in described.items()}


MATRICES = {"e": ((4, 3), "f"), "tokens": ((4, 5), "i"), "label": ((4,), "i"), "odd": ((4, 3), "O"), "b": ((4, 2), "b")}


def test_arrays_of_a_file_the_only_matrix_of_floats_or_of_numbers_is_the_vectors():
    held = arrays(**MATRICES)
    assert choose_matrix("f", held, Wanted(), "arrays") == "e"
    assert choose_matrix("f", held, Wanted(beside=("e",)), "arrays") == "tokens"
    assert choose_matrix("f", held, Wanted("b"), "arrays") == "b"  # as asked; the reader says what it cannot do


@pytest.mark.parametrize(
    ("held", "wanted", "message"),
    [
        (MATRICES, Wanted("x"), "has no column 'x'. It has: 'e', 'tokens'"),
        (MATRICES, Wanted("e", ("e",)), "'e' of 'f' is the vectors, and labels cannot be"),
        (MATRICES | {"g": ((4, 2), "f")}, Wanted(), "has 2 columns that could be the vectors: 'e', 'g'"),
        ({"e": ((4, 3), "f")}, Wanted(beside=("e",)), "'e' of 'f' is the vectors, and labels cannot be"),
        ({"a": ((4,), "f"), "o": ((4, 3), "O")}, Wanted(), "holds no matrix of numbers (its tensors: 'a', 'o')"),
        ({}, Wanted(), "holds no matrix of numbers (its tensors: none)"),
    ],
)
def test_arrays_of_a_file_without_one_answer(held, wanted, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        choose_matrix("f", arrays(**held), wanted, "tensors")


def test_arrays_beside_the_vectors_have_as_many_rows():
    held = arrays(**MATRICES, other=((9,), "f"), scalar=((), "U"))
    assert list(beside_matrix("f", held, "e", Wanted())) == ["tokens", "label", "b"]
    with pytest.raises(InvalidInputError, match=re.escape("'other' has shape (9,), and 'e' has 4 rows")):
        beside_matrix("f", held, "e", Wanted(beside=("other",)))


def test_a_tensor_of_a_type_that_is_not_read(tmp_path):
    torch, save = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    tensors = {"e": torch.zeros(4, 3), "small": torch.zeros(4, 3, dtype=torch.float8_e4m3fn)}
    save.save_file(tensors, tmp_path / "a.safetensors")
    assert open_vectors(tmp_path / "a.safetensors").vectors == "e"
    with pytest.raises(InvalidInputError, match="tensor 'small' has a type that is not read here"):
        open_vectors(tmp_path / "a.safetensors", "small")
