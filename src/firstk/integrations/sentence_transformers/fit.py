"""Sentence-transformers models with truncatable vectors: encode texts, fit an encoder, append it, evaluate it.

The curve is computed on held-out texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sentence_transformers import SentenceTransformer
from sklearn.base import clone
from sklearn.utils import check_random_state

from firstk._base.checks import bad_parameter, check_same_length, is_real
from firstk._base.progress import Verbose, is_looked_at
from firstk.contracts import ObjectiveName
from firstk.estimator.prefix_encoder import PrefixEncoder
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.integrations.sentence_transformers.export import append_encoder, check_prompts, uncentred
from firstk.quality.curve import PrefixCurve

_OWNER = "fit_sentence_transformer"


@dataclass(frozen=True, eq=False)
class FittedSentenceTransformer:
    """Result of a fit.

    Attributes
    ----------
    model : SentenceTransformer
        The model with the encoder at its end, in stock modules.
    encoder : PrefixEncoder
        The encoder alone, for vectors that are already computed.
    curve : PrefixCurve
        Score against k on the held-out texts.
    k : int or None
        Length at which the model is truncated; None: full width.
    """

    model: SentenceTransformer
    encoder: PrefixEncoder
    curve: PrefixCurve
    k: int | None


@dataclass(frozen=True, eq=False)
class _EncodedTexts:
    """Vectors of texts and of their partners, with scores or labels."""

    X: np.ndarray
    partners: np.ndarray | None
    scores: np.ndarray | None
    labels: np.ndarray | None

    def take(self, rows: np.ndarray) -> _EncodedTexts:
        parts = (self.X, self.partners, self.scores, self.labels)
        return _EncodedTexts(*(None if part is None else part[rows] for part in parts))  # type: ignore[arg-type]


def fit_sentence_transformer(
    model: SentenceTransformer,
    texts: Sequence[str],
    partners: Sequence[str] | None = None,
    *,
    scores: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    encoder: PrefixEncoder | None = None,
    k: int | None = None,
    keep: float | None = None,
    prompts: Mapping[str, str] | None = None,
    serving: bool = False,
    held_out: float = 0.2,
    batch_size: int = 32,
    random_state: int | np.random.RandomState | None = 0,
    verbose: Verbose = "auto",
) -> FittedSentenceTransformer:
    """Make the vectors of a model truncatable without training it: encode texts, fit, append and evaluate an encoder.

    Parameters
    ----------
    model : SentenceTransformer
        Not changed.
    texts : sequence of str
    partners : sequence of str, optional
        Partner i is similar to text i: documents for queries, or texts of the same kind. Without `scores` the sides are
        encoded by ``encode_query`` and ``encode_document``.
    scores : array-like of shape (n,), optional
        Similarity of each pair.
    labels : array-like, optional
        Labels of texts without partners: classes, or numeric targets.
    encoder : PrefixEncoder, optional
        Encoder to fit. Default: objective "similarity", by pairs or by mined neighbors; "fisher" with classes and
        "regression" with floating-point numbers.
    k : int, optional
        Truncate the model at k, with unit vectors. Default: all coordinates, for ``truncate_dim``.
    keep : float, optional
        Instead of `k`: truncate at the smallest k that keeps this share of the raw embeddings' score.
    prompts : mapping from str to str, optional
        Text that is put before queries and documents: ``{"query": ..., "document": ...}``. Texts without partners are
        then encoded as documents. Default: the prompts of `model`.
    serving : bool
        Leave the means out, see `append_encoder`, so that `save_for_serving` can write the result.
    held_out : float in (0, 1)
        Share of the texts used for the curve and not for fitting. All pairs with the same partner are held out
        together.
    batch_size : int
        Number of texts encoded at a time.
    random_state : int
        Seed of the split.
    verbose : bool or "auto"
        Show the progress of encoding and fitting; "auto" on a terminal or in a notebook.

    Returns
    -------
    FittedSentenceTransformer
    """
    if not isinstance(model, SentenceTransformer):
        raise bad_parameter("model", _OWNER, "a SentenceTransformer", type(model).__name__)
    if k is not None and keep is not None:
        raise IllegalCombinationError(f"{_OWNER} with k and keep", "both determine the length", "one of the two")
    _check_texts(texts, partners, scores, labels)
    named = check_prompts(prompts, _OWNER)
    if named:
        model = SentenceTransformer(
            modules=list(model),
            device=str(model.device),
            prompts={**model.prompts, **named},  # type: ignore[dict-item]
            default_prompt_name="document" if "document" in named else model.default_prompt_name,
        )
    fit_rows, test_rows = _split(texts, partners, held_out, random_state)
    shown = is_looked_at() if verbose == "auto" else bool(verbose)
    rows = _encoded(model, texts, partners, scores, labels, {"batch_size": batch_size, "show_progress_bar": shown})
    fitted = _fit(_default(rows, verbose) if encoder is None else clone(encoder), rows.take(fit_rows))
    if serving:
        fitted = uncentred(fitted)
    curve = _curve(fitted, rows.take(test_rows), rows.take(fit_rows))
    cut = k if keep is None else curve.smallest(keep=keep)
    return FittedSentenceTransformer(append_encoder(model, fitted, cut, serving=serving), fitted, curve, cut)


def _check_texts(
    texts: Sequence[str], partners: Sequence[str] | None, scores: ArrayLike | None, labels: ArrayLike | None
) -> None:
    for name, part in (("texts", texts), ("partners", partners)):
        if part is not None and (isinstance(part, str) or not all(isinstance(text, str) for text in part)):
            raise bad_parameter(name, _OWNER, "a sequence of strings", type(part).__name__)
    if len(texts) < 4:
        raise InvalidInputError(f"{_OWNER} needs at least four texts, for fitting and evaluation. Got {len(texts)}.")
    for name, beside in (("partners", partners), ("scores", scores), ("labels", labels)):
        if beside is not None:
            check_same_length(texts, np.asarray(beside), "texts", name, _OWNER)
    if scores is not None and partners is None:
        raise InvalidInputError(f"The 'scores' of {_OWNER} belong to pairs. Got no pairs: pass 'partners' too.")
    if labels is not None and partners is not None:
        raise IllegalCombinationError(
            f"{_OWNER} with partners and labels", "an encoder learns from one of them", "two encoders"
        )


def _split(
    texts: Sequence[str],
    partners: Sequence[str] | None,
    held_out: float,
    random_state: int | np.random.RandomState | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and held-out rows, which have no text (or partner) in common."""
    if not is_real(held_out) or not 0 < held_out < 1:
        raise bad_parameter("held_out", _OWNER, "a number in (0, 1)", held_out)
    _, group = np.unique(np.asarray(texts if partners is None else partners, dtype=object), return_inverse=True)
    order = check_random_state(random_state).permutation(group.max() + 1)
    out = np.isin(group, order[: max(1, round(held_out * len(order)))])
    if out.all():
        raise InvalidInputError(f"{_OWNER} cannot hold out texts: they are all the same. Pass texts that differ.")
    return np.flatnonzero(~out), np.flatnonzero(out)


