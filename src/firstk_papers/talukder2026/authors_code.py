"""Training as in the code of Talukder et al. 2026 (docs/decisions/papers.md names repository and commit).

Where it differs from the paper's text: pixels are z-scored, a linear layer starts as torch starts it, losses of squared
error are means over features too, beside which weight decay and penalties keep their numbers, and the epoch with the
best validation loss is kept. Metrics differ as well: `compared`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from firstk import Moments, NonuniformL2
from firstk.data import ImageSet
from firstk.metrics import mean_principal_angles, paired_cosines
from firstk_papers.datasets import two_blocks
from firstk_papers.datasets.images import images
from firstk_papers.frame.panels import rounded
from firstk_papers.frame.types import JsonDict, JsonObject

if TYPE_CHECKING:
    from torch import Tensor, nn

Trace = dict[str, float]


class Parts(NamedTuple):
    """Rows and labels of the parts of a set: training, validation, test."""

    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def parts_of(name: str, rows: int, seed: int) -> Parts:
    """Return 70/10/20 of a set, stratified; pixels are z-scored by the training part, the synthetic set centred."""
    from sklearn.model_selection import train_test_split

    if name == "synthetic":
        drawn = two_blocks(seed, per_class=rows // 20)
        X, y = drawn.X.astype(np.float32), drawn.y
        assert y is not None
    else:
        found: ImageSet = images(name)
        X, y = found.X[:rows], found.y[:rows]
    rest, test = train_test_split(np.arange(len(X)), test_size=0.2, random_state=seed, stratify=y)
    train, val = train_test_split(rest, test_size=0.125, random_state=seed, stratify=y[rest])
    mean, scale = X[train].mean(axis=0, dtype=np.float64), X[train].std(axis=0, dtype=np.float64)
    scale = np.ones_like(scale) if name == "synthetic" else np.where(scale > 0, scale, 1.0)
    X -= mean.astype(np.float32)
    X /= scale.astype(np.float32)
    return Parts(*(part[chosen] for chosen in (train, val, test) for part in (X, y)))


class Kept(NamedTuple):
    """What training keeps: the epochs it ran, and the best of them, counted from 1."""

    epochs: int
    best: int


def train(
    parameters: Sequence[Tensor],
    epoch: Callable[[], None],
    validation: Callable[[], float],
    epochs: int,
    patience: int,
    state: nn.Module | None = None,
) -> Kept:
    """Run epochs until the validation loss has not been better for `patience` of them; load the best state.

    Parameters
    ----------
    parameters : sequence of Tensor
    epoch, validation : callable
    epochs, patience : int
    state : Module, optional
        Has buffers to keep, too: running means of a batch normalization.
    """
    least, best, ran = float("inf"), 0, 0
    kept: list[Tensor] = []
    held = [*parameters, *(state.buffers() if state is not None else ())]
    for ran in range(1, epochs + 1):
        epoch()
        loss = validation()
        if loss < least:
            least, best, kept = loss, ran, [part.detach().clone() for part in held]
        if ran - best >= patience:
            break
    for part, value in zip(held, kept, strict=True):
        part.data.copy_(value)
    return Kept(ran, best)


# -- Linear codes: figures 1, 4 and 5 ----------------------------------------------------------------------------------


def fit_linear(
    cell: JsonObject, parts: Parts, omega: np.ndarray, watch: Callable[[np.ndarray, np.ndarray | None], Trace]
) -> tuple[np.ndarray, np.ndarray | None, list[Trace], Kept]:
    """Train encoder B (d, p) and decoder A (p, d), which Fisher has not; return them with the trace of epochs."""
    import torch

    torch.manual_seed(cell["seed"])
    p, d, fisher = parts.X.shape[1], cell["d"], cell["family"] == "fisher"
    encoder, decoder = torch.nn.Linear(p, d, bias=False), torch.nn.Linear(d, p, bias=False)
    B, A = encoder.weight, decoder.weight
    A.data.copy_(_orthonormal(A.data))
    loss = (_fisher_loss if fisher else _squared_error)(cell, parts, omega)
    adam = torch.optim.Adam([B, A], cell["learning_rate"], weight_decay=cell["weight_decay"])
    X, X_val = torch.from_numpy(parts.X), torch.from_numpy(parts.X_val)
    size = len(X) if cell["batch"] == "full" else cell["batch"]
    trace: list[Trace] = []

    def epoch() -> None:
        order = torch.randperm(len(X)) if size < len(X) else None
        for begin in range(0, len(X), size):
            adam.zero_grad()
            loss(X if order is None else X[order[begin : begin + size]], B, A, 0).backward()
            adam.step()
            if cell["method"] == "full_prefix" and not fisher:
                A.data.copy_(_orthonormal(A.data))
        if _sampled(len(trace) + 1):
            trace.append({"epoch": len(trace) + 1, **watch(_numbers(B), None if fisher else _numbers(A))})
        else:
            trace.append({})

    @torch.no_grad()
    def validation() -> float:
        return float(loss(X_val, B, A, 1))

    kept = train([B, A], epoch, validation, cell["length"], cell["patience"])
    ends = {"epoch": kept.best, **watch(_numbers(B), None if fisher else _numbers(A))}
    return _numbers(B), None if fisher else _numbers(A), [entry for entry in trace if entry] + [ends], kept


def _sampled(epoch: int) -> bool:
    """Tell whether an epoch is drawn: about 16 for every doubling."""
    return epoch < 16 or epoch % (1 << (epoch.bit_length() - 5)) == 0


def _numbers(part: Tensor) -> np.ndarray:
    found: np.ndarray = part.detach().double().numpy()
    return found


def _orthonormal(A: Tensor) -> Tensor:
    """Return the Q of A = QR with a positive diagonal of R."""
    import torch

    Q, R = torch.linalg.qr(A)
    return Q * R.diagonal().sign()


Loss = Callable[["Tensor", "Tensor", "Tensor", int], "Tensor"]


def _squared_error(cell: JsonObject, parts: Parts, omega: np.ndarray) -> Loss:
    """Return the mean over prefixes, rows and features, with the penalties of the method as they are."""
    import torch

    from firstk.losses import FullPrefixReconstruction

    p, d = parts.X.shape[1], cell["d"]
    prefixes = FullPrefixReconstruction({k + 1: float(w) for k, w in enumerate(omega) if w})
    order = torch.arange(1.0, d + 1)
    lam = torch.zeros(d)
    if cell["method"] == "nonuniform_l2":
        spectrum = np.linalg.eigvalsh(Moments("float64").update(parts.X).St)[::-1]
        lam = torch.tensor(NonuniformL2("spectral").lambdas(spectrum, d) / p, dtype=torch.float32)
    alpha = cell.get("alpha", 0.0)

    def loss(x: Tensor, B: Tensor, A: Tensor, part: int) -> Tensor:
        z = x @ B.t()
        total = prefixes(x, z, A) / p
        if alpha:
            total = total + alpha * (z.abs().mean(0) @ order)
        return total + lam @ (B.square().sum(1) + A.square().sum(0)) if lam.any() else total

    return loss


def _fisher_loss(cell: JsonObject, parts: Parts, omega: np.ndarray) -> Loss:
    """Return minus the mean ratio trace over prefixes, of all rows of a part, with the penalty of monotone l1."""
    import torch

    from firstk.losses import FullPrefixFisher

    prefixes = FullPrefixFisher({k + 1: float(w) for k, w in enumerate(omega) if w}, code_eps=cell["eps"])
    order = torch.arange(1.0, cell["d"] + 1)
    of_parts = [Moments("float64").update(X, y) for X, y in ((parts.X, parts.y), (parts.X_val, parts.y_val))]
    scatters = [tuple(torch.from_numpy(S).float() for S in (part.Sw, part.Sb)) for part in of_parts]
    alpha = cell.get("alpha", 0.0)

    def loss(x: Tensor, B: Tensor, A: Tensor, part: int) -> Tensor:
        total = prefixes(B, *scatters[part])
        return total + alpha * ((x @ B.t()).abs().mean(0) @ order) if alpha else total

    return loss


def compared(B: np.ndarray, A: np.ndarray | None, axes: np.ndarray) -> JsonDict:
    """Return the metrics of the code, in which k is the length of a prefix.

    MaxCos at k is the mean over the first k directions of the largest cosine with the first k axes; directions are
    decoder columns, encoder rows under Fisher. PairedCos is of encoder rows always. Axes of LDA are orthonormalized in
    order.
    """
    axes = np.linalg.qr(axes.T)[0].T
    directions = B if A is None else A.T
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (directions, axes)]
    cosines = np.abs(unit[0] @ unit[1].T)
    running = [cosines[:k, :k].max(axis=1).mean() for k in range(1, len(cosines) + 1)]
    return {
        "max_cos": list(rounded(running)),
        "paired_cos": list(rounded(paired_cosines(B, axes))),
        "angles": list(rounded(mean_principal_angles(directions, axes))),
    }


# -- The classifier: figure 2 ------------------------------------------------------------------------------------------


class Codes(NamedTuple):
    """Codes of the three parts by a trained network, its head, and the epochs it ran."""

    Z: np.ndarray
    Z_val: np.ndarray
    Z_test: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    epochs: int

    def accuracy(self, Z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the accuracy of every prefix under the head cut to it, (d,)."""
        logits = self.bias + np.cumsum(Z[:, :, None] * self.weight.T[None], axis=1)  # (n, d, C)
        right: np.ndarray = (logits.argmax(axis=2) == y[:, None]).mean(axis=0)
        return right


