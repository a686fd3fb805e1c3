"""Pairs: the correlation of every prefix's cosine with graded scores, or InfoNCE where all pairs are positives."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from firstk.kernels._inputs import as_tensor
from firstk.kernels.contrastive import info_nce
from firstk.kernels.cosine import prefix_cosines
from firstk.kernels.halves.base import Half, Measure

_TEMPERATURE = 0.05


class Pairs(Half):
    """Scored: ``1 - corr(cos_k(z, z'), s)``; positives: InfoNCE. Cosines after truncation; prefix 1 has no weight.

    Correlation asks for nothing but the order and spacing of the scores: their range and zero are the annotators'. It
    is taken over the batch, so it is no sum over rows and prefixes are never drawn.
    """

    row_sums: ClassVar[bool] = False
    scale_free: ClassVar[bool] = True
    # Pairs are few and training on them overfits soon: a short run from the pencil (figures in docs/decisions.md).
    learning_rate: ClassVar[float] = 3e-3
    epochs: ClassVar[int] = 5
    steps: ClassVar[int] = 100

    def loss(self, model: Any, code: tuple[Tensor, Tensor], batch: dict[str, Tensor], measure: Measure) -> Tensor:
        """Return the weighted loss of the batch; `code` holds both sides."""
        left, right = code
        if not self.settings["scored"]:
            return _info_nce(left, right, measure)
        omega = as_tensor(measure.weights.without_first().omega, left)
        cosines, scores = (measure.ranks.joined(part) for part in (prefix_cosines(left, right), batch["scores"]))
        spread = cosines - cosines.mean(0)  # (n, d)
        wanted = scores - scores.mean()
        size = (spread.square().sum(0) * wanted.square().sum()).clamp_min(1e-20).sqrt()
        return 1 - (wanted @ spread / size) @ omega


def _info_nce(queries: Tensor, positives: Tensor, measure: Measure) -> Tensor:
    """Compare the queries at hand with the documents of all ranks."""
    documents = measure.ranks.joined(positives)
    first = measure.ranks.before(len(queries))
    if not len(queries):
        return 0.0 * documents.sum()
    own = torch.arange(first, first + len(queries), device=queries.device)
    return info_nce(queries, documents, targets=own, omega=measure.weights, temperature=_TEMPERATURE)
