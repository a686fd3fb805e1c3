"""Which eigen-subspaces an autoencoder has learned by when (figures 1 (bottom) and 3; theorem 2).

While a network is trained, what it fails to reconstruct of some training images is projected on their principal axes.
The axes are read in bands of growing width, and a linear probe reads the code at the same times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import spearmanr

from firstk.metrics import linear_probe_accuracy
from firstk_papers.frame.checks import require
from firstk_papers.frame.panels import Chart, Findings, Heatmap, Panel, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

if TYPE_CHECKING:
    from torch import Tensor

    from firstk_papers.balestriero2024.autoencoders import Autoencoder, Standardised

REVISION = 1
LEARNED = 0.5  # a band is learned when half of its variance is reconstructed
APPEALING = 0.8  # "look appealing" has no number in the paper: this share of the variance is reconstructed
TITLES = {"perceptron": "perceptron", "convolutional": "convolutional", "deep": "deep residual"}
RANKED = 6  # learned bands that it takes to speak of an order
SHOWN = 6  # times drawn as spectra


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return one cell a network."""
    names = ("set", "rows", "test_rows", "shrink", "watched", "code", "width", "epochs", "batch", "rate", "times")
    common = {name: settings[name] for name in (*names, "seed")}
    return [{**common, "network": network, "revision": REVISION} for network in settings["networks"]]


