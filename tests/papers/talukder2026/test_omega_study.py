"""What omega does: weights against sums written out, and what is watched against known axes."""

from __future__ import annotations

import numpy as np
import pytest

from firstk_papers.talukder2026 import omega
from firstk_papers.talukder2026.recovery_fits import reference, training_set


@pytest.mark.parametrize(
    ("name", "weight"),
    [("uniform", lambda m, d: 1), ("harmonic", lambda m, d: 1 / m), ("reverse_harmonic", lambda m, d: 1 / (d - m + 1))],
)
def test_cumulative_weights_are_the_sums_of_the_paper(name, weight):
    d = 7
    w = [sum(weight(m, d) for m in range(k, d + 1)) for k in range(1, d + 1)]
    found = omega.measure({"part": "weights", "omega": name, "d": d})
    np.testing.assert_allclose(found["cum"], np.array(w) / w[0], rtol=1e-5)
    assert found["ratio"] == pytest.approx(w[0] / w[-1])


def test_axes_are_counted_by_their_cosine():
    data = training_set("synthetic", 400, 0)
    best = reference(data, "mse", 4)
    axes = omega.Axes(data, best, None)
    assert axes(best.axes, best.axes.T) == pytest.approx({"share": 1, "least": 1})
    swapped = best.axes[[1, 0, 2, 3]]
    assert axes(swapped, swapped.T) == pytest.approx({"share": 0.5, "least": 0}, abs=1e-9)
    lda = reference(data, "fisher", 4, 1e-2)
    mixed = np.tril(np.ones((4, 4))) @ lda.axes  # free for Fisher, so still the same axes
    assert omega.Axes(data, lda, 1e-2)(mixed, None) == pytest.approx({"share": 1, "least": 1})


@pytest.mark.parametrize("schedule", omega.SCHEDULES)
def test_a_linear_fit_finds_its_axes_under_any_schedule(schedule):
    pytest.importorskip("torch")
    cell = {"part": "linear", "omega": schedule, "method": "ours", "length": 350, "seed": 0, "rows": 2000}
    cell |= {"data": "synthetic", "family": "fisher", "d": 6, "eps": 1e-4}
    found = omega.measure(cell)
    assert found["least"] > 0.99
    assert found["share"][-1] == 1
    assert found["steps_to_half"] <= found["step"][-1]
