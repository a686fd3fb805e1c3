"""Monotone l1: what it does and what it does not."""

import numpy as np
import pytest

from firstk import Gradient, MonotoneL1, PrefixEncoder
from firstk.metrics import subspace_distance

pytest.importorskip("torch")
SHORT = Gradient(epochs=800)


def test_columns_of_the_decoder_keep_unit_norm_and_the_subspace_is_near(known):
    enc = PrefixEncoder(4, ordering=MonotoneL1(0.05), solver=SHORT, init="random", random_state=0).fit(known.X)
    np.testing.assert_allclose(np.linalg.norm(enc.decoder_, axis=0), 1.0, rtol=1e-6)
    assert subspace_distance(enc.decoder_.T, known.axes) < 0.01
    assert enc.optimality_gap_ < 0.01


@pytest.fixture(scope="module")
def held(known):
    return PrefixEncoder(4, ordering=MonotoneL1(0.5), solver=SHORT, init="random", random_state=0).fit(known.X)


def test_late_coordinates_are_used_less(known, held):
    size = np.abs(held.transform(known.X)).mean(axis=0)
    assert size[0] > size[-1]


def test_without_unit_columns_the_penalty_is_shrunk_away(known, held):
    free = MonotoneL1(0.5, unit_columns=False)
    enc = PrefixEncoder(4, ordering=free, solver=SHORT, init="random", random_state=0).fit(known.X)
    assert np.abs(enc.transform(known.X)).mean() < 0.7 * np.abs(held.transform(known.X)).mean()


def test_it_orders_a_network_with_a_head(known):
    y = np.digitize(known.X[:, 0], [0.0])
    enc = PrefixEncoder(
        4, objective="classification", ordering="monotone_l1", network="mlp", solver=Gradient(epochs=5), random_state=0
    ).fit(known.X, y)
    assert enc.score(known.X, y) > 0.9


def test_power_is_how_fast_the_penalty_grows():
    import torch

    from firstk.contracts import View

    code = torch.tensor([[1.0, -2.0, 3.0], [3.0, 0.0, -1.0]])
    view = View(None, code, None, None)
    for power, expected in ((1.0, 2 * 1 + 1 * 2 + 2 * 3), (2.0, 2 * 1 + 1 * 4 + 2 * 9), (0.5, 2 + 2**0.5 + 2 * 3**0.5)):
        assert float(MonotoneL1(0.1, power=power).penalty(view)) == pytest.approx(0.1 * expected)
    with pytest.raises(ValueError, match="'power' parameter of MonotoneL1"):
        MonotoneL1(power=0).check(3)
