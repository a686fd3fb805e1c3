"""Digits rebuilt from the first k coordinates of a linear autoencoder (Talukder et al. 2026 figure 6a).

Two trained autoencoders and the closed form are compared by eye, by squared error, and by a classifier that was fitted
on images as they are: it says whether a rebuilt digit can still be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from firstk_papers.frame.panels import Chart, Findings, Mark, Pictures, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

if TYPE_CHECKING:
    from firstk import PrefixEncoder

REVISION = 1
NAMES = {"unordered": "unordered", "full_prefix": "full prefix", "solved": "full prefix, solved"}
CLASSIFIER_ROWS, CLASSIFIER_SHRINKAGE = 20_000, 0.1


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return a cell for each seed of each trained method, and one for the closed form, which needs no seed."""
    names = ("rows", "test_rows", "d", "epochs", "batch_size", "learning_rate", "weight_decay", "prefixes", "digits")
    common = {name: settings[name] for name in names} | {"revision": REVISION}
    trained = [common | {"method": m, "seed": s} for s in settings["seeds"] for m in ("unordered", "full_prefix")]
    return [*trained, common | {"method": "solved", "seed": 0}]


def measure(cell: JsonObject) -> JsonDict:
    """Fit one autoencoder; return its errors, what can still be read, and one picture of each digit."""
    from firstk_papers.datasets.images import images

    mnist = images("mnist")
    encoder = fitted(cell, mnist.X_train[: cell["rows"]])
    X, y = mnist.X_test[: cell["test_rows"]], mnist.y_test[: cell["test_rows"]]
    Z = encoder.transform(X)
    rebuilt = {k: encoder.inverse_transform(Z[:, :k]) for k in cell["prefixes"]}
    classifier = _classifier(cell["rows"])
    firsts = [int(np.flatnonzero(y == digit)[0]) for digit in cell["digits"]]
    return {
        "left": rounded(left_over(X, encoder.encoder_.mean, Z, encoder.decoder_)),
        "told": rounded(told(classifier.predict(R), y, cell["digits"]) for R in rebuilt.values()),
        "told_as_they_are": _digits(told(classifier.predict(X), y, cell["digits"])),
        "originals": [_bytes(X[i]) for i in firsts],
        "pictures": [[_bytes(R[i]) for R in rebuilt.values()] for i in firsts],
    }


def fitted(cell: JsonObject, X: np.ndarray) -> PrefixEncoder:
    """Return a linear autoencoder: trained from a random start as in Talukder et al. 2026 table 1, or solved."""
    from firstk import FullPrefix, Gradient, PrefixEncoder, Unordered

    if cell["method"] == "solved":
        return PrefixEncoder(cell["d"]).fit(X)
    full = FullPrefix(omega="uniform", estimator="exact", orthonormal_decoder=True)
    solver = Gradient(
        optimizer="adam",
        schedule="constant",
        learning_rate=cell["learning_rate"],
        weight_decay=cell["weight_decay"],
        batch_size=cell["batch_size"],
        epochs=cell["epochs"],
    )
    ordering = full if cell["method"] == "full_prefix" else Unordered()
    return PrefixEncoder(
        cell["d"], ordering=ordering, solver=solver, init="random", random_state=cell["seed"]
    ).fit(X)  # fmt: skip


@lru_cache(maxsize=2)
def _classifier(rows: int) -> PrefixEncoder:
    """Return the classifier that reads images: Fisher's discriminants with their own head."""
    from firstk import Fisher, PrefixEncoder
    from firstk_papers.datasets.images import images

    mnist, rows = images("mnist"), min(rows, CLASSIFIER_ROWS)
    return PrefixEncoder(objective=Fisher(shrinkage=CLASSIFIER_SHRINKAGE)).fit(
        mnist.X_train[:rows], mnist.y_train[:rows]
    )


def told(read: np.ndarray, y: np.ndarray, digits: Sequence[int]) -> float:
    """Return how well some digits are recognized: the share of a digit's images read as it, less that of other images.

    1 is perfect and 0 is chance. A grey blur resembles the mean image, which is read as one and the same digit
    whatever it was: its hits alone would pass for recognition.
    """
    return float(np.mean([np.mean(read[y == c] == c) - np.mean(read[y != c] == c) for c in digits]))


