"""One fit of the recovery experiments: data, reference axes, training as Table 1 has it, and its comparison.

Six methods are compared with the closed form: five as the paper trains them, and "ours", which is the library's own
full-prefix fit from a random start (whitened, canonical form, eps in input space).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from firstk import (
    ClosedForm,
    Fisher,
    FullPrefix,
    Gradient,
    Moments,
    MonotoneL1,
    NonuniformL2,
    PrefixEncoder,
    SparsePrefix,
    Unordered,
)
from firstk.metrics import max_cosines, mean_principal_angles, paired_cosines
from firstk_papers.datasets import split, two_blocks
from firstk_papers.datasets.images import images
from firstk_papers.frame.hooks import prefix_weights
from firstk_papers.frame.panels import rounded
from firstk_papers.frame.types import JsonDict, JsonObject
from firstk_papers.talukder2026 import authors_code
from firstk_papers.talukder2026.authors_code import Parts, parts_of

TRACE = 60  # entries of a training curve
Method = FullPrefix | SparsePrefix | NonuniformL2 | MonotoneL1 | Unordered


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Rows and labels of the training part, centred, their moments, and the sizes of the three parts."""

    X: np.ndarray
    y: np.ndarray
    moments: Moments
    sizes: tuple[int, int, int]
    parts: Parts | None = None


