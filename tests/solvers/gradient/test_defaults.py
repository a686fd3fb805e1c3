"""Default number of epochs: enough steps, within limits."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from firstk.solvers.gradient.defaults import passes
from firstk.solvers.gradient.losses.base import BaseTrainingLoss
from firstk.solvers.gradient.losses.cross_entropy import CrossEntropy
from firstk.solvers.gradient.losses.pairs import PairLoss


def epochs(loss, n, batch, linear=True):
    task = SimpleNamespace(training_loss=loss(), n=n, model=SimpleNamespace(linear=linear))
    return passes(task, batch)


@pytest.mark.parametrize(
    ("n", "wanted"),
    [
        (640, 120),  # 5 steps an epoch: 600 steps at least
        (3_072, 25),  # 24 steps an epoch: 25 epochs, although they make less than 1,500 steps
        (10_003, 20),  # 78 steps an epoch
        (19_200, 10),
        (50_000, 10),
    ],
)
def test_classification_makes_fewer_passes_over_more_rows(n, wanted):
    assert epochs(CrossEntropy, n, 128) == wanted


@pytest.mark.parametrize("n", [50_000, 1_000_000])
def test_other_losses_and_networks_make_the_same_number_of_passes(n):
    assert epochs(BaseTrainingLoss, n, 256) == BaseTrainingLoss.epochs
    assert epochs(PairLoss, n, 256) == PairLoss.epochs
    assert epochs(CrossEntropy, n, 128, linear=False) == 20
