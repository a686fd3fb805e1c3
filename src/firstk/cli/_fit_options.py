"""The options of ``firstk fit``: one name each, so that the command's signature reads as a list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
