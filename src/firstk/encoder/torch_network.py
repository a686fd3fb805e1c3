"""A user's torch module as part of a fitted encoder.

Its code is not saved: the module is passed again when the encoder is loaded.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from firstk.exceptions import CorruptModelError

# A module has one mode for all threads, and torch brings threads of its own: one call at a time.
_CALLS = threading.RLock()


@dataclass(frozen=True, eq=False)
class TorchNetwork:
    """A user's torch module, run in evaluation mode."""

    module: nn.Module
    p: int
    width: int | None = None

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return codes at full width."""
        first = next(self.module.parameters(), torch.zeros(()))
        with _CALLS:
            was, _ = self.module.training, self.module.eval()
            try:
                with torch.no_grad():
                    z: torch.Tensor = self.module(torch.as_tensor(X, dtype=first.dtype, device=first.device))
            finally:
                self.module.train(was)
        codes: np.ndarray = z.cpu().numpy()
        return codes.astype(X.dtype)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the module's state."""
        return {f"body.{name}": part.detach().cpu().numpy() for name, part in self.module.state_dict().items()}

    def config(self) -> dict[str, Any]:
        """Return the JSON value that marks a module whose code is not saved."""
        return {"network": "custom"}


def restore_module(module: nn.Module, arrays: dict[str, np.ndarray], p: int, path: str | Path) -> TorchNetwork:
    """Load a saved state into a copy of a module of the same architecture; the module that is passed is not changed."""
    module = copy.deepcopy(module)
    state = {name.removeprefix("body."): torch.from_numpy(np.array(part)) for name, part in arrays.items()}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise CorruptModelError(
            f"'{path}' does not fit the module given to load: {str(error).splitlines()[-1]}"
        ) from None
    return TorchNetwork(module, p)
