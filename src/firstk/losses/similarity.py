"""Full-prefix losses for pairs: positives among negatives, or graded scores.

The formulas are in `firstk.losses.functional.contrastive`, `cosine` and `cosent`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from firstk._base.checks import check_choice
from firstk._base.prefix_weights import OmegaLike
from firstk.losses.base import PrefixLoss
from firstk.losses.functional import contrastive, cosent, cosine
from firstk.losses.functional._inputs import check_codes, check_not_sampled, one_node


class FullPrefixInfoNCE(PrefixLoss):
    """InfoNCE of every prefix with in-batch and hard negatives (`functional.contrastive.info_nce`).

    Parameters
    ----------
    omega, estimator, generator, start, draws
        As in `PrefixLoss`.
    temperature : float or Tensor
        A parameter is trained with the rest; another tensor is a buffer.
    similarity : "cosine" or "dot"
        Cosines are taken per prefix, and give prefix 1 no weight.
    symmetric : bool
        Average with the direction from positives to queries.
    backend : "auto", "compiled" or "torch"
    """

    def __init__(
        self,
        omega: OmegaLike = "auto",
        estimator: str = "auto",
        *,
        start: int | None = None,
        draws: int = 8,
        temperature: float | Tensor = 0.05,
        similarity: str = "cosine",
        symmetric: bool = False,
        generator: torch.Generator | None = None,
        backend: str = "auto",
    ):
        super().__init__(omega, estimator, generator, start, draws)
        if isinstance(temperature, Tensor) and not isinstance(temperature, nn.Parameter):
            self.register_buffer("temperature", temperature)  # moves with the module, is in its state
        else:
            self.temperature = temperature
        self.similarity = check_choice(similarity, contrastive.SIMILARITIES, "similarity", type(self).__name__)
        self.symmetric = symmetric
        self.backend = backend

    def _options(self) -> dict[str, Any]:
        names = ("temperature", "similarity", "symmetric", "backend")
        return {name: getattr(self, name) for name in names}

    @one_node
    def forward(
        self,
        queries: Tensor,
        positives: Tensor,
        negatives: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Return the weighted loss; row i of `positives` belongs to row i of `queries`."""
        check_codes(queries, "info_nce", "queries")
        weights = self.weights(queries.shape[-1])
        weights = weights.without_first() if self.similarity == "cosine" else weights
        columns = len(positives) + (0 if negatives is None else negatives.shape[:-1].numel())
        weights, estimator = self.settled(weights, queries, columns)
        return contrastive.info_nce(
            queries,
            positives,
            negatives,
            targets=targets,
            omega=weights,
            estimator=estimator,
            generator=self.generator,
            **self._options(),
        )

    def per_prefix(
        self,
        queries: Tensor,
        positives: Tensor,
        negatives: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Return the d separate losses, without gradient."""
        return contrastive.info_nce_per_prefix(queries, positives, negatives, targets=targets, **self._options())


class FullPrefixCosineSimilarity(PrefixLoss):
    """Squared error of every prefix's cosine against graded scores (`functional.cosine.cosine_similarity`)."""

    def __init__(
        self,
        omega: OmegaLike = "auto",
        estimator: str = "exact",
        *,
        start: int | None = None,
        draws: int = 8,
        generator: torch.Generator | None = None,
    ):
        super().__init__(omega, estimator, generator, start, draws)

    @one_node
    def forward(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the weighted loss of pairs (n, d) with scores (n,) in [-1, 1]."""
        omega, estimator = self.settled(self.weights(left.shape[-1]).without_first(), left, 1)
        options: dict[str, Any] = {"estimator": estimator, "generator": self.generator}
        return cosine.cosine_similarity(left, right, scores, omega=omega, **options)

    def per_prefix(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the d separate losses, without gradient."""
        return cosine.cosine_similarity_per_prefix(left, right, scores)


class FullPrefixCoSENT(PrefixLoss):
    """CoSENT of every prefix: only the order of the scores counts (`functional.cosent.cosent`).

    Parameters
    ----------
    omega, start : as in `FullPrefixInfoNCE`
    estimator : "exact"
        "sampled" is an error: the loss compares pairs, so it is no sum over rows.
    scale : float
        Inverse temperature.
    """

    def __init__(
        self, omega: OmegaLike = "auto", estimator: str = "exact", *, start: int | None = None, scale: float = 20.0
    ):
        super().__init__(omega, estimator, None, start)
        check_not_sampled(
            estimator, type(self).__name__, "the loss compares pairs with pairs, so it is no sum over rows"
        )
        self.scale = scale

    @one_node
    def forward(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the weighted loss of pairs (n, d) with scores (n,)."""
        return cosent.cosent(left, right, scores, scale=self.scale, omega=self.weights(left.shape[-1]))

    def per_prefix(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the d separate losses, without gradient."""
        return cosent.cosent_per_prefix(left, right, scores, scale=self.scale)