@lru_cache(maxsize=2)
def training_set(name: str, rows: int, seed: int, code: bool = False) -> TrainingSet:
    """Return the training part of a 70/10/20 split, stratified and centred on it (Talukder et al. 2026 C.1).

    Parameters
    ----------
    name : {"synthetic", "fashion-mnist"}
    rows : int
        Of the whole set, before it is split.
    seed : int
    code : bool
        As in the authors' code: their split, pixels z-scored, and the other parts beside the training part.
    """
    if code:
        theirs = parts_of(name, rows, seed)
        sizes = (len(theirs.y), len(theirs.y_val), len(theirs.y_test))
        return TrainingSet(theirs.X, theirs.y, Moments("float64").update(theirs.X, theirs.y), sizes, theirs)
    if name == "synthetic":
        drawn = two_blocks(seed, per_class=rows // 20)
        X, y = drawn.X, drawn.y
        assert y is not None
    else:
        found = images(name)
        few = rows <= len(found.X_train)  # the whole set is a copy of 220 MB
        X, y = (found.X_train[:rows], found.y_train[:rows]) if few else (found.X[:rows], found.y[:rows])
    parts = split(X, y, random_state=seed)
    sizes = (len(parts.X_train), len(parts.X_val), len(parts.X_test))
    return TrainingSet(parts.X_train, parts.y_train, Moments("float64").update(parts.X_train, parts.y_train), sizes)


@dataclass(frozen=True, eq=False)
class Reference:
    """The closed form that a fit is compared with.

    Attributes
    ----------
    axes : ndarray of shape (d, p)
    spectrum : ndarray of shape (d + 1,)
        Eigenvalues; the last one is that of the first axis left out, 0 past the rank.
    shrinkage : float or None
        Of Sw, where eps is in input space.
    """

    axes: np.ndarray
    spectrum: np.ndarray
    shrinkage: float | None = None

    @property
    def gaps(self) -> np.ndarray:
        """Relative eigengap of each axis to the nearer of its neighbors, (d,)."""
        after = -np.diff(self.spectrum) / self.spectrum[:-1]
        return np.minimum(after, np.append(np.inf, after[:-1]))


def input_shrinkage(Sw: np.ndarray, eps: float) -> float:
    """Return a with (1 - a) Sw + a tr(Sw)/p I in proportion to Sw + eps I: eps (29), moved to the input side."""
    return float(eps / (eps + np.trace(Sw) / len(Sw)))


@lru_cache(maxsize=4)  # the methods of a configuration come one after the other, and are compared with the same axes
def reference(data: TrainingSet, family: str, d: int, eps: float | None = None) -> Reference:
    """Return the axes of PCA ("mse") or LDA ("fisher"), with Sw + eps I where eps is given."""
    solver = ClosedForm(precision="float64")
    if family == "mse":
        solved = PrefixEncoder(d + 1, solver=solver).fit(data.X)
        return Reference(solved.components_[:d], solved.spectrum_)
    a = None if eps is None else input_shrinkage(data.moments.Sw, eps)
    solved = PrefixEncoder(d, objective=Fisher(shrinkage=a), solver=solver).fit(data.X, data.y)
    return Reference(solved.components_, np.append(solved.spectrum_, 0.0), a)


class Losses:
    """What is missing to the optimum, from the weights: at full width, and on average over a method's own prefixes.

    A loss is squared error per row or minus the ratio trace (Talukder et al. 2026 (4), (29)). What is missing is a
    share: 0 at the global optimum, 1 for no code at all.

    Parameters
    ----------
    data : TrainingSet
    cell : mapping
    best : Reference
    weights : ndarray of shape (d,)
        omega of the method.
    """

    def __init__(self, data: TrainingSet, cell: JsonObject, best: Reference, weights: np.ndarray):
        import torch

        self.family, self.weights, self.shrinkage = cell["family"], weights, best.shrinkage
        self.eps = 0.0 if best.shrinkage is not None or self.family == "mse" else cell["eps"]
        moments = data.moments
        self.empty = float(np.trace(moments.St)) if self.family == "mse" else 0.0
        self.least = self.empty - np.cumsum(best.spectrum[:-1])
        needed = (moments.St,) if self.family == "mse" else (moments.Sw, moments.Sb)
        self.scatters = tuple(torch.from_numpy(part) for part in needed)

    def prefixes(self, B: np.ndarray, A: np.ndarray | None) -> np.ndarray:
        """Return the loss of every prefix, (d,)."""
        import torch

        from firstk.losses import FullPrefixFisher, FullPrefixReconstruction

        encoder = torch.from_numpy(np.ascontiguousarray(B))
        if self.family == "mse":
            assert A is not None
            decoder = torch.from_numpy(np.ascontiguousarray(A))
            return FullPrefixReconstruction().per_prefix_from_moments(self.scatters[0], encoder, decoder).numpy()
        loss = FullPrefixFisher(shrinkage=self.shrinkage, code_eps=self.eps)
        return loss.per_prefix(encoder, *self.scatters).numpy()

    @property
    def own_optimum(self) -> float:
        """The least mean loss over a method's own prefixes."""
        return float(self.weights @ self.least)

    def __call__(self, B: np.ndarray, A: np.ndarray | None) -> dict[str, float]:
        """Return the two shares; what training watches."""
        found = self.prefixes(B, A)
        own = self.weights @ (found - self.least) / (self.empty - self.own_optimum)
        return {"full": (found[-1] - self.least[-1]) / (self.empty - self.least[-1]), "own": float(own)}


def ordering_of(cell: JsonObject) -> Method:
    """Return the ordering of a method, as Talukder et al. 2026 has it."""
    orderings: dict[str, Callable[[], Method]] = {
        # Talukder et al. 2026 C.1 re-projects the decoder after every step; Fisher has no decoder.
        "full_prefix": lambda: FullPrefix("uniform", orthonormal_decoder=cell["family"] == "mse"),
        "sparse_prefix": lambda: SparsePrefix(cell["prefixes"]),
        "nonuniform_l2": lambda: NonuniformL2("spectral"),
        "monotone_l1": lambda: MonotoneL1(cell["alpha"], unit_columns=False),
        "unordered": Unordered,
        "ours": lambda: FullPrefix("uniform"),
    }
    return orderings[cell["method"]]()


def solver_of(cell: JsonObject, losses: Losses) -> Gradient:
    """Return Adam as Table 1 has it, on raw coordinates and weights left as learned; or the library's own defaults."""
    if cell["method"] == "ours":
        every = {"trace_every": max(1, cell["length"] // TRACE)} if "length" in cell else {}
        return Gradient(watch=losses, epochs=cell.get("length", "auto"), **every)
    # The library divides omega by its sum. Adam does not see the size of a loss, but weight decay does.
    prefixes = {"full_prefix": cell["d"], "sparse_prefix": len(cell.get("prefixes", ()))}.get(cell["method"], 1)
    return Gradient(
        optimizer="adam",
        learning_rate=cell["learning_rate"],
        weight_decay=cell["weight_decay"] / prefixes,
        batch_size=cell["batch"],
        epochs=cell["length"],
        schedule="constant",
        whiten=False,
        # Where every step reads all rows, half the bytes are half the time; Talukder et al. 2026 will have used float32
        # throughout.
        dtype="float32" if cell["method"] == "monotone_l1" else "auto",
        trace_every=max(1, cell["length"] // TRACE) if cell["batch"] == "full" else 1,
        watch=losses,
        canonical=False,
    )


def fit(cell: JsonObject) -> JsonDict:
    """Train one method on one configuration, and compare what it learned with the closed form."""
    data = training_set(cell["data"], cell["rows"], cell["seed"], "code" in cell)
    family, d, ours = cell["family"], cell["d"], cell["method"] == "ours"
    best = reference(data, family, d, cell["eps"] if ours and family == "fisher" else None)
    ordering = ordering_of(cell)
    losses = Losses(data, cell, best, prefix_weights(ordering, d).omega)
    objective: Literal["reconstruction"] | Fisher = "reconstruction"
    if family == "fisher":
        objective = Fisher(shrinkage=best.shrinkage) if ours else Fisher(shrinkage=None, code_eps=cell["eps"])
    encoder = PrefixEncoder(
        d, objective=objective, ordering=ordering, solver=solver_of(cell, losses), init="random",
        random_state=cell["seed"],
    ).fit(data.X, data.y if family == "fisher" else None)  # fmt: skip
    learned = encoder.components_ if encoder.decoder_ is None else encoder.decoder_.T
    batch = cell.get("batch", "full")
    steps = 1 if batch == "full" else len(data.X) // batch
    return compared(learned, best) | _beside(cell, data, learned, losses) | {"trace": _curve(encoder.trace_, steps)}


def fit_as_code(cell: JsonObject) -> JsonDict:
    """Train one method as in the authors' code, and compare what it learned with the closed form by their metrics."""
    data = training_set(cell["data"], cell["rows"], cell["seed"], True)
    assert data.parts is not None
    best = reference(data, cell["family"], cell["d"])
    losses = Losses(data, cell, best, prefix_weights(ordering_of(cell), cell["d"]).omega)
    B, A, trace, kept = authors_code.fit_linear(cell, data.parts, losses.weights, losses)
    batches = 1 if cell["batch"] == "full" else -(-len(data.X) // cell["batch"])
    found = authors_code.compared(B, A, best.axes) | _beside(cell, data, B if A is None else A.T, losses)
    found |= {"spectrum": list(rounded(best.spectrum[:-1])), "gaps": list(rounded(best.gaps))}
    return found | {"trace": _curve(trace, batches), "epochs": kept.epochs, "best_epoch": kept.best}


def _beside(cell: JsonObject, data: TrainingSet, learned: np.ndarray, losses: Losses) -> JsonDict:
    """Return the optimum of the loss that a method trains, and under Fisher PairedCos in the metric of Sw + eps I."""
    found: JsonDict = {"own_optimum": rounded([losses.own_optimum])[0]}
    if cell["family"] == "fisher":
        ruler = reference(data, "fisher", cell["d"], cell["eps"])
        found["in_metric"] = list(rounded(canonical_cosines(learned, ruler, data.moments, cell["eps"])))
    return found


def compared(learned: np.ndarray, best: Reference) -> JsonDict:
    """Return the three metrics of Talukder et al. 2026 C.3, all cosines, and the spectrum with its gaps."""
    cosines = np.abs(unit_rows(learned) @ unit_rows(best.axes).T)
    return {
        "max_cos": list(rounded(max_cosines(learned, best.axes))),
        "paired_cos": list(rounded(paired_cosines(learned, best.axes))),
        "angles": list(rounded(mean_principal_angles(learned, best.axes))),
        "cosines": [[round(float(value), 4) for value in row] for row in cosines],
        "spectrum": list(rounded(best.spectrum[:-1])),
        "gaps": list(rounded(best.gaps)),
    }


def canonical_cosines(learned: np.ndarray, best: Reference, moments: Moments, eps: float) -> np.ndarray:
    """Return PairedCos of the canonical form of a discriminant code, in the metric Sw + eps I (theory, section 3)."""
    N = moments.Sw + eps * np.eye(moments.p)
    B = unit_rows(learned)
    G = B @ N @ B.T
    L = np.linalg.cholesky((G + G.T) / 2 + 1e-14 * np.trace(G) / len(G) * np.eye(len(G)))
    return paired_cosines(solve_triangular(L, B, lower=True), best.axes, metric=N)


def unit_rows(V: np.ndarray) -> np.ndarray:
    """Return rows divided by their norms; a row of zeros stays one."""
    norms = np.linalg.norm(V, axis=1, keepdims=True)
    return V / np.where(norms > 0, norms, 1.0)


def _curve(trace: list[dict[str, float]], steps: int) -> dict[str, list[float | None]]:
    """Return at most TRACE entries of a trace, closer together early on, for a logarithmic axis."""
    chosen = np.unique(np.geomspace(1, len(trace), TRACE).round().astype(int)) - 1
    kept = [trace[i] for i in chosen]
    columns = {"step": [steps * entry["epoch"] for entry in kept]}
    columns |= {name: [entry[name] for entry in kept] for name in ("full", "own")}
    return {name: list(rounded(values)) for name, values in columns.items()}


def facts(cell: JsonObject) -> JsonDict:
    """Return what Table 1 says of a configuration, as the data have it."""
    data = training_set(cell["data"], cell["rows"], cell["seed"], "code" in cell)
    best = reference(data, cell["family"], cell["d"])
    pca = np.linalg.eigvalsh(data.moments.St)[::-1]
    lam = NonuniformL2("spectral").lambdas(pca, cell["d"])
    return {
        "p": data.X.shape[1],
        "classes": len(np.unique(data.y)),
        "lda_rank": int(np.linalg.matrix_rank(data.moments.Sb, hermitian=True)),
        "sizes": list(data.sizes),
        "largest_mean": float(f"{np.abs(data.moments.mean).max():.3g}"),
        "sigma_d": float(f"{pca[cell['d'] - 1]:.6g}"),
        "lambda": list(rounded([lam[0], lam[-1]])),
        "wide_gaps": int(np.sum(best.gaps > 0.01)),
    }
