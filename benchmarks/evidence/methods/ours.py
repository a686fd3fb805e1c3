"""firstk with default settings: one code for all lengths. What may be chosen on validation data is the objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import WIDTH, Method
from firstk import Classification, ErrorBound, Fisher, Mixture, PrefixEncoder, Similarity


def _fit(objective: Any) -> Callable[[Part, None, int], Encode]:
    def fit(part: Part, setting: None, seed: int) -> Encode:
        encoder = PrefixEncoder(WIDTH, objective=objective, random_state=seed, verbose=False)
        return _encode(encoder.fit(part.X, part.y))

    return fit


def _fit_pairs(solver: str) -> Callable[[Part, None, int], Encode]:
    def fit(part: Part, setting: None, seed: int) -> Encode:
        assert part.pairs is not None
        encoder = PrefixEncoder(WIDTH, objective="similarity", solver=solver, random_state=seed, verbose=False)
        return _encode(encoder.fit_pairs(*part.pairs))

    return fit


def _encode(encoder: PrefixEncoder) -> Encode:
    fitted = encoder.encoder_
    return lambda X, k, side: fitted.encode(X, min(k, fitted.d), side="query" if side == "query" else "document")


def _labels(name: str, objective: Any, **options: Any) -> Method:
    return Method(f"firstk {name}", _fit(objective), needs="labels", ours=True, **options)


METHODS = (
    Method("firstk similarity", _fit("similarity"), ours=True),
    Method("firstk similarity, projections", _fit(Similarity(keep="projections")), ours=True),
    Method("firstk dot products", _fit(Similarity(keep="dot_products")), ours=True),
    Method("firstk reconstruction", _fit("reconstruction"), ours=True),
    Method("firstk similarity, pairs", _fit_pairs("closed_form"), needs="pairs", ours=True),
    _labels("fisher", Fisher(shrinkage="auto")),
    _labels("fisher, reconstruction 0.5", Fisher(reconstruction=0.5)),
    _labels("mixture", Mixture()),
    _labels("error bound", ErrorBound()),
    _labels("classification", Classification(), trained=True, draws=3),
    _labels("classification, reconstruction 0.3", Classification(reconstruction=0.3), trained=True, draws=3),
    Method("firstk similarity, pairs trained", _fit_pairs("gradient"), needs="pairs", ours=True, trained=True, draws=3),
)
