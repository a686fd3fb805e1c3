"""Missing, damaged and foreign files: each gets a message, and none a traceback from inside."""

from __future__ import annotations

import gzip
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from firstk.exceptions import FirstkError, InvalidInputError
from firstk_papers.datasets import (
    MissingDataError,
    load_banking77,
    load_cifar10,
    load_fashion_mnist,
    load_mnist,
    load_scifact,
    load_stsb,
)
from firstk_papers.datasets import data_folder as find_folder

LOADERS = {
    "mnist": load_mnist,
    "fashion-mnist": load_fashion_mnist,
    "cifar10": load_cifar10,
    "banking77": load_banking77,
    "stsb": load_stsb,
    "retrieval-scifact": load_scifact,
}


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_npz(path: Path, arrays, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=True)


def small_arrays(name):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((6, 4)).astype("f2")
    if name == "cifar10":
        pixels = rng.integers(0, 256, (3, 2, 32, 32)).astype("u1")
        labels = np.array([1, 9], "u1")
        return {"train_d": pixels, "train_y": labels, "test_d": pixels[:, :1], "test_y": labels[:1]}
    if name == "banking77":
        y = np.array([0, 1, 0, 1, 0, 1], "i2")
        return {"X_train": vectors, "y_train": y, "X_test": vectors, "y_test": y, "label_names": ["a", "b"]}
    if name == "stsb":
        arrays = {"E": vectors}
        for part in ("train", "dev", "test"):
            arrays[f"pairs_{part}"] = np.array([[0, 1], [2, 5]], "i4")
            arrays[f"score_{part}"] = np.array([0, 5], "f4")
            arrays[f"genre_{part}"] = np.array(["x", "y"])
        return arrays
    judged = np.array([[0, 5, 1], [1, 0, 2]], "i4")
    ids = np.array(list("abcdef"))
    return {
        "D": vectors, "Q": vectors[:3], "doc_ids": ids, "query_ids": ids[:3],
        "qrels_train": judged, "qrels_test": judged,
    }  # fmt: skip


NPZ_FILES = {
    "cifar10": "cifar10_15k_10k.npz",
    "banking77": "banking77_minilm.npz",
    "stsb": "stsb_minilm.npz",
    "retrieval-scifact": "scifact_minilm.npz",
}


@pytest.fixture
def home(tmp_path):
    """Build a data folder with a tiny set of every kind."""
    rng = np.random.default_rng(0)
    for name in ("mnist", "fashion-mnist"):
        (tmp_path / name).mkdir()
        for part, n in (("train", 5), ("t10k", 3)):
            images = rng.integers(0, 256, (n, 4, 6)).astype("u1")
            labels = rng.integers(0, 10, n).astype("u1")
            (tmp_path / name / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
            (tmp_path / name / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(labels)))
    for name, file in NPZ_FILES.items():
        (tmp_path / name).mkdir()
        write_npz(tmp_path / name / file, small_arrays(name))
    return tmp_path


@pytest.mark.parametrize("name", LOADERS)
def test_small_sets_are_read(home, name):
    found = LOADERS[name](home)
    assert found.name in (name, "scifact")


def test_unpacked_idx_files_are_read_too(home):
    expected = load_mnist(home)
    for packed in (home / "mnist").glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    np.testing.assert_array_equal(load_mnist(home).X_train, expected.X_train)
    assert expected.image_shape == (4, 6)


@pytest.mark.parametrize("name", LOADERS)
def test_missing_sets_say_what_where_and_the_way_out(tmp_path, name):
    with pytest.raises(MissingDataError) as caught:
        LOADERS[name](tmp_path / "nowhere")
    message = str(caught.value)
    assert str(tmp_path / "nowhere" / name) in message
    assert "FIRSTK_DATA" in message
    assert (NPZ_FILES.get(name) or "train-images-idx3-ubyte.gz") in message
    assert ("download=True" in message) == (name in ("mnist", "fashion-mnist", "cifar10"))
    assert str(pickle.loads(pickle.dumps(caught.value))) == message  # as a process sends it to another


