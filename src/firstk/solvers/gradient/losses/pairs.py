"""Pairs: CoSENT of every prefix where scores are graded, InfoNCE where all pairs are positives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from firstk.contracts import FitRequest, Rows
from firstk.losses.functional.contrastive import info_nce
from firstk.losses.functional.cosent import cosent
from firstk.moments.pairs import PairMoments
from firstk.moments.statistics import Statistics
from firstk.solvers.gradient.losses.base import BaseTrainingLoss, PrefixSum, ToTensor
from firstk.solvers.gradient.processes import SingleProcess

if TYPE_CHECKING:
    from firstk.solvers.gradient.networks import Model


Codes = tuple[Tensor, Tensor]  # of the left and of the right sides


class PairObjective(Protocol):
    """What scored pairs ask of their objective beside the contract; see :class:`firstk.objectives.Pairs`."""

    def mixed_scores(self, rows: Rows, over_all: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the scores to train on; `over_all` gives the column of all processes."""


class Pairs(BaseTrainingLoss):
    """What both kinds share: cosines after truncation, prefix 1 without weight, and pairs compared with pairs.

    A batch is therefore no sum over rows, and prefixes are never drawn. Settings: temperature.
    """

    row_sums: ClassVar[bool] = False
    learning_rate: ClassVar[float] = 3e-3

    @classmethod
    def for_statistics(cls, statistics: Statistics) -> type[BaseTrainingLoss]:
        """Return the loss of scored pairs where scores differ, else that of positives."""
        moments = statistics.moments
        return ScoredPairs if isinstance(moments, PairMoments) and moments.scored else Positives


class Positives(Pairs):
    """InfoNCE among the pairs of a batch."""

    # Pairs are few and training on them overfits soon: a short run from the pencil (figures in docs/decisions.md).
    epochs: ClassVar[int] = 5
    steps: ClassVar[int] = 100

    def loss(self, model: Model, code: Codes, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch; `code` holds both sides."""
        return _info_nce(*code, prefix_sum, self.settings["temperature"])


def _info_nce(queries: Tensor, positives: Tensor, prefix_sum: PrefixSum, temperature: float) -> Tensor:
    """Compare the queries at hand with the documents of all processes."""
    documents = prefix_sum.processes.all_gather_rows(positives)
    first = prefix_sum.processes.before(len(queries))
    if not len(queries):
        return 0.0 * documents.sum()
    own = torch.arange(first, first + len(queries), device=queries.device)
    return info_nce(queries, documents, targets=own, omega=prefix_sum.weights, temperature=temperature)


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

    @classmethod
    def targets(cls, request: FitRequest, tensor: ToTensor) -> dict[str, Tensor]:
        """Return the scores of the pairs, standardised over all processes."""
        processes = cast(SingleProcess, request.processes or SingleProcess())

        def over_all(column: np.ndarray) -> np.ndarray:
            return torch.cat(processes.all_gather(torch.as_tensor(column))).numpy()

        assert request.rows is not None
        return {"scores": tensor(cast(PairObjective, request.objective).mixed_scores(request.rows, over_all))}

    def loss(self, model: Model, code: Codes, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch; `code` holds both sides."""
        left, right, scores = (prefix_sum.processes.all_gather_rows(part) for part in (*code, batch["scores"]))
        return cosent(left, right, scores, scale=1 / self.settings["temperature"], omega=prefix_sum.weights)
