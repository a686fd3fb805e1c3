"""How a loss is compared with its loop: value, every gradient in norm, and every axis of every gradient."""

import torch

from losses.functional import loops

# (norm of a tensor, one axis of it), relative
TOLERANCE = {torch.float32: (1e-5, 1e-3), torch.float64: (1e-11, 1e-9)}


def leaves(tensors, dtype):
    return [t.detach().to(dtype).clone().requires_grad_() for t in tensors]


def assert_close(found, wanted, tolerance, what, unit=1.0):
    found, wanted = found.double(), wanted.double()
    assert torch.isfinite(found).all(), f"{what} is not finite"
    # What vanishes (one class, saturated rows) is a difference of numbers of size `unit`, as good as their rounding; a
    # loss is a difference of logits, here of some tens and hundreds.
    error, size = (found - wanted).norm(), wanted.norm().clamp_min(1.0 if wanted.ndim == 0 else 1e-4 * unit)
    assert error <= tolerance[0] * size, f"{what}: relative error {error / size:.1e} in norm"
    if wanted.ndim == 2:
        floor = max(1e-3 * float(size) / wanted.shape[1] ** 0.5, 1e-5 * unit)
        axis = (found - wanted).norm(dim=0) / wanted.norm(dim=0).clamp_min(floor)
        assert axis.max() <= tolerance[1], f"{what}: relative error {axis.max():.1e} on axis {axis.argmax()}"


def check(loss, loop, tensors, omega, dtype=torch.float64, tolerance=None):
    """Compare `loss(*tensors)` in `dtype` with the weighted loop in float64 on the same numbers.

    `loss` returns a scalar, `loop` the list of d losses; `tensors` are those differentiated through.
    """
    tolerance = TOLERANCE[dtype] if tolerance is None else tolerance
    mine = leaves(tensors, dtype)
    theirs = leaves(mine, torch.float64)
    value = loss(*mine)
    wanted = loops.weighted(loop(*theirs), omega)
    assert value.dtype == dtype
    assert_close(value, wanted, tolerance, "value")
    value.backward()
    wanted.backward()
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        assert a.grad.dtype == a.dtype
        unit = max(1.0, *(float(part.detach().abs().max()) for part in theirs if part.numel()))
        assert_close(a.grad, b.grad, tolerance, f"gradient {i}", unit)
