"""Ends of the spectrum, and the networks that see them, against slow and obvious references."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk_papers.balestriero2024 import eigenspaces as _eigenspaces
from firstk_papers.balestriero2024 import projected_images, subspace_training

SHAPE = (8, 8, 3)


@pytest.fixture
def toy_images(monkeypatch):
    """Put a set of 8 x 8 colour images in the place of every named set: two classes that differ in one faint axis."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 192)) @ (
        np.diag(np.geomspace(1, 0.01, 192)) @ np.linalg.qr(rng.normal(size=(192,) * 2))[0]
    )
    X = (0.5 + 0.1 * X).astype(np.float32)
    found = SimpleNamespace(X_train=X[:300], y_train=y[:300], X_test=X[300:], y_test=y[300:], image_shape=SHAPE)
    monkeypatch.setattr(_eigenspaces, "images", lambda name: found)
    for kept in (_eigenspaces.pixels, _eigenspaces.eigenspaces):
        kept.cache_clear()
    yield found
    for kept in (_eigenspaces.pixels, _eigenspaces.eigenspaces):
        kept.cache_clear()


def test_ends_are_the_sums_over_eigenvectors(toy_images):
    spaces = _eigenspaces.eigenspaces("toy", 300)
    X = toy_images.X_train.astype(np.float64)
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    values, vectors = values[::-1], vectors[:, ::-1]
    new = toy_images.X_test.astype(np.float64) - X.mean(axis=0)
    k = spaces.cut("top", 0.5)
    assert values[:k].sum() >= 0.5 * values.sum() > values[: k - 1].sum()
    top = sum(np.outer(new @ v, v) for v in vectors[:, :k].T)
    np.testing.assert_allclose(spaces.project(toy_images.X_test, "top", k), top, atol=1e-5)
    rest = sum(np.outer(new @ v, v) for v in vectors[:, k:].T)
    np.testing.assert_allclose(spaces.project(toy_images.X_test, "bottom", k), rest, atol=1e-5)
    assert spaces.kept("top", k) == pytest.approx(values[:k].sum() / values.sum(), abs=1e-5)


def test_the_bottom_never_holds_more_than_it_says_and_ends_of_one_cut_are_complements(toy_images):
    spaces = _eigenspaces.eigenspaces("toy", 300)
    for share in (0.05, 0.2, 0.5, 0.75):
        k = spaces.cut("bottom", share)
        assert spaces.kept("bottom", k) <= share + 1e-9
        assert spaces.kept("bottom", k - 1) > share
        assert k == spaces.cut("top", 1 - share)
        both = spaces.project(toy_images.X_test, "top", k) + spaces.project(toy_images.X_test, "bottom", k)
        np.testing.assert_allclose(both, spaces.project(toy_images.X_test, "whole", 0), atol=1e-5)


def test_a_share_beyond_the_axes_raises(toy_images):
    spaces = _eigenspaces.eigenspaces("toy", 300)
    with pytest.raises(InvalidInputError, match="no top of 1"):
        spaces.cut("top", 1.5)


def test_shrinking_takes_means_of_blocks(toy_images):
    small = _eigenspaces.pixels("toy", 10, 5, shrink=2)
    image = toy_images.X_train[3].reshape(SHAPE)
    np.testing.assert_allclose(small.X_train[3].reshape(4, 4, 3)[1, 2], image[2:4, 4:6].mean(axis=(0, 1)), rtol=1e-5)
    assert small.shape == (4, 4, 3)
    with pytest.raises(InvalidInputError, match="cannot be shrunk by 3"):
        _eigenspaces.pixels("toy", 10, 5, shrink=3)


def test_gaps_are_taken_at_equal_shares_and_at_the_papers_pairs():
    def one(end, share, accuracy):
        return {"end": end, "share": share}, {"accuracy": accuracy}

    found = subspace_training.compared([
        one("top", 0.25, 0.3), one("top", 0.75, 0.5), one("top", 0.9, 0.55), one("whole", 1.0, 0.7),
        one("bottom", 0.2, 0.6), one("bottom", 0.25, 0.61), one("bottom", 0.75, 0.66),
    ])  # fmt: skip
    assert found["least_gap"] == pytest.approx(0.16)
    assert found["mean_gap"] == pytest.approx((0.31 + 0.16) / 2)
    assert found["top90_bottom20_gap"] == pytest.approx(0.05)
    assert found["top75_bottom25_gap"] == pytest.approx(0.11)
    assert found["whole"] == 0.7
    assert set(subspace_training.compared([]).values()) == {None}


def test_a_network_classifies_from_the_end_that_holds_the_classes(toy_images):
    """The classes differ along one faint axis: the bottom tells them apart, the top cannot."""
    pytest.importorskip("torch")
    axis = np.linalg.eigh(np.cov(toy_images.X_train.T))[1][:, 20]
    for X, y in ((toy_images.X_train, toy_images.y_train), (toy_images.X_test, toy_images.y_test)):
        X += (0.05 * np.outer(2 * y - 1, axis)).astype(np.float32)
    cell = {
        "set": "toy", "rows": 300, "test_rows": 100, "shrink": 1, "augment": False, "loss": "cross_entropy",
        "epochs": 10, "batch": 25, "rate": 0.01, "width": 8, "seed": 0, "revision": 1,
    }  # fmt: skip
    top = subspace_training.measure({**cell, "end": "top", "share": 0.5})
    bottom = subspace_training.measure({**cell, "end": "bottom", "share": 0.5})
    assert bottom["accuracy"] > 0.8 > 0.65 > top["accuracy"]


def test_squared_error_is_from_one_hot_labels():
    torch = pytest.importorskip("torch")
    images, labels = torch.randn(6, 4), torch.tensor([0, 2, 1, 1, 0, 2])
    network = torch.nn.Linear(4, 3)
    cell = {"augment": False, "loss": "squared_error"}
    loss = subspace_training._loss(cell, network, images, labels, None)(torch.arange(1, 4))
    expected = 0.0
    for i in (1, 2, 3):
        for c, score in enumerate(network(images[i]).tolist()):
            expected += (score - (1.0 if labels[i] == c else 0.0)) ** 2 / 3
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_augmentation_moves_and_mirrors_whole_images():
    torch = pytest.importorskip("torch")
    from firstk_papers.balestriero2024.convolutional import augmented

    images = torch.arange(1, 1 + 40 * 2 * 16 * 16, dtype=torch.float32).reshape(40, 2, 16, 16)
    moved = augmented(images, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    shift, seen = 2, set()
    padded = torch.nn.functional.pad(images, (shift,) * 4)
    for i in range(len(images)):
        fits = [
            (down, along, len(mirror) > 0)
            for down in range(2 * shift + 1)
            for along in range(2 * shift + 1)
            for mirror in ((), (2,))
            if torch.equal(moved[i], padded[i, :, down : down + 16, along : along + 16].flip(mirror))
        ]
        assert len(fits) == 1
        seen.add(fits[0])
    assert {flip for _, _, flip in seen} == {False, True}
    assert len({place[:2] for place in seen}) > 8


def test_detail_is_the_energy_of_differences():
    image = np.array([[0.0, 1.0], [2.0, 4.0]]).reshape(1, 4)
    # Down: 2, 3; along: 1, 2.
    assert projected_images.detail(image, (2, 2, 1)) == pytest.approx((4 + 9 + 1 + 4) / (1 + 4 + 16))


def test_a_picture_has_its_mean_at_grey():
    row = np.array([-1.0, 1.0, -1.0, 1.0])
    assert projected_images.as_picture(row) == bytes([76, 178, 76, 178]).hex()
