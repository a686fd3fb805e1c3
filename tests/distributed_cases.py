"""Fits that are run by one process and by two ranks, with what they must agree in: losses, gradients, encoders.

Run as a script under ``torchrun`` it does all of them on its part of the rows and writes what it found.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from firstk import FullPrefix, PrefixEncoder
from firstk.encoder.network import MLP
from firstk.orderings import MonotoneL1, NestedDropout, Rotation, Variational
from firstk.solvers import Gradient
from firstk.solvers.gradient import loop as _loop

N, P, C = 120, 6, 3
FIRST = 83  # rows of the first of two ranks: uneven on purpose
RNG = np.random.default_rng(0)
Y = RNG.integers(0, C, N)
X = RNG.normal(size=(N, P)) * [3.0, 2.0, 1.5, 1.2, 0.7, 0.4] + RNG.normal(size=(C, P))[Y] * 2
T = X[:, :2] @ RNG.normal(size=(2, 2)) + RNG.normal(size=(N, 2))
W = RNG.uniform(0.2, 2, N)
R = X + RNG.normal(size=(N, P))
S = np.sum(X * R, axis=1) + RNG.normal(size=N)
BATCHES = {"batch_size": 32, "epochs": 2}


def case(objective, y=None, *, weight=None, pairs=None, network="linear", ordering="full_prefix", **settings):
    solver = Gradient(dtype="float64", validation=0.2 if settings.pop("judged", False) else 0, **settings)
    options = {"objective": objective, "ordering": ordering, "network": network, "solver": solver}
    return options, ({"y": y, "weight": weight} if pairs is None else pairs)


SAMPLED, SMALL = FullPrefix(estimator="sampled"), MLP(hidden=(5,), dropout=0.0)
CASES = {
    "cross-entropy": case("classification", Y, **BATCHES),
    # One epoch, twenty steps: near the optimum the last digit decides how many points a line search tries.
    "cross-entropy, full batch": case("classification", Y, batch_size="full", epochs=1, optimizer="lbfgs"),
    "cross-entropy, sampled": case("classification", Y, ordering=SAMPLED, **BATCHES),
    "cross-entropy, weighted": case("classification", Y, weight=W, **BATCHES),
    "cross-entropy, network, judged": case("classification", Y, network=SMALL, judged=True, **BATCHES),
    "cross-entropy, network, weighted, judged": case(
        "classification", Y, weight=W, network=SMALL, judged=True, **BATCHES
    ),
    "cross-entropy, network, hardly a row a rank": case("classification", Y, network=SMALL, batch_size=3, epochs=1),
    "cross-entropy, hardly a row a rank": case("classification", Y, batch_size=2, epochs=1),
    "cross-entropy, nested dropout": case("classification", Y, ordering=NestedDropout(), **BATCHES),
    "reconstruction, moments": case("reconstruction", epochs=5),
    "reconstruction, sampled": case("reconstruction", ordering=SAMPLED, **BATCHES),
    "reconstruction, network": case("reconstruction", network=SMALL, **BATCHES),
    "reconstruction, monotone l1": case("reconstruction", ordering=MonotoneL1(), epochs=5),
    "reconstruction, rotation": case("reconstruction", ordering=Rotation(), **BATCHES),
    "reconstruction, variational": case("reconstruction", ordering=Variational(sampled=True), **BATCHES),
    "fisher, moments": case("fisher", Y, epochs=5),
    "fisher, network": case("fisher", Y, network=SMALL, **BATCHES),
    "regression, moments": case("regression", T, epochs=5),
    "regression, rows": case("regression", T, **BATCHES),
    "mixture, moments": case("mixture", Y, epochs=5),
    "denoising, moments": case("denoising", epochs=5),
    "positives": case("similarity", pairs={}, **BATCHES),
    "positives, judged": case("similarity", pairs={}, judged=True, **BATCHES),
    "positives, hardly a pair a rank": case("similarity", pairs={}, batch_size=2, epochs=1),
    "positives, network": case("similarity", pairs={}, network=SMALL, **BATCHES),
    "scored pairs": case("similarity", pairs={"scores": S}, **BATCHES),
}


def run(name, rows, ranks=None, **extra):
    """Fit one case on some rows; return losses, the gradients of every step, and the codes of some rows."""
    options, beside = CASES[name]
    if extra:
        options = options | {"solver": Gradient(**vars(options["solver"]) | extra)}
    encoder, gradients = PrefixEncoder(2, random_state=0, **options), []
    shape = _loop._Run._shape_gradients

    def spy(self):
        gradients.append(np.concatenate([part.grad.numpy().ravel() for part in self.task.model.parameters()]))
        shape(self)

    _loop._Run._shape_gradients = spy
    try:
        if "scores" in beside or not beside:
            scores = beside.get("scores")
            args = (X[rows], R[rows], None if scores is None else scores[rows])
            encoder = encoder.fit_pairs(*args) if ranks is None else ranks.fit_pairs(encoder, *args)
        else:
            args = (X[rows], *(None if beside[key] is None else beside[key][rows] for key in ("y", "weight")))
            encoder = encoder.fit(*args) if ranks is None else ranks.fit(encoder, *args)
    finally:
        _loop._Run._shape_gradients = shape
    losses = np.array([[entry["loss"], entry.get("best_validation", 0)] for entry in encoder.trace_])
    codes, spectrum = np.abs(encoder.transform(X[:9])), encoder.spectrum_
    return encoder, {"loss": losses, "gradient": np.array(gradients), "code": codes, "spectrum": spectrum}


class Stopped(Exception):
    """A run that ends where it should not."""


def stopped_after(epochs):
    """Make runs end in an error after some epochs, and what they keep of them."""
    keep = _loop._Run._save

    def kept(self):
        keep(self)
        if self.at.epoch == epochs:
            raise Stopped

    _loop._Run._save = kept
    return lambda: setattr(_loop._Run, "_save", keep)


LONG = {"epochs": 6, "checkpoint_every": 1}


def main(folder):
    from firstk.integrations import distributed

    with distributed.group() as ranks:
        rows = slice(0, FIRST) if ranks.rank == 0 else slice(FIRST, N)
        found = {}
        for name in CASES:
            encoder, result = run(name, rows, distributed)
            found |= {f"{name}/{key}": part for key, part in result.items()}
        distributed.save(encoder, folder / "model")
        closed = distributed.fit(PrefixEncoder(objective="fisher"), X[rows], Y[rows])
        found["closed"] = closed.components_
        found["whole"] = run("cross-entropy", rows, distributed, **LONG)[1]["code"]
        go_on = stopped_after(3)
        try:
            run("cross-entropy", rows, distributed, **LONG, checkpoint=str(folder / "checkpoint"))
        except Stopped:
            found["stopped"] = np.array(1)
        go_on()
        np.savez(folder / f"rank-{ranks.rank}.npz", **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
