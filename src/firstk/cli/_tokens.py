"""``firstk curve --tokens``: documents of a vector a token, compared by MaxSim."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from firstk._base.remote import shown_place
from firstk.cli import _text as text

if TYPE_CHECKING:
    from firstk.encoder.fitted import FittedEncoder


def curve_of_tokens(
    encoder: FittedEncoder,
    model: Path,
    documents: str,
    queries: str,
    relevance: str,
    column: str,
    *,
    vectors: str | None,
    nan: str,
    metric: str,
    confidence: float | None,
    keep: float | None,
    baselines: bool,
    json: bool,
) -> None:
    """Print the curve by MaxSim next to the baselines, and the smallest k that keeps a share of the raw vectors."""
    from firstk.evaluation.precision_cost import ladder
    from firstk.evaluation.recommending import KEEP
    from firstk.evaluation.token_files import compare_token_files

    ks = ladder(encoder.d)
    found, said = compare_token_files(
        encoder, documents, queries, relevance, column,
        vectors=vectors, nan=nan, metric=metric, ks=ks, confidence=confidence, baselines=baselines,
    )  # fmt: skip
    curve, others = found[0], found[1:]
    share = KEEP if keep is None else keep
    if json:
        record = {
            "model": str(model),
            "vectors": shown_place(documents),
            "metric": curve.metric,
            "judged": said,
            "smallest": text.smallest(curve),
            "curve": curve.to_dict(),
            "baselines": [one.to_dict() for one in others],
        }
        typer.echo(jsonlib.dumps(record, ensure_ascii=False, allow_nan=False))
        return
    lines = [said, "", f"Evaluated: {model}, {text.number_of(encoder.d, 'coordinate')} of {encoder.p:,}."]
    lines += text.score_table(curve, others, ks, encoder.p)
    typer.echo("\n".join(lines))
    k = curve.smallest(share)  # an error where none keeps it; the scores have been shown all the same
    typer.echo(
        f"\n{k} coordinates a token are the fewest of these that keep {100 * share:g} % of the raw vectors' score."
    )
