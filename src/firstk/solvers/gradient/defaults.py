"""Values of "auto" in a gradient fit, by the kind of task: all defaults in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from firstk.exceptions import IllegalCombinationError
from firstk.solvers.gradient.settings import Gradient
from firstk.solvers.gradient.task import TrainingTask


@dataclass(frozen=True)
class TrainingPlan:
    """Settings of a run with every "auto" resolved; `batch_size` None is a full batch."""

    optimizer: str
    learning_rate: float
    epochs: int
    batch_size: int | None
    momentum: float
    weight_decay: float
    schedule: str
    clip: float | None
    patience: int | None
    precondition: bool
    tolerance: float

    def deterministic(self, task: TrainingTask) -> bool:
        """Return whether every step has the same loss function."""
        return self.batch_size is None and task.prefix_sum.estimator == "exact" and task.weight is None


def settled(task: TrainingTask, settings: Gradient) -> TrainingPlan:
    """Resolve every "auto" of the solver for this task, and raise an error for invalid combinations."""
    plain = task.ordering.needs_plain_gradient
    full = task.moments or settings.batch_size == "full"
    can_precondition = task.moments and task.free_coordinates and settings.optimizer in ("auto", "sgd")
    precondition = can_precondition if settings.precondition == "auto" else bool(settings.precondition)
    optimizer = settings.optimizer
    linear = task.model.linear
    decay = task.training_loss.weight_decay if linear and not full else 0.0
    if optimizer == "auto":
        smooth = task.moments and not task.ordering.acts_on_codes
        optimizer = "sgd" if plain or precondition else "lbfgs" if smooth else "adamw" if decay else "adam"
    name = task.ordering.name
    if plain and optimizer != "sgd":
        raise IllegalCombinationError(
            f"ordering '{name}' with optimizer '{optimizer}'",
            "its update is not the gradient of a loss, so it cannot be rescaled or given a curvature estimate",
            "optimizer='sgd', with or without momentum",
        )
    if precondition and not can_precondition:
        raise IllegalCombinationError(
            f"precondition=True with ordering '{name}' and optimizer '{optimizer}'",
            "curvature is known for full batches on moments under 'sgd', where the ordering leaves coordinates free",
            "precondition='auto'",
        )
    if optimizer == "lbfgs" and (not full or task.prefix_sum.estimator != "exact"):
        raise IllegalCombinationError(
            f"optimizer 'lbfgs' with ordering '{name}' on batches or drawn prefixes",
            "its curvature estimate needs the same loss at every step",
            "batch_size='full' with an exact ordering, or optimizer='adam'",
        )
    defaults: dict[str, Any] = {
        # Only when it is needed: it may solve an eigenvalue problem.
        "learning_rate": _learning_rate(task, optimizer, precondition) if settings.learning_rate == "auto" else None,
        "weight_decay": decay if optimizer == "adamw" else 0.0,
        "momentum": 0.98 if precondition else 0.9,
        "schedule": "constant" if precondition or plain or optimizer == "lbfgs" else "cosine",
        "patience": None if linear else 5,
        "batch_size": task.training_loss.batch_size if linear else 128,
    }
    own = {name: getattr(settings, name) for name in defaults}
    own = {name: defaults[name] if value == "auto" else value for name, value in own.items()}
    own["batch_size"] = None if full else min(int(own["batch_size"]), task.n)
    own["epochs"] = settings.epochs
    if settings.epochs == "auto" and full:
        own["epochs"] = 1000 if precondition else 300 if optimizer == "lbfgs" else 3000  # 1 L-BFGS step: 20 iterations
    elif settings.epochs == "auto":
        own["epochs"] = passes(task, own["batch_size"])
    own["patience"] = own["patience"] if task.held else None
    return TrainingPlan(
        optimizer=optimizer,
        precondition=precondition,
        clip=settings.clip,
        tolerance=settings.tolerance,
        **own,
    )


def passes(task: TrainingTask, batch_size: int) -> int:
    """Return the number of passes over the rows: fewer if rows are many and enough steps are made, more if few."""
    loss, per_epoch = task.training_loss, max(1, task.n // batch_size)
    usual = min(loss.epochs, max(loss.fewest_epochs, -(-loss.enough_steps // per_epoch))) if task.model.linear else 20
    return max(usual, -(-loss.steps // per_epoch))


def _learning_rate(task: TrainingTask, optimizer: str, precondition: bool) -> float:
    """Return half a Newton step, or a share of the limit set by the largest eigenvalue, or Adam's usual rate."""
    if precondition:
        return 0.5
    if optimizer == "lbfgs":
        return 1.0
    if optimizer == "sgd":
        if task.gram is None:
            return 0.05
        # A loss averaged over rows has curvature near 4 sigma_1^2; a fifth of the stable step allows for momentum.
        return 0.05 / float(torch.linalg.eigvalsh(task.gram)[-1])
    return task.training_loss.learning_rate if task.model.linear else 1e-3
