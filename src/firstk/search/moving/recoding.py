"""How vectors and codes of a source become codes of a target.

There are four cases. Vectors are encoded by an encoder, or kept and perhaps cut. Codes that an encoder made are kept,
byte for byte from file to file, or cut by the encoder that made them, which alone knows the stamp of shorter ones.
Codes are never encoded again. Embedded bits stay in files, where their bytes can be cut: what they decode to need not
be the encoder's own coordinates (`firstk.bits.quantizer` adds a mean to some), and a store is searched with those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from firstk._base.checks import bad_parameter, check_choice, check_prefix
from firstk._base.rows import unit_rows
from firstk.data import CodeStamp, resolve_precision
from firstk.data.files import code_layout
from firstk.encoder import SEARCH_METRIC, FittedEncoder, check_fitted
from firstk.estimator import Described, Encoding, Wish, cut_bits, encoding_of
from firstk.exceptions import InvalidInputError
from firstk.integrations import METRICS, Codes, EncoderLike
from firstk.search.moving.sources import SourceFacts
from firstk.search.stores.contract import StoreLayout
from firstk.search.stores.prefix_store import cut_codes, layout_of

_OWNER = "move"
# From vectors of the source to the short and the full code.
Cut = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True)
class Recode:
    """What vectors become on the way; None: not said.

    Attributes
    ----------
    encoder : PrefixEncoder or FittedEncoder, optional
        None keeps vectors and codes as they are.
    k : int, optional
        Coordinates to keep, all if not given. In a store, the length of the prefix that is indexed.
    full : int, optional
        In a store, the length of a longer code that reranks. With neither `k` nor `full`, codes of a store that has
        both lengths keep both in another store.
    metric : str
        "cosine", "inner_product", "l2"; "auto" is cosine for what is encoded, and the source's own for what is not.
    precision : str, optional
        Of a file's codes, or of the short codes of a store that offers several.
    bytes_per_vector : int, optional
        In a file: embedded bits of so many bytes.
    """

    encoder: EncoderLike | None = None
    k: int | None = None
    full: int | None = None
    metric: str = "auto"
    precision: str | None = None
    bytes_per_vector: int | None = None


def for_store(facts: SourceFacts, recode: Recode) -> tuple[StoreLayout, Cut]:
    """Return what a store will hold, and how vectors of the source become its codes."""
    if recode.bytes_per_vector is not None:
        raise InvalidInputError(
            f"Embedded bits ({recode.bytes_per_vector} bytes per vector) stay in files, and stores keep coordinates. "
            "Give k (-k) in place of the bytes, or move to a file."
        )
    if facts.bits:
        raise InvalidInputError(
            f"{facts.place} holds embedded bits of {facts.bytes_per_vector} bytes a row. A store would hold them "
            f"decoded, {4 * facts.width} bytes a row, in coordinates that need not be those of the encoder's queries. "
            "Move the vectors that they were made of, with an encoder and k (--model and -k); or move the bits to a "
            "file."
        )
    metric = _metric(facts, recode)
    if recode.encoder is not None and not facts.coded:
        codes = Codes.of(_checked(facts, recode), metric, _OWNER)
        layout = layout_of(codes, codes.encoder.d if recode.k is None else recode.k, recode.full, facts.ids, _OWNER)
        return layout, lambda X: cut_codes(codes, layout, X, "document", _OWNER)
    short, full = check_prefix(recode.k, facts.width, _OWNER), recode.full
    if facts.short is not None and recode.k is None and full is None:
        short, full = facts.short, facts.width
    if full is not None and not short < check_prefix(full, facts.width, _OWNER):
        raise bad_parameter("full", _OWNER, f"None or an int above {short} (k)", full)
    unit = facts.unit or (facts.coded and metric == "cosine")
    layout = StoreLayout(short, full, metric, unit, facts.ids, _stamp(facts, recode, full or short))

    def cut(X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        return _prefix(X, short, unit), None if full is None else _prefix(X, full, unit)

    return layout, cut


def for_file(facts: SourceFacts, recode: Recode) -> Encoding:
    """Return how vectors of the source become codes of a file."""
    if recode.full is not None:
        raise InvalidInputError(
            "A file holds one code a row, of which every prefix is a code. Leave out 'full' (--full), and give k (-k) "
            "as the longest that you need."
        )
    metric = None if recode.metric == "auto" else recode.metric
    if not facts.coded:
        encoder = None if recode.encoder is None else _checked(facts, recode)
        wish = Wish(recode.k, None, recode.precision, recode.bytes_per_vector, metric)
        return encoding_of(encoder, Described(facts.place.strip("'"), facts.width, facts.vectors), wish)
    if facts.bits:  # which stay as they are, or are cut
        assert facts.held is not None
        if recode.encoder is not None:
            quantizer = check_fitted(recode.encoder, _OWNER).quantizer(None, facts.held.metric or "cosine")
            quantizer.check_codes(facts.held.stamp, facts.place)
        size = recode.bytes_per_vector or facts.bytes_per_vector
        return cut_bits(facts.held, Wish(recode.k, None, recode.precision, size, metric))
    if recode.bytes_per_vector is not None:
        raise InvalidInputError(
            f"{facts.place} holds codes already, and bits are made of vectors. Leave out the bytes "
            "(--bytes-per-vector), or move the vectors."
        )
    k = check_prefix(recode.k, facts.width, _OWNER)
    if stays_stored(facts, recode):
        assert facts.held is not None
        held, dtype = facts.held, code_layout("", facts.held.precision, facts.held.k, (), None).dtype
        return Encoding(
            lambda X: X,
            _stamp(facts, recode, k),
            held.k,
            held.side,
            held.precision,
            metric=metric or held.metric,
            to_bytes=lambda X: np.ascontiguousarray(X, dtype=dtype),
        )
    precision = resolve_precision(recode.precision or "float32", _OWNER)
    return Encoding(
        lambda X: _prefix(X, k, facts.unit), _stamp(facts, recode, k), k, "document", precision, metric=metric
    )


def stays_stored(facts: SourceFacts, recode: Recode) -> bool:
    """Tell whether codes of a file go to another file byte for byte (embedded bits: cut at a byte)."""
    if not facts.coded or facts.held is None:
        return False
    same = recode.precision in (None, facts.precision) and recode.k in (None, facts.width)
    return facts.bits or (same and recode.bytes_per_vector is None)


def _prefix(X: np.ndarray, k: int, unit: bool) -> np.ndarray:
    """Return the first k coordinates, of unit norm again where the whole code has it."""
    cut = np.ascontiguousarray(X[:, :k], dtype=np.float32)
    return unit_rows(cut) if unit and k < X.shape[1] else cut


def _metric(facts: SourceFacts, recode: Recode) -> str:
    check_choice(recode.metric, ("auto", *METRICS), "metric", _OWNER)
    if recode.metric == "auto":  # codes of an encoder are compared by cosine, whatever its vectors were
        return SEARCH_METRIC if recode.encoder is not None and not facts.coded else facts.metric or SEARCH_METRIC
    if facts.unit and facts.metric != recode.metric:
        raise InvalidInputError(
            f"{facts.place} holds codes for {facts.metric}, of unit norm: another metric ({recode.metric}) needs the "
            "vectors themselves."
        )
    return recode.metric


def _checked(facts: SourceFacts, recode: Recode) -> FittedEncoder:
    encoder = check_fitted(recode.encoder, _OWNER)
    if encoder.p != facts.width:
        raise InvalidInputError(
            f"The vectors of {facts.place} have {facts.width} numbers, and the encoder takes {encoder.p}. Use the "
            "encoder that was fitted on such vectors, or name their column with vectors=."
        )
    return encoder


def _stamp(facts: SourceFacts, recode: Recode, width: int) -> CodeStamp:
    """Return the stamp of codes of this width, which for shorter ones only their encoder knows."""
    if not facts.coded:
        return CodeStamp(f"raw vectors of {facts.width}")
    assert facts.stamp is not None
    if recode.encoder is not None:
        encoder = check_fitted(recode.encoder, _OWNER)
        facts.stamp.check(encoder.stamp(min(facts.width, encoder.d)), facts.place, "this encoder")
        return replace(encoder.stamp(width), column=facts.stamp.column)
    if width == facts.width:
        return facts.stamp
    raise InvalidInputError(
        f"{facts.place} holds codes of {facts.width} coordinates by {facts.stamp}; {width} of them are another code, "
        "whose stamp only that encoder knows. Give it too (--model), or leave out k (-k)."
    )