def measure(cell: JsonObject) -> JsonDict:
    """Train one autoencoder; return, at times spaced evenly in logarithm, the loss in each band and the probe."""
    torch = require("torch", "torch", "firstk reproduce")
    from firstk_papers.balestriero2024.autoencoders import NETWORKS, standardised
    from firstk_papers.balestriero2024.convolutional import Schedule, training
    from firstk_papers.balestriero2024.eigenspaces import eigenspaces, pixels

    data = pixels(cell["set"], cell["rows"], cell["test_rows"], cell["shrink"])
    axes = eigenspaces(cell["set"], cell["rows"], cell["shrink"]).encoder.components_
    images = standardised(data)
    torch.manual_seed(cell["seed"])
    network = NETWORKS[cell["network"]](data.shape, cell["code"], cell["width"])
    both = network.both

    def loss(rows: Tensor) -> Tensor:
        return (both(images.train[rows]) - images.train[rows]).square().mean()

    schedule = Schedule(cell["epochs"], cell["batch"], cell["rate"], one_cycle=False)
    total = schedule.epochs * max(1, cell["rows"] // schedule.batch)
    times = set(np.geomspace(1, total, cell["times"]).round().astype(int).tolist())
    watch = _Watch(cell, network, images, (data.y_train, data.y_test), axes)
    watch.look(0)
    for step in training(both, cell["rows"], loss, schedule, torch.Generator().manual_seed(cell["seed"])):
        if step in times:
            watch.look(step)
    return watch.record()


class _Watch:
    """Measures a network at chosen steps, and records the results."""

    def __init__(
        self,
        cell: JsonObject,
        network: Autoencoder,
        images: Standardised,
        labels: tuple[np.ndarray, np.ndarray],
        axes: np.ndarray,
    ):
        from firstk_papers.balestriero2024.convolutional import as_rows

        self.network, self.images, self.axes, self.n = network, images, axes, cell["watched"]
        self.y_train, self.y_test = labels[0][: self.n], labels[1]
        self.X = as_rows(images.train[: self.n])
        self.edges = band_edges(len(axes))
        self.variance = band_sums(self.X, axes, self.edges)
        self.whole = float(np.square(self.X, dtype=np.float64).sum() / self.n)
        self.seen: list[tuple[int, np.ndarray, float, float]] = []

    def look(self, step: int) -> None:
        """Measure the loss in each band, the loss as a whole, and the accuracy of a linear probe of the code."""
        from firstk_papers.balestriero2024.convolutional import as_rows, evaluated

        codes = evaluated(self.network.encoder, self.images.train[: self.n])
        left = self.X - as_rows(evaluated(self.network.decoder, codes))
        test = evaluated(self.network.encoder, self.images.test)
        probe = linear_probe_accuracy(codes.numpy(), self.y_train, test.numpy(), self.y_test)[-1]
        loss = float(np.square(left, dtype=np.float64).sum() / self.n)
        self.seen.append((step, band_sums(left, self.axes, self.edges), loss / self.whole, float(probe)))

    def record(self) -> JsonDict:
        """Return everything as JSON values; losses are shares of what the mean image leaves."""
        steps, bands, loss, probe = zip(*self.seen, strict=True)
        return {
            "edges": self.edges.tolist(),
            "spectrum": rounded(self.variance / np.diff(self.edges)),
            "steps": list(steps),
            "bands": [rounded(row / self.variance) for row in bands],
            "loss": rounded(loss),
            "probe": rounded(probe),
        }


def band_edges(r: int) -> np.ndarray:
    """Return the first axes of bands that grow by half an octave, and r at the end: 0, 1, 2, 3, 4, 6, 8, 11, ..."""
    most = int(2 * np.log2(r))
    return np.unique([0, *(round(2 ** (i / 2)) for i in range(most + 1)), r])


def band_sums(X: np.ndarray, axes: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the mean squared coordinate of rows along the axes, summed over each band of axes."""
    squares = np.square(X @ axes.T.astype(X.dtype), dtype=np.float64).mean(axis=0)
    return np.add.reduceat(squares, edges[:-1])


def learned_at(steps: list[int], losses: list[float]) -> float | None:
    """Return when a band is learned: the step, between looks, at which its loss falls to half for good; else None."""
    above = [i for i, loss in enumerate(losses) if loss is None or loss > LEARNED]
    last = above[-1] if above else -1
    if last == len(losses) - 1:
        return None
    if last < 0:
        return float(steps[0])
    share = (losses[last] - LEARNED) / (losses[last] - losses[last + 1])
    return float(steps[last] + share * (steps[last + 1] - steps[last]))


def report(settings: JsonObject, results: Results) -> Findings:
    """Report the order in which bands are learned, how late the last one is, and what the probe gains late."""
    measures: JsonDict = {}
    rows, censored = [], []
    for cell, found in results:
        name = TITLES[cell["network"]]
        measures |= {f"{cell['network']}_{key}": value for key, value in _summary(found).items()}
        rows += _rows(name, found)
        never = [first for (first, _), at in zip(_bands(found), _times(found), strict=True) if at is None]
        if never:
            censored.append(
                f"{name}: {len(never)} bands, the first at axis {never[0]:,}, were not learned within "
                f"{found['steps'][-1]:,} steps ({cell['epochs']} epochs); together they count as one, the last."
            )
    table = Table("Bands of axes", ("network", "axes", "share of loss left at the end", "learned at step"), tuple(rows))
    notes = (
        f"Adam at a constant rate of {settings['rate']}; the loss in a band is what the network leaves of "
        f"{settings['watched']:,} training images along those principal axes, as a share of their variance there.",
        f"A band is learned when that share is below {LEARNED:.0%} for good; in between looks, by a straight line.",
    )
    return Findings(measures, (*_drawn(results), table), notes, tuple(censored))


def _drawn(results: Results) -> list[Panel]:
    """Draw a row for each network: its spectra, its map, and one of the two charts of all networks."""
    timing = Chart(
        "When half of a band is learned",
        "principal axis",
        "training steps",
        tuple(Series(TITLES[cell["network"]], _middles(found), rounded(_times(found))) for cell, found in results),
        x_scale="log",
        y_scale="log",
    )
    probes = Chart(
        "What a linear probe of the code reads",
        "training steps",
        "test accuracy",
        tuple(_probe(cell, found) for cell, found in results),
        x_scale="log",
    )
    of_all = [timing, probes]
    drawn: list[Panel] = []
    for cell, found in results:
        drawn += [_spectra(cell, found), _map(cell, found), *of_all[:1]]
        of_all = of_all[1:]
    return [*drawn, *of_all]


def _times(found: JsonObject) -> list[float | None]:
    return [learned_at(found["steps"], list(losses)) for losses in zip(*found["bands"], strict=True)]


def _bands(found: JsonObject) -> list[tuple[int, int]]:
    """Return the first and last axis of each band, counted from 1."""
    return [(a + 1, b) for a, b in zip(found["edges"][:-1], found["edges"][1:], strict=True)]


def _summary(found: JsonObject) -> JsonDict:
    """Return the measures of one network."""
    times, end = _times(found), float(found["steps"][-1])
    known = [(i, at) for i, at in enumerate(times) if at is not None]
    # Bands that are not learned count as one, the last.
    order = [*known, *[(i, 2 * end) for i, at in enumerate(times) if at is None][:1]]
    first, last = min(at for _, at in order), max(min(at, end) for _, at in order)
    good = [i for i, loss in enumerate(found["loss"]) if loss <= 1 - APPEALING]
    return {
        "top_first": times[0] == first,
        "order": float(spearmanr(*np.array(order).T).statistic) if len(known) >= RANKED else None,
        "last_to_first": last / max(first, 1.0),
        "learned_bands": len(known),
        "appealing_at": found["steps"][good[0]] if good else None,
        "probe_gain_after": found["probe"][-1] - found["probe"][good[0]] if good else None,
        "loss": found["loss"][-1],
        "probe": found["probe"][-1],
    }


def _middles(found: JsonObject) -> tuple[float, ...]:
    """Return the middle axis of each band, on a logarithmic scale."""
    return tuple(round(float(np.sqrt(a * b)), 3) for a, b in _bands(found))


def _probe(cell: JsonObject, found: JsonObject) -> Series:
    """Draw accuracy over steps; the look before training has no place on a logarithmic axis."""
    steps = tuple(float(step) for step in found["steps"][1:])
    return Series(TITLES[cell["network"]], steps, rounded(found["probe"][1:]))


def _spectra(cell: JsonObject, found: JsonObject) -> Chart:
    """Draw the loss along each axis, at some times, against the variance of the data there (the paper's black line)."""
    x = _middles(found)
    picked = np.unique(np.linspace(1, len(found["steps"]) - 1, SHOWN).round().astype(int))
    series = [Series("the data", x, rounded(found["spectrum"]), ours=True)]
    for rank, i in enumerate(picked, start=1):
        loss = [share * variance for share, variance in zip(found["bands"][i], found["spectrum"], strict=True)]
        series.append(Series(f"look {rank} (of {len(picked)})", x, rounded(loss)))
    steps = ", ".join(f"{found['steps'][i]:,}" for i in picked)
    title = f"{TITLES[cell['network']]}: loss after {steps} steps"
    return Chart(title, "principal axis", "loss along it", tuple(series), x_scale="log", y_scale="log")


def _map(cell: JsonObject, found: JsonObject) -> Heatmap:
    values = tuple(zip(*(rounded(min(share, 1.0) for share in row) for row in found["bands"]), strict=True))
    title = f"{TITLES[cell['network']]}: share of loss left"
    return Heatmap(title, "look at the network, evenly in log(steps)", "band of axes, the top first", values, 0.0, 1.0)


def _rows(title: str, found: JsonObject) -> list[tuple[str | float | int | None, ...]]:
    ends = found["bands"][-1]
    return [
        (title, f"{a:,} to {b:,}" if b > a else f"{a:,}", round(end, 3), None if at is None else round(at, 1))
        for (a, b), end, at in zip(_bands(found), ends, _times(found), strict=True)
    ]