def test_an_incomplete_set_names_the_missing_file(home):
    (home / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(MissingDataError, match=r"1 of 4 missing \(t10k-labels-idx1-ubyte\.gz\)"):
        load_mnist(home)


def test_the_order_of_places(monkeypatch, tmp_path):
    monkeypatch.setenv("FIRSTK_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert find_folder(tmp_path / "argument") == tmp_path / "argument"
    assert find_folder() == tmp_path / "variable"
    monkeypatch.setenv("FIRSTK_DATA", "")
    assert find_folder() == tmp_path / "cache" / "firstk"
    monkeypatch.delenv("FIRSTK_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    for platform, place in (("linux", ".cache"), ("darwin", "Library/Caches")):
        monkeypatch.setattr("sys.platform", platform)
        assert find_folder() == tmp_path / place / "firstk"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert find_folder() == tmp_path / "Local" / "firstk"
    with pytest.raises(InvalidInputError, match="'folder' parameter"):
        find_folder(3)


def test_the_variable_is_read_at_each_call(home, monkeypatch):
    monkeypatch.setenv("FIRSTK_DATA", str(home))
    assert len(load_stsb().vectors) == 6
    monkeypatch.setenv("FIRSTK_DATA", str(home / "elsewhere"))
    with pytest.raises(MissingDataError):
        load_stsb()


IMAGES = np.zeros((5, 4, 6), "u1")
BAD_IDX = {
    "empty": (b"", "it has 0 bytes"),
    "a header cut short": (idx(IMAGES)[:9], "it has 9 bytes, and the idx header alone takes 16"),
    "a truncated body": (idx(IMAGES)[:-1], "promises (5, 4, 6) = 120 entries, and it holds 119"),
    "bytes too many": (idx(IMAGES) + b"x", "it holds 121"),
    "no images": (idx(IMAGES[:0]), "promises (0, 4, 6) = 0"),
    "lengths beyond memory": (bytes([0, 0, 8, 3]) + b"\xff" * 12, "it holds 0"),
    "labels instead of images": (idx(np.zeros(30, "u1")), "it starts with 00 00 08 01"),
    "floats": (b"\0\0\x0d\x03" + b"\0" * 20, "it starts with 00 00 0d 03"),
    "a page of a web server": (b"<!DOCTYPE html><html>404</html>", "it starts with 3c 21 44 4f"),
    "gzip cut short": (gzip.compress(idx(IMAGES))[:-12], "reading fails"),
    "gzip with a wrong sum": (gzip.compress(idx(IMAGES))[:-8] + b"\0" * 8, "reading fails"),
    "gzip of nothing else": (b"\x1f\x8b", "reading fails"),
}


@pytest.mark.parametrize("kind", BAD_IDX)
def test_damaged_idx_files(home, kind):
    content, message = BAD_IDX[kind]
    path = home / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError) as caught:
        load_mnist(home)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "Replace it with an intact copy." in str(caught.value)


@pytest.mark.parametrize(
    ("file", "array", "message"),
    [
        ("train-labels-idx1-ubyte.gz", np.zeros(4, "u1"), "must be integers of shape (5,)"),
        (
            "train-labels-idx1-ubyte.gz",
            np.array([0, 1, 2, 3, 10], "u1"),
            "must lie in [0, 9]; it reaches from 0 to 10",
        ),
        ("t10k-images-idx3-ubyte.gz", np.zeros((3, 6, 4), "u1"), "its images are (6, 4)"),
    ],
)
def test_idx_files_that_do_not_fit_together(home, file, array, message):
    (home / "mnist" / file).write_bytes(gzip.compress(idx(array)))
    with pytest.raises(InvalidInputError) as caught:
        load_mnist(home)
    assert message in str(caught.value)


BAD_ARRAYS = [
    ("cifar10", "train_d", np.zeros((3, 2, 32, 31), "u1"), "train_d must be bytes of shape (3, n, 32, 32)"),
    ("cifar10", "train_d", np.zeros((3, 0, 32, 32), "u1"), "train_d must be bytes"),
    ("cifar10", "test_y", np.array([10], "u1"), "must lie in [0, 9]"),
    ("banking77", "X_train", np.zeros(6, "f2"), "X_train must be a matrix of floats"),
    ("banking77", "X_train", np.full((6, 4), np.nan, "f2"), "X_train has NaN or infinity"),
    ("banking77", "X_test", np.zeros((6, 5), "f2"), "X_test must have 4 columns; it has 5"),
    ("banking77", "y_train", np.zeros(6, "f4"), "y_train must be integers of shape (6,)"),
    ("banking77", "y_train", np.full(6, -1), "y_train must lie in [0, 1]"),
    ("banking77", "label_names", np.arange(2), "label_names must be 2 texts"),
    ("stsb", "pairs_dev", np.array([[0, 6]]), "pairs_dev must lie in [0, 5]"),
    ("stsb", "pairs_dev", np.zeros((2, 3), int), "pairs_dev must be integers of shape ('any', 2)"),
    ("stsb", "score_test", np.zeros(3), "score_test must be 2 floats"),
    ("stsb", "score_test", np.array([np.inf, 0]), "score_test has NaN or infinity"),
    (
        "retrieval-scifact",
        "qrels_test",
        np.array([[3, 0, 1]]),
        "the query row in qrels_test must lie in [0, 2]",
    ),
    (
        "retrieval-scifact",
        "qrels_train",
        np.array([[0, 6, 1]]),
        "the document row in qrels_train must lie in [0, 5]",
    ),
    ("retrieval-scifact", "doc_ids", np.array(["a"]), "doc_ids must be 6 texts"),
    ("retrieval-scifact", "Q", np.array([[None]], dtype=object), "reading fails"),
]


@pytest.mark.parametrize(("name", "key", "array", "message"), BAD_ARRAYS)
def test_arrays_that_are_not_what_they_should_be(home, name, key, array, message):
    write_npz(home / name / NPZ_FILES[name], {**small_arrays(name), key: array})
    with pytest.raises(InvalidInputError) as caught:
        LOADERS[name](home)
    assert message in str(caught.value)
    assert NPZ_FILES[name] in str(caught.value)


@pytest.mark.parametrize("name", NPZ_FILES)
def test_an_array_that_is_missing_is_named(home, name):
    arrays = small_arrays(name)
    key = next(iter(arrays))
    del arrays[key]
    write_npz(home / name / NPZ_FILES[name], arrays)
    with pytest.raises(InvalidInputError, match=f"it lacks the arrays {key} "):
        LOADERS[name](home)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("name", ["cifar10", "stsb"])
def test_any_damage_to_an_npz_file_is_noticed_or_harmless(home, name, compression):
    """Cut and overwrite at seeded places: either the arrays are intact, or there is a sentence."""
    path = home / name / NPZ_FILES[name]
    write_npz(path, small_arrays(name), compression)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    messages = []
    for trial in range(60):
        at = int(rng.integers(len(content)))
        damaged = content[:at]
        if trial % 2:
            damaged += rng.bytes(4) + content[at + 4 :]
        path.write_bytes(damaged)
        try:
            LOADERS[name](home)
        except FirstkError as error:
            messages.append(str(error))
    assert len(messages) >= 50
    assert all("cannot be used" in message for message in messages)


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY", b"not an archive" * 100])
def test_files_that_are_no_archives(home, content):
    (home / "stsb" / NPZ_FILES["stsb"]).write_bytes(content)
    with pytest.raises(InvalidInputError, match="reading fails"):
        load_stsb(home)
