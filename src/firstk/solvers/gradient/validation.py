"""Split into training and validation rows, with sample weights and for several processes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from firstk.exceptions import InvalidInputError
from firstk.solvers.gradient.processes import SingleProcess


def held_out(
    share: float, rows: dict[str, Tensor], generator: torch.Generator, weight: Tensor | None, processes: SingleProcess
) -> dict[str, Any]:
    """Return the rows, weights and numbers of a `Task`, with a share of the rows split off for validation.

    `weight` holds the sample weights of the rows of all processes. Training rows are drawn by weight in every epoch,
    held-out rows once.
    """
    here = len(next(iter(rows.values()))) if rows else 0
    first, n = processes.before(here), int(processes.sum(torch.tensor(here)))
    numbers = torch.arange(first, first + here)
    if not share or not rows:
        alone = not rows or processes.size == 1
        return {"rows": rows, "weight": weight} | ({} if alone else {"numbers": numbers, "counts": (n, 0)})
    held = round(share * n)
    if not 1 <= held < n:
        raise InvalidInputError(
            f"A share of {share:g} of {n} rows, {held} of them, cannot be held out for validation. "
            "Train on all rows: solver=Gradient(validation=0, patience=None)."
        )
    order = torch.randperm(n, generator=generator)
    chosen = order[:held]
    if weight is not None:  # resampled in proportion to weights, so that the plain loss estimates the weighted one
        among, weighty = (int(part.count_nonzero()) for part in (weight[chosen], weight))
        if not 1 <= among < weighty:
            raise InvalidInputError(
                f"Training and the {held} rows held out for validation both need rows with weight. Got {weighty} of "
                f"them, {among} held out. Train on all rows: solver=Gradient(validation=0, patience=None)."
            )
        shares = weight[chosen].double().cumsum(0)
        points = (torch.arange(held, dtype=torch.float64) + 0.5) / held * shares[-1]
        chosen = chosen[torch.searchsorted(shares, points).clamp_max(held - 1)]
    kept = None if weight is None else weight[order[held:]]
    if processes.size == 1:
        train, held_rows = ({name: part[i] for name, part in rows.items()} for i in (order[held:], chosen))
        return {"rows": train, "held": held_rows, "weight": kept}
    places, by_place = order.argsort()[numbers].sort()
    cut = int(torch.searchsorted(places, held))
    mine = ((chosen >= first) & (chosen < first + here)).nonzero()[:, 0]
    train, held_rows = ({name: part[i] for name, part in rows.items()} for i in (by_place[cut:], chosen[mine] - first))
    return {
        "rows": train,
        "held": held_rows,
        "weight": kept,
        "numbers": places[cut:] - held,
        "held_numbers": mine,
        "counts": (n - held, held),
    }
