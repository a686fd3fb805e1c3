"""Every registered method of alignment through its contract."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firstk._base.json_records import settings_of
from firstk.exceptions import InvalidInputError
from firstk.upgrade.contract import AlignmentMethod, AlignmentSolution
from firstk.upgrade.methods import AUTO, PUBLIC, resolve, restore
from upgrade.pairs import moments_of, pairs

every_method = pytest.mark.parametrize("name", PUBLIC)


def settled(name):
    """Return a method with everything settled."""
    return resolve(PUBLIC[name]()).candidates()[-1]


@every_method
def test_attributes_have_the_types_of_the_contract(name):
    method = PUBLIC[name]()
    assert isinstance(method, AlignmentMethod)
    assert method.name == name
    candidates = method.candidates()
    assert len(set(candidates)) == len(candidates) >= 1
    assert all(
        type(candidate) is type(method) and "auto" not in settings_of(candidate).values() for candidate in candidates
    )
    assert restore(name, settings_of(candidates[0])) == candidates[0]


@every_method
@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_a_solution_has_the_shapes_of_the_contract_and_leaves_its_input(name, p, q):
    method = settled(name)
    old, new = pairs(n=80, p=p, q=q)
    moments = moments_of(old, new)
    before = {key: part.copy() for key, part in moments.to_arrays().items()}
    first, second = method.solve(moments), method.solve(moments)
    assert isinstance(first, AlignmentSolution)
    d = len(first.spectrum)
    assert 1 <= d <= max(p, q)
    assert first.old_to_new.weight.shape == (q, p)
    assert first.new_to_old.weight.shape == (p, q)
    assert first.encode_old.weight.shape == (d, p)
    assert first.encode_new.weight.shape == (d, q)
    assert (np.diff(first.spectrum) <= 1e-12).all()
    assert first.encode_old.weight.tobytes() == second.encode_old.weight.tobytes()
    assert all(np.array_equal(moments.to_arrays()[key], part) for key, part in before.items())
    translation = method.translating(moments)
    np.testing.assert_allclose(translation(old, "test"), first.old_to_new(old, "test"), atol=1e-12)


@every_method
@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_maps_for_comparing_order_neighbors_as_the_whole_code_does(name, p, q):
    method = settled(name)
    old, new = pairs(n=80, p=p, q=q)
    moments = moments_of(old, new)
    solution, (encode_old, encode_new) = method.solve(moments), method.comparing(moments)

    def ranks(documents, queries):
        scores = (
            queries(new, "test") @ (lambda Z: Z / np.linalg.norm(Z, axis=1, keepdims=True))(documents(old, "test")).T
        )
        return scores / np.linalg.norm(scores, axis=1, keepdims=True)

    np.testing.assert_allclose(
        ranks(encode_old, encode_new), ranks(solution.encode_old, solution.encode_new), atol=1e-8
    )


WRONG = {
    "ridge": {"shrinkage": [-0.1, 1.1, np.nan, "much", None, True]},
    "reduced_rank": {"rank": [0, 1.5, "many", True], "shrinkage": [2]},
    "procrustes_ridge": {"shrinkage": [2]},
    "cca": {"shrinkage": [2], "power": [-1], "center": ["yes"]},
    "whitened_ridge": {"shrinkage": [-1], "whitening": [2.0]},
    "procrustes": {},
}


@every_method
def test_a_wrong_setting_is_named(name):
    for setting, values in WRONG[name].items():
        for value in values:
            with pytest.raises(InvalidInputError, match=f"'{setting}' parameter of {PUBLIC[name].__name__} must be"):
                PUBLIC[name](**{setting: value}).check()


def test_every_method_has_a_test_and_a_line_in_the_docs():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "alignment.md").read_text()
    for name in PUBLIC:
        assert (root / "tests" / "upgrade" / "methods" / f"test_{name}.py").is_file()
        assert f"| `{name}` |" in page
    assert set(AUTO) <= set(PUBLIC)
