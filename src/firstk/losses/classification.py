"""Full-prefix losses for labels: one shared head, or one head per listed prefix.

The formulas are in `firstk.losses.functional.cross_entropy` and `free_heads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from firstk._base.checks import bad_parameter, is_int
from firstk._base.prefix_weights import OmegaLike
from firstk.losses.base import PrefixLoss
from firstk.losses.functional import cross_entropy, free_heads
from firstk.losses.functional._inputs import check_given, check_not_sampled, untraced


class FullPrefixCrossEntropy(PrefixLoss):
    """Cross-entropy of every prefix under one shared linear head (`functional.cross_entropy.cross_entropy`).

    Parameters
    ----------
    omega, estimator, generator
        Weights of the prefixes; "exact" or "sampled"; source of the draws.
    class_weight, label_smoothing, ignore_index, reduction
        As in `torch.nn.CrossEntropyLoss`.
    backend : "auto", "compiled" or "torch"

    Examples
    --------
    >>> import torch
    >>> head = torch.nn.Linear(8, 3)
    >>> z, labels = torch.randn(5, 8), torch.tensor([0, 1, 2, 0, 1])
    >>> loss = FullPrefixCrossEntropy()
    >>> loss(z, head.weight, labels, head.bias).backward()
    >>> loss.per_prefix(z, head.weight, labels, head.bias).shape
    torch.Size([8])
    """

    class_weight: Tensor | None

    def __init__(
        self,
        omega: OmegaLike = "harmonic",
        estimator: str = "exact",
        *,
        class_weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        ignore_index: int = -100,
        reduction: str = "mean",
        generator: torch.Generator | None = None,
        backend: str = "auto",
    ):
        super().__init__(omega, estimator, generator)
        self.register_buffer("class_weight", class_weight)
        self.label_smoothing = label_smoothing
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.backend = backend

    def _options(self) -> dict[str, Any]:
        names = ("class_weight", "label_smoothing", "ignore_index", "reduction", "backend")
        return {name: getattr(self, name) for name in names}

    @untraced
    def forward(self, z: Tensor, weight: Tensor, labels: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """Return the weighted loss of codes (n, d) under a head (C, d); `labels` must be given."""
        labels = check_given(labels, "labels", type(self).__name__, "loss(z, head.weight, labels, head.bias)")
        return cross_entropy.cross_entropy(
            z,
            weight,
            labels,
            bias,
            omega=self.weights(z.shape[-1]),
            estimator=self.estimator,
            generator=self.generator,
            **self._options(),
        )

    def per_prefix(self, z: Tensor, weight: Tensor, labels: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the d separate losses, without gradient."""
        return cross_entropy.cross_entropy_per_prefix(z, weight, labels, bias, **self._options())


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
        super().__init__(omega, estimator, None)
        check_not_sampled(estimator, type(self).__name__, "heads share nothing, so a drawn prefix trains one only")
        bad = [k for k in prefixes if not is_int(k) or k < 1]
        if bad or len(prefixes) == 0:
            allowed = "at least one prefix length, each an int of at least 1"
            raise bad_parameter("prefixes", type(self).__name__, allowed, bad[0] if bad else "none")
        self.prefixes = sorted(set(map(int, prefixes)))
        self.heads = nn.ModuleList(nn.Linear(k, n_classes, bias=bias) for k in self.prefixes)
        self.options = options

    @untraced
    def forward(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return the weighted loss of codes (n, d)."""
        omega = self.weights(z.shape[-1])
        heads: Any = self.heads
        return free_heads.cross_entropy_free_heads(z, heads, labels, omega=omega, **self.options)

    @torch.no_grad()
    def per_prefix(self, z: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each head, in the order of `prefixes`, without gradient."""
        heads = free_heads.check_heads(cast(Iterable[nn.Linear], self.heads), z.shape[-1], type(self).__name__)
        return free_heads.free_head_losses(z, heads, labels, **self.options)