@lru_cache(maxsize=1)
def digits(rows: int, seed: int) -> Parts:
    """Return the parts of MNIST; the methods of a seed come one after the other."""
    return parts_of("mnist", rows, seed)


def fit_network(cell: JsonObject, parts: Parts) -> Codes:
    """Train the network of C.1: every prefix under a head without bias, or full width with bias and monotone l1."""
    import torch
    import torch.nn.functional as F

    from firstk.losses import FullPrefixCrossEntropy

    torch.manual_seed(cell["seed"])
    ordered, d, C = cell["method"] == "full_prefix", cell["d"], len(np.unique(parts.y))
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((parts.X.shape[1], *cell["hidden"])):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.BatchNorm1d(outputs), torch.nn.ReLU()]
        layers += [torch.nn.Dropout(cell["dropout"])]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(cell["hidden"][-1], d))
    head = torch.nn.Linear(d, C, bias=not ordered)
    model, prefixes, order = (
        torch.nn.ModuleList([network, head]),
        FullPrefixCrossEntropy("uniform"),
        torch.arange(1.0, d + 1),
    )
    X, X_val, X_test = (torch.from_numpy(part) for part in (parts.X, parts.X_val, parts.X_test))
    y, y_val = (torch.from_numpy(part) for part in (parts.y, parts.y_val))
    adam = torch.optim.Adam(model.parameters(), cell["learning_rate"], weight_decay=cell["weight_decay"])

    def code(x: Tensor) -> Tensor:
        return F.normalize(network(x), dim=1)

    def loss(z: Tensor, labels: Tensor) -> Tensor:
        if ordered:
            return prefixes(z, head.weight, labels)
        return F.cross_entropy(head(z), labels) + cell["alpha"] * (z.abs().mean(0) @ order)

    def epoch() -> None:
        model.train()
        for rows in torch.randperm(len(X)).split(cell["batch_size"]):
            adam.zero_grad()
            loss(code(X[rows]), y[rows]).backward()
            adam.step()

    @torch.no_grad()
    def validation() -> float:
        model.eval()
        return float(loss(code(X_val), y_val))

    kept = train(list(model.parameters()), epoch, validation, cell["epochs"], cell["patience"], model)
    model.eval()
    with torch.no_grad():
        Z, Z_val, Z_test = (code(part).numpy() for part in (X, X_val, X_test))
    bias = np.zeros(C) if ordered else _numbers(head.bias)
    return Codes(Z, Z_val, Z_test, _numbers(head.weight), bias, kept.epochs)
