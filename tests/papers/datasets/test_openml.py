"""The way to OpenML, with scikit-learn's fetch replaced: what is asked of it, what is made of its answer."""

from __future__ import annotations

from dataclasses import replace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from firstk.exceptions import InvalidInputError
from firstk_papers.datasets import MissingDataError, load_cifar10, load_fashion_mnist, load_mnist, openml

COUNTS = (1, 2) + (0,) * 8


@pytest.fixture
def table(monkeypatch):
    """Shrink the sets to 4 + 3 images and answer from a table; returns (answer, calls)."""
    for name in ("MNIST", "FASHION_MNIST", "CIFAR10"):
        monkeypatch.setattr(openml, name, replace(getattr(openml, name), n_train=4, test_counts=COUNTS))
    calls = []
    rng = np.random.default_rng(0)
    answer = {"labels": np.array(list("3210101"), dtype=object), "pixels": rng.integers(0, 256, (7, 784))}

    def fetch(name, **options):
        calls.append((name, options))
        if "error" in answer:
            raise answer["error"]
        return answer["pixels"], answer["labels"]

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    return answer, calls


@pytest.mark.parametrize(("load", "name"), [(load_mnist, "mnist_784"), (load_fashion_mnist, "Fashion-MNIST")])
def test_grey_images(table, tmp_path, load, name):
    answer, calls = table
    answer["labels"] = np.array(list("3210110"), dtype=object)
    found = load(tmp_path, download=True)
    np.testing.assert_array_equal(np.rint(np.vstack([found.X_train, found.X_test]) * 255), answer["pixels"])
    assert found.y_train.tolist() == [3, 2, 1, 0]
    assert found.y_test.tolist() == [1, 1, 0]
    assert found.X_train.dtype == np.float32
    assert found.image_shape == (28, 28)
    ((asked, options),) = calls
    assert asked == name
    assert options["version"] == 1
    assert options["data_home"] == str(tmp_path / "openml")
    assert options["parser"] in ("pandas", "liac-arff")


def test_colour_planes_become_pixels(table, tmp_path):
    answer, calls = table
    planes = np.random.default_rng(1).integers(0, 256, (7, 3, 32, 32))
    answer.update(pixels=planes.reshape(7, -1).astype(float), labels=np.array([3, 2, 1, 0, 1, 0, 1.0]))
    found = load_cifar10(tmp_path, download=True)
    images = found.X_train.reshape(-1, *found.image_shape)
    np.testing.assert_array_equal(np.rint(images[2, :, :, 1] * 255), planes[2, 1])
    assert calls[0][0] == "CIFAR_10"


def test_nothing_is_fetched_unless_asked(table, tmp_path):
    with pytest.raises(MissingDataError, match="download=True"):
        load_mnist(tmp_path)
    assert table[1] == []


@pytest.mark.parametrize("error", [URLError("no route"), TimeoutError("slow"), PermissionError("x"), ValueError("md5")])
def test_no_connection(table, tmp_path, error):
    table[0]["error"] = error
    with pytest.raises(MissingDataError) as caught:
        load_mnist(tmp_path, download=True)
    assert "'mnist_784' could not be fetched from OpenML" in str(caught.value)
    assert type(error).__name__ in str(caught.value)
    assert "Check the connection" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pixels": np.zeros((7, 783))}, "should be 7 rows of 784 pixels"),
        ({"labels": np.array(list("321010"))}, "Got shapes (7, 784) and (6,)"),
        ({"labels": np.array(list("1010321"))}, "the rows are in another order"),
        ({"labels": np.array(list("321010x"))}, "class numbers"),
        ({"labels": np.array([3, 2, 1, 0, 1, 0, -1])}, "class numbers"),
        ({"pixels": np.full((7, 784), 256)}, "pixels reach from 256 to 256"),
        ({"pixels": np.full((7, 784), np.nan)}, "pixels reach from nan to nan"),
    ],
)
def test_an_answer_that_is_not_the_set(table, tmp_path, change, message):
    table[0].update(change)
    with pytest.raises(InvalidInputError) as caught:
        load_mnist(tmp_path, download=True)
    assert message in str(caught.value)


def test_the_counts_of_the_sources():
    assert [sum(s.test_counts) for s in (openml.MNIST, openml.FASHION_MNIST, openml.CIFAR10)] == [10000] * 3
