"""Cross-entropy with one separate head per prefix: MRL as published, not its shared-head variant MRL-E.

The heads share no weights, so the cost is the sum of their costs. The loss of a prefix depends on its span only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstk._base.checks import bad_parameter
from firstk._base.prefix_weights import OmegaLike
from firstk.exceptions import InvalidInputError
from firstk.losses.functional._inputs import check_codes, check_not_sampled, check_rows, weights_of

_OWNER = "cross_entropy_free_heads"


def check_heads(heads: Mapping[int, nn.Linear] | Iterable[nn.Linear], d: int, owner: str) -> dict[int, nn.Linear]:
    """Return the heads as {k: Linear(k, C)}, checked against the width of the code."""
    pairs = heads.items() if isinstance(heads, Mapping) else ((head.in_features, head) for head in heads)
    found = {int(k): head for k, head in pairs}
    for k, head in found.items():
        if not 1 <= k <= d or head.in_features != k:
            allowed = f"a Linear with {k} inputs, for a prefix in [1, {d}]"
            raise bad_parameter(f"heads[{k}]", owner, allowed, head.in_features)
    if not found:
        raise InvalidInputError(f"{owner} needs at least one head. Got none; give one Linear(k, C) per prefix k.")
    return dict(sorted(found.items()))


def cross_entropy_free_heads(
    z: Tensor,
    heads: Mapping[int, nn.Linear] | Sequence[nn.Linear],
    labels: Tensor,
    *,
    omega: OmegaLike | Tensor = "uniform",
    estimator: str = "exact",
    **options: Any,
) -> Tensor:
    """Return sum_k omega_k CE(head_k(z_{1..k}), labels) over the prefixes that have a head.

    Parameters
    ----------
    z : Tensor of shape (n, d)
    heads : sequence of Linear, or {k: Linear}
        Each head's `in_features` is its prefix length.
    labels : Tensor of shape (n,), integer
    omega : as in `cross_entropy`
        Restricted to the prefixes that have a head, and normalized to sum to one there.
    estimator : "exact"
        "sampled" raises an error: a row would train only the head of the prefix drawn for it.
    **options
        Passed to `torch.nn.functional.cross_entropy`.
    """
    why = "heads share no weights, so one pass would train only the heads that were drawn, each on few rows"
    check_not_sampled(estimator, _OWNER, why)
    check_codes(z, _OWNER)
    found = check_heads(heads, z.shape[1], _OWNER)
    full = weights_of(omega, z.shape[1], _OWNER).omega
    kept = weights_of({k: full[k - 1] for k in found}, z.shape[1], _OWNER).omega
    losses = free_head_losses(z, found, labels, **options)
    return losses @ losses.new_tensor([kept[k - 1] for k in found])


def free_head_losses(z: Tensor, heads: Mapping[int, nn.Linear], labels: Tensor, **options: Any) -> Tensor:
    """Return the loss of each head, in the order of `heads`; differentiable."""
    check_rows(z, labels, "z", "labels", _OWNER)
    logits = [head(z[:, :k]) for k, head in heads.items()]
    return torch.stack([F.cross_entropy(t.float() if t.dtype != torch.float64 else t, labels, **options)
                        for t in logits])  # fmt: skip
