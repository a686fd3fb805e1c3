"""What single coordinates and prefixes of a classifier's code are worth on MNIST (figures 2 and 6b).

One cell trains one network of Talukder et al. 2026 C.1 and looks at its code: sizes, probes of single coordinates,
prefixes under the network's own head, and clusters in short prefixes. Two figures read the same cells:
`mnist_figures`.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np

from firstk_papers.frame.checks import require
from firstk_papers.frame.panels import rounded
from firstk_papers.frame.types import JsonDict, JsonObject
from firstk_papers.talukder2026 import authors_code
from firstk_papers.talukder2026.mnist_figures import clustering, geometry

if TYPE_CHECKING:
    from types import ModuleType

    from firstk import PrefixEncoder

__all__ = ["cells", "clustering", "geometry", "measure"]

REVISION = 1
METHODS = ("full_prefix", "monotone_l1")
OMEGAS = {"full_prefix": "uniform", "harmonic": "harmonic"}  # Talukder et al. 2026's weights, and the library's own
NEIGHBORS = 5
_FIT = (
    "rows", "d", "hidden", "dropout", "learning_rate", "weight_decay", "batch_size", "epochs", "patience", "validation",
)  # fmt: skip
_LOOK = ("choosing_rows", "test_rows", "probe_rows", "map_rows", "map_prefixes")


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return a cell for each seed and method, and one for each further alpha of the grid."""
    common = {name: settings[name] for name in (*_FIT, *_LOOK)} | {"revision": REVISION}
    if settings.get("code"):
        common["code"] = True
    seeds, chosen = settings["seeds"], settings["alpha"]
    mapped = {"umap": _version_of("umap-learn")} if settings["mapping"] == "umap" else None

    def cell(method: str, alpha: float | None, seed: int) -> JsonDict:
        # The map is drawn for one seed: it is a picture, and its numbers are taken in the codes of all seeds too.
        return common | {
            "method": method,
            "alpha": alpha,
            "seed": seed,
            "mapped": mapped if seed == seeds[0] and alpha in (None, chosen) and method in METHODS else None,
        }

    methods = (*METHODS, "harmonic") if settings["harmonic"] else METHODS
    runs = [cell(method, chosen if method == "monotone_l1" else None, s) for s in seeds for method in methods]
    return runs + [cell("monotone_l1", alpha, seeds[0]) for alpha in settings["alpha_grid"] if alpha != chosen]


def _version_of(package: str) -> str | None:
    """Return what is installed; it is part of a cell, so that a map is drawn once the package is there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def measure(cell: JsonObject) -> JsonDict:
    """Train one network and describe its code."""
    if "code" in cell:
        return _measured_as_code(cell)
    from firstk_papers.datasets.images import images

    mnist = images("mnist")
    rng = np.random.default_rng(cell["seed"])
    order = rng.permutation(len(mnist.X_train))
    fit, choosing = np.split(order[: cell["rows"] + cell["choosing_rows"]], [cell["rows"]])
    encoder = trained(cell, mnist.X_train[fit], mnist.y_train[fit])
    X, y = mnist.X_test[: cell["test_rows"]], mnist.y_test[: cell["test_rows"]]
    Z = encoder.transform(X)
    probed = fit[: cell["probe_rows"]]
    Z_probe, y_probe = encoder.transform(mnist.X_train[probed]), mnist.y_train[probed]
    found = {
        "size": np.abs(Z).mean(axis=0),
        "variance": Z.var(axis=0),
        "accuracy": encoder.curve(X, y).score,
        "choosing_accuracy": encoder.curve(mnist.X_train[choosing], mnist.y_train[choosing]).score,
        **probes(Z_probe, y_probe, Z, y),
    }
    Z, y = Z[: cell["map_rows"]], y[: cell["map_rows"]]
    return {
        **{name: rounded(values) for name, values in found.items()},
        "epochs": len(encoder.trace_),
        "clusters": [clusters(Z[:, :k], y) for k in cell["map_prefixes"]],
        "maps": maps(Z, y, cell),
    }


def _measured_as_code(cell: JsonObject) -> JsonDict:
    """Do the same with the split, the network, the heads and the probes of the authors' code."""
    parts = authors_code.digits(cell["rows"], cell["seed"])
    found = authors_code.fit_network(cell, parts)
    probed = np.random.default_rng(cell["seed"]).choice(len(parts.y), cell["probe_rows"], replace=False)
    Z, y = found.Z_test, parts.y_test
    measured = {
        "size": np.abs(Z).mean(axis=0),
        "variance": Z.var(axis=0),
        "accuracy": found.accuracy(Z, y),
        "choosing_accuracy": found.accuracy(found.Z_val, parts.y_val),
        **probes(found.Z[probed], parts.y[probed], Z, y, solver="saga", max_iter=500, random_state=cell["seed"]),
    }
    described = {name: rounded(values) for name, values in measured.items()}
    return {**described, "epochs": found.epochs, "clusters": [], "maps": None}


