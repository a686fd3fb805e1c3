"""Trainable networks: linear in any coordinates, MLP, or any module, with a decoder or head."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstk.encoder.network import MLP, TrainedMLP
from firstk.encoder.torch_network import TorchNetwork
from firstk.exceptions import InvalidInputError

_GLOBAL_GENERATOR = threading.RLock()


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed torch's global generator, used for initial weights and dropout, and restore its state afterwards.

    All threads share this generator, so a lock serializes network fits in several threads: each result then depends
    only on its own random_state.
    """
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class LinearEncoder(nn.Module):
    """``z = C x' + l b`` with ``B = C R^T``: x' are rows times R, the coordinates in which training runs.

    Parameters
    ----------
    C : Tensor of shape (d, r)
    R : Tensor of shape (p, r), optional
        Whitening matrix; None trains B itself.
    constant : float, optional
        l: an additional constant coordinate of every row, whose weights b are initialized at 0. It has the typical
        length of a row, so that one learning rate suits all weights. None: no offset.
    """

    def __init__(self, C: Tensor, R: Tensor | None = None, constant: float | None = None):
        super().__init__()
        self.C = nn.Parameter(C.clone(memory_format=torch.contiguous_format))
        self.R = R  # not a buffer: it belongs to the data, not to the training state
        self.constant = 0.0 if constant is None else constant
        self.b = None if constant is None else nn.Parameter(C.new_zeros(len(C)))

    @property
    def weight(self) -> Tensor:
        """B, (d, p)."""
        return self.C if self.R is None else self.C @ self.R.t()

    def forward(self, x: Tensor) -> Tensor:
        """Encode rows given in the coordinates of R."""
        z = x @ self.C.t()
        return z if self.b is None or self.constant is None else z + self.constant * self.b

    @torch.no_grad()
    def centre(self) -> np.ndarray:
        """Return the minimum-norm point c that is encoded as 0, (p,), to be added to the mean of the rows.

        ``B (x - c) = B x + l b`` for every x where the rows of B are independent.
        """
        B = self.weight.double().cpu().numpy()
        if self.b is None or self.constant is None:
            return np.zeros(B.shape[1])
        return -np.linalg.lstsq(B, self.constant * self.b.double().cpu().numpy(), rcond=None)[0]


class UnitNorm(nn.Module):
    """Normalization of rows to unit norm (Talukder et al. 2026 (31))."""

    def forward(self, z: Tensor) -> Tensor:
        """Divide each row by its norm."""
        return F.normalize(z, dim=1)


def build_mlp(spec: MLP, p: int, d: int) -> nn.Sequential:
    """Build the network of Talukder et al. 2026 C.1."""
    layers: list[nn.Module] = []
    width = p
    for hidden in spec.hidden:
        layers += [nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(spec.dropout)]
        width = hidden
    layers.append(nn.Linear(width, d))
    return nn.Sequential(*layers, *([UnitNorm()] if spec.normalize else []))


class Model(nn.Module):
    """Encoder, the weights shared by all prefixes (decoder or head), and the ordering's trainable parameters."""

    def __init__(
        self,
        encoder: nn.Module,
        decoder: Tensor | None,
        bias: Tensor | None,
        extras: dict[str, Tensor],
        own: tuple[Tensor, Tensor] | None = None,
    ):
        super().__init__()
        self.encoder: Any = encoder  # with `C`, `R`, `weight` and `centre` when it is a LinearEncoder
        self.decoder = None if decoder is None else nn.Parameter(decoder.clone(memory_format=torch.contiguous_format))
        self.bias = None if bias is None else nn.Parameter(bias.clone())
        # Heads of short prefixes that they share with none, as `firstk.encoder.fitted.Head` has them.
        self.own_weight = None if own is None else nn.Parameter(own[0].clone(memory_format=torch.contiguous_format))
        self.own_offset = None if own is None else nn.Parameter(own[1].clone())
        self.extras = nn.ParameterDict({name: nn.Parameter(part.clone()) for name, part in extras.items()})

    @property
    def linear(self) -> bool:
        """Whether the encoder is a matrix."""
        return isinstance(self.encoder, LinearEncoder)


def exported(encoder: nn.Module, p: int) -> Any:
    """Return a trained network in the form that is saved: numpy layers for an `MLP`, else the module itself."""
    if isinstance(encoder, nn.Sequential) and all(isinstance(part, _OURS) for part in encoder):
        # Fold batch normalization into the linear layer before it.
        weights: list[np.ndarray] = []
        biases: list[np.ndarray] = []
        for part in encoder:
            if isinstance(part, nn.Linear):
                weights.append(part.weight.detach().cpu().double().numpy())
                biases.append(part.bias.detach().cpu().double().numpy())
            elif isinstance(part, nn.BatchNorm1d):
                assert part.running_mean is not None
                assert part.running_var is not None
                mean, var = part.running_mean.cpu().double().numpy(), part.running_var.cpu().double().numpy()
                scale = part.weight.detach().cpu().double().numpy() / np.sqrt(var + part.eps)
                weights[-1] = weights[-1] * scale[:, None]
                biases[-1] = (biases[-1] - mean) * scale + part.bias.detach().cpu().double().numpy()
        return TrainedMLP(tuple(weights), tuple(biases), any(isinstance(part, UnitNorm) for part in encoder))
    return TorchNetwork(encoder, p)


_OURS = (nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Dropout, UnitNorm)


def check_width(encoder: nn.Module, x: Tensor, d: int | None) -> int:
    """Return the width of a module's code; raise an error if the code is not of shape (n, d)."""
    was, _ = encoder.training, encoder.eval()
    try:
        with torch.no_grad():
            z = encoder(x[:2])
    except RuntimeError as error:  # usually a shape mismatch; torch's message is kept
        raise InvalidInputError(
            f"The network must take rows of {x.shape[1]} columns, and it failed on 2 of them: "
            f"{str(error).strip().splitlines()[0].rstrip('.')}. Check the width of its first layer."
        ) from error
    encoder.train(was)
    if not isinstance(z, Tensor) or z.ndim != 2 or (d is not None and z.shape[1] != d):
        got = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise InvalidInputError(
            f"The network must turn (n, {x.shape[1]}) into (n, n_components={d}). Got {got} for n = 2."
        )
    return z.shape[1]
