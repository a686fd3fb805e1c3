"""Adapters that sum losses of sentence-transformers over prefixes, with the settings of the given loss.

An adapter has two methods: the weighted sum over all prefixes, computed by firstk where possible, and the given loss at
a single prefix, for logs and tests.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from sentence_transformers.sentence_transformer import losses as stock
from sentence_transformers.util import all_gather_with_grad, cos_sim, dot_score, get_rank, pairwise_cos_sim
from torch import Tensor, nn

from firstk.exceptions import IllegalCombinationError, InvalidInputError, TrainingWarning
from firstk.losses.functional._inputs import as_tensor
from firstk.losses.functional.contrastive import info_nce
from firstk.losses.functional.cosent import cosent
from firstk.losses.functional.cosine import cosine_similarity
from firstk.losses.functional.cross_entropy import cross_entropy
from firstk.solvers.gradient.losses.base import PrefixSum

Columns = list[Tensor]


def shortened(embeddings: Columns, k: int) -> Columns:
    """Truncate each column of texts to k coordinates and normalize the rows, as in a search over prefixes."""
    return [F.normalize(column[:, :k], dim=1) for column in embeddings]


@dataclass(frozen=True, eq=False)
class LossAdapter:
    """A loss of sentence-transformers over every prefix.

    Attributes
    ----------
    loss : nn.Module
        The given loss; its settings are read at every call, so that they may change during training.
    """

    loss: Any

    estimators: ClassVar[tuple[str, ...]] = ("exact", "drawn", "sampled")

    @property
    def first_counts(self) -> bool:
        """Whether prefix 1 says anything: its cosine is +1 or -1."""
        return False

    def columns(self, embeddings: Columns) -> int:
        """Return how many logits a row and prefix has: what the exact sum costs."""
        return 1

    def total(self, embeddings: Columns, labels: Tensor | None, prefixes: PrefixSum) -> Tensor:
        """Return sum_k omega_k loss_k."""
        raise NotImplementedError

    def at(self, embeddings: Columns, labels: Tensor | None, k: int) -> Tensor:
        """Return the given loss on the first k coordinates."""
        return self.loss.compute_loss_from_embeddings(shortened(embeddings, k), labels)


class Contrastive(LossAdapter):
    """InfoNCE with in-batch negatives, plain or cached, in one or both directions."""

    @property
    def settings(self) -> Any:
        """The ranking loss that holds the settings; cached losses wrap one."""
        return self.loss.loss if isinstance(self.loss, stock.CachedMultipleNegativesRankingLoss) else self.loss

    @property
    def first_counts(self) -> bool:
        """Whether dot products are compared."""
        return self.settings.similarity_fct is dot_score

    def columns(self, embeddings: Columns) -> int:
        """Return how many documents a query is compared with."""
        return sum(len(column) for column in embeddings[1:])

    def total(self, embeddings: Columns, labels: Tensor | None, prefixes: PrefixSum) -> Tensor:
        """Return the full-prefix InfoNCE; documents are gathered from all devices if the loss is set to."""
        if len(embeddings) < 2:
            raise InvalidInputError(
                f"{type(self.loss).__name__} needs anchors and positives. Got {len(embeddings)} column."
            )
        (queries, *documents), targets = embeddings, None
        if self.settings.gather_across_devices:
            documents = [all_gather_with_grad(column) for column in documents]
            targets = torch.arange(len(queries), device=queries.device) + get_rank() * len(queries)
        positives, *negatives = documents
        return info_nce(
            queries,
            positives,
            torch.cat(negatives) if negatives else None,
            temperature=1 / self.settings.scale,
            similarity="cosine" if self.settings.similarity_fct is cos_sim else "dot",
            symmetric=len(self.settings.directions) == 2,
            targets=targets,
            **prefixes.options(),
        )

    def at(self, embeddings: Columns, labels: Tensor | None, k: int) -> Tensor:
        """Return the ranking loss at k; in blocks, if the given loss is computed in blocks."""
        short = shortened(embeddings, k)
        if self.settings.similarity_fct is dot_score:
            short = [column[:, :k] for column in embeddings]
        if self.settings is self.loss:
            return self.loss.compute_loss_from_embeddings(short, labels)
        return self.loss.calculate_loss([[column] for column in short], labels)


class ScoredCosine(LossAdapter):
    """Squared error of cosines against graded scores."""

    def total(self, embeddings: Columns, labels: Tensor | None, prefixes: PrefixSum) -> Tensor:
        """Return sum_k omega_k mean (cos_k - score)^2."""
        left, right = _two(embeddings, self.loss)
        return cosine_similarity(left, right, _given(labels, self.loss).view(-1), **prefixes.options())


class Ranked(LossAdapter):
    """CoSENT: the order of cosines against the order of scores."""

    estimators: ClassVar[tuple[str, ...]] = ("exact",)

    def total(self, embeddings: Columns, labels: Tensor | None, prefixes: PrefixSum) -> Tensor:
        """Return sum_k omega_k CoSENT_k."""
        left, right = _two(embeddings, self.loss)
        scores = _given(labels, self.loss).view(-1)
        return cosent(left, right, scores, scale=self.loss.scale, omega=prefixes.weights)


class Classified(LossAdapter):
    """A softmax classifier of pairs: one shared head over the first k coordinates of u, v, |u - v| and u v.

    logits_k = b + sum_{j<=k} (u_j a_j + v_j c_j + |u - v|_j e_j). With features ordered by coordinate, this is a shared
    head over m d features, m per coordinate, in which only every m-th prefix has weight.
    """

    first_counts = True

    def _features(self, embeddings: Columns) -> Tensor:
        """Return the input of the classifier, (n, m, d)."""
        u, v = _two(embeddings, self.loss)
        parts = [u, v] if self.loss.concatenation_sent_rep else []
        parts += [torch.abs(u - v)] if self.loss.concatenation_sent_difference else []
        parts += [u * v] if self.loss.concatenation_sent_multiplication else []
        return torch.stack(parts, 1).to(self.loss.classifier.weight.dtype)

    def total(self, embeddings: Columns, labels: Tensor | None, prefixes: PrefixSum) -> Tensor:
        """Return sum_k omega_k of the cross-entropy under the shared classifier."""
        features, head, criterion = self._features(embeddings), self.loss.classifier, self.loss.loss_fct
        labels = _given(labels, self.loss)
        if labels.is_floating_point():
            raise InvalidInputError(
                "FullPrefixLoss takes one class per example for SoftmaxLoss. Got probabilities; use their argmax."
            )
        n, m, d = features.shape
        spread = torch.zeros(d, m, dtype=torch.float64)
        spread[:, -1] = torch.from_numpy(prefixes.weights.omega.copy())
        return cross_entropy(
            features.transpose(1, 2).reshape(n, d * m),
            head.weight.view(-1, m, d).transpose(1, 2).reshape(-1, d * m),
            labels.view(-1),
            head.bias,
            class_weight=criterion.weight,
            label_smoothing=criterion.label_smoothing,
            ignore_index=criterion.ignore_index,
            reduction=criterion.reduction,
            **prefixes.options() | {"omega": spread.flatten()},
        )

    def at(self, embeddings: Columns, labels: Tensor | None, k: int) -> Tensor:
        """Return the loss of the classifier's columns for the first k coordinates."""
        features, head = self._features(embeddings), self.loss.classifier
        columns = head.weight.view(len(head.weight), *features.shape[1:])[..., :k]
        logits = F.linear(features[..., :k].flatten(1), columns.flatten(1), head.bias)
        return self.loss.loss_fct(logits, _given(labels, self.loss).view(-1))


