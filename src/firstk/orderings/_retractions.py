"""Retractions after an update, shared by several orderings: they restore the constraints on the decoder."""

from __future__ import annotations

from typing import Any

from firstk.contracts import View
from firstk.exceptions import IllegalCombinationError


def orthonormalize_decoder(view: View) -> None:
    """Replace A by Q of A = Q R, keeping the signs of the columns (Talukder et al. 2026 C.1)."""
    import torch

    A = _decoder(view)
    with torch.no_grad():
        Q, R = torch.linalg.qr(A)
        A.copy_(Q * torch.where(R.diagonal() < 0, -1.0, 1.0).to(Q.dtype))


def unit_decoder_columns(view: View) -> None:
    """Normalize the columns of A and rescale the rows of a linear B reciprocally, so that the scale is in the code.

    Otherwise shrinking B and growing A would reduce any penalty on the code to zero (docs/theory.md, section 2).
    """
    import torch

    A = _decoder(view)
    with torch.no_grad():
        norms = A.norm(dim=0).clamp_min(torch.finfo(A.dtype).tiny)
        A.div_(norms)
        if hasattr(view.model.encoder, "C"):
            view.model.encoder.C.mul_(norms[:, None])


def _decoder(view: View) -> Any:
    A = view.model.decoder
    if A is None:
        raise IllegalCombinationError(
            "Constraining the decoder after each step",
            "this objective is trained without a decoder or head",
            "the ordering without that setting",
        )
    return A
