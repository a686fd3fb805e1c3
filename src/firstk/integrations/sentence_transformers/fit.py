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
from firstk.data.task import Pairs, Rows
from firstk.estimator.prefix_encoder import PrefixEncoder
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.integrations.sentence_transformers.export import append_encoder, check_prompts, uncentred
from firstk.objectives import ObjectiveName
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
    named = check_prompts(prompts, _OWNER)
    if named:
        model = SentenceTransformer(
            modules=list(model),
            device=str(model.device),
            prompts={**model.prompts, **named},  # type: ignore[dict-item]
            default_prompt_name="document" if "document" in named else model.default_prompt_name,
        )
    fit_rows, test_rows = _split(texts, partners, held_out, random_state)
    options = {
        "batch_size": batch_size,
        "show_progress_bar": is_looked_at() if verbose == "auto" else bool(verbose),
    }

    def vectors(encode: Callable[..., Any], given: Sequence[str]) -> np.ndarray:
        """Encode every distinct text once."""
        distinct = {text: i for i, text in enumerate(dict.fromkeys(given))}
        found = np.asarray(encode(list(distinct), **options), dtype=np.float32)
        return found[[distinct[text] for text in given]]

    data: Rows | Pairs
    objective: ObjectiveName = "similarity"
    if partners is None:
        y = None if labels is None else np.asarray(labels)
        data = Rows(vectors(model.encode, texts), y)
        if y is not None:
            objective = "regression" if y.dtype.kind == "f" else "fisher"
    else:
        # Texts of one kind where their similarity is given, queries and documents where it is not.
        sides = (model.encode_query, model.encode_document) if scores is None else (model.encode, model.encode)
        degrees = None if scores is None else np.asarray(scores, dtype=np.float64)
        data = Pairs(vectors(sides[0], texts), vectors(sides[1], partners), degrees)
    chosen = PrefixEncoder(objective=objective, verbose=verbose) if encoder is None else clone(encoder)
    fitted = chosen.fit(data.subset(fit_rows))
    if serving:
        fitted = uncentred(fitted)
    if isinstance(data, Pairs):
        held = data.subset(test_rows)
        curve = fitted.curve_pairs(held.left, held.right, held.scores)
    else:
        seen, test = data.subset(fit_rows), data.subset(test_rows)
        curve = fitted.curve(test.X, test.y, reference=seen.X if seen.y is None else (seen.X, seen.y))
    cut = k if keep is None else curve.smallest(keep=keep)
    return FittedSentenceTransformer(append_encoder(model, fitted, cut, serving=serving), fitted, curve, cut)


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
