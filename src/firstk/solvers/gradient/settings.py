"""The gradient solver: settings of the training loop, which is imported together with torch only when it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from firstk._base.checks import bad_parameter, check_choice, is_int, is_real, require
from firstk._base.json_records import settings_of
from firstk._base.progress import Verbose
from firstk.contracts import FitRequest, MomentObjective, Objective, Ordering
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.record import FitRecord
from firstk.exceptions import IllegalCombinationError, InvalidInputError

if TYPE_CHECKING:
    from firstk.solvers.gradient.loop import TrainingOutcome
    from firstk.solvers.gradient.task import TrainingTask

OPTIMIZERS = ("adam", "adamw", "lbfgs", "sgd")


@dataclass(frozen=True)
class Gradient:
    """Gradient training for any objective, ordering and network. Values "auto" depend on the kind of problem.

    On moments (full batch, linear encoder, squared errors and ratio traces) the default is SGD with Nesterov momentum
    on gradients divided by the curvature of each coordinate; Adam where an ordering does not allow that, and on rows.

    Parameters
    ----------
    optimizer : {"auto", "adam", "adamw", "sgd", "lbfgs"}
        "sgd" has Nesterov momentum; "lbfgs" is for full batches.
    learning_rate : float or "auto"
    epochs : int or "auto"
        Passes over the rows; for full batches, steps.
    batch_size : int, "full" or "auto"
        "full" with a linear encoder trains on moments where the objective allows it.
    momentum : float in [0, 1) or "auto"
    weight_decay : float or "auto"
        "auto": zero, except for classification with a linear encoder, where it is decoupled (AdamW).
    schedule : {"auto", "constant", "cosine"}
        "cosine" decreases the learning rate to zero over the run.
    clip : float, optional
        Maximum norm of the gradient.
    patience : int, "auto" or None
        Stop after this many epochs without a better validation loss, and keep the best state. "auto": 5 with a
        nonlinear network, else None. None: run all epochs.
    validation : float in [0, 1) or "auto"
        Share of the rows held out for validation; "auto": 0.1 if `patience` is set, else 0.
    whiten : bool or "auto"
        Train in coordinates in which the objective's metric N is the identity: same optimum, faster convergence.
        "auto": wherever the result is otherwise the same.
    precondition : bool or "auto"
        Divide gradients by the curvature of each coordinate; "auto": when training on moments with "sgd".
    dtype : {"auto", "float32", "float64"}
        "auto": float64 on moments, float32 on rows.
    tolerance : float
        A full-batch run stops when the relative change of the loss over fifty steps is below this; negative: never.
    trace_every : int or "auto"
        Steps (epochs, with batches) between entries of ``trace_``; "auto": 10 steps, with batches every epoch.
    watch : callable, optional
        Called for every entry of ``trace_`` with the encoder B (d, p) and the decoder or head (q, d) or None, copies in
        float64; returns {name: number} to add to the entry. For linear encoders.
    canonical : bool
        Transform the result into the canonical form (docs/theory.md, section 2). False keeps axes, decoder and head
        as trained, up to signs, for studies of training itself.
    checkpoint : path, optional
        Folder for a checkpoint, replaced by an atomic write.
    checkpoint_every : int
        Steps (epochs, with batches) between checkpoints.
    resume : bool
        Continue from the checkpoint if there is one: the result is identical to that of an uninterrupted run. Needs
        the same ``random_state`` in both runs.
    """

    optimizer: str = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    epochs: int | Literal["auto"] = "auto"
    batch_size: int | Literal["full", "auto"] = "auto"
    momentum: float | Literal["auto"] = "auto"
    weight_decay: float | Literal["auto"] = "auto"
    schedule: str = "auto"
    clip: float | None = None
    patience: int | Literal["auto"] | None = "auto"
    validation: float | Literal["auto"] = "auto"
    whiten: bool | Literal["auto"] = "auto"
    precondition: bool | Literal["auto"] = "auto"
    dtype: str = "auto"
    tolerance: float = 1e-13
    trace_every: int | Literal["auto"] = "auto"
    watch: Callable[[Any, Any], dict[str, float]] | None = None
    canonical: bool = True
    checkpoint: str | Path | None = None
    checkpoint_every: int = 100
    resume: bool = False

    name: ClassVar[str] = "gradient"
    trains: ClassVar[bool] = True
    precision = "auto"

    @property
    def shows_coordinates(self) -> bool:
        """Whether `watch` is given, which takes weights in data coordinates."""
        return self.watch is not None

    def check(self) -> None:
        """Raise an error for settings that are out of range."""
        owner = "Gradient"
        check_choice(self.optimizer, ("auto", *OPTIMIZERS), "optimizer", owner)
        check_choice(self.schedule, ("auto", "constant", "cosine"), "schedule", owner)
        check_choice(self.dtype, ("auto", "float32", "float64"), "dtype", owner)
        for name in ("whiten", "precondition"):
            if getattr(self, name) not in (True, False, "auto"):
                raise bad_parameter(name, owner, "True, False or 'auto'", getattr(self, name))
        if not isinstance(self.canonical, bool):
            raise bad_parameter("canonical", owner, "True or False", self.canonical)
        if self.watch is not None and not callable(self.watch):
            raise bad_parameter("watch", owner, "a function of encoder and decoder, or None", self.watch)
        _check_positive(self, ("learning_rate",), whole=False, auto=True)
        _check_positive(self, ("epochs", "trace_every"), whole=True, auto=True)
        _check_positive(self, ("checkpoint_every",), whole=True, auto=False)
        if self.batch_size != "full":
            _check_positive(self, ("batch_size",), whole=True, auto=True)
        if self.patience is not None:
            _check_positive(self, ("patience",), whole=True, auto=True)
        if self.weight_decay != "auto" and not (is_real(self.weight_decay) and self.weight_decay >= 0):
            raise bad_parameter("weight_decay", owner, "a number that is not negative, or 'auto'", self.weight_decay)
        for name in ("momentum", "validation"):
            value = getattr(self, name)
            if value != "auto" and not (is_real(value) and 0 <= value < 1):
                raise bad_parameter(name, owner, "a number in [0, 1) or 'auto'", value)
        if not is_real(self.tolerance):
            raise bad_parameter("tolerance", owner, "a number", self.tolerance)
        if self.checkpoint is not None and not isinstance(self.checkpoint, (str, os.PathLike)):
            raise bad_parameter("checkpoint", owner, "a path or None", self.checkpoint)
        if self.clip is not None and not (is_real(self.clip) and self.clip > 0):
            raise bad_parameter("clip", owner, "a positive number or None", self.clip)
        if self.resume and self.checkpoint is None:
            raise InvalidInputError("Gradient(resume=True) needs checkpoint, the folder to continue from. Got None.")
        if is_int(self.patience) and self.validation == 0:
            raise IllegalCombinationError(
                f"Gradient(patience={self.patience}, validation=0)",
                "patience needs a validation loss, and no rows are held out",
                "validation='auto' or a share such as 0.1, or patience=None",
            )
        if self.optimizer == "lbfgs" and is_int(self.batch_size):
            raise IllegalCombinationError(
                f"Gradient(optimizer='lbfgs', batch_size={self.batch_size})",
                "its curvature estimate needs the same loss at every step",
                "batch_size='full', or optimizer='adam'",
            )

    def check_combination(self, objective: Objective, ordering: Ordering, network: object) -> None:
        """Raise an error if the ordering's hooks are not defined for the objective or the network."""
        pair = f"objective '{objective.name}' with ordering '{ordering.name}'"
        if isinstance(objective, MomentObjective):
            raise IllegalCombinationError(
                f"objective '{objective.name}' with solver 'gradient'",
                "its loss is of moments, with linear encoders and orderings that only weight prefixes",
                "solver='quasi_newton' or 'auto', or objective='classification', which networks learn too",
            )
        if ordering.needs_linear_encoder and network != "linear":
            raise IllegalCombinationError(
                f"ordering '{ordering.name}' with a nonlinear network",
                "it acts on the rows of an encoder matrix",
                "network='linear', or ordering='full_prefix'",
            )
        if ordering.needs_decoder and objective.conventions.scaling != "orthonormal":
            raise IllegalCombinationError(
                pair, "it is defined for a decoder that reconstructs the input", "objective='reconstruction'"
            )
        if ordering.penalizes_scale and objective.scale_free:
            raise IllegalCombinationError(
                pair,
                "the objective does not depend on the scale of the code, so the penalty would shrink the code to zero",
                "ordering='full_prefix'; for the baselines of full-prefix learning, Fisher(code_eps=1e-4)",
            )

    def check_streamable(self, objective: Objective, ordering: Ordering, network: object, what: str) -> None:
        """Raise an error if training needs the rows themselves."""
        require("torch", "torch", "Training by gradient")
        from firstk.solvers.gradient.build import check_streamable

        check_streamable(self, objective, ordering, network, what)

    def solve(self, request: FitRequest) -> FittedEncoder:
        """Train from the axes of the request's pencil, or from the initial weights given by `init`."""
        require("torch", "torch", "Training by gradient")
        from firstk.solvers.gradient.build import build, with_axes
        from firstk.solvers.gradient.finish import fitted

        request = with_axes(request)
        task = build(request, self)
        outcome = self.train(task, request.seed, request.verbose)
        request.statistics.trace = outcome.trace
        record = FitRecord(
            solver_settings=settings_of(outcome.plan),
            estimator=task.prefix_sum.estimator,
            ended=outcome.stop_reason,
            epochs=outcome.epochs,
        )
        return fitted(request, self, task, record)

    def train(self, task: TrainingTask, seed: int, progress: Verbose = False) -> TrainingOutcome:
        """Train a task and return the outcome; see `firstk.solvers.gradient.loop`."""
        from firstk.solvers.gradient.loop import run

        return run(task, self, seed, progress)


def _check_positive(settings: Gradient, names: tuple[str, ...], *, whole: bool, auto: bool) -> None:
    for name in names:
        value = getattr(settings, name)
        if auto and isinstance(value, str) and value == "auto":
            continue
        if not (is_int(value) if whole else is_real(value)) or value <= 0:
            kind = "a positive int" if whole else "a positive number"
            raise bad_parameter(name, "Gradient", kind + (" or 'auto'" if auto else ""), value)
