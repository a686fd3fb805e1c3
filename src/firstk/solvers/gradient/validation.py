"""Which rows train and which judge training: the part held out, with weights and where several processes share rows."""

from __future__ import annotations

from typing import Any

import torch

from firstk.exceptions import InvalidInputError


def held_out(
    request: Any, rows: dict[str, Any], generator: Any, weight: Any, on_moments: bool, ranks: Any
) -> dict[str, Any]:
    """Split off the rows on which training is judged; say which of all rows are here, where ranks share them.

    `weight` is that of the rows of all ranks. In training rows are drawn by weight, and so are those held out, once.
    """
    share = request.solver.validation
    patience = request.solver.patience
    if share == "auto":
        wanted = patience not in (None, "auto") or (patience == "auto" and not request.linear)
        share = 0.1 if wanted else 0.0
    here = len(next(iter(rows.values()))) if rows else 0
    first, n = ranks.before(here), int(ranks.sum(torch.tensor(here)))
    numbers = torch.arange(first, first + here)
    if not share or not rows or on_moments:
        alone = not rows or ranks.size == 1
        return {"rows": rows, "weight": weight} | ({} if alone else {"numbers": numbers, "counts": (n, 0)})
    held = round(share * n)
    if not 1 <= held < n:
        raise InvalidInputError(
            f"A share of {share:g} of {n} rows, {held} of them, cannot be held out to judge training by. "
            "Train on all rows: solver=Gradient(validation=0, patience=None)."
        )
    order = torch.randperm(n, generator=generator)
    judged = order[:held] if weight is None else _by_weight(order[:held], weight)
    kept = None if weight is None else weight[order[held:]]
    if ranks.size == 1:
        train, held_rows = ({name: part[i] for name, part in rows.items()} for i in (order[held:], judged))
        return {"rows": train, "held": held_rows, "weight": kept}
    places, by_place = order.argsort()[numbers].sort()
    cut = int(torch.searchsorted(places, held))
    mine = ((judged >= first) & (judged < first + here)).nonzero()[:, 0]
    train, held_rows = ({name: part[i] for name, part in rows.items()} for i in (by_place[cut:], judged[mine] - first))
    return {
        "rows": train,
        "held": held_rows,
        "weight": kept,
        "numbers": places[cut:] - held,
        "held_numbers": mine,
        "counts": (n - held, held),
    }


def _by_weight(held: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Draw as many of these rows again, evenly in proportion to their weights: their plain loss is the weighted one."""
    among, weighty = (int(part.count_nonzero()) for part in (weight[held], weight))
    if not 1 <= among < weighty:
        raise InvalidInputError(
            f"Training and the {len(held)} rows held out to judge it both need rows with weight. Got "
            f"{weighty} of them, {among} held out. Train on all rows: solver=Gradient(validation=0, patience=None)."
        )
    shares = weight[held].double().cumsum(0)
    points = (torch.arange(len(held), dtype=torch.float64) + 0.5) / len(held) * shares[-1]
    return held[torch.searchsorted(shares, points).clamp_max(len(held) - 1)]
