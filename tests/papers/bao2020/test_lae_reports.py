"""What the reports of figures 2, 3, 4, 7 and 8 of Bao et al. 2020 make of runs: known traces, known answers."""

from __future__ import annotations

import numpy as np
import pytest

from firstk_papers.bao2020 import lae_dynamics, lae_scaling

RUNS = [
    {"model": "nonuniform_l2", "optimizer": "nesterov", "learning_rate": 3e-4, "lam": [0.1, 0.2]},
    {"model": "rotation", "optimizer": "nesterov", "learning_rate": 3e-3},
    {"model": "nested_dropout", "optimizer": "nesterov", "learning_rate": 3e-2, "rho": 0.9},
    {"model": "nonuniform_l2", "optimizer": "adam", "learning_rate": 1e-2, "lam": [0.1, 0.2], "epochs": 50},
]
SETTINGS = {
    "k": 2, "batch": "full", "seed": 0, "rows": 100, "runs": RUNS, "epochs": 1000, "most_epochs": 400,
    "most_epochs_on_rows": 30, "snapshots": [10, 100, 1000], "paper_epochs": 30000,
}  # fmt: skip


def result(epochs, axis, subspace):
    trace = {"epoch": epochs, "axis": axis, "subspace": subspace}
    return {"trace": trace, "penalised_away": []}


def results():
    cells = lae_dynamics.cells(SETTINGS)
    slow = result([1.0, 100.0, 400.0], [0.9, 0.8, 0.6], [0.9, 0.2, 0.1])
    quick = result([1.0, 50.0, 400.0], [0.9, 0.25, 0.05], [0.9, 0.1, 0.0])
    short = result([1.0, 30.0], [0.9, 0.8], [0.9, 0.5])
    adam = result([1.0, 20.0, 50.0], [0.9, 0.3, 0.2], [0.9, 0.1, 0.1])
    return list(zip(cells, [slow, quick, short, adam], strict=True))


def test_runs_are_as_long_as_their_tier_allows():
    found = lae_dynamics.cells(SETTINGS)
    assert [cell["epochs"] for cell in found] == [400, 400, 30, 50]
    assert [cell["snapshots"] for cell in found] == [[10, 100, 400], [10, 100, 400], [10, 30], []]
    assert found[0]["learning_rate"] == 3e-4


def test_ratios_count_epochs_and_bound_what_has_not_arrived():
    found = lae_dynamics.distances(SETTINGS, results())
    assert found.measures["rotation_nesterov_aligned_at"] == 50
    assert found.measures["nonuniform_l2_nesterov_aligned_at"] is None
    assert found.measures["nonuniform_l2_over_rotation"] == 8.0  # at least 400 epochs against 50
    assert found.measures["nonuniform_l2_nesterov_over_adam"] == 20.0
    assert found.measures["nonuniform_l2_nesterov_lag"] == 4.0
    assert found.measures["nested_dropout_nesterov_lag"] is None
    assert found.measures["adam_refused_for_rotation"] is True
    assert found.measures["nonuniform_l2_end_beyond_adam"] == pytest.approx(0.9 - 0.2)  # the last look by epoch 50
    assert found.measures["nonuniform_l2_end_beyond_rotation"] == pytest.approx(0.6 - 0.05)


def test_a_bound_that_decides_nothing_is_no_measure():
    short = {"epoch": [1.0, 30.0], "axis": [0.9, 0.8], "subspace": [0.9, 0.2]}
    assert lae_dynamics._at_least(short, "axis", short, "subspace") is None
    assert lae_dynamics._at_least({**short, "epoch": [1.0, 60.0]}, "axis", short, "subspace") == 2.0


def test_runs_that_ended_early_with_their_axes_not_found_are_censored():
    said = lae_dynamics.distances(SETTINGS, results()).censored
    assert said[0] == "non-uniform l2, nesterov: stopped at 400 epochs."
    assert len(said) == 4


def test_figure_3_tells_a_permutation_from_the_ordered_axes():
    cells = lae_dynamics.cells(SETTINGS)
    swapped = {"10": [[0.1, 0.2], [0.3, 0.4]], "100": [[0.6, 0.0], [0.0, 0.6]], "400": [[0.0, -1.0], [1.0, 0.0]]}
    ordered = {**swapped, "400": [[-1.0, 0.0], [0.0, 1.0]]}
    pictures = ["00" * 784] * 10
    pairs = [
        (cells[0], results()[0][1] | {"overlaps": swapped, "pictures": pictures}),
        (cells[1], results()[1][1] | {"overlaps": ordered, "pictures": pictures}),
    ]
    found = lae_dynamics.overlaps(SETTINGS, pairs)
    assert found.measures == {
        "nonuniform_l2_diagonal": 0.0,
        "nonuniform_l2_permuted": 1.0,
        "rotation_diagonal": 1.0,
        "rotation_permuted": 1.0,
    }
    assert [panel.title for panel in found.panels[:3]] == [f"non-uniform l2, epoch {e}" for e in (10, 100, 400)]


def test_images_of_decoder_columns_have_zero_in_the_middle():
    pixels = np.frombuffer(bytes.fromhex(lae_dynamics._grey(np.array([-2.0, 0.0, 1.0, 2.0]))), np.uint8)
    assert pixels.tolist() == [0, 128, 191, 255]


# -- figure 4 -----------------------------------------------------------------------------------------------------

SCALING = {
    "seed": 0, "rows": 50, "p": 20, "low": 1.0, "high": 9.0, "until": 0.3, "paper_epochs": 50000,
    "most_epochs": 700, "widths": [2, 4, 8],
    "runs": [
        {"model": "rotation", "optimizer": "nesterov", "learning_rate": 1e-4},
        {"model": "deterministic_nd", "optimizer": "nesterov", "learning_rate": 1e-3, "rates_from": {"4": 1e-2}},
        {"model": "nonuniform_l2", "optimizer": "adam", "learning_rate": 3e-3, "lam": "synthetic"},
    ],
    "epochs_nesterov": {"2": 900, "8": 100}, "epochs_adam": {"2": 80, "4": 0},
}  # fmt: skip


def test_widths_take_their_own_rates_and_lengths():
    found = lae_scaling.cells(SCALING)
    assert [(cell["k"], cell["epochs"]) for cell in found] == [
        (2, 700), (4, 700), (8, 100), (2, 700), (4, 700), (8, 100), (2, 80)
    ]  # fmt: skip
    assert [cell["learning_rate"] for cell in found[3:6]] == [1e-3, 1e-2, 1e-2]


def test_growth_is_the_exponent_and_widths_not_run_are_named():
    cells = lae_scaling.cells(SCALING)
    reached = [20, 40, 80, 10, 40, None, None]
    pairs = [
        (cell, {"epoch": epoch, "axis": 0.3 if epoch else 0.8, "subspace": 0.1})
        for cell, epoch in zip(cells, reached, strict=True)
    ]
    found = lae_scaling.report(SCALING, pairs)
    assert found.measures["rotation_nesterov_growth"] == pytest.approx(1.0)
    assert found.measures["deterministic_nd_nesterov_growth"] is None
    assert found.measures["deterministic_nd_over_rotation_at"] == 4
    assert found.measures["deterministic_nd_over_rotation"] == 1.0
    assert found.censored == (
        "deterministic nested dropout, nesterov: stopped k = 8 at 100 (axis distance 0.80).",
        "non-uniform l2, adam: stopped k = 2 at 80 (axis distance 0.80).",
        "non-uniform l2, adam: not run at k = 4, 8.",
    )
