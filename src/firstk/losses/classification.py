"""Full-prefix losses for labels: one shared head, to which short prefixes may add a part, or one per listed prefix.

The formulas are in `firstk.losses.functional.cross_entropy` and `own_heads`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from firstk._base.checks import bad_parameter, is_int
from firstk._base.prefix_weights import OmegaLike, PrefixWeights, gathered, own_heads_for, start_for
from firstk.exceptions import InvalidInputError
from firstk.losses.base import PrefixLoss
from firstk.losses.functional import cross_entropy, own_heads
from firstk.losses.functional._inputs import (
    check_codes,
    check_given,
    check_not_sampled,
    check_rows,
    one_node,
    promoted,
    weights_of,
)


class FullPrefixCrossEntropy(PrefixLoss):
    """Cross-entropy of every prefix under a linear head (`functional.cross_entropy.cross_entropy`).

    One head, of your own, is shared by all prefixes. With `n_classes` short prefixes add a part of their own to it
    (`functional.own_heads.cross_entropy_adapted_heads`): a column that is best together with 63 others is not best
    alone. These parts are parameters of the loss, zero at first: give them to the optimizer with those of the network
    and of the head.

    Parameters
    ----------
    omega : as in `PrefixLoss`, or "auto"
        "auto": "harmonic" from the length on at which that many classes can be separated, half of log2 C coordinates
        (4 for 77 classes), unless `start` names it; that length also has a quarter of the weight of the shorter ones.
    estimator, generator, draws
        As in `PrefixLoss`; prefixes are drawn among those that share a head.
    start : int, optional
        Shortest prefix with weight, where omega is a name; without it every prefix has weight.
    n_classes : int, optional
        Number of classes, for parts of their own of short prefixes; without it, one head for all.
    own_heads : int or "auto"
        Length up to which prefixes have them, with `n_classes`. "auto": 16, or less if there are so many classes that
        they would dominate the cost.
    class_weight, label_smoothing, ignore_index, reduction
        As in `torch.nn.CrossEntropyLoss`.
    backend : "auto", "compiled", "triton" or "torch"

    Examples
    --------
    >>> import torch
    >>> head = torch.nn.Linear(8, 3)
    >>> z, labels = torch.randn(5, 8), torch.tensor([0, 1, 2, 0, 1])
    >>> loss = FullPrefixCrossEntropy(n_classes=3)
    >>> optimizer = torch.optim.Adam([*head.parameters(), *loss.parameters()])
    >>> loss(z, head.weight, labels, head.bias).backward()
    >>> loss.per_prefix(z, head.weight, labels, head.bias).shape
    torch.Size([8])
    >>> loss.logits(z, head.weight, 4, head.bias).shape
    torch.Size([5, 3])
    """

    class_weight: Tensor | None

    def __init__(
        self,
        omega: OmegaLike = "auto",
        estimator: str = "auto",
        *,
        start: int | None = None,
        draws: int = 8,
        n_classes: int | None = None,
        own_heads: int | str = "auto",
        class_weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        ignore_index: int = -100,
        reduction: str = "mean",
        generator: torch.Generator | None = None,
        backend: str = "auto",
    ):
        super().__init__(omega, estimator, generator=generator, start=start, draws=draws)
        self.register_buffer("class_weight", class_weight)
        self.label_smoothing = label_smoothing
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.backend = backend
        K = self._own_heads(n_classes, own_heads)
        # Zero: training starts with one shared head, and its columns serve short prefixes from the first step on.
        self.own_weight = nn.Parameter(torch.zeros(K, n_classes or 0, K)) if K else None
        self.own_offset = nn.Parameter(torch.zeros(K, n_classes or 0)) if K else None

    def _own_heads(self, n_classes: int | None, own_heads: int | str) -> int:
        owner = type(self).__name__
        if own_heads != "auto" and not (is_int(own_heads) and int(own_heads) >= 0):
            raise bad_parameter("own_heads", owner, "an int that is not negative, or 'auto'", own_heads)
        if n_classes is None:
            if own_heads not in ("auto", 0):
                raise InvalidInputError(
                    f"{owner}(own_heads={own_heads}) needs the number of classes, as heads are made before the first "
                    "batch: pass n_classes=head.out_features."
                )
            return 0
        if not is_int(n_classes) or n_classes < 1:
            raise bad_parameter("n_classes", owner, "an int of at least 1", n_classes)
        return own_heads_for(n_classes) if own_heads == "auto" else int(own_heads)

    def weights(self, d: int, classes: int = 1) -> PrefixWeights:
        """Return omega for codes of width d; "auto" depends on the number of classes."""
        if isinstance(self.omega, str) and self.omega == "auto":
            return gathered(weights_of("harmonic", d, type(self).__name__), self.start or start_for(classes))
        return super().weights(d)

    def _options(self) -> dict[str, Any]:
        names = ("class_weight", "label_smoothing", "ignore_index", "reduction", "backend")
        return {name: getattr(self, name) for name in names}

    def _check_classes(self, weight: Tensor) -> None:
        if self.own_weight is not None and len(weight) != self.own_weight.shape[1]:
            raise InvalidInputError(
                f"{type(self).__name__}(n_classes={self.own_weight.shape[1]}) got a head of {len(weight)} classes. "
                f"Make the loss with n_classes={len(weight)}."
            )

    @one_node
    def forward(self, z: Tensor, weight: Tensor, labels: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """Return the weighted loss of codes (n, d) under a head (C, d); `labels` must be given.

        Labels are classes or, with one column per class, probabilities. Codes of tokens (batch, tokens, d) are rows.
        """
        labels = check_given(labels, "labels", type(self).__name__, "loss(z, head.weight, labels, head.bias)")
        shape = z.shape[:-1]
        z, labels = _rows(z, labels)
        check_codes(z, "cross_entropy")
        check_codes(weight, "cross_entropy", "weight", width=z.shape[1])
        self._check_classes(weight)
        after = 0 if self.own_weight is None else self._kept(z.shape[1], len(weight))
        omega, estimator = self.settled(self.weights(z.shape[1], len(weight)), z, len(weight), after)
        options = {"omega": omega, "estimator": estimator, "generator": self.generator, **self._options()}
        if self.own_weight is None or self.own_offset is None:
            loss = cross_entropy.cross_entropy(z, weight, labels, bias, **options)
        else:
            heads = (self.own_weight, self.own_offset)
            loss = own_heads.cross_entropy_adapted_heads(z, weight, labels, bias, *heads, **options)
        return loss.view(shape) if loss.ndim else loss

    @torch.no_grad()
    def per_prefix(self, z: Tensor, weight: Tensor, labels: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the d separate losses, without gradient; means over rows where `reduction` is "none"."""
        z, labels = _rows(z, labels)
        options = self._options() | ({"reduction": "mean"} if self.reduction == "none" else {})
        losses = cross_entropy.cross_entropy_per_prefix(z, weight, labels, bias, **options)
        if self.own_weight is None or self.own_offset is None:
            return losses
        self._check_classes(weight)
        K = self._kept(z.shape[1], len(weight))
        if K:
            given = (z, weight, self.own_weight, self.own_offset)
            z, weight, own_weight, own_offset = (part.to(losses.dtype) for part in given)
            bias = None if bias is None else bias.to(losses.dtype)
            heads = own_heads.adapted_heads(weight, bias, own_weight, own_offset, K)
            losses[:K] = own_heads.own_head_losses(z, *heads, labels, **options)
        return losses

    def logits(self, z: Tensor, weight: Tensor, k: int, bias: Tensor | None = None) -> Tensor:
        """Return the logits (n, C) of the first k coordinates of codes: by the part of their own, where k has one."""
        d = z.shape[1]
        if not is_int(k) or not 1 <= k <= d:
            raise bad_parameter("k", f"{type(self).__name__}.logits", f"an int in [1, {d}] (the width of the code)", k)
        self._check_classes(weight)
        if self.own_weight is None or self.own_offset is None or k > self._kept(d, len(weight)):
            return nn.functional.linear(z[:, :k], weight[:, :k], bias)
        heads, offsets = own_heads.adapted_heads(weight, bias, self.own_weight, self.own_offset, k)
        return nn.functional.linear(z[:, :k], heads[k - 1], offsets[k - 1])

    def _kept(self, d: int, classes: int) -> int:
        """Return how many prefixes of a code of width d have a part of their own: the longest with weight never has."""
        assert self.own_weight is not None
        return min(len(self.own_weight), int(self.weights(d, classes).support[-1]) - 1)


