"""Distributed fits with torch.distributed under ``torchrun``, where each process has its own rows.

Statistics are merged over processes, which is enough for closed forms and training on moments. Training on rows uses
the same batches as a single process with all rows, and sums gradients; losses that compare rows with one another
gather codes first. So the result does not depend on the number of processes, except for rounding, and a checkpoint can
be resumed with another number. Needs the extra "torch".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from firstk._base.checks import require

require("torch", "torch", "firstk.integrations.distributed")

# ruff: noqa: E402 - the extra is named before torch is imported
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike
from torch import Tensor, nn

from firstk._base import arrays as _arrays
from firstk.data.task import Pairs, Rows
from firstk.estimator.prefix_encoder import PrefixEncoder
from firstk.estimator.problem import Problem
from firstk.exceptions import InvalidInputError
from firstk.moments.statistics import Statistics
from firstk.moments.stream import merged
from firstk.solvers.gradient.processes import SingleProcess

__all__ = ["fit", "fit_pairs", "group", "save"]

T = TypeVar("T")


class _GatheredRows(torch.autograd.Function):
    """All rows in every process; backward sums the gradients of a row over processes and sends them to its process."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, processes: ProcessGroup) -> Tensor:
        parts = processes.all_gather(part)
        ctx.processes, ctx.count = processes, len(part)
        ctx.start = sum(len(each) for each in parts[: processes.rank])
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.processes.sum(upstream.contiguous())[ctx.start : ctx.start + ctx.count], None


class ProcessGroup(SingleProcess):
    """The processes of torch's default group."""

    def __init__(self) -> None:
        if not dist.is_available() or not dist.is_initialized():
            raise InvalidInputError(
                "torch.distributed has no process group. Run the script with torchrun, and put the fit into "
                "'with firstk.integrations.distributed.group():'."
            )
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        on_gpu = dist.get_backend() == "nccl"
        self.device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")

    def all_gather_rows(self, part: Tensor) -> Tensor:
        """Concatenate the rows of all processes, with gradients."""
        return _GatheredRows.apply(part, self)

    def before(self, rows: int) -> int:
        """Return the number of rows of a batch that are held by processes of lower rank."""
        return sum(self._counts(rows)[: self.rank])

    def _counts(self, rows: int) -> list[int]:
        counts = [torch.zeros(1, dtype=torch.int64, device=self.device) for _ in range(self.size)]
        dist.all_gather(counts, torch.tensor([rows], device=self.device))
        return [int(count) for count in counts]

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of a tensor over processes, without gradient."""
        total = value.detach().to(self.device, copy=True)
        dist.all_reduce(total)
        return total.to(value.device)

    def sum_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Sum the gradients over processes, in place, in one message."""
        trained = [part for part in parameters if part.requires_grad]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in trained])
        flat, start = self.sum(flat), 0
        for part in trained:
            if part.grad is not None:
                part.grad.copy_(flat[start : start + part.numel()].view_as(part))
            start += part.numel()

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return bool(self.sum(torch.tensor([float(flag)])) > 0)

    def all_gather(self, part: Tensor) -> list[Tensor]:
        """Gather one tensor, of any length, from each process, without gradient; shorter ones are sent padded."""
        counts = self._counts(len(part))
        own = part.detach().to(self.device)
        padded = own.new_zeros((max(counts), *own.shape[1:]))
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        return [each[:count].to(part.device) for each, count in zip(parts, counts, strict=True)]

    def broadcast_parameters(self, model: nn.Module) -> None:
        """Copy the parameters of the first process to all, because rounding differs between kinds of processors."""
        for part in model.state_dict().values():
            there = part.to(self.device)
            dist.broadcast(there, 0)
            part.copy_(there)

    def broadcast_object(self, thing: T) -> T:
        """Return the object of the first process."""
        box = [thing]
        dist.broadcast_object_list(box, 0, device=self.device)
        return box[0]

    @contextmanager
    def normalizing(self, model: nn.Module) -> Iterator[None]:
        """Make batch normalization use the rows of all processes, by gathering activations before each layer."""
        layers = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
        own: dict[nn.Module, slice] = {}

        def before(layer: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            if not layer.training:
                return None
            first = self.before(len(inputs[0]))
            own[layer] = slice(first, first + len(inputs[0]))
            return (self.all_gather_rows(inputs[0]), *inputs[1:])

        def after(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            return output[own[layer]] if layer.training else output

        hooks = [layer.register_forward_pre_hook(before) for layer in layers]
        hooks += [layer.register_forward_hook(after) for layer in layers]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def merged(self, statistics: Statistics) -> Statistics:
        """Return the statistics of the rows of all processes, in the order of their ranks."""
        payload = bytearray(_arrays.to_bytes(statistics.to_arrays()))
        sent = self.all_gather(torch.frombuffer(payload, dtype=torch.uint8))
        parts = [_arrays.from_bytes(each.numpy().tobytes(), "The message of a process")[0] for each in sent]
        found = merged([Statistics.from_arrays(part) for part in parts])
        assert found is not None
        return found


@contextmanager
def group(backend: str | None = None) -> Iterator[ProcessGroup]:
    """Join the process group started by ``torchrun``, with nccl if there are GPUs, else gloo.

    Parameters
    ----------
    backend : str, optional
        As in ``torch.distributed.init_process_group``.
    """
    if dist.is_initialized():
        yield ProcessGroup()
        return
    if "RANK" not in os.environ:
        raise InvalidInputError("This script was not started by torchrun. Run torchrun --nproc-per-node 2 script.py.")
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group(backend or ("nccl" if on_gpu else "gloo"))
    try:
        yield ProcessGroup()
    finally:
        dist.destroy_process_group()


def fit(
    encoder: PrefixEncoder, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> PrefixEncoder:
    """Fit on the rows of all processes; each calls this with an encoder of the same settings and its own rows.

    Parameters
    ----------
    encoder : PrefixEncoder
        With a ``random_state``, the same in every process.
    X, y, sample_weight
        As in ``PrefixEncoder.fit``: this process's rows.

    Returns
    -------
    PrefixEncoder
        The encoder, fitted, in every process; `save` it once.
    """
    return encoder.fit_problem(_shared(encoder, pairs=False), Rows(X, y, sample_weight))


def fit_pairs(
    encoder: PrefixEncoder, left: ArrayLike, right: ArrayLike, scores: ArrayLike | None = None
) -> PrefixEncoder:
    """Fit on the pairs of all processes; see `fit`."""
    return encoder.fit_problem(_shared(encoder, pairs=True), Pairs(left, right, scores))


def _shared(encoder: PrefixEncoder, pairs: bool) -> Problem:
    """Return the problem for all processes, with the seed of the first."""
    processes, problem = ProcessGroup(), encoder.problem(pairs=pairs).seeded()
    shown = problem.verbose and not processes.rank
    return replace(problem, processes=processes, seed=processes.broadcast_object(problem.seed), verbose=shown)


def save(encoder: PrefixEncoder, path: str | Path, **facts: Any) -> None:
    """Save a fitted encoder once: the first process writes, the others wait."""
    processes = ProcessGroup()
    if not processes.rank:
        encoder.save(path, **facts)
    dist.barrier()