class Distilled(LossAdapter):
    """Mean squared error to a teacher's embeddings of the same width, over the first k coordinates, not normalized."""

    estimators: ClassVar[tuple[str, ...]] = ("exact",)

    first_counts = True

    def _errors(self, embeddings: Columns, labels: Tensor | None) -> Tensor:
        """Return the mean squared error of each coordinate, (d,)."""
        teacher, d = _given(labels, self.loss).detach(), embeddings[0].shape[1]
        if teacher.shape[-1] != d:
            raise InvalidInputError(
                f"FullPrefixLoss truncates student and teacher in the same way, so both need {d} coordinates. "
                f"Got a teacher of {teacher.shape[-1]}; project its embeddings first."
            )
        columns = teacher.unbind(1) if teacher.ndim == 3 else [teacher] * len(embeddings)
        errors = [F.mse_loss(z, t.to(z), reduction="none").mean(0) for z, t in zip(embeddings, columns, strict=True)]
        return torch.stack(errors).mean(0)

    def total(self, embeddings: Columns, labels: Tensor | None, prefixes: PrefixSum) -> Tensor:
        """Return sum_k omega_k (1/k) sum_{j<=k} e_j."""
        errors = self._errors(embeddings, labels).cumsum(0)
        lengths = torch.arange(1, len(errors) + 1, device=errors.device)
        return (errors / lengths) @ as_tensor(prefixes.weights.omega, errors)

    def at(self, embeddings: Columns, labels: Tensor | None, k: int) -> Tensor:
        """Return the error of the first k coordinates."""
        return self._errors(embeddings, labels)[:k].mean()


