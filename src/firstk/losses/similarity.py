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
from firstk.losses.functional import contrastive, cosent, cosine, max_sim
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
    label_smoothing, reduction
        As in `functional.contrastive.info_nce`.
    backend : "auto", "compiled", "triton" or "torch"
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
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        generator: torch.Generator | None = None,
        backend: str = "auto",
    ):
        super().__init__(omega, estimator, generator=generator, start=start, draws=draws)
        if isinstance(temperature, Tensor) and not isinstance(temperature, nn.Parameter):
            self.register_buffer("temperature", temperature)  # moves with the module, is in its state
        else:
            self.temperature = temperature
        self.similarity = check_choice(similarity, contrastive.SIMILARITIES, "similarity", type(self).__name__)
        self.symmetric = symmetric
        self.label_smoothing = label_smoothing
        self.reduction = reduction
        self.backend = backend

    def _options(self) -> dict[str, Any]:
        names = ("temperature", "similarity", "symmetric", "label_smoothing", "reduction", "backend")
        return {name: getattr(self, name) for name in names}

    @one_node
    def forward(
        self,
        queries: Tensor,
        positives: Tensor,
        negatives: Tensor | None = None,
        targets: Tensor | None = None,
        all_queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return the weighted loss; row i of `positives` belongs to row i of `queries`, unless `targets` says others.

        ``loss(**gathered(queries, positives))`` takes the documents of all processes, ``mask=false_negatives(...)``
        leaves documents out (`functional.contrastive`).
        """
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
            all_queries=all_queries,
            mask=mask,
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
        all_queries: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Return the d separate losses, without gradient."""
        given: dict[str, Any] = {"targets": targets, "all_queries": all_queries, "mask": mask}
        return contrastive.info_nce_per_prefix(queries, positives, negatives, **given, **self._options())


class FullPrefixMaxSim(PrefixLoss):
    """InfoNCE of token vectors by MaxSim at every prefix, for multi-vector models (`functional.max_sim`).

    Parameters
    ----------
    omega, start, draws, generator
        As in `PrefixLoss`.
    estimator : "drawn" or "exact"
        "exact" takes one product of all tokens for each length with weight, "drawn" for `draws` of them.
    temperature : float
        Of scores, which are sums over the tokens of a query.
    """

    def __init__(
        self,
        omega: OmegaLike = "auto",
        estimator: str = "drawn",
        *,
        start: int | None = None,
        draws: int = 8,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ):
        check_choice(estimator, ("drawn", "exact"), "estimator", type(self).__name__)
        super().__init__(omega, estimator, generator=generator, start=start, draws=draws)
        self.temperature = temperature

    @one_node
    def forward(
        self,
        queries: Tensor,
        documents: Tensor,
        query_mask: Tensor | None = None,
        document_mask: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Return the weighted loss of tokens (n, t, d) and (m, s, d); masks name those that are no padding."""
        weights, _ = self.settled(self.weights(queries.shape[-1]).without_first(), queries, 1)
        options: dict[str, Any] = {"targets": targets, "temperature": self.temperature, "omega": weights}
        return max_sim.max_sim(queries, documents, query_mask, document_mask, **options)

    @torch.no_grad()
    def per_prefix(
        self,
        queries: Tensor,
        documents: Tensor,
        query_mask: Tensor | None = None,
        document_mask: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Return the losses of the prefixes from 2 on, (d - 1,), without gradient: one product each."""
        given = (queries, documents, query_mask, document_mask)
        options: dict[str, Any] = {"targets": targets, "temperature": self.temperature}
        lengths = range(2, queries.shape[-1] + 1)
        return torch.stack([max_sim.max_sim(*given, omega={k: 1.0}, **options) for k in lengths])


class FullPrefixCosineSimilarity(PrefixLoss):
    """Squared error of every prefix's cosine against graded scores (`functional.cosine.cosine_similarity`)."""

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
        "sampled" is an error: the loss compares pairs, so it is not a sum over rows.
    scale : float
        Inverse temperature.
    """

    def __init__(
        self, omega: OmegaLike = "auto", estimator: str = "exact", *, start: int | None = None, scale: float = 20.0
    ):
        super().__init__(omega, estimator, start=start)
        check_not_sampled(
            estimator, type(self).__name__, "the loss compares pairs with pairs, so it is not a sum over rows"
        )
        self.scale = scale

    @one_node
    def forward(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the weighted loss of pairs (n, d) with scores (n,)."""
        return cosent.cosent(left, right, scores, scale=self.scale, omega=self.weights(left.shape[-1]))

    def per_prefix(self, left: Tensor, right: Tensor, scores: Tensor) -> Tensor:
        """Return the d separate losses, without gradient."""
        return cosent.cosent_per_prefix(left, right, scores, scale=self.scale)
