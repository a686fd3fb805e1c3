"""A small convolutional network trained and tested on images that keep one end of the spectrum (figures 1, 4, 8).

A cell is one network: a set, an end and a share of variance, a loss, with or without augmentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firstk_papers.frame.checks import require
from firstk_papers.frame.panels import Chart, Findings, Mark, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Generator, Tensor, nn

REVISION = 1
TITLES = {"cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST"}
BACKGROUND, PLAIN = "cifar10", "fashion-mnist"  # the set with background, and the one without
# The abstract's pair, and that of figure 10: shares of the top and of the bottom.
ABSTRACT, DEPICTED = (0.9, 0.2), (0.75, 0.25)


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return a cell for each network of each grid; a grid names sets, augmentation, and the shares of both ends."""
    common = {name: settings[name] for name in ("loss", "test_rows", "shrink", "epochs", "batch", "rate", "width")}
    found = []
    for grid in settings["grids"]:
        ends = [("top", share) for share in grid["top"]] + [("bottom", share) for share in grid["bottom"]]
        ends += [("whole", 1.0)] if grid["whole"] else []
        for end, share in ends:
            place = {"set": grid["set"], "rows": grid["rows"], "augment": grid["augment"], "end": end, "share": share}
            found.append({**common, **place, "seed": settings["seed"], "revision": REVISION})
    return found


def measure(cell: JsonObject) -> JsonDict:
    """Train one network on projected images; return its accuracy on test images projected the same way."""
    torch = require("torch", "torch", "firstk reproduce")
    from firstk_papers.balestriero2024.convolutional import Schedule, as_images, classifier, evaluated, training
    from firstk_papers.balestriero2024.eigenspaces import eigenspaces, pixels

    data = pixels(cell["set"], cell["rows"], cell["test_rows"], cell["shrink"])
    spaces = eigenspaces(cell["set"], cell["rows"], cell["shrink"])
    k = spaces.cut(cell["end"], cell["share"])
    train, test = (spaces.project(X, cell["end"], k) for X in (data.X_train, data.X_test))
    # One factor for all pixels: a subspace of little variance must not fail for being small.
    scale = np.float32(1 / train.std(dtype=np.float64))
    images, test_images = as_images(train * scale, data.shape), as_images(test * scale, data.shape)
    torch.manual_seed(cell["seed"])
    generator = torch.Generator().manual_seed(cell["seed"])
    network = classifier(data.shape[2], int(data.y_train.max()) + 1, cell["width"])
    loss = _loss(cell, network, images, torch.from_numpy(data.y_train), generator)
    schedule = Schedule(cell["epochs"], cell["batch"], cell["rate"], one_cycle=True)
    for _ in training(network, len(images), loss, schedule, generator):
        pass
    hits = evaluated(network, test_images).argmax(1).numpy() == data.y_test
    return {"accuracy": float(hits.mean()), "axes": k, "kept": spaces.kept(cell["end"], k), "tested": len(hits)}


def _loss(
    cell: JsonObject, network: nn.Module, images: Tensor, labels: Tensor, generator: Generator
) -> Callable[[Tensor], Tensor]:
    """Return the loss of a batch: cross-entropy, or the squared distance from one-hot labels."""
    from torch.nn import functional

    from firstk_papers.balestriero2024.convolutional import augmented

    def of_rows(rows: Tensor) -> Tensor:
        batch = augmented(images[rows], generator) if cell["augment"] else images[rows]
        scores = network(batch)
        if cell["loss"] == "cross_entropy":
            return functional.cross_entropy(scores, labels[rows])
        hot = functional.one_hot(labels[rows], scores.shape[1]).to(scores.dtype)
        return (scores - hot).square().sum(1).mean()

    return of_rows


