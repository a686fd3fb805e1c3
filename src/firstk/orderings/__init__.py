"""Orderings, which define how coordinates get their order: one file per ordering, one line in the registry.

The quality of a prefix is defined in `objectives`; the training loop that calls the hooks is in `solvers`.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from firstk._base.checks import Registry
from firstk._base.prefix_weights import resolve_omega
from firstk.contracts import Ordering, Residual
from firstk.orderings._conditioning import condition_number, hessian_extremes
from firstk.orderings._hooks import Hooks
from firstk.orderings.full_prefix import FullPrefix
from firstk.orderings.monotone_l1 import MonotoneL1
from firstk.orderings.nested_dropout import NestedDropout
from firstk.orderings.nonuniform_l2 import NonuniformL2
from firstk.orderings.rotation import Rotation
from firstk.orderings.sparse_prefix import SparsePrefix
from firstk.orderings.uniform_l2 import UniformL2
from firstk.orderings.unordered import Unordered
from firstk.orderings.variational import Variational

# What an estimator's parameter may be called: the names of the registry.
OrderingName = Literal[
    "full_prefix",
    "unordered",
    "uniform_l2",
    "nonuniform_l2",
    "monotone_l1",
    "nested_dropout",
    "rotation",
    "variational",
]
REGISTRY: Registry[Ordering] = Registry(
    "ordering",
    "FullPrefix()",
    {
        ordering.name: ordering
        for ordering in (
            FullPrefix,
            SparsePrefix,
            Unordered,
            UniformL2,
            NonuniformL2,
            MonotoneL1,
            NestedDropout,
            Rotation,
            Variational,
        )
    },
    needs_settings={SparsePrefix.name: "an object, SparsePrefix([8, 16, 32]), as it needs a list"},
    protocol=Ordering,
    choices={"residual": get_args(Residual)},
    checkable=False,  # settings are checked against the width of the code
)
PUBLIC, resolve, registered = REGISTRY.public, REGISTRY.resolve, REGISTRY.registered

__all__ = [
    "FullPrefix",
    "Hooks",
    "MonotoneL1",
    "NestedDropout",
    "NonuniformL2",
    "Rotation",
    "SparsePrefix",
    "UniformL2",
    "Unordered",
    "Variational",
    "condition_number",
    "hessian_extremes",
    "registered",
    "resolve",
    "resolve_omega",
    "restore",
]


def restore(name: str, settings: dict[str, Any]) -> Ordering:
    """Rebuild an ordering from its name and recorded settings."""
    settings = dict(settings)
    for key in ("omega", "prefixes"):
        if isinstance(settings.get(key), dict):  # JSON keys are strings
            settings[key] = {int(k): weight for k, weight in settings[key].items()}
    return REGISTRY.restore(name, settings)