def _encoded(
    model: SentenceTransformer,
    texts: Sequence[str],
    partners: Sequence[str] | None,
    scores: ArrayLike | None,
    labels: ArrayLike | None,
    options: dict[str, Any],
) -> _EncodedTexts:
    """Encode every distinct text once."""
    one_kind = partners is None or scores is not None
    of_texts, of_partners = (model.encode, model.encode) if one_kind else (model.encode_query, model.encode_document)
    X = _vectors(of_texts, texts, options)
    return _EncodedTexts(
        X,
        None if partners is None else _vectors(of_partners, partners, options),
        None if scores is None else np.asarray(scores, dtype=np.float64),
        None if labels is None else np.asarray(labels),
    )


def _vectors(encode: Callable[..., Any], texts: Sequence[str], options: dict[str, Any]) -> np.ndarray:
    distinct = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    found = np.asarray(encode(list(distinct), **options), dtype=np.float32)
    return found[[distinct[text] for text in texts]]


def _default(rows: _EncodedTexts, verbose: Verbose) -> PrefixEncoder:
    objective: ObjectiveName = "similarity"
    if rows.labels is not None:
        objective = "regression" if rows.labels.dtype.kind == "f" else "fisher"
    return PrefixEncoder(objective=objective, verbose=verbose)


def _fit(encoder: PrefixEncoder, rows: _EncodedTexts) -> PrefixEncoder:
    if rows.partners is None:
        return encoder.fit(rows.X, rows.labels)
    return encoder.fit_pairs(rows.X, rows.partners, rows.scores)


def _curve(encoder: PrefixEncoder, test: _EncodedTexts, train: _EncodedTexts) -> PrefixCurve:
    if test.partners is not None:
        return encoder.curve_pairs(test.X, test.partners, test.scores)
    reference = train.X if train.labels is None else (train.X, train.labels)
    return encoder.curve(test.X, test.labels, reference=reference)