def _rows(z: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return codes with one row per label."""
    if z.ndim < 3:
        return z, labels
    return z.flatten(0, -2), labels.flatten(0, -2 if labels.is_floating_point() else -1)


class FullPrefixFreeHeadCrossEntropy(PrefixLoss):
    """Cross-entropy with a separate head for each listed prefix: MRL as published. Owns its heads.

    Parameters
    ----------
    prefixes : sequence of int
        Prefix lengths that get a head.
    n_classes : int
    omega : as in `FullPrefixCrossEntropy`
        Restricted to `prefixes`.
    bias : bool
    estimator : "exact"
        "sampled" is an error: heads share nothing.
    **options
        Passed to `torch.nn.functional.cross_entropy`.
    """

    def __init__(
        self,
        prefixes: Sequence[int],
        n_classes: int,
        omega: OmegaLike = "uniform",
        estimator: str = "exact",
        *,
        bias: bool = True,
        **options: Any,
    ):
        super().__init__(omega, estimator)
        check_not_sampled(estimator, type(self).__name__, "heads share nothing, so a drawn prefix trains one only")
        bad = [k for k in prefixes if not is_int(k) or k < 1]
        if bad or len(prefixes) == 0:
            allowed = "at least one prefix length, each an int of at least 1"
            raise bad_parameter("prefixes", type(self).__name__, allowed, bad[0] if bad else "none")
        self.prefixes = sorted(set(map(int, prefixes)))
        self.heads = nn.ModuleList(nn.Linear(k, n_classes, bias=bias) for k in self.prefixes)
        self.options = options

    @one_node
    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return the weighted loss of codes (n, d)."""
        losses, d = self._losses(z, labels), z.shape[-1]
        full = self.weights(d).omega
        kept = weights_of({k: full[k - 1] for k in self.prefixes}, d, type(self).__name__).omega
        return losses @ losses.new_tensor([kept[k - 1] for k in self.prefixes])

    @torch.no_grad()
    def per_prefix(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each head, in the order of `prefixes`, without gradient."""
        return self._losses(z, labels)

    def _losses(self, z: Tensor, labels: Tensor) -> Tensor:
        owner = type(self).__name__
        check_codes(z, owner)
        check_rows(z, labels, "z", "labels", owner)
        if (longest := self.prefixes[-1]) > z.shape[1]:
            raise bad_parameter("prefixes", owner, f"a prefix in [1, {z.shape[1]}] (the width of the code)", longest)
        logits = [head(z[:, :k]) for k, head in zip(self.prefixes, self.heads, strict=True)]
        return torch.stack([nn.functional.cross_entropy(promoted(t)[0], labels, **self.options) for t in logits])