def trained(cell: JsonObject, X: np.ndarray, y: np.ndarray) -> PrefixEncoder:
    """Return the network of Talukder et al. 2026 C.1, trained with every prefix or with the monotone penalty.

    The code has unit norm, so the penalty cannot be escaped by a smaller code and a larger head: it is taken as
    Talukder et al. 2026 writes it, without unit columns. The pencil serves no network, so its shrinkage is not searched
    for.
    """
    from firstk import MLP, Classification, FullPrefix, Gradient, MonotoneL1, PrefixEncoder

    ordering = (
        FullPrefix(omega=OMEGAS[cell["method"]], estimator="exact")
        if cell["method"] in OMEGAS
        else MonotoneL1(alpha=cell["alpha"], unit_columns=False)
    )
    solver = Gradient(
        optimizer="adam",
        schedule="constant",
        learning_rate=cell["learning_rate"],
        weight_decay=cell["weight_decay"],
        batch_size=cell["batch_size"],
        epochs=cell["epochs"],
        patience=cell["patience"],
        validation=cell["validation"],
    )
    return PrefixEncoder(
        cell["d"],
        objective=Classification(shrinkage=0.5, own_heads=0),
        ordering=ordering,
        solver=solver,
        network=MLP(hidden=cell["hidden"], dropout=cell["dropout"]),
        random_state=cell["seed"],
    ).fit(X, y)


def probes(
    Z_fit: np.ndarray, y_fit: np.ndarray, Z: np.ndarray, y: np.ndarray, **options: object
) -> dict[str, np.ndarray]:
    """Return the accuracy of each coordinate alone, by the paper's logistic regression and by a rule blind to scale.

    The logistic regression of scikit-learn has a penalty of its own, which holds small coordinates back: part of the
    agreement of size and accuracy may be its doing. The discriminant rule of `axis_probe_accuracy` does not see scale.
    """
    from sklearn.linear_model import LogisticRegression

    from firstk.metrics import axis_probe_accuracy

    columns = range(Z.shape[1])
    logistic = [LogisticRegression(**options).fit(Z_fit[:, [k]], y_fit).score(Z[:, [k]], y) for k in columns]
    return {"probe": np.array(logistic), "scale_free_probe": axis_probe_accuracy(Z_fit, y_fit, Z, y)}


def clusters(points: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return how compact and how separate the classes are: mean silhouette, leave-one-out accuracy of neighbors."""
    from sklearn.metrics import silhouette_score
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=NEIGHBORS).fit(points).kneighbors(return_distance=False)  # but for themselves
    votes = np.apply_along_axis(np.bincount, 1, y[near], minlength=int(y.max()) + 1)
    right = float(np.mean(votes.argmax(axis=1) == y))
    return {"silhouette": round(float(silhouette_score(points, y)), 4), "neighbors": round(right, 4)}


def maps(Z: np.ndarray, y: np.ndarray, cell: JsonObject) -> JsonDict | None:
    """Return each prefix on a plane: its UMAP, or the first two coordinates where umap-learn is missing."""
    if cell["mapped"] is None:
        return None
    if cell["mapped"]["umap"] is None:
        return {"y": y.tolist(), "planes": {"2": _plane(Z[:, :2])}, "clusters": None}
    umap = require("umap", "umap", "talukder2026/fig6b")
    planes = {str(k): _umap(umap, Z[:, :k], cell["seed"]) for k in cell["map_prefixes"]}
    return {
        "y": y.tolist(),
        "planes": {k: _plane(plane) for k, plane in planes.items()},
        "clusters": [clusters(plane, y) for plane in planes.values()],
    }


def _plane(points: np.ndarray) -> list[list[float]]:
    """Return x and y of points, to the precision of a drawing."""
    return [[round(float(value), 3) for value in column] for column in points.T]


def _umap(umap: ModuleType, Z: np.ndarray, seed: int) -> np.ndarray:
    return umap.UMAP(random_state=seed, n_jobs=1).fit_transform(Z)
