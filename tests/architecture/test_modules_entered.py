"""How many modules a call goes through stays countable, and the count follows calls rather than imports."""

import pytest

from architecture.modules_entered import entered, modules


def test_modules_count_when_called_and_not_when_imported():
    with entered() as found:
        import firstk.metrics.order as order  # noqa: F401
    assert not {name for name in found if name.startswith("firstk.metrics")}
    with entered() as found:
        from firstk._base.checks import is_int

        is_int(3)
    assert found == {"firstk._base.checks"}


def test_a_closed_form_fit_is_traced_in_a_process_of_its_own():
    inside = modules("closed_form")
    assert {"firstk.estimator.prefix_encoder", "firstk.solvers.closed_form"} <= set(inside)
    assert not [name for name in inside if name.startswith("firstk.cli")]


# As many as there are: a walk may become shorter. What passes between rooms is records (`data.task`, `encoder.record`,
# `quality`), which `fit` enters as well as the rooms. They were 21 and 69 when the code had no packages; since then `fit`
# evaluates embedded bits and new documents as well, and saves the profile of held-out rows, which `checking` takes in
# as it does new ones; both enter `progress`, which every long loop tells how far it is. `fit` enters `remote`, which
# knows whether a path is one of this machine, and `shared_rounding`, by which one sweep scores several lengths.
@pytest.mark.parametrize(("walk", "most"), [("closed_form", 19), ("fit", 85)])
def test_a_walk_enters_few_modules(walk, most):
    inside = modules(walk)
    assert len(inside) <= most, inside
