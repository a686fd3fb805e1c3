"""Alignment on the real sets: variance serves images without background, and CIFAR-10 less."""

import numpy as np
import pytest

from firstk import Moments
from firstk_papers.balestriero2024.alignment import align
from firstk_papers.balestriero2024.axes import principal_axes
from firstk_papers.datasets import load_banking77, load_cifar10, load_fashion_mnist, load_mnist

# Rows of each training part: enough for the ordering, few enough for a test. CIFAR-10 is all that the folder has.
FULL = {
    "mnist": (load_mnist, 20_000),
    "fashion_mnist": (load_fashion_mnist, 20_000),
    "cifar10": (load_cifar10, 15_000),
    "banking77": (load_banking77, 10_003),
}
# As many pixels for each row of CIFAR-10, which are means of four, and fewer rows.
SMALL = FULL | {
    "mnist": (load_mnist, 12_000),
    "fashion_mnist": (load_fashion_mnist, 12_000),
    "cifar10": (load_cifar10, 3_000),
}


def quarter(images):
    """Return images of half the height and width."""
    return images.reshape(-1, 16, 2, 16, 2, 3).mean(axis=(2, 4)).reshape(len(images), -1)


@pytest.fixture(
    scope="module", params=[pytest.param(SMALL, id="small"), pytest.param(FULL, id="full", marks=pytest.mark.full)]
)
def alignments(request, data_folder):
    found = {}
    for name, (load, rows) in request.param.items():
        data = load(data_folder)
        X = data.X_train[:rows]
        if name == "cifar10" and request.param is SMALL:
            X = quarter(X)
        found[name] = align(principal_axes(Moments("float64").update(X, data.y_train[:rows])))
    return found


def test_images_without_background_are_aligned(alignments):
    for name in ("mnist", "fashion_mnist"):
        assert alignments[name].at_share["20 %"] > 0.9


def test_cifar10_is_less_aligned(alignments):
    cifar = alignments["cifar10"]
    for name in ("mnist", "fashion_mnist"):
        assert cifar.at_share["20 %"] < alignments[name].at_share["20 %"] - 0.3
        for k in (8, 16, 32, 64, 128):
            assert cifar.curves[0].at(k) < alignments[name].curves[0].at(k) - 0.2
    assert cifar.at_share["20 %"] < 0.7


def test_the_few_rows_of_cifar10_are_not_kept_quiet(alignments):
    """15,000 rows for 3,072 pixels, or 3,000 for 768: much of the misalignment is chance."""
    cifar = alignments["cifar10"]
    assert cifar.by_chance > 0.2
    assert cifar.by_chance > cifar.r2 / 2
    assert cifar.corrected["20 %"] > cifar.at_share["20 %"] + 0.2
    assert alignments["mnist"].by_chance < alignments["mnist"].r2 / 2


def test_many_intents_want_many_directions(alignments):
    assert 0.5 < alignments["banking77"].at_share["20 %"] < 0.75


def test_forms_agree_on_nearly_balanced_classes(alignments):
    for name in ("mnist", "fashion_mnist", "cifar10"):
        proof, seventh, code = (np.array(curve.score) for curve in alignments[name].curves)
        np.testing.assert_allclose(proof, seventh, atol=0.02)
        assert code[-1] < 0.7
