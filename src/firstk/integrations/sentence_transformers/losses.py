"""FullPrefixLoss: a loss for sentence-transformers' trainer, as a replacement for MatryoshkaLoss.

It sums over every prefix length, so there is no list of dimensions to choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses import CachedLossMixin, uses_gradient_cache
from torch import Tensor, nn

from firstk._base.checks import bad_parameter, check_choice, is_int
from firstk._base.prefix_weights import OmegaLike, PrefixWeights
from firstk.exceptions import IllegalCombinationError
from firstk.integrations.sentence_transformers.adapters import Columns, adapter_of
from firstk.losses.base import PrefixLoss
from firstk.losses.functional._inputs import weights_of
from firstk.solvers.gradient.losses.base import PrefixSum

# Default prefixes whose losses are logged, in addition to the full width.
_LOGGED = (8, 32, 128)


class LoggedLoss(dict[str, Tensor]):
    """The loss, together with losses at some prefixes that are only logged.

    The trainer logs every item of a dictionary of losses and minimizes the sum of its `values`. Here `values` returns
    the loss only, so the items at single prefixes, which have no gradient, are logged but not summed.
    """

    def __init__(self, total: Tensor, parts: Mapping[int, Tensor]):
        super().__init__({"full_prefix": total} | {f"loss_at_{k}": part for k, part in parts.items()})

    def values(self) -> list[Tensor]:  # type: ignore[override]
        """Return only the loss that is minimized."""
        return [self["full_prefix"]]

    def __mul__(self, factor: float | Tensor) -> Tensor:
        """Return the scaled loss as a tensor, as losses around this one take it, such as AdaptiveLayerLoss."""
        return self["full_prefix"] * factor

    __rmul__ = __mul__

    def __truediv__(self, divisor: float | Tensor) -> Tensor:
        """Return the divided loss as a tensor."""
        return self["full_prefix"] / divisor

    def __add__(self, other: float | Tensor) -> Tensor:
        """Return the loss and another one together, as a tensor."""
        return self["full_prefix"] + other

    __radd__ = __add__

    def backward(self) -> None:
        """Backpropagate the loss, for custom training loops."""
        self["full_prefix"].backward()

    def item(self) -> float:
        """Return the loss as a number."""
        return float(self["full_prefix"].detach())


class FullPrefixLoss(CachedLossMixin, PrefixLoss):
    """Weighted sum of a loss over all prefixes: sum_k omega_k loss_k, with loss_k the given loss on k coordinates.

    Cosines and distances are computed after truncation and normalization, as in a search over prefixes; a softmax
    classifier and a teacher's squared error use prefixes without normalization. The model is called once for each
    column of texts; cached losses (GradCache) embed in mini-batches as usual.

    Parameters
    ----------
    model : SentenceTransformer
    loss : nn.Module
        A loss of sentence-transformers for the same model. Summed exactly: MultipleNegativesRankingLoss (one way or
        symmetric, cosine or dot product) and its cached form, CoSENTLoss, CosineSimilarityLoss, SoftmaxLoss, MSELoss.
        Other functions of embeddings (triplets, batch-hard triplets, contrastive, margins) are computed at drawn
        prefixes.
    matryoshka_dims : sequence of int, optional
        Lengths that share half of the weight, as MatryoshkaLoss takes them; omega says the other half. Not needed:
        without it every length has weight.
    omega, start, estimator, draws, generator
        As in `PrefixLoss`. "sampled" is for losses that are sums over rows.
    log_prefixes : sequence of int, or "auto"
        Prefixes whose losses the trainer logs in addition to the sum, as ``loss_at_8``; "auto": `matryoshka_dims`,
        or 8, 32, 128 and the full width. The loss is then a dictionary, as the trainer takes it; else it is a tensor.

    Examples
    --------
    In place of ``MatryoshkaLoss(model, loss, [384, 256, 128, 64, 32])``::

        loss = FullPrefixLoss(model, MultipleNegativesRankingLoss(model))
        SentenceTransformerTrainer(model=model, train_dataset=pairs, loss=loss).train()
    """

    def __init__(
        self,
        model: SentenceTransformer,
        loss: nn.Module,
        matryoshka_dims: Sequence[int] = (),
        *,
        omega: OmegaLike = "auto",
        start: int | None = None,
        estimator: str = "auto",
        draws: int = 8,
        log_prefixes: str | Sequence[int] = (),
        generator: torch.Generator | None = None,
    ):
        PrefixLoss.__init__(self, omega, estimator, generator=generator, start=start, draws=draws)
        self.model = model
        self.loss = loss
        self.adapter = adapter_of(loss)
        # Raise an error for an estimator that the loss does not have; with only one, "auto" is that one.
        possible = self.adapter.estimators
        if self.estimator == "auto" and len(possible) == 1:
            self.estimator = possible[0]
        elif self.estimator not in ("auto", *possible):
            why = {
                "exact": "there is no exact sum over prefixes for it",
                "drawn": "all its prefixes cost little more than one",
                "sampled": "it is not a sum over rows",
            }[self.estimator]
            asked = f"FullPrefixLoss around {type(self.loss).__name__} with estimator='{self.estimator}'"
            raise IllegalCombinationError(asked, why, f"estimator='{possible[0]}'")
        width = model.get_embedding_dimension()
        self.matryoshka_dims = _checked_prefixes(matryoshka_dims, width, "matryoshka_dims")
        if isinstance(log_prefixes, str):
            check_choice(log_prefixes, ("auto",), "log_prefixes", _OWNER)
            self.log_prefixes = self.matryoshka_dims or (*_LOGGED, width or _LOGGED[-1])
        else:
            self.log_prefixes = _checked_prefixes(log_prefixes, width, "log_prefixes")
        self.uses_gradient_cache = uses_gradient_cache(loss)
        if self.uses_gradient_cache:
            self.mini_batch_size = loss.mini_batch_size  # type: ignore[assignment]
            self.mini_batch_num_tokens = loss.mini_batch_num_tokens  # type: ignore[assignment]
            self.show_progress_bar = loss.show_progress_bar  # type: ignore[assignment]
        if width is not None:
            self.weights(width)
        self._parts: dict[int, Tensor] = {}

    def weights(self, d: int) -> PrefixWeights:
        """Return the weights of the prefixes of d coordinates; half of them for `matryoshka_dims`, if there are any."""
        weights = super().weights(d)
        weights = weights if self.adapter.first_counts else weights.without_first()
        if not self.matryoshka_dims:
            return weights
        listed = weights_of(dict.fromkeys(self.matryoshka_dims, 1.0), d, _OWNER)
        return weights_of(weights.omega + listed.omega, d, _OWNER)

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> Tensor | LoggedLoss:
        """Return the weighted loss of a batch, with the losses to log."""
        if self.uses_gradient_cache:
            total = self.forward_cached(sentence_features, labels)
        else:
            embeddings = [self.model(features)["sentence_embedding"] for features in sentence_features]
            total = self.compute_loss_from_embeddings(embeddings, labels)
        return LoggedLoss(total, self._parts) if self.log_prefixes else total

    def compute_loss_from_embeddings(self, embeddings: Columns, labels: Tensor | None = None) -> Tensor:
        """Return the weighted loss of embeddings, (n, d) for each column of texts."""
        d = embeddings[0].shape[1]
        with torch.no_grad():
            self._parts = {
                k: self.adapter.at(embeddings, labels, k) for k in sorted({min(k, d) for k in self.log_prefixes})
            }
        weights, estimator = self.settled(self.weights(d), embeddings[0], self.adapter.columns(embeddings))
        return self.adapter.total(embeddings, labels, PrefixSum(weights, estimator, self.generator))

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """Return the loss of embeddings computed in mini-batches, and their gradients if requested (GradCache)."""
        total = self.compute_loss_from_embeddings([torch.cat(column) for column in reps], labels)
        if not with_backward:
            return total
        total.backward()
        return total.detach()

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings, for the model card."""
        omega = self.omega if isinstance(self.omega, str) else "custom"
        return {"loss": type(self.loss).__name__, "omega": omega, "estimator": self.estimator}


_OWNER = FullPrefixLoss.__name__


def _checked_prefixes(prefixes: Sequence[int], width: int | None, name: str) -> tuple[int, ...]:
    """Return lengths as a tuple."""
    most = "" if width is None else f" of at most {width}"
    for k in prefixes:
        if not is_int(k) or k < 1 or (width is not None and k > width):
            raise bad_parameter(name, _OWNER, f"prefix lengths{most}", k)
    return tuple(map(int, prefixes))
