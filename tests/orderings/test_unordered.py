"""Unordered: the optimal subspace, and no axis of it in particular."""

import pytest

from firstk import PrefixEncoder
from firstk.exceptions import IllegalCombinationError
from firstk.metrics import paired_cosines, subspace_distance

pytest.importorskip("torch")


def test_the_subspace_is_found_and_the_axes_are_not(known):
    enc = PrefixEncoder(4, ordering="unordered", init="random", random_state=0).fit(known.X)
    assert enc.solver_ == "gradient"
    assert enc.optimality_gap_ < 1e-8
    assert subspace_distance(enc.components_, known.axes) < 1e-6
    assert paired_cosines(enc.components_, known.axes).max() < 0.95


def test_a_closed_form_would_impose_an_order(known):
    with pytest.raises(IllegalCombinationError, match="it has no closed form"):
        PrefixEncoder(4, ordering="unordered", solver="closed_form").fit(known.X)
