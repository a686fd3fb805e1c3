"""Pairs of autoencoders, alike but for a classification loss on the code of one (section 4.1, figures 5 and 7).

A cell is one autoencoder. Its losses and the accuracy of a linear probe are recorded epoch by epoch, so that a pair can
be compared at the same reconstruction error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from firstk import PrefixEncoder
from firstk.metrics import linear_probe_accuracy
from firstk_papers.frame.checks import require
from firstk_papers.frame.panels import Chart, Findings, Pictures, Series, Table, rounded
from firstk_papers.frame.types import JsonDict, JsonObject, Results

if TYPE_CHECKING:
    from torch import Tensor

    from firstk_papers.balestriero2024.autoencoders import Autoencoder, Standardised
    from firstk_papers.balestriero2024.eigenspaces import Pixels

REVISION = 1
NAMES = {False: "reconstruction only", True: "with classification"}
LEVELS = 25  # errors at which a pair is compared
SAME = 0.05  # training errors are the same when they differ by at most this share


def cells(settings: JsonObject) -> list[JsonDict]:
    """Return cells for each width of the code: one without supervision, and one for each weight of it."""
    names = ("set", "rows", "test_rows", "shrink", "network", "width", "epochs", "batch", "rate", "shown")
    common = {name: settings[name] for name in (*names, "seed")}
    return [
        {**common, "code": code, "supervision": weight, "revision": REVISION}
        for code in settings["codes"]
        for weight in (0.0, *settings["supervisions"])
    ]


def measure(cell: JsonObject) -> JsonDict:
    """Train one autoencoder on augmented images; return its history, its probes and some of its reconstructions.

    The loss is equation (8) of Balestriero and LeCun 2024, divided by lambda: the mean squared error plus `supervision`
    times the cross-entropy of a linear head on the code.
    """
    torch = require("torch", "torch", "firstk reproduce")
    from firstk_papers.balestriero2024.autoencoders import NETWORKS, standardised
    from firstk_papers.balestriero2024.convolutional import Schedule, augmented, training
    from firstk_papers.balestriero2024.eigenspaces import pixels

    data = pixels(cell["set"], cell["rows"], cell["test_rows"], cell["shrink"])
    images = standardised(data)
    labels = torch.from_numpy(data.y_train)
    torch.manual_seed(cell["seed"])
    network = NETWORKS[cell["network"]](data.shape, cell["code"], cell["width"])
    # The head is made in both, so that a pair begins with the same weights.
    head = torch.nn.Linear(cell["code"], int(labels.max()) + 1)
    generator = torch.Generator().manual_seed(cell["seed"])

    def loss(rows: Tensor) -> Tensor:
        batch = augmented(images.train[rows], generator)
        codes = network.encoder(batch)
        error = (network.decoder(codes) - batch).square().mean()
        if not cell["supervision"]:
            return error
        return error + cell["supervision"] * torch.nn.functional.cross_entropy(head(codes), labels[rows])

    schedule = Schedule(cell["epochs"], cell["batch"], cell["rate"], one_cycle=True)
    whole = torch.nn.ModuleList([network.both, head])
    per_epoch = max(1, cell["rows"] // cell["batch"])
    history = []
    for step in training(whole, cell["rows"], loss, schedule, generator):
        if step % per_epoch == 0:
            history.append(_looked(network, images, (data.y_train, data.y_test)))
    return _record(cell, network, images, data, history)


def _looked(
    network: Autoencoder, images: Standardised, labels: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float, float]:
    """Return the training and test error, and the test accuracy of a linear probe of the code."""
    from firstk_papers.balestriero2024.convolutional import evaluated

    train, test = (evaluated(network.encoder, part) for part in (images.train, images.test))
    errors = [
        float((evaluated(network.decoder, codes) - part).square().mean())
        for codes, part in ((train, images.train), (test, images.test))
    ]
    probe = linear_probe_accuracy(train.numpy(), labels[0], test.numpy(), labels[1])[-1]
    return errors[0], errors[1], float(probe)


def _record(
    cell: JsonObject,
    network: Autoencoder,
    images: Standardised,
    data: Pixels,
    history: list[tuple[float, float, float]],
) -> JsonDict:
    """Return the history, a nonlinear probe of the final code, and the first test images with their reconstructions."""
    from firstk_papers.balestriero2024.convolutional import as_rows, evaluated

    train, test = (evaluated(network.encoder, part).numpy() for part in (images.train, images.test))
    scale = train.std(dtype=np.float64).astype(np.float32)
    probe = PrefixEncoder(
        min(64, cell["code"]),
        objective="classification",
        ordering="unordered",
        network="mlp",
        random_state=cell["seed"],
    ).fit(train / scale, data.y_train)
    shown = evaluated(network.decoder, evaluated(network.encoder, images.test[: cell["shown"]]))
    rebuilt = as_rows(shown) * images.scale + images.mean
    train_error, test_error, linear = zip(*history, strict=True)
    return {
        "train_error": rounded(train_error),
        "test_error": rounded(test_error),
        "linear": rounded(linear),
        "nonlinear": float(np.mean(probe.predict(test / scale) == data.y_test)),
        "shape": list(data.shape),
        "originals": [as_bytes(row) for row in data.X_test[: cell["shown"]]],
        "rebuilt": [as_bytes(row) for row in rebuilt],
    }


def as_bytes(row: np.ndarray) -> str:
    """Return pixels in [0, 1], cut to that range, as bytes in hexadecimal."""
    return np.clip(np.rint(row * 255), 0, 255).astype(np.uint8).tobytes().hex()


def pairs_of(results: Results) -> dict[int, dict[bool, JsonDict]]:
    """Return, for each width of the code, the network without supervision (False) and its twin (True).

    The twin has the strongest supervision that leaves the final training error the same, within 5 %; where none does,
    the weakest. Accuracy has no say in the choice.
    """
    by_code: dict[int, dict[float, JsonDict]] = {}
    for cell, result in results:
        by_code.setdefault(cell["code"], {})[cell["supervision"]] = {**result, "supervision": cell["supervision"]}
    found = {}
    for code, parts in by_code.items():
        plain = parts[0.0]
        weights = sorted(weight for weight in parts if weight)
        same = [weight for weight in weights if error_change(plain, parts[weight], "train_error") <= SAME]
        found[code] = {False: plain, True: parts[max(same, default=weights[0])]}
    return found


def error_change(plain: JsonObject, guided: JsonObject, error: str) -> float:
    """Return by what share supervision changes the final error."""
    return abs(guided[error][-1] / plain[error][-1] - 1)


def gap_at_equal_error(pair: Mapping[bool, JsonObject], error: str = "test_error") -> float | None:
    """Return the least gain of the probe by supervision, over errors that both networks passed on their way.

    Both accuracies are read along training, as a function of the lowest error so far.
    """
    curves = {}
    for supervised, found in pair.items():
        lowest = np.minimum.accumulate(found[error])
        new = np.concatenate([[True], np.diff(lowest) < 0])
        curves[supervised] = lowest[new][::-1], np.array(found["linear"])[new][::-1]
    low = max(errors[0] for errors, _ in curves.values())
    high = min(errors[-1] for errors, _ in curves.values())
    if low > high:
        return None
    levels = np.linspace(low, high, LEVELS)
    return float(np.min(np.interp(levels, *curves[True]) - np.interp(levels, *curves[False])))


def compared(pair: Mapping[bool, JsonObject]) -> JsonDict:
    """Return how a pair differs at the end of training: errors as shares, accuracies as differences."""
    plain, guided = pair[False], pair[True]
    return {
        "train_error_change": error_change(plain, guided, "train_error"),
        "test_error_change": error_change(plain, guided, "test_error"),
        "supervision": guided["supervision"],
        "linear_gap": guided["linear"][-1] - plain["linear"][-1],
        "nonlinear_gap": guided["nonlinear"] - plain["nonlinear"],
        "gap_at_equal_error": gap_at_equal_error(pair),
    }


def widths(settings: JsonObject, results: Results) -> Findings:
    """Report figure 5: accuracy against error, for codes of several widths."""
    pairs = pairs_of(results)
    each = {code: compared(pair) for code, pair in pairs.items()}
    gaps = [found["gap_at_equal_error"] for found in each.values()]
    measures = {
        "least_linear_gap": min(found["linear_gap"] for found in each.values()),
        "largest_linear_gap": max(found["linear_gap"] for found in each.values()),
        "least_gap_at_equal_error": None if None in gaps else min(gaps),
        "largest_train_error_change": max(found["train_error_change"] for found in each.values()),
        "largest_test_error_change": max(found["test_error_change"] for found in each.values()),
    }
    charts = tuple(
        Chart(
            f"Probe against {kind} error, epoch by epoch",
            f"{kind} reconstruction error (the mean image: 1)",
            "test accuracy, linear probe",
            tuple(
                Series(f"{code}, {NAMES[supervised]}", found[f"{kind}_error"], found["linear"], ours=supervised)
                for code, pair in pairs.items()
                for supervised, found in pair.items()
            ),
        )
        for kind in ("train", "test")
    )
    relative = Chart(
        "Gain of the probe by supervision, at the end",
        "width of the code",
        "relative gain in accuracy",
        (
            Series(
                "linear probe",
                tuple(float(code) for code in pairs),
                rounded(found["linear_gap"] / pairs[code][False]["linear"][-1] for code, found in each.items()),
            ),
        ),
    )
    return Findings(measures, (*charts, relative, _table(results)), _notes(settings))


def one_pair(settings: JsonObject, results: Results) -> Findings:
    """Report figure 7: one pair, with its curves, both probes and its reconstructions."""
    (pair,) = pairs_of(results).values()
    epochs = tuple(float(e) for e in range(1, settings["epochs"] + 1))
    curves = {"train_error": "training error", "test_error": "test error", "linear": "linear probe"}
    charts = tuple(
        Chart(
            label.capitalize(),
            "epochs",
            "test accuracy" if key == "linear" else "reconstruction error (the mean image: 1)",
            tuple(Series(NAMES[supervised], epochs, found[key], ours=supervised) for supervised, found in pair.items()),
        )
        for key, label in curves.items()
    )
    plain, guided = pair[False], pair[True]
    pictures = Pictures(
        "Test images and their reconstructions",
        ("images", NAMES[False], NAMES[True]),
        tuple(str(i + 1) for i in range(len(plain["originals"]))),
        tuple(plain["shape"]) if plain["shape"][2] > 1 else tuple(plain["shape"][:2]),
        (tuple(plain["originals"]), tuple(plain["rebuilt"]), tuple(guided["rebuilt"])),
    )
    measures = {
        **compared(pair),
        "plain_linear": plain["linear"][-1],
        "guided_linear": guided["linear"][-1],
        "plain_nonlinear": plain["nonlinear"],
        "guided_nonlinear": guided["nonlinear"],
    }
    return Findings(measures, (pictures, *charts, _table(results)), _notes(settings))


def _table(results: Results) -> Table:
    columns = ("code", "weight of supervision", "training error", "test error", "linear probe", "nonlinear probe")
    rows = tuple(
        (
            cell["code"],
            cell["supervision"],
            *(round(found[key][-1], 4) for key in ("train_error", "test_error", "linear")),
            round(found["nonlinear"], 4),
        )
        for cell, found in results
    )
    return Table("At the end of training", columns, rows)


def _notes(settings: JsonObject) -> tuple[str, ...]:
    weights = " or ".join(str(weight) for weight in settings["supervisions"])
    return (
        f"Networks of one width begin with the same weights and see the same augmented images, {settings['epochs']} "
        f"epochs of {settings['rows']:,}; supervision adds {weights} times the cross-entropy of a linear head on the "
        f"code. Drawn is the strongest that changes the final training error by at most {SAME:.0%}, else the weakest.",
        "Errors are mean squares over all pixels, divided by that of the mean image.",
    )
