"""Training losses of pairs: CoSENT of every prefix for graded scores, InfoNCE if all pairs are positives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from firstk.contracts import Columns, FitRequest
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
    """Methods this loss needs beside the contract; see :class:`firstk.objectives.PairSimilarity`."""

    def mixed_scores(self, rows: Columns, over_all: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the scores to train on; `over_all` gathers a column from all processes."""


class PairLoss(BaseTrainingLoss):
    """Base of both losses of pairs: cosines after truncation; the weight of prefix 1 is zero.

    Pairs are compared with pairs, so the loss is not a sum over rows and prefixes are never sampled. Settings:
    temperature.
    """

    row_sums: ClassVar[bool] = False
    learning_rate: ClassVar[float] = 3e-3

    @classmethod
    def for_statistics(cls, statistics: Statistics) -> type[BaseTrainingLoss]:
        """Return `ScoredPairLoss` if scores differ, else `Positives`."""
        moments = statistics.moments
        return ScoredPairLoss if isinstance(moments, PairMoments) and moments.scored else Positives


class Positives(PairLoss):
    """InfoNCE among the pairs of a batch."""

    # Pairs are few and overfit early: a short run from the axes of the pencil (figures in docs/decisions/solvers.md).
    epochs: ClassVar[int] = 5
    steps: ClassVar[int] = 100

    def loss(self, model: Model, code: Codes, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch; `code` holds both sides."""
        return _info_nce(*code, prefix_sum, self.settings["temperature"])


def _info_nce(queries: Tensor, positives: Tensor, prefix_sum: PrefixSum, temperature: float) -> Tensor:
    """Compare this process's queries with the documents of all processes."""
    documents = prefix_sum.processes.all_gather_rows(positives)
    first = prefix_sum.processes.before(len(queries))
    if not len(queries):
        return 0.0 * documents.sum()
    own = torch.arange(first, first + len(queries), device=queries.device)
    return info_nce(queries, documents, targets=own, omega=prefix_sum.weights, temperature=temperature)


class ScoredPairLoss(PairLoss):
    """CoSENT: the pair with the higher score should have the higher cosine.

    It uses only the order of the scores, because their range, zero and spacing depend on the annotators.
    """

    offset: ClassVar[bool] = True
    turned: ClassVar[bool] = True
    # Small batches generalize better to texts of another kind (figures in docs/decisions/solvers.md).
    batch_size: ClassVar[int] = 16
    epochs: ClassVar[int] = 10
    steps: ClassVar[int] = 600

    @classmethod
    def targets(cls, request: FitRequest, tensor: ToTensor) -> dict[str, Tensor]:
        """Return the scores of the pairs, standardized over all processes."""
        processes = cast(SingleProcess, request.processes or SingleProcess())

        def over_all(column: np.ndarray) -> np.ndarray:
            return torch.cat(processes.all_gather(torch.as_tensor(column))).numpy()

        assert request.rows is not None
        return {"scores": tensor(cast(PairObjective, request.objective).mixed_scores(request.rows, over_all))}

    def loss(self, model: Model, code: Codes, batch: dict[str, Tensor], prefix_sum: PrefixSum) -> Tensor:
        """Return the weighted loss of the batch; `code` holds both sides."""
        left, right, scores = (prefix_sum.processes.all_gather_rows(part) for part in (*code, batch["scores"]))
        return cosent(left, right, scores, scale=1 / self.settings["temperature"], omega=prefix_sum.weights)
