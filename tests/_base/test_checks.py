"""Checks of what is installed."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from firstk._base.checks import check_fraction, numba_may_compile
from firstk.exceptions import InvalidInputError


def test_numba_that_another_thread_imports_is_asked_for_nothing(monkeypatch):
    """While a module is imported its name is there, and what it defines is not."""
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setitem(sys.modules, "numba", ModuleType("numba"))
    sys.modules["numba"].__spec__ = SimpleNamespace()
    assert numba_may_compile()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not numba_may_compile()


@pytest.mark.parametrize(("value", "hint"), [(99, "0.99 means 99 %"), (1.05, None), (-1, None), (400, None)])
def test_a_share_in_percent_is_told_what_it_means(value, hint):
    with pytest.raises(InvalidInputError) as raised:
        check_fraction(value, "keep", "test")
    assert ("means" in str(raised.value)) == (hint is not None)
    assert hint is None or hint in str(raised.value)
