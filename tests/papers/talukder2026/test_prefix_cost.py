"""Contenders compute the same thing, and what is counted is what a formula says."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from firstk_papers.talukder2026 import cost_figures as figures  # noqa: E402
from firstk_papers.talukder2026 import prefix_cost as cost  # noqa: E402

CELLS = {
    "reconstruction": {"kind": "reconstruction", "n": 40, "p": 12, "d": 5, "looped": True},
    "cross_entropy": {"kind": "cross_entropy", "n": 30, "d": 6, "C": 4, "looped": True},
    "network_step": {"kind": "network_step", "n": 16, "p": 9, "d": 4, "C": 3, "hidden": [8]},
}


def gradients(contest, name):
    for part in contest.parameters:
        part.grad = None
    loss = contest.losses[name]()
    loss.backward()
    return [loss.detach(), *(part.grad for part in contest.parameters)]


@pytest.mark.parametrize(
    ("kind", "others"),
    [("reconstruction", ["full prefix, from moments", "full prefix"]), ("cross_entropy", ["full prefix"])],
)
def test_contenders_have_the_loss_and_gradients_of_the_loop(kind, others):
    torch.manual_seed(0)
    contest = cost.CONTESTS[kind](CELLS[kind])
    looped = gradients(contest, "loop over prefixes")
    for name in others:
        for found, expected in zip(gradients(contest, name), looped, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(gradients(contest, "single")[0], looped[0])


def test_steps_clear_gradients_and_move_the_network():
    torch.manual_seed(0)
    contest = cost.CONTESTS["cross_entropy"](CELLS["cross_entropy"])
    step = contest.steps()["full prefix"]
    step()
    once = contest.parameters[0].grad.clone()
    step()
    torch.testing.assert_close(contest.parameters[0].grad, once)
    network = cost.CONTESTS["network_step"](CELLS["network_step"])
    before = network.parameters[0].detach().clone()
    network.steps()["monotone l1"]()
    assert not torch.equal(network.parameters[0], before)


def test_multiply_adds_of_a_linear_step_are_those_of_the_formula():
    """Z, X hat and three gradients for a single loss; no X hat but two of each Gram matrix for all prefixes."""
    n, p, d = (CELLS["reconstruction"][name] for name in "npd")
    steps = cost.CONTESTS["reconstruction"](CELLS["reconstruction"]).steps()
    counts = {name: cost.multiply_adds(step) for name, step in steps.items()}
    assert counts["single"] == 5 * n * p * d
    assert counts["full prefix"] == 4 * n * p * d + 2 * (n + p) * d**2
    assert counts["loop over prefixes"] == 2 * n * p * d + 3 * n * p * d * (d + 1) // 2
    assert figures.excess(CELLS["reconstruction"], counts) == pytest.approx(2 - n * p / ((n + p) * d))


def test_growth_is_the_exponent():
    cells = [({"d": d}, {"ms": {"single": 2.0, "full prefix": 3.0 * d**0.7}}) for d in (4, 8, 32)]
    assert figures.growth(cells, "full prefix", "ms") == pytest.approx(0.7, abs=1e-4)
    assert figures.growth(cells, "loop over prefixes", "ms") is None


def test_the_best_of_the_rounds_counts():
    calls = []
    best = cost.best_times({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 3
    assert all(0 <= seconds < 1 for seconds in best.values())


def test_sizes_vary_one_at_a_time_and_none_is_timed_twice():
    base = {"n": 8, "p": 4, "d": 2, "n_grid": [8, 16], "p_grid": [4], "d_grid": [2, 64], "longest_loop": 4}
    head = {"n": 8, "d": 2, "C": 3, "d_grid": [2], "C_grid": [3], "longest_loop": 4}
    settings = {"rounds": 1, "seed": 0, "reconstruction": base, "cross_entropy": head, "network_step": {"n": 1}}
    settings["near_p"] = {"n": 8, "p": 4, "d": 3}
    made = cost.cells(settings)
    sizes = [(c["kind"], c["n"], c.get("p"), c.get("d"), c.get("looped")) for c in made]
    assert sizes == [
        ("reconstruction", 8, 4, 2, True),
        ("reconstruction", 16, 4, 2, True),
        ("reconstruction", 8, 4, 64, False),
        ("cross_entropy", 8, None, 2, True),
        ("reconstruction", 8, 4, 3, True),
        ("network_step", 1, None, None, None),
    ]
