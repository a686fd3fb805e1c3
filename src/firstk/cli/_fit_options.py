"""The options of ``firstk fit``: one name each, so that the command's signature reads as a list, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstk._base.checks import bad_parameter, check_choice
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from firstk import contracts
    from firstk.encoder.network import MLP
    from firstk.objectives import GaussianNoise, Masking
    from firstk.orderings import SparsePrefix

OBJECTIVES = "reconstruction, fisher, classification, regression, similarity, mixture or denoising"
# Settings of objectives, in the order in which the command hands them on.
SETTINGS = ("shrinkage", "lam", "noise", "keep", "neighbor_weight", "fidelity")

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")]
Objective = Annotated[str, typer.Option(help=f"What a good prefix is: {OBJECTIVES}.")]
HeldOut = Annotated[
    str,
    typer.Option(
        "--held-out", metavar="SHARE|FILE", help="Rows to evaluate on: a share (at most 10,000), a file, or 0."
    ),
]
Components = Annotated[
    int | None, typer.Option(min=1, help="Width of the code. Without it: all coordinates that carry signal.")
]
Ordering = Annotated[str, typer.Option(help="How coordinates get their order; sparse_prefix:8,16,32 has a list.")]
Solver = Annotated[str, typer.Option(help="auto, closed_form or gradient.")]
Network = Annotated[str, typer.Option(help="linear, mlp, or mlp:256,256.")]
Shrinkage = Annotated[str | None, typer.Option(help="A number in [0, 1], none or auto.")]
Lam = Annotated[float | None, typer.Option(help="mixture only: weight of reconstruction against labels.")]
Noise = Annotated[str | None, typer.Option(help="Of denoising: masking:SHARE_KEPT or gaussian:SIGMA.")]
Keep = Annotated[str | None, typer.Option(help="Of similarity without pairs: neighbors or dot_products.")]
NeighborWeight = Annotated[str | None, typer.Option(help="Of similarity with pairs: weight of mined ones, or auto.")]
Fidelity = Annotated[float | None, typer.Option(help="Of trained, scored pairs: weight of the full-width cosine.")]
Image = Annotated[str | None, typer.Option(help="Vectors are images of this shape: 28x28 or 32x32x3.")]
SourceModel = Annotated[str | None, typer.Option("--source-model", help="Name of the model that made the vectors.")]
CheckpointFile = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", help="Where moments are kept while rows are read; OUT.checkpoint."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint of a fit that was stopped while it read rows.")
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Let the workers of a dask cluster read and measure the files."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the held-out part and of training.")]


def objective_of(name: str, given: dict[str, str | float | None]) -> contracts.Objective:
    """Return the objective of that name with the settings that were given; None means that one was not.

    A setting that the objective does not have raises, with the objectives that have it.
    """
    from firstk import objectives

    check_choice(name, objectives.PUBLIC, "--objective", "firstk fit")
    settings = {
        option: _MEANINGS[option](str(word)) if option in _MEANINGS else word
        for option, word in given.items()
        if word is not None
    }
    own = {f.name for f in fields(objectives.PUBLIC[name])}
    for option in settings:
        if option not in own:
            having = [other for other, kind in objectives.PUBLIC.items() if option in {f.name for f in fields(kind)}]
            raise InvalidInputError(
                f"--{option} is no setting of objective '{name}'. It belongs to {', '.join(having)}: choose one of "
                f"them with --objective, or leave --{option} out."
            )
    return objectives.resolve(objectives.PUBLIC[name](**settings))


def _shrinkage(word: str) -> str | float | None:
    return {"auto": "auto", "none": None}[word] if word in ("auto", "none") else _number(word, "shrinkage", _SHRINKAGE)


def _neighbor_weight(word: str) -> str | float:
    return word if word == "auto" else _number(word, "neighbor_weight", "'auto' or a number in [0, 1]")


def noise_of(word: str) -> GaussianNoise | Masking:
    """Return the noise that ``masking:0.5`` (share kept) or ``gaussian:0.1`` (sigma) names."""
    from firstk.objectives import GaussianNoise, Masking

    name, _, value = word.partition(":")
    kinds = {"masking": Masking, "gaussian": GaussianNoise}
    allowed = "masking:SHARE_KEPT or gaussian:SIGMA, such as masking:0.5"
    if name not in kinds:
        raise bad_parameter("--noise", "firstk fit", allowed, word)
    return kinds[name](_number(value, "noise", allowed)) if value else kinds[name]()


def ordering_of(word: str) -> str | SparsePrefix:
    """Return the ordering that a name stands for; ``sparse_prefix:8,16,32`` brings its list."""
    from firstk.orderings import SparsePrefix

    name, _, lengths = word.partition(":")
    if name != SparsePrefix.name:
        return word
    return SparsePrefix(_whole_numbers(lengths, ",", "ordering", "sparse_prefix:8,16,32", word))


def network_of(word: str) -> str | MLP:
    """Return the network that a name stands for; ``mlp:256,256`` brings the widths of its hidden layers."""
    name, _, widths = word.partition(":")
    if name != "mlp" or not widths:
        return word
    from firstk.encoder.network import MLP

    return MLP(hidden=tuple(_whole_numbers(widths, ",", "network", "linear, mlp or mlp:256,256", word)))


def image_of(word: str | None) -> tuple[int, ...] | None:
    """Return the shape that ``28x28`` or ``32x32x3`` names; None stays None."""
    if word is None:
        return None
    allowed = "ROWSxCOLUMNS or ROWSxCOLUMNSx3, such as 28x28"
    shape = tuple(_whole_numbers(word, "x", "image", allowed, word))
    if len(shape) not in (2, 3) or shape[2:] not in ((), (1,), (3,)):
        raise bad_parameter("--image", "firstk fit", allowed, word)
    return shape


_SHRINKAGE = "'auto', 'none' or a number in [0, 1]"
# What the words of an option stand for, where they are not taken as they are.
_MEANINGS: dict[str, Callable[[str], object]] = {
    "shrinkage": _shrinkage,
    "neighbor_weight": _neighbor_weight,
    "noise": noise_of,
}


def _number(word: str, option: str, allowed: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise bad_parameter(f"--{option}", "firstk fit", allowed, word) from None


def _whole_numbers(text: str, sign: str, option: str, allowed: str, word: str) -> list[int]:
    parts = text.split(sign)
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise bad_parameter(f"--{option}", "firstk fit", allowed, word)
    return [int(part) for part in parts]
