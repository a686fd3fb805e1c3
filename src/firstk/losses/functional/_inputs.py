"""Input checks shared by the full-prefix losses: precision, prefix weights and choice of backend.

Losses are computed in float32 or float64 even under autocast: a sum over thousands of exponentials in
bfloat16 is too inaccurate. Gradients are returned in the dtype of the inputs.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
import torch._dynamo.decorators
from torch import Tensor

from firstk._base.checks import bad_parameter, check_choice, numba_may_compile, require_compiled
from firstk._base.prefix_weights import OmegaLike, PrefixWeights, resolve_omega
from firstk.exceptions import IllegalCombinationError, InvalidInputError

ESTIMATORS = ("exact", "sampled")
ALL_ESTIMATORS = ("auto", "exact", "drawn", "sampled")
# Up to so many (row, prefix, column) triples "auto" sums exactly: about a third of a second on one core of a CPU. Other
# devices are an estimate from bytes moved, not measured.
_EXACT = {"cpu": 1 << 28}
BACKENDS = ("auto", "compiled", "triton", "torch")


_leaf_function = getattr(torch._dynamo.decorators, "leaf_function", None)
Function = TypeVar("Function", bound=Callable[..., Any])


def untraced(function: Function) -> Function:
    """Run a loss eagerly under torch.compile: the surrounding network is compiled, with one graph break here.

    A sweep over prefixes is already one kernel. Tracing would unroll it into thousands of nodes without making it
    faster, and the numpy code that resolves omega cannot be traced.
    """
    return torch.compiler.disable(function)


def one_node(forward: Function) -> Function:
    """Make the forward method of a loss one opaque node of torch.compile, which runs eagerly: no graph break.

    torch before 2.11 has no such nodes and breaks the graph.
    """
    if _leaf_function is None:
        return untraced(forward)

    @_leaf_function
    def leaf(module: torch.nn.Module, *inputs: Any, **options: Any) -> tuple[Tensor]:
        return (forward(module, *inputs, **options),)

    @leaf.register_fake
    def _(module: torch.nn.Module, *inputs: Any, **options: Any) -> tuple[Tensor]:
        floats = [part for part in inputs if isinstance(part, Tensor) and part.is_floating_point()]
        shape = inputs[0].shape[:-1] if getattr(module, "reduction", None) == "none" else ()
        return (floats[0].new_empty(shape, dtype=working_dtype(*floats)),)

    @functools.wraps(forward)
    def chosen(self: torch.nn.Module, *inputs: Any, **options: Any) -> Tensor:
        return leaf(self, *inputs, **options)[0] if torch.compiler.is_compiling() else forward(self, *inputs, **options)

    return chosen  # type: ignore[return-value]


def working_dtype(*tensors: Tensor | None) -> torch.dtype:
    """Return the common float type of the tensors, float32 at least."""
    dtype = torch.float32
    for tensor in tensors:
        if tensor is not None:
            dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def promoted(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Bring tensors to their common working dtype; the casts are differentiable."""
    dtype = working_dtype(*tensors)
    return tuple(tensor.to(dtype) for tensor in tensors)


