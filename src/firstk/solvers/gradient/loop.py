"""The training loop. It calls the ordering's hooks in a fixed order, without a special case for any ordering.

A step: encode; perturb; losses of the prefixes, weighted; penalty; backward; correct; clip; update; retract.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from firstk._base.concurrency import interruptible
from firstk._base.progress import Verbose, progress_bar
from firstk.exceptions import TrainingDivergedError, TrainingWarning
from firstk.solvers.gradient import checkpoint as _checkpoint
from firstk.solvers.gradient.defaults import TrainingPlan, settled
from firstk.solvers.gradient.networks import LinearEncoder, global_seed
from firstk.solvers.gradient.settings import Gradient
from firstk.solvers.gradient.task import TrainingTask

# A loss this many times its initial value counts as diverged.
_DIVERGED = 1e6
_WINDOW = 50
# Multiply-adds of a step's encoding up to which torch keeps to one thread: a linear encoder of 768 columns and 64
# coordinates takes 3.0 ms of processor time for a batch of 128 on one thread, and 4.8 on two.
_SMALL_STEP = 1 << 24
# Recorded in checkpoints and saved models when a run ended because all epochs were done.
_COMPLETED = "done"


@dataclass
class TrainingOutcome:
    """Result of a run: the trace, the number of epochs (steps, for full batches) and the reason why it stopped."""

    trace: list[dict[str, float]]
    epochs: int
    stop_reason: str
    plan: TrainingPlan


@dataclass
class _RunState:
    """State of a run besides the model and the optimizer; all of it is stored in checkpoints."""

    epoch: int = 0
    step: int = 0
    best: float = math.inf
    waiting: int = 0
    first: float | None = None
    kept: dict[str, Tensor] | None = None
    recent: list[float] = field(default_factory=list)
    trace: list[dict[str, float]] = field(default_factory=list)
    stop_reason: str | None = None


def run(task: TrainingTask, settings: Gradient, seed: int, progress: Verbose = False) -> TrainingOutcome:
    """Train `task.model` in place and return the outcome."""
    plan = settled(task, settings)
    seeded = global_seed(seed + task.processes.rank) if _draws_globally(task) else nullcontext()
    threads = _one_thread() if _has_small_steps(task, plan) else nullcontext()
    with seeded, threads, interruptible() as interrupted, task.processes.normalizing(task.model):
        return _Run(task, plan, settings, seed, interrupted).go(progress)


def _has_small_steps(task: TrainingTask, plan: TrainingPlan) -> bool:
    """Tell whether the products of a step are so small that handing them to other threads costs more than it gains."""
    if plan.batch_size is None or any(part.device.type != "cpu" for part in task.model.parameters()):
        return False
    return plan.batch_size * sum(part.numel() for part in task.model.encoder.parameters()) <= _SMALL_STEP


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch work on one thread, and on as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Run:
    """A run in progress."""

    def __init__(
        self, task: TrainingTask, plan: TrainingPlan, settings: Gradient, seed: int, interrupted: threading.Event
    ):
        self.task, self.plan, self.settings, self.interrupted = task, plan, settings, interrupted
        self.parameters = list(task.model.parameters())
        rate, decay, momentum = plan.learning_rate, plan.weight_decay, plan.momentum
        self.optimizer: torch.optim.Optimizer
        if plan.optimizer == "lbfgs":
            self.optimizer = torch.optim.LBFGS(
                self.parameters,
                lr=rate,
                max_iter=20,
                tolerance_grad=1e-12,
                tolerance_change=1e-15,
                history_size=50,
                line_search_fn="strong_wolfe",
            )
        elif plan.optimizer == "sgd":
            nesterov = momentum > 0
            self.optimizer = torch.optim.SGD(
                self.parameters, lr=rate, momentum=momentum, nesterov=nesterov, weight_decay=decay
            )
        elif plan.optimizer == "adamw":
            # Fused: the default loop of small operations takes a sixth of a step.
            self.optimizer = torch.optim.AdamW(self.parameters, lr=rate, weight_decay=decay, fused=True)
        else:
            self.optimizer = torch.optim.Adam(self.parameters, lr=rate, weight_decay=decay)
        # A step without autograd, where nothing but the loss decides on gradients and one thread is enough.
        alone = task.processes.size == 1 and task.numbers is None and _has_small_steps(task, plan)
        plain = alone and getattr(task.ordering, "leaves_gradients", False)
        self.direct = task.training_loss.direct(task.model, task.prefix_sum) if plain else None
        self.generator = task.prefix_sum.generator
        self.deterministic = plan.deterministic(task)
        self.at = _RunState()
        self.began = time.perf_counter()
        self.mark = ""
        task.processes.broadcast_parameters(task.model)
        if settings.checkpoint is not None:
            self.mark = _mark(task, plan, seed)
        if settings.resume:
            self._restore()

    def go(self, progress: Verbose) -> TrainingOutcome:
        """Run to the end, and load the best state into the model."""
        self.task.model.train()
        unit = "step" if self.plan.batch_size is None else "epoch"
        with progress_bar(self.plan.epochs, "training", unit, progress, self.at.epoch) as done:
            while self.at.epoch < self.plan.epochs and self.at.stop_reason is None:
                loss = self._epoch()
                wanted = self.settings.trace_every
                every = (10 if self.plan.batch_size is None else 1) if wanted == "auto" else int(wanted)
                if not self.at.epoch % every or self.at.epoch == 1:
                    entry = {"epoch": float(self.at.epoch), "loss": loss, "seconds": time.perf_counter() - self.began}
                    if self.task.held:
                        entry["best_validation"] = self.at.best
                    for measured in self.task.watched:
                        entry |= measured(self.task.model)
                    self.at.trace.append(entry)
                done(loss=f"{loss:.6g}")
                self.at.stop_reason = self._stop_reason(loss)
                # A checkpoint, if one is due, includes the trace and the stop reason of the epoch.
                every = self.settings.checkpoint_every if self.plan.batch_size is None else 1
                if self.settings.checkpoint is not None and self.at.epoch % every == 0:
                    self._save()
        if self.at.kept is not None:
            self.task.model.load_state_dict(self.at.kept)
        self.task.model.eval()
        if self.at.stop_reason == "interrupted":
            warnings.warn(
                f"Training was interrupted at epoch {self.at.epoch} of {self.plan.epochs}; "
                "the best state so far is kept.",
                TrainingWarning,
                stacklevel=2,
            )
        return TrainingOutcome(self.at.trace, self.at.epoch, self.at.stop_reason or _COMPLETED, self.plan)

    # -- one epoch: a pass over batches, or one full-batch step ------------------------------------------------

    def _epoch(self) -> float:
        before = _copied(self.task.model) if self.deterministic else None
        losses = [self._step(index) for index in self._batches()]
        loss = sum(losses) / len(losses)
        if self.at.first is None:
            self.at.first = losses[0]  # before any update
        if not (math.isfinite(loss) and abs(loss) <= _DIVERGED * max(abs(self.at.first), 1.0)):
            rate = self.plan.learning_rate
            raise TrainingDivergedError(
                f"Training diverged at step {self.at.step}: the loss is {loss:.3g}, from {self.at.first:.3g} at the "
                f"start. The learning rate {rate:g} of optimizer '{self.plan.optimizer}' is too large: try "
                f"Gradient(learning_rate={rate / 10:g}), or clip gradients with clip=1.0."
            )
        if before is not None and loss < self.at.best:
            self.at.best, self.at.kept = loss, before
        elif self.task.held:
            held = self.task.held_loss()
            if held < self.at.best:
                self.at.best, self.at.kept, self.at.waiting = held, _copied(self.task.model), 0
            else:
                self.at.waiting += 1
        self.at.epoch += 1
        return loss

    def _batches(self) -> Iterator[Tensor | None]:
        size, n = self.plan.batch_size, self.task.n
        if size is None:
            yield None if self.task.weight is None or not n else self._order(n)
            return
        order = self._order(n)
        # An incomplete last batch is dropped; every epoch has another order of the rows.
        for start in range(0, n - size + 1, size):
            yield order[start : start + size]

    def _order(self, n: int) -> Tensor:
        slices = torch.randperm(n, generator=self.generator)
        if self.task.weight is None:
            return slices
        points = (slices + torch.rand(n, generator=self.generator, dtype=torch.float64)) / n
        shares = self.task.weight.cumsum(0) / self.task.weight.sum()
        return torch.searchsorted(shares, points).clamp_max(n - 1)

    def _step(self, index: Tensor | None) -> float:
        part, rate = self.task.part(index), self.plan.learning_rate
        if self.plan.schedule == "cosine":
            per_epoch = 1 if self.plan.batch_size is None else max(1, self.task.n // self.plan.batch_size)
            rate *= 0.5 * (1 + math.cos(math.pi * self.at.step / (self.plan.epochs * per_epoch)))
        for group in self.optimizer.param_groups:
            group["lr"] = rate

        def closure() -> Tensor:
            self.optimizer.zero_grad()
            code = self.task.encode(part.rows)
            view = self.task.view(code, part)
            view.code = self.task.ordering.perturb(view)
            loss = self.task.loss(view.code, part) + self.task.penalty(view, part)
            loss.backward()
            self.task.processes.sum_gradients(self.parameters)
            self.task.ordering.correct(view)
            self._shape_gradients()
            return self.task.processes.sum(loss.detach())

        if self.direct is None:
            # torch annotates `step` with closures that return floats.
            loss = float(self.optimizer.step(closure))  # type: ignore[arg-type]
        else:
            loss = self.direct(part.rows)
            self._shape_gradients()
            self.optimizer.step()
        self.task.ordering.retract(self.task.view(None))
        if self.plan.precondition:
            self.task.training_loss.regauge(self.task.model)
        self.at.step += 1
        return loss

    def _shape_gradients(self) -> None:
        if self.plan.precondition:
            self.task.training_loss.precondition(self.task.model, self.task.prefix_sum)
        for part in self.parameters:
            if part.grad is not None and not part.grad.is_contiguous():
                part.grad = part.grad.contiguous()
        if self.plan.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.plan.clip)

    def _stop_reason(self, loss: float) -> str | None:
        """Return the reason to stop after this epoch, or None to continue."""
        if self.task.processes.any(self.interrupted.is_set()):
            return "interrupted"
        if self.plan.patience is not None and self.at.waiting >= self.plan.patience:
            return "no better validation loss"
        if self.deterministic:
            window = _WINDOW if self.plan.optimizer != "lbfgs" else 3
            self.at.recent = [*self.at.recent[-window:], loss]
            moved = max(self.at.recent) - min(self.at.recent)
            if len(self.at.recent) > window and moved <= self.plan.tolerance * max(abs(loss), 1e-300):
                return "converged"
        return None

    # -- checkpoints -------------------------------------------------------------------------------------------

    def _save(self) -> None:
        at = dict(vars(self.at))
        state = {
            "at": at | {"ended": at.pop("stop_reason") or _COMPLETED},
            "model": self.task.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "global": self.task.processes.all_gather(torch.get_rng_state()),
        }
        if not self.task.processes.rank:
            _checkpoint.write(self.settings.checkpoint, state, self.mark)  # type: ignore[arg-type]

    def _restore(self) -> None:
        processes, folder = self.task.processes, self.settings.checkpoint
        assert folder is not None
        state = processes.broadcast_object(None if processes.rank else _checkpoint.read(folder, self.mark))
        if state is None:
            return
        try:
            at = dict(state["at"])
            ended = at.pop("ended")
            self.at = _RunState(stop_reason=None if ended in (_COMPLETED, "interrupted") else ended, **at)
            self.task.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.generator.set_state(state["generator"])
            # A generator state of another number of processes cannot be used: dropout then continues with other draws.
            if _draws_globally(self.task) and len(state["global"]) == processes.size:
                torch.set_rng_state(state["global"][processes.rank])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
            raise _checkpoint.misfit(folder, error) from None


def _draws_globally(task: TrainingTask) -> bool:
    """Return whether the model may draw from torch's global generator, as dropout does; a linear encoder does not."""
    return not isinstance(task.model.encoder, LinearEncoder)


def _mark(task: TrainingTask, plan: TrainingPlan, seed: int) -> str:
    """Return the fingerprint of this run, which does not depend on the number of processes."""
    settings = (plan, task.ordering, task.training_loss.__class__.__name__)
    if task.processes.size > 1 or task.data:
        return _checkpoint.fingerprint((*settings, task.data, task.n), seed, {})
    given = {**task.rows, **task.model.state_dict()} | ({} if task.gram is None else {"gram": task.gram})
    return _checkpoint.fingerprint(settings, seed, given)


def _copied(model: Any) -> dict[str, Tensor]:
    return {name: part.detach().clone() for name, part in model.state_dict().items()}
