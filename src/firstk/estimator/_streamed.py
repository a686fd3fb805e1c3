"""Methods that exist only where a stream suffices, and say why where it does not."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from firstk.exceptions import FirstkError, IllegalCombinationError


class _NeedsRows(IllegalCombinationError, AttributeError):
    """A refusal that also means to scikit-learn, which asks with ``hasattr``, that there is no such method."""

    def __init__(self, sentence: str):
        ValueError.__init__(self, sentence)


class WhereStreamed:
    """Make a method of an estimator exist only where moments of the rows are all that a fit needs."""

    def __init__(self, method: Callable[..., Any]):
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is None:
            return self.method
        bound = MethodType(self.method, estimator)
        try:
            problem = estimator._posed(pairs=False)
        except FirstkError:
            return bound  # settings that mean nothing are refused when the method is called
        try:
            problem.check_streamable(self.method.__name__)
        except IllegalCombinationError as refusal:
            raise _NeedsRows(str(refusal)) from None
        except FirstkError:
            return bound  # likewise
        return bound
