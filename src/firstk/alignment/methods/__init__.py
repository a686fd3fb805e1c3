"""Methods of alignment, which bring the vectors of two models together: one file per method, one line in the registry.

A method turns cross moments into translations and an ordered shared code (`firstk.contracts.AlignmentMethod`).
"""

from __future__ import annotations

from firstk._base.checks import Registry
from firstk.alignment.methods._linear import ClosedFormMethod, from_translations, with_shared_code
from firstk.alignment.methods.cca import CCA
from firstk.alignment.methods.lambda_orthogonal import LambdaOrthogonal
from firstk.alignment.methods.low_rank_affine import LowRankAffine
from firstk.alignment.methods.procrustes import Procrustes
from firstk.alignment.methods.procrustes_ridge import ProcrustesRidge
from firstk.alignment.methods.reduced_rank import ReducedRank
from firstk.alignment.methods.residual_mlp import ResidualMLP
from firstk.alignment.methods.ridge import Ridge
from firstk.alignment.methods.whitened_ridge import WhitenedRidge
from firstk.contracts import AlignmentMethod

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
            LambdaOrthogonal,
            LowRankAffine,
            ResidualMLP,
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
    "LambdaOrthogonal",
    "LowRankAffine",
    "Procrustes",
    "ProcrustesRidge",
    "ReducedRank",
    "ResidualMLP",
    "Ridge",
    "WhitenedRidge",
    "from_translations",
    "resolve",
    "restore",
    "with_shared_code",
]