def report(settings: JsonObject, results: Results) -> Findings:
    """Compare the two ends in every grid: at equal shares of variance, and at the pairs that the paper names."""
    # A tier that leaves a grid out still names its measures: they are not evaluated there.
    measures = {
        f"{_name(part, augment)}_{key}": value
        for part in TITLES
        for augment in (False, True)
        for key, value in compared([]).items()
    }
    panels, rows = [], []
    for grid in settings["grids"]:
        name = _name(grid["set"], grid["augment"])
        mine = [
            (cell, result)
            for cell, result in results
            if (cell["set"], cell["augment"]) == (grid["set"], grid["augment"])
        ]
        measures |= {f"{name}_{key}": value for key, value in compared(mine).items()}
        title = f"{TITLES[grid['set']]}, {'with' if grid['augment'] else 'without'} augmentation"
        panels.append(_chart(title, mine))
        rows += [
            (title, cell["end"], cell["share"], round(found["kept"], 4), found["axes"], round(found["accuracy"], 4))
            for cell, found in mine
        ]
    columns = ("set", "end", "share asked", "share kept", "axes kept (top) or removed", "test accuracy")
    measures |= _across_sets(measures)
    loss = "cross-entropy" if settings["loss"] == "cross_entropy" else "squared error from one-hot labels"
    notes = (
        f"Trained with {loss} for {settings['epochs']} epochs, one network and one seed a point; the standard error of "
        f"an accuracy on {settings['test_rows']:,} test images is at most {0.5 / settings['test_rows'] ** 0.5:.3f}.",
        "The top holds at least the share named, the bottom at most; both are centred and divided by one number.",
    )
    return Findings(measures, (*panels, Table("Test accuracy of each network", columns, tuple(rows))), notes)


def _name(part: str, augment: bool) -> str:
    """Return what the measures of a grid begin with: "cifar10_plain", "fashion_augmented"."""
    return f"{part.partition('-')[0]}_{'augmented' if augment else 'plain'}"


def compared(results: Results) -> JsonDict:
    """Return the gap (bottom less top) at shares that both ends have, and at the paper's pairs; None where missing."""
    accuracy = {(cell["end"], cell["share"]): found["accuracy"] for cell, found in results}
    shares = sorted(share for end, share in accuracy if end == "top" and ("bottom", share) in accuracy)
    gaps = [accuracy["bottom", share] - accuracy["top", share] for share in shares]

    def gap(pair: tuple[float, float]) -> float | None:
        top, bottom = accuracy.get(("top", pair[0])), accuracy.get(("bottom", pair[1]))
        return None if top is None or bottom is None else bottom - top

    return {
        "least_gap": min(gaps) if gaps else None,
        "mean_gap": float(np.mean(gaps)) if gaps else None,
        "top90_bottom20_gap": gap(ABSTRACT),
        "top75_bottom25_gap": gap(DEPICTED),
        "top90": accuracy.get(("top", ABSTRACT[0])),
        "bottom20": accuracy.get(("bottom", ABSTRACT[1])),
        "whole": accuracy.get(("whole", 1.0)),
    }


def _across_sets(measures: JsonObject) -> JsonDict:
    """Return how much larger the mean gap is with background than without, in each half of the figure."""
    found = {}
    for augment, kind in ((False, "plain"), (True, "augmented")):
        with_it, without = (measures[f"{_name(part, augment)}_mean_gap"] for part in (BACKGROUND, PLAIN))
        found[f"{kind}_background_effect"] = None if with_it is None or without is None else with_it - without
    return found


def _chart(title: str, results: Results) -> Chart:
    """Return a chart of accuracy against the share of variance that is really kept, one line an end."""
    series = []
    for end in ("top", "bottom"):
        points = sorted((100 * found["kept"], found["accuracy"]) for cell, found in results if cell["end"] == end)
        x, y = zip(*points, strict=True)
        series.append(Series(f"{end} subspace", tuple(round(value, 3) for value in x), rounded(y)))
    marks = tuple(Mark(found["accuracy"], "y", "whole images") for cell, found in results if cell["end"] == "whole")
    return Chart(title, "share of pixel variance kept, %", "test accuracy", tuple(series), marks=marks)
