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


# As many as there are: a walk may become shorter. Records pass between rooms (`data.task`, `encoder.record`,
# `quality`), and `fit` enters those as well as the rooms; what users may give is checked apart from the estimator.
@pytest.mark.parametrize(("walk", "most"), [("closed_form", 19), ("fit", 79), ("code_index", 17), ("move", 45)])
def test_a_walk_enters_few_modules(walk, most):
    inside = modules(walk)
    assert len(inside) <= most, inside