class Drawn(LossAdapter):
    """Any other loss of embeddings, at prefixes drawn with probability omega.

    The rows of a batch share the drawn lengths, so the estimate is unbiased even if the loss compares rows.
    """

    estimators: ClassVar[tuple[str, ...]] = ("drawn",)

    def total(self, embeddings: Columns, labels: Tensor | None, prefixes: PrefixSum) -> Tensor:
        """Return sum_k omega_k loss_k over the prefixes with weight, one ordinary loss each."""
        weights = prefixes.weights
        parts = [weights.omega[k - 1] * self.at(embeddings, labels, k) for k in weights.support.tolist()]
        return torch.stack(parts).sum()


def _two(embeddings: Columns, loss: nn.Module) -> Columns:
    if len(embeddings) != 2:
        raise InvalidInputError(f"{type(loss).__name__} takes pairs, two columns of texts. Got {len(embeddings)}.")
    return embeddings


def _given(labels: Tensor | None, loss: nn.Module) -> Tensor:
    if labels is None:
        raise InvalidInputError(
            f"{type(loss).__name__} needs labels: a column 'label' or 'score' in the data set. Got none."
        )
    return labels


def _is_info_nce(loss: Any) -> bool:
    ranking = loss.loss if isinstance(loss, stock.CachedMultipleNegativesRankingLoss) else loss
    directions = tuple(ranking.directions)
    both = directions == ("query_to_doc", "doc_to_query") and ranking.partition_mode == "per_direction"
    one_way = directions == ("query_to_doc",)
    plain = ranking.hardness_mode is None or not ranking.hardness_strength
    known = ranking.similarity_fct in (cos_sim, dot_score)
    return known and plain and (one_way or (both and not ranking.gather_across_devices))


def _is_squared_error(loss: nn.Module) -> bool:
    mean = isinstance(loss.loss_fct, nn.MSELoss) and loss.loss_fct.reduction == "mean"
    return mean and isinstance(loss.cos_score_transformation, nn.Identity)


# The first entry whose class and condition match is used. Subclasses come before their bases.
_KNOWN: tuple[tuple[type, Callable[[Any], bool], type[LossAdapter]], ...] = (
    (stock.CachedMultipleNegativesRankingLoss, _is_info_nce, Contrastive),
    (stock.MultipleNegativesRankingLoss, _is_info_nce, Contrastive),
    (stock.CosineSimilarityLoss, _is_squared_error, ScoredCosine),
    (stock.CoSENTLoss, lambda loss: loss.similarity_fct is pairwise_cos_sim, Ranked),
    (stock.SoftmaxLoss, lambda loss: type(loss.loss_fct) is nn.CrossEntropyLoss, Classified),
    (stock.EmbedDistillLoss, lambda loss: loss.distance_metric == "mse" and loss.projection is None, Distilled),
)
_UNSUPPORTED: dict[type, str] = {
    stock.AnglELoss: "it splits a prefix into real and imaginary halves, which differ for every prefix length",
    stock.EmbedDistillLoss: "only the distance 'mse' without a projection can truncate student and teacher alike",
    stock.GISTEmbedLoss: "its guide model takes texts, not embeddings that can be truncated",
    stock.CachedGISTEmbedLoss: "its guide model takes texts, not embeddings that can be truncated",
    stock.MatryoshkaLoss: "it sums over prefixes itself",
}
_SUPPORTED = (
    "MultipleNegativesRankingLoss and its cached form, CoSENTLoss, CosineSimilarityLoss, SoftmaxLoss or MSELoss, "
    "summed exactly; or a loss with 'compute_loss_from_embeddings', at drawn prefixes"
)


def adapter_of(loss: nn.Module) -> LossAdapter:
    """Return the adapter of a loss; if there is none, raise an error that lists the supported losses."""
    for kind, fits, adapter in _KNOWN:
        if isinstance(loss, kind) and fits(loss):
            return adapter(loss)
    asked = f"FullPrefixLoss around {type(loss).__name__}"
    for kind, why in _UNSUPPORTED.items():
        if isinstance(loss, kind):
            raise IllegalCombinationError(asked, why, _SUPPORTED)
    if not hasattr(loss, "compute_loss_from_embeddings"):
        raise IllegalCombinationError(asked, "it cannot be computed from embeddings alone", _SUPPORTED)
    if getattr(loss, "gather_across_devices", False):
        raise IllegalCombinationError(
            f"{asked} with gather_across_devices=True", "each device would draw a different prefix", _SUPPORTED
        )
    if any(isinstance(loss, kind) for kind, *_ in _KNOWN):
        warnings.warn(
            f"{asked} sums every prefix for its plain form only: with these settings (hardness_mode, a similarity or a "
            "loss function of your own) it is computed at drawn prefixes, one ordinary loss each.",
            TrainingWarning,
            stacklevel=3,
        )
    return Drawn(loss)
