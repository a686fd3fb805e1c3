"""Codes in bytes: embedded bits of firstk, and principal components with 8 bits or with one bit a coordinate.

Other quantizers (OPQ, RaBitQ, TurboQuant, ...) are compared in `benchmarks.bytes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method, principal_axes
from firstk import ErrorBound, PrefixEncoder


def _ours(objective: Any, pairs: bool = False) -> Callable[[Part, None, int], Encode]:
    def fit(part: Part, setting: None, seed: int) -> Encode:
        encoder = PrefixEncoder(objective=objective, random_state=seed, verbose=False)
        if pairs:
            assert part.pairs is not None
            encoder.fit_pairs(*part.pairs)
        else:
            encoder.fit(part.X, part.y)
        quantizer = encoder.encoder_.quantizer(rows=part.X)

        def encode(X: np.ndarray, size: int, side: str) -> np.ndarray:
            cut = quantizer.at(min(size, quantizer.bytes))
            return cut.decode(cut.encode(X)) if side == "document" else cut.encode_query(X)

        return encode

    return fit


def _rounded(part: Part, setting: str, seed: int) -> Encode:
    """Return principal components in 8 bits each, or their signs, of as many coordinates as the bytes hold."""
    axes = principal_axes(part.X, np.zeros(part.X.shape[1]))[1].astype(np.float32)
    Z = part.X @ axes.T
    middle, largest = Z.mean(axis=0), np.quantile(np.abs(Z), 0.999, axis=0)

    def encode(X: np.ndarray, size: int, side: str) -> np.ndarray:
        k = min(size * (8 if setting == "signs" else 1), len(axes))
        codes = X @ axes[:k].T
        if side != "document":
            return codes - middle[:k] if setting == "signs" else codes
        if setting == "signs":
            return np.sign(codes - middle[:k])
        step = np.maximum(largest[:k], 1e-12) / 127
        return np.clip(np.rint(codes / step), -127, 127) * step

    return encode


METHODS = (
    Method("firstk bytes, reconstruction", _ours("reconstruction"), ours=True, unit="bytes"),
    Method("firstk bytes, error bound", _ours(ErrorBound()), needs="labels", ours=True, unit="bytes"),
    Method("firstk bytes, pairs", _ours("similarity", pairs=True), needs="pairs", ours=True, unit="bytes"),
    Method("PCA in 8 bits or signs", _rounded, ("8 bits", "signs"), unit="bytes"),
)