def left_over(X: np.ndarray, mean: np.ndarray, Z: np.ndarray, decoder: np.ndarray | None) -> np.ndarray:
    """Return the share of the variation about `mean` that each prefix does not rebuild, (d,)."""
    from firstk.metrics import explained_variance

    assert decoder is not None  # the objective is reconstruction
    return 1 - explained_variance(X - mean, Z, decoder)


def _bytes(image: np.ndarray) -> str:
    return np.round(np.clip(image, 0, 1) * 255).astype(np.uint8).tobytes().hex()


def report(settings: JsonObject, results: Results) -> Findings:
    """Return figure 6a with the numbers behind it."""
    prefixes = settings["prefixes"]
    runs = {method: [found for cell, found in results if cell["method"] == method] for method in NAMES}
    left = {method: np.array([run["left"] for run in found]) for method, found in runs.items()}  # (seeds, d)
    read = {method: np.array([run["told"] for run in found]) for method, found in runs.items()}
    at = [k - 1 for k in prefixes]
    ours, other = left["full_prefix"][:, at], left["unordered"][:, at]
    measures = {
        "full_prefix_told_at_2": _digits(read["full_prefix"][:, prefixes.index(2)].mean()),
        "unordered_told_at_2": _digits(read["unordered"][:, prefixes.index(2)].mean()),
        "told_as_they_are": runs["solved"][0]["told_as_they_are"],
        "full_prefix_largest_rise_of_error": _digits(np.diff(ours, axis=1).max()),
        "full_prefix_largest_fall_of_telling": _digits(-np.diff(read["full_prefix"].mean(axis=0)).min()),
        "least_error_saved_below_full_width": _digits((other - ours)[:, :-1].min()),
        "unordered_error_at_2": _digits(other[:, prefixes.index(2)].mean()),
        "full_prefix_error_at_2": _digits(ours[:, prefixes.index(2)].mean()),
        "largest_excess_over_solved": _digits((left["full_prefix"] - left["solved"]).max()),
    }
    whole = Mark(measures["told_as_they_are"], "y", "images as they are")
    charts = _charts(prefixes, left, read, whole)
    return Findings(measures, (_pictures(settings, runs), *charts, _table(prefixes, left, read)), notes=(_note(),))


def _note() -> str:
    return (
        "The fixed classifier is Fisher's discriminants with their own head, fitted on training images as they are. A "
        "digit is told by its hits less its false alarms: 1 is perfect, 0 is chance."
    )


def _digits(value: float) -> float:
    return round(float(value), 5)


def _pictures(settings: JsonObject, runs: Mapping[str, Sequence[JsonObject]]) -> Pictures:
    rows, pixels = [], []
    for i, digit in enumerate(settings["digits"]):
        for method in ("unordered", "full_prefix"):
            found = runs[method][0]
            rows.append(f"{digit}, {NAMES[method]}")
            pixels.append((*found["pictures"][i], found["originals"][i]))
    columns = (*(f"k = {k}" for k in settings["prefixes"]), "image")
    return Pictures("Rebuilt from k coordinates", tuple(rows), columns, (28, 28), tuple(pixels))


def _charts(
    prefixes: Sequence[int], left: Mapping[str, np.ndarray], read: Mapping[str, np.ndarray], whole: Mark
) -> tuple[Chart, Chart]:
    def series(method: str, x: Sequence[float], values: np.ndarray) -> Series:
        mean, low, high = (rounded(f(axis=0)) for f in (values.mean, values.min, values.max))
        return Series(NAMES[method], tuple(x), mean, low, high, ours=method == "solved")

    every = range(1, next(iter(left.values())).shape[1] + 1)
    errors = tuple(series(method, [float(k) for k in every], values) for method, values in left.items())
    shares = tuple(series(method, [float(k) for k in prefixes], values) for method, values in read.items())
    return (
        Chart("Squared error, test images", "k", "share of variance that is left", errors),
        Chart("Can a fixed classifier tell 3 and 8?", "k", "hits less false alarms", shares, marks=(whole,)),
    )


def _table(prefixes: Sequence[int], left: Mapping[str, np.ndarray], read: Mapping[str, np.ndarray]) -> Table:
    rows = []
    for method in NAMES:
        for i, k in enumerate(prefixes):
            rows.append((NAMES[method], k, _digits(left[method][:, k - 1].mean()), _digits(read[method][:, i].mean())))
    return Table("Means over seeds", ("method", "k", "error left", "hits less false alarms"), tuple(rows))
