"""Section 5.7 of Balestriero and LeCun 2024: the relation between the two Gram matrices, and the printed step."""

import numpy as np

from firstk_papers.balestriero2024.gram_eigenvectors import measure, printed_scaling_runs, relation


def test_the_eigenvalue_is_the_same_on_both_sides():
    X = np.random.default_rng(0).standard_normal((5, 9))
    found = relation(X)
    assert found["relation_error"] < 1e-12
    assert found["printed_relation_error"] > 0.1


def test_the_printed_step_needs_as_many_rows_as_columns():
    rng = np.random.default_rng(1)
    assert not printed_scaling_runs(rng.standard_normal((5, 9)))
    assert printed_scaling_runs(rng.standard_normal((6, 6)))


def test_wide_data_have_the_axes_of_the_large_matrix():
    found = measure({"D": 30, "N": 8, "seed": 0, "timed": False})
    assert found["value_error"] < 1e-12
    assert found["least_cosine"] > 1 - 1e-9
