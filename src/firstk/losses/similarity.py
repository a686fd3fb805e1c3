"""Full-prefix losses for pairs: positives among negatives, or graded scores."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from firstk._checks import check_choice
from firstk.kernels import contrastive, cosine
from firstk.kernels._inputs import untraced
from firstk.losses.base import FullPrefixLoss
from firstk.omega import OmegaLike


class FullPrefixInfoNCE(FullPrefixLoss):
    """InfoNCE of every prefix with in-batch and hard negatives (`kernels.contrastive.info_nce`).

    Parameters
    ----------
    omega, estimator, generator
        Weights of the prefixes; "exact" or "sampled"; source of the draws.
    temperature : float or Tensor
        A parameter is trained with the rest.
    similarity : "cosine" or "dot"
        Cosines are taken per prefix, and give prefix 1 no weight.
    symmetric : bool
        Average with the direction from positives to queries.
    backend : "auto", "compiled" or "torch"
    """

    def __init__(
        self,
        omega: OmegaLike = "harmonic",
        estimator: str = "exact",
        *,
        temperature: float | Tensor = 0.05,
        similarity: str = "cosine",
        symmetric: bool = False,
        generator: torch.Generator | None = None,
        backend: str = "auto",
    ):
        super().__init__(omega, estimator, generator)
        self.temperature = temperature
        self.similarity = check_choice(similarity, contrastive.SIMILARITIES, "similarity", type(self).__name__)
        self.symmetric = symmetric
        self.backend = backend

    def _options(self) -> dict[str, Any]:
        names = ("temperature", "similarity", "symmetric", "backend")
        return {name: getattr(self, name) for name in names}

    @untraced
    def forward(
        self,
        queries: Tensor,
        positives: Tensor,
        negatives: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Return the weighted loss; row i of `positives` belongs to row i of `queries`."""
        return contrastive.info_nce(
            queries,
            positives,
            negatives,
            targets=targets,
            omega=self.weights(queries.shape[-1]),
            estimator=self.estimator,
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


class FullPrefixCosineSimilarity(FullPrefixLoss):
    """Squared error of every prefix's cosine against graded scores (`kernels.cosine.cosine_similarity`)."""

    def __init__(
        self,
        omega: OmegaLike = "harmonic",
        estimator: str = "exact",
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__(omega, estimator, generator)

    @untraced
    def forward(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the weighted loss of pairs (n, d) with scores (n,) in [-1, 1]."""
        options: dict[str, Any] = {"estimator": self.estimator, "generator": self.generator}
        return cosine.cosine_similarity(left, right, scores, omega=self.weights(left.shape[-1]), **options)

    def per_prefix(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the d separate losses, without gradient."""
        return cosine.cosine_similarity_per_prefix(left, right, scores)