@contextlib.contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Disable autocast, so that matrix products keep the working dtype."""
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        with torch.autocast(device.type, enabled=False):
            yield
    else:
        yield


def host_reads(z: Tensor) -> bool:
    """Return whether numbers can be read without waiting for a device: not on a GPU, of a meta or of a fake tensor."""
    return z.device.type == "cpu" and type(z) in (Tensor, torch.nn.Parameter)


def described(value: object) -> str:
    """Return what an error message says was given: dtype and shape of a tensor, else the type."""
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def check_codes(z: object, owner: str, name: str = "z", *, width: int | None = None) -> Tensor:
    """Return `z` if it is a floating tensor of shape (n, d)."""
    if isinstance(z, torch.nn.Module):
        raise InvalidInputError(f"{owner} takes the weight of a head as '{name}', not the module: pass head.weight.")
    if not isinstance(z, Tensor) or not z.dtype.is_floating_point:
        raise bad_parameter(name, owner, "a floating-point tensor", described(z))
    if z.ndim != 2 or z.shape[1] == 0:
        raise InvalidInputError(
            f"{owner} takes '{name}' of shape (rows, coordinates) with at least one coordinate. "
            f"Got shape {tuple(z.shape)}; flatten leading axes with z.flatten(0, -2)."
        )
    if width is not None and z.shape[1] != width:
        raise InvalidInputError(
            f"{owner} takes '{name}' with {width} coordinates, as the codes have. Got {z.shape[1]}."
        )
    return z


def check_given(value: Tensor | None, name: str, owner: str, call: str) -> Tensor:
    """Return an argument that must be given; a call with two tensors, as torch's losses take, lacks one.

    Parameters
    ----------
    value : Tensor or None
    name, owner : str
        What an error message calls the argument and the loss.
    call : str
        How the loss is called.
    """
    if value is None:
        raise InvalidInputError(
            f"{owner} misses '{name}': call it as {call}. It cuts the code z itself at every k, so it takes the code "
            "and the weight of the head or decoder, not their product: outputs of the whole code say nothing of its "
            "prefixes."
        )
    return value


def check_rows(a: Tensor, b: Tensor, name_a: str, name_b: str, owner: str) -> None:
    """Raise an error for two tensors whose numbers of rows differ."""
    if len(a) != len(b):
        raise InvalidInputError(
            f"{owner} needs as many rows in '{name_a}' as in '{name_b}'. Got {len(a)} and {len(b)}."
        )


def check_targets(targets: Tensor, queries: Tensor, documents: Tensor, owner: str) -> None:
    """Raise an error for targets that do not name one row of the documents for each query."""
    if not isinstance(targets, Tensor) or targets.ndim != 1 or targets.dtype != torch.int64:
        allowed = "an int64 tensor with one row of the documents per query"
        raise bad_parameter("targets", owner, allowed, described(targets))
    check_rows(queries, targets, "queries", "targets", owner)
    if host_reads(targets) and (int(targets.min()) < 0 or int(targets.max()) >= len(documents)):
        allowed = f"in [0, {len(documents) - 1}] (rows of the documents)"
        raise bad_parameter("targets", owner, allowed, targets.tolist()[:5])


def weights_of(omega: OmegaLike | Tensor, d: int, owner: str, start: int = 1) -> PrefixWeights:
    """Resolve omega, which may also be a tensor."""
    if isinstance(omega, Tensor):
        omega = omega.detach().cpu().numpy()
    return resolve_omega(omega, d, owner, start)


def as_tensor(array: np.ndarray, like: Tensor) -> Tensor:
    """Bring a numpy array to the dtype and device of `like`."""
    # A copy, because the arrays of PrefixWeights are read-only and torch warns about those.
    return torch.tensor(array, dtype=like.dtype, device=like.device)


def omega_like(weights: PrefixWeights, like: Tensor) -> Tensor:
    """Return omega with the dtype and on the device of `like`; the same tensor at every step, for CUDA graphs."""
    make = _omega if type(like) is Tensor else _omega.__wrapped__  # a fake tensor must not outlive its mode
    return make(weights, like.dtype, like.device)


@functools.lru_cache(maxsize=64)
def _omega(weights: PrefixWeights, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(weights.omega, dtype=dtype, device=device)


def check_estimator(estimator: str, owner: str) -> bool:
    """Check `estimator` and return whether it is "sampled"."""
    return check_choice(estimator, ESTIMATORS, "estimator", owner) == "sampled"


def settled_estimator(estimator: str, z: Tensor, columns: int) -> str:
    """Return "exact", "drawn" or "sampled"; "auto" goes by the size of the exact sum."""
    if estimator != "auto":
        return estimator
    return "exact" if z.numel() * columns <= _EXACT.get(z.device.type, 1 << 30) else "drawn"


def check_not_sampled(estimator: str, owner: str, why: str) -> None:
    """Raise an error for drawn prefixes where they are impossible, or where all prefixes cost little more than one."""
    if estimator not in ("auto", "exact"):
        check_choice(estimator, ALL_ESTIMATORS, "estimator", owner)
        raise IllegalCombinationError(f"{owner} with estimator='{estimator}'", why, "estimator='exact'")


def use_compiled(backend: str, z: Tensor, owner: str) -> bool:
    """Return whether to use the compiled path for this tensor; "auto" uses it wherever possible."""
    check_choice(backend, BACKENDS, "backend", owner)
    if backend in ("torch", "triton"):
        return False
    possible = host_reads(z) and z.dtype in (torch.float32, torch.float64)
    if backend == "compiled":
        require_compiled("torch", f"{owner} with backend='compiled'", "backend='torch'")
        if not possible:
            raise IllegalCombinationError(
                f"{owner} with backend='compiled'",
                f"the compiled path runs on the CPU and the tensors are on {z.device}",
                "backend='torch'",
            )
    return possible and numba_may_compile()


def path_of(backend: str, z: Tensor, owner: str) -> str:
    """Return which sweep takes this tensor: "compiled", "triton" or "torch"; "auto" is Triton on CUDA if installed."""
    if use_compiled(backend, z, owner):
        return "compiled"
    cuda, found = z.device.type == "cuda", importlib.util.find_spec("triton") is not None
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if backend == "triton" and not (found and (cuda or interpreted)):
        raise IllegalCombinationError(
            f"{owner} with backend='triton'",
            f"it needs the package triton and tensors on CUDA; these are on {z.device}"
            + ("" if found else ", and triton is not installed"),
            "backend='auto'",
        )
    real = type(z) in (Tensor, torch.nn.Parameter)  # no fake tensors
    return "triton" if backend == "triton" or (backend == "auto" and cuda and found and real) else "torch"


def few_lengths(weights: PrefixWeights, path: str, after: int = 0) -> list[int]:
    """Return the prefixes past `after` with weight, if they are so few that one product for each beats a full sweep."""
    lengths = weights.support[weights.support > after].tolist()
    return lengths if len(lengths) * (2 if path == "torch" else 8) <= weights.d else []
