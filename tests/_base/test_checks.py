"""Checks of what is installed."""

import sys
from types import ModuleType, SimpleNamespace

from firstk._base.checks import numba_may_compile


def test_numba_that_another_thread_imports_is_asked_for_nothing(monkeypatch):
    """While a module is imported its name is there, and what it defines is not."""
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setitem(sys.modules, "numba", ModuleType("numba"))
    sys.modules["numba"].__spec__ = SimpleNamespace()
    assert numba_may_compile()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not numba_may_compile()
