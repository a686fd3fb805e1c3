"""Methods of alignment, which bring the vectors of two models together: one file per family, one line in the registry.

A method turns cross moments into translations and an ordered shared code (`firstk.upgrade.contract.AlignmentMethod`).
"""

from __future__ import annotations

from firstk._base.checks import Registry
from firstk.upgrade.contract import AlignmentMethod
from firstk.upgrade.methods._linear import ClosedFormMethod, from_translations, with_shared_code
from firstk.upgrade.methods.cca import CCA, WhitenedRidge
from firstk.upgrade.methods.procrustes import Procrustes, ProcrustesRidge
from firstk.upgrade.methods.ridge import ReducedRank, Ridge

REGISTRY: Registry[AlignmentMethod] = Registry(
    "method",
    "CCA(shrinkage=0.3)",
    {
        method.name: method
        for method in (
            Procrustes,
            Ridge,
            ProcrustesRidge,
            ReducedRank,
            CCA,
            WhitenedRidge,
        )
    },
    protocol=AlignmentMethod,
    owner="PrefixAlignment",
)
# What "auto" chooses among.
AUTO: tuple[str, ...] = (Ridge.name, ProcrustesRidge.name, WhitenedRidge.name)
PUBLIC, resolve, restore = REGISTRY.public, REGISTRY.resolve, REGISTRY.restore

__all__ = [
    "AUTO",
    "CCA",
    "ClosedFormMethod",
    "Procrustes",
    "ProcrustesRidge",
    "ReducedRank",
    "Ridge",
    "WhitenedRidge",
    "from_translations",
    "resolve",
    "restore",
    "with_shared_code",
]
