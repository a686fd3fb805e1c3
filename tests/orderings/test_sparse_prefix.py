"""Sparse prefix: blocks are found, and sorted inside by the canonical form; past the list nothing is trained."""

from dataclasses import replace

import numpy as np
import pytest

from firstk import Gradient, PrefixEncoder, SparsePrefix
from firstk.data.task import Rows
from firstk.exceptions import InvalidInputError
from firstk.metrics import paired_cosines, subspace_distance

pytest.importorskip("torch")


@pytest.mark.parametrize("objective", ["reconstruction", "fisher"])
def test_blocks_are_diagonalised_into_the_axes_of_the_closed_form(known, objective):
    y = np.digitize(known.X @ known.axes[:3].T, [0.0]) @ [1, 2, 4]
    ordering = SparsePrefix([2, 4])
    trained = PrefixEncoder(4, objective=objective, ordering=ordering, solver="gradient", init="random", random_state=2)
    solved = PrefixEncoder(4, objective=objective).fit(known.X, y)
    trained.fit(known.X, y)
    pinned = solved.encoder_.pinned
    assert paired_cosines(trained.components_[:pinned], solved.components_[:pinned]).min() > 0.999


def test_a_closed_form_answers_a_list_too(known):
    listed = PrefixEncoder(4, ordering=SparsePrefix([2, 4])).fit(known.X)
    assert listed.solver_ == "closed_form"
    np.testing.assert_array_equal(listed.components_, PrefixEncoder(4).fit(known.X).components_)


def test_without_the_canonical_form_axes_inside_a_block_would_be_mixed(known):
    """Training a list of {4} is training no order at all: the span is right and the raw axes are not."""
    from firstk.estimator.problem import pose
    from firstk.solvers.gradient.build import build, with_axes

    problem = replace(pose("reconstruction", SparsePrefix([4]), Gradient(), 4), init="random", device="cpu")
    request = with_axes(problem.request(problem.objective, problem.accumulate(Rows(known.X))))
    task = build(request, problem.solver)
    problem.solver.train(task, 0)
    raw = task.model.encoder.weight.detach().numpy()
    assert subspace_distance(raw, known.axes) < 1e-6
    assert paired_cosines(raw, known.axes).min() < 0.9


def test_lengths_outside_the_code_are_refused(known):
    with pytest.raises(InvalidInputError, match=r"lengths in \[1, 4\].*Got 8"):
        PrefixEncoder(4, ordering=SparsePrefix([2, 8])).fit(known.X)
    with pytest.raises(InvalidInputError, match="needs a list"):
        PrefixEncoder(4, ordering="sparse_prefix").fit(known.X)
