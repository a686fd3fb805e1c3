"""Pairs: CoSENT of every prefix where scores are graded, InfoNCE where all pairs are positives."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from firstk.losses.functional.contrastive import info_nce
from firstk.losses.functional.cosent import cosent
from firstk.solvers.gradient.losses.base import PrefixSum, TrainingLoss


class Pairs(TrainingLoss):
    """What both kinds share: cosines after truncation, prefix 1 without weight, and pairs compared with pairs.

    A batch is therefore no sum over rows, and prefixes are never drawn. Settings: temperature.
    """

    row_sums: ClassVar[bool] = False
    scale_free: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 3e-3


class Positives(Pairs):
    """InfoNCE among the pairs of a batch."""

    # Pairs are few and training on them overfits soon: a short run from the pencil (figures in docs/decisions.md).
    epochs: ClassVar[int] = 5
    steps: ClassVar[int] = 100

    def loss(self, model: Any, code: tuple[Tensor, Tensor], batch: dict[str, Tensor], measure: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch; `code` holds both sides."""
        return _info_nce(*code, measure, self.settings["temperature"])


def _info_nce(queries: Tensor, positives: Tensor, measure: PrefixSum, temperature: float) -> Tensor:
    """Compare the queries at hand with the documents of all ranks."""
    documents = measure.ranks.all_gather_rows(positives)
    first = measure.ranks.before(len(queries))
    if not len(queries):
        return 0.0 * documents.sum()
    own = torch.arange(first, first + len(queries), device=queries.device)
    return info_nce(queries, documents, targets=own, omega=measure.weights, temperature=temperature)


class ScoredPairs(Pairs):
    """CoSENT: of two pairs the one with the higher score shall have the higher cosine.

    It asks for nothing but the order of the scores: their range, zero and spacing are the annotators'.
    """

    offset: ClassVar[bool] = True
    turned: ClassVar[bool] = True
    # Small batches carry over better to texts of another kind (figures in docs/decisions.md).
    batch_size: ClassVar[int] = 16
    epochs: ClassVar[int] = 10
    steps: ClassVar[int] = 600

    def loss(self, model: Any, code: tuple[Tensor, Tensor], batch: dict[str, Tensor], measure: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch; `code` holds both sides."""
        left, right, scores = (measure.ranks.all_gather_rows(part) for part in (*code, batch["scores"]))
        return cosent(left, right, scores, scale=1 / self.settings["temperature"], omega=measure.weights)
