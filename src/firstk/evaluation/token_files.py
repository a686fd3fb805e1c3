"""Token vectors in files: a row is a token, and a column names its document or query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firstk._base.remote import shown_place
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.fitted import FittedEncoder
from firstk.evaluation.inputs import File, read_rows
from firstk.evaluation.judged_pairs import read_columns
from firstk.evaluation.token_vectors import TokenVectors, compare_tokens, curve_tokens
from firstk.exceptions import InvalidInputError
from firstk.metrics.judgements import as_text


def read_tokens(
    path: File, column: str, *, vectors: str | None = None, nan: str = "refuse"
) -> tuple[TokenVectors, list[str]]:
    """Read the tokens of a file, and the names of their documents, which `column` gives."""
    rows = read_rows(path, vectors=vectors, label=column, nan=nan)
    tokens, names = TokenVectors.from_column(rows.X, np.array(as_text(rows.y)))  # type: ignore[arg-type]
    return tokens, names.tolist()


def compare_token_files(
    encoder: FittedEncoder,
    documents: File,
    queries: File,
    relevance: str,
    column: str,
    *,
    vectors: str | None = None,
    nan: str = "refuse",
    metric: str = "ndcg@10",
    ks: Sequence[int] | None = None,
    confidence: float | None = None,
    baselines: bool = True,
) -> tuple[list[PrefixCurve], str]:
    """Return the curve of an encoder by MaxSim and those of the baselines, and a line that says on what.

    Parameters
    ----------
    encoder : FittedEncoder
    documents, queries : path
        Files of tokens.
    relevance : str
        FILE or FILE:QUERY,DOCUMENT[,GRADE]: judgements by the names in `column`.
    column : str
        The column that names the document (or query) of each token, in both files.
    vectors, nan
        As in `firstk.data.files.open_vectors`.
    metric, ks, confidence
        As in `curve_tokens`.
    baselines : bool
        Whether to evaluate baselines, too.
    """
    held, names = read_tokens(documents, column, vectors=vectors, nan=nan)
    asked, query_names = read_tokens(queries, column, vectors=vectors, nan=nan)
    for tokens, path in ((held, documents), (asked, queries)):
        if tokens.X.shape[1] != encoder.p:
            raise InvalidInputError(
                f"'{shown_place(path)}' has token vectors of {tokens.X.shape[1]} numbers, and the encoder takes "
                f"{encoder.p}. Use the encoder that was fitted on such tokens, or name their column with --vectors."
            )
    known = set(map(str, query_names)), set(map(str, names))
    _, table, chosen = read_columns(None, relevance, lambda words: all(map(set.__contains__, known, words)))
    columns = [np.asarray(table[name]) for name in chosen]
    grades = np.ones(len(columns[0]), dtype=np.int64) if len(columns) == 2 else columns[2]
    judged = list(zip(as_text(columns[0]), as_text(columns[1]), grades.tolist(), strict=True))
    options = {
        "metric": metric,
        "query_ids": query_names,
        "document_ids": names,
        "ks": ks,
        "confidence": confidence,
    }
    if baselines:
        found = list(compare_tokens(encoder, asked, held, judged, **options).values())  # type: ignore[arg-type]
    else:
        found = [curve_tokens(encoder, asked, held, judged, **options)]  # type: ignore[arg-type]
    said = (
        f"Evaluated by MaxSim on {found[0].n_evaluated:,} queries of {len(asked.X):,} tokens, among {len(held):,} "
        f"documents of {len(held.X):,} tokens."
    )
    return found, said
