"""Codes of firstk: embedded bits, of one fit and one stored string, and the precisions with equal bits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.bytes.cases import Axes, Case
from benchmarks.bytes.settings import BYTES, Encoded, Rebuilt, Setting
from firstk import PrefixEncoder
from firstk.data.precision import PRECISIONS
from firstk.objectives import Similarity

OURS = "firstk embedded"
# The objective whose line is compared with the others; the rest are reported beside it.
HEADLINE = f"{OURS}, reconstruction"
SUPERVISED = f"{OURS}, fisher"


def settings(case: Case) -> Iterator[Setting]:
    """Return what firstk stores in so many bytes."""
    d = case.store.shape[1]
    for size in BYTES:
        for name, width in (("int8", size), ("int4", 2 * size), ("binary", 8 * size)):
            if width <= d:
                yield Setting(
                    f"firstk {name}", f"SVD{width},{name}", size, lambda c, w=width, p=name: equal_bits(c, w, p)
                )


def equal_bits(case: Case, width: int, precision: str) -> Encoded:
    """The first coordinates of the objective that keeps dot products, in one precision."""
    start = time.perf_counter()
    encoder = PrefixEncoder(width, objective=Similarity(keep="dot_products")).fit(case.store).encoder_
    Z = encoder.encode(case.store)
    rounding = PRECISIONS[precision].fit(Z)
    trained = time.perf_counter()
    codes = rounding.quantise(Z)
    seconds = {"train": trained - start, "encode": time.perf_counter() - trained}
    axes = Axes(np.zeros(case.store.shape[1], np.float32), encoder.components.astype(np.float32))
    return Encoded((Rebuilt(rounding.restore(codes)[:, : encoder.d], axes),), 4 * axes.rows.size, seconds)
