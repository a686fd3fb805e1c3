"""``firstk fit``: from a file of vectors to a saved encoder, judged on rows that it has not seen."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firstk._checks import FirstkError, InvalidInput
from firstk.cli._inputs import (
    JsonOption,
    LabelOption,
    LabelsOption,
    NanOption,
    PairsOption,
    QuietOption,
    VectorsArgument,
    VectorsOption,
)

if TYPE_CHECKING:
    from firstk.study_records import Study

SHARES = (0.95, 0.99, 0.999)


def fit(
    source: VectorsArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")],
    objective: Annotated[
        str,
        typer.Option(
            help="What a good prefix is: reconstruction, fisher, classification, regression, similarity, mixture, "
            "denoising."
        ),
    ] = "reconstruction",
    vectors: VectorsOption = None,
    label: LabelOption = None,
    labels: LabelsOption = None,
    pairs: PairsOption = None,
    held_out: Annotated[
        str,
        typer.Option(
            "--held-out", metavar="SHARE|FILE", help="Rows to judge by: a share (at most 10,000), a file, or 0."
        ),
    ] = "0.2",
    components: Annotated[int | None, typer.Option(min=1, help="Width of the code; all that carry signal.")] = None,
    ordering: Annotated[str, typer.Option(help="How coordinates get their order.")] = "full_prefix",
    solver: Annotated[str, typer.Option(help="auto, closed_form or gradient.")] = "auto",
    network: Annotated[str, typer.Option(help="linear, mlp, or mlp:256,256.")] = "linear",
    shrinkage: Annotated[str | None, typer.Option(help="A number in [0, 1], none or auto.")] = None,
    lam: Annotated[float | None, typer.Option(help="Weight of the vectors in a mixture.")] = None,
    noise: Annotated[str | None, typer.Option(help="Of denoising: masking:SHARE_KEPT or gaussian:SIGMA.")] = None,
    keep: Annotated[str | None, typer.Option(help="Of similarity without pairs: neighbours or dot_products.")] = None,
    neighbours: Annotated[str | None, typer.Option(help="Of similarity: weight of mined neighbours, or auto.")] = None,
    image: Annotated[str | None, typer.Option(help="Vectors are images of this shape: 28x28 or 32x32x3.")] = None,
    source_model: Annotated[str | None, typer.Option(help="Name of the model that made the vectors.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the held-out part and of training.")] = 0,
    nan: NanOption = "refuse",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit an encoder on a file of vectors and save it with a study of its prefixes.

    A fifth of the rows, at most 10,000, is held out: the encoder is fitted on the others, and its curve and those of
    four baselines are taken on the held-out rows. Closed forms stream; objectives that are trained read all rows.
    """
    from firstk._storage import check_target
    from firstk.cli._settings import image_of, network_of, noise_of, number_or, objective_of, ordering_of
    from firstk.estimator import PrefixEncoder

    check_target(out)  # before the work, not after it
    settings = {
        "shrinkage": number_or(shrinkage, {"auto": "auto"}, "shrinkage") if shrinkage != "none" else None,
        "lam": lam,
        "noise": noise_of(noise),
        "keep": keep,
        "neighbours": number_or(neighbours, {"auto": "auto"}, "neighbours"),
    }
    shown = not (quiet or as_json) and sys.stderr.isatty()
    encoder = PrefixEncoder(
        components,
        objective=objective_of(objective, settings),
        ordering=ordering_of(ordering),
        solver=solver,
        network=network_of(network),
        random_state=seed,
        verbose=shown,
    )
