"""Upgrades that several tests look at, each evaluated once."""

import pytest

from firstk.upgrade import evaluate_upgrade
from fixtures.made_upgrade import made_upgrade, rotation


@pytest.fixture(scope="session")
def part():
    """An upgrade to a better model, of which half of the store has new vectors."""
    data = made_upgrade(pairs=300)
    return data, evaluate_upgrade(data, methods=("auto",), estimator=rotation)


@pytest.fixture(scope="session")
def worse():
    """An upgrade to a worse model."""
    data = made_upgrade(pairs=300, old_noise=0.05, new_noise=0.5)
    return data, evaluate_upgrade(data, methods=("auto",), estimator=rotation)


@pytest.fixture(scope="session")
def unjudged():
    """An upgrade without queries and judgements."""
    data = made_upgrade(queries_old=None, asked=None)
    return data, evaluate_upgrade(data, methods=("auto",), estimator=rotation)
