"""The objective of Bao et al. 2020 (3) as the study writes it, against the library's loss and autograd."""

import numpy as np
import pytest

from firstk_papers.bao2020 import landscape
from firstk_papers.frame.hooks import step_view
from firstk_papers.frame.instances import increasing, instance_cells, measuring, problem

torch = pytest.importorskip("torch")

from firstk.losses import FullPrefixReconstruction  # noqa: E402
from firstk.orderings import NonuniformL2  # noqa: E402

RNG = np.random.default_rng(0)
DATA = problem({"p": 5}, RNG)
LAM = increasing(3, DATA.spectrum[2], RNG)


def library_loss(B, A):
    St = torch.tensor(DATA.St)
    return FullPrefixReconstruction({3: 1.0}).from_moments(St, B, A) + NonuniformL2(LAM.tolist()).penalty(
        step_view(B, A, St)
    )


def test_loss_gradient_and_hessian_are_those_of_the_library():
    B, A = RNG.standard_normal((3, 5)), RNG.standard_normal((5, 3))
    tensors = tuple(torch.tensor(part, requires_grad=True) for part in (B, A))
    value = library_loss(*tensors)
    assert landscape.loss(DATA, LAM, B, A) == pytest.approx(value.item(), rel=1e-12)
    for ours, theirs in zip(landscape.gradient(DATA, LAM, B, A), torch.autograd.grad(value, tensors), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-10)
    blocks = torch.autograd.functional.hessian(library_loss, tensors)
    slow = torch.cat([torch.cat([part.reshape(15, 15) for part in row], 1) for row in blocks], 0)
    np.testing.assert_allclose(landscape.hessian(DATA, LAM, B, A), slow.detach().numpy(), atol=1e-10)


def test_choices_of_eigenvectors_are_all_there_and_different():
    found = list(landscape.picks(4, 2))
    assert len(found) == len(set(found)) == 1 + 2 * 4 + 4 * 3
    assert (0, 0) in found
    assert (2, 1) in found
    assert (1, 1) not in found


def test_the_printed_form_is_right_on_the_diagonal_and_wrong_off_it():
    for pick, right in (((1, 2, 3), True), ((0, 2, 0), True), ((2, 1, 3), False)):
        B = landscape.point(pick, DATA, LAM, paper=True)
        assert (np.abs(landscape.gradient(DATA, LAM, B, B.T)[0]).max() < 1e-12) == right
        B = landscape.point(pick, DATA, LAM)
        assert np.abs(landscape.gradient(DATA, LAM, B, B.T)[0]).max() < 1e-12


def test_a_search_finds_saddles_too():
    cell = {"check": "search", "p": 3, "d": 2, "seed": 0, "starts": 25, "revision": 1}
    found = landscape.measure(cell)
    assert found["kinds_seen"] > 3
    assert found["transpose_gap"] < 1e-8


def test_a_study_does_the_named_check_on_the_instance_of_its_seed():
    cell = {"check": "b", "p": 4, "d": 2, "seed": 3}
    rng = np.random.default_rng(3)
    drawn, following = problem(cell, rng), rng.random()

    def _a(cell, data, rng):
        raise AssertionError

    def _b(cell, data, rng):
        return {"d": cell["d"], "data": data, "following": rng.random()}

    found = measuring(_a, _b)(cell)
    assert (found["d"], found["following"]) == (2, following)
    np.testing.assert_array_equal(found["data"].St, drawn.St)
    found = measuring(_a, _b, given=lambda data, cell: data.spectrum[: cell["d"]])(cell)
    np.testing.assert_array_equal(found["data"], drawn.spectrum[:2])


def test_cells_take_sizes_and_counts_of_their_own_check():
    settings = {
        "seed": 5,
        "checks": ["a", "b"],
        "sizes": [[4, 2], [5, 3]],
        "instances": 2,
        "b": {"sizes": [[9, 1]], "x": 7},
    }
    cells = instance_cells(settings)
    assert [(c["check"], c["p"], c["seed"]) for c in cells] == [
        ("a", 4, 5), ("a", 4, 6), ("a", 5, 5), ("a", 5, 6), ("b", 9, 5), ("b", 9, 6)
    ]  # fmt: skip
    assert cells[-1]["x"] == 7
    assert "x" not in cells[0]
