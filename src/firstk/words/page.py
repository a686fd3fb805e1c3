"""The head of a page in words: title, summary, large figures, terms; and what its sections say."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from firstk.words.choice import ABOUT_BITS, answer, explanation, share_text, where
from firstk.words.terms import COORDINATES_TERM, interval_term, known_terms, metric_of
from firstk.words.text import EMBEDDED, PRODUCT_QUANTIZER, RAW, bytes_text, percent, score_text

if TYPE_CHECKING:
    from firstk.quality.choice import Choice

AXES_TEXT = "Each coordinate by itself, on the held-out rows."
PRECISION_TEXT = (
    "Each point is one way to store a vector; higher and further left is better. The ring is what is recommended, and "
    "squares are other methods. Steps join the best of this model for each number of bytes. Queries stay float32."
)
NEW_TEXT = "These scores are of searches for new documents, which the fit has not learned from."
STORAGE_TEXT = (
    "Bytes of the vectors as they are, of what is recommended, of embedded bits, and of the first k coordinates in "
    "each precision. A file or a database adds ids, other columns and its index to them, and once, "
    "whatever the number of rows, what embedded bits are read by."
)
IMAGES_TEXT = (
    "Held-out images above; below, what the best linear decoder rebuilds from their first k coordinates, and the share "
    "of the squared distance from the mean image that is rebuilt."
)


def summary_of(choice: Choice | None, rows: int, score: float) -> str:
    """Return the answer in paragraphs; `score` is what shares would be of, where nothing could be chosen."""
    if choice is None:
        return f"The score to keep is not positive ({score_text(score)}), so no code can be said to keep a share of it."
    return "\n\n".join([*answer(choice, rows), *explanation(choice)])


def title_of(choice: Choice | None, file: str, metric: str) -> str:
    """Return a title that says what is saved and what is kept, in words of everyday."""
    name, quality = PurePath(file).name or "Vectors", metric_of(metric).quality
    if choice is None:
        return f"{name}: what short vectors keep of {quality}"
    if choice.chance is not None:
        return f"{name}: check the inputs, the scores are those of guessing"
    advised = choice.advised
    if advised is None:
        asked = "" if choice.limits.keep is None else f", where {100 * choice.limits.keep:g} % was asked for"
        best = choice.get("most")
        most = "no code is within the limits" if best is None else f"at most {share_text(best)} of {quality} kept"
        return f"{name}: {most}{where(choice)}{asked}"
    instead = "" if choice.input_bytes is None else f" instead of {choice.input_bytes:,}"
    best_name, point = "" if choice.reference == RAW else " at its best", advised.point
    by = f" with {point.code}" if point.code else ""  # what makes the code, where it is not the encoder
    if point.precision == PRODUCT_QUANTIZER:
        by = " with a product quantizer"
    elif point.code == RAW:
        by = f" by rounding to {point.precision}" if point.is_prefix else " as embedded bits of the raw vectors"
    return (
        f"{name}: {point.bytes:,} bytes per vector{instead}{by}, "
        f"{share_text(advised)} of {quality}{best_name} kept{where(choice)}"
    )


def figures_of(choice: Choice | None, rows: int) -> tuple[tuple[str, str], ...]:
    """Return up to four large figures with what each is: bytes, share kept, the best other in these bytes, savings."""
    if choice is None or choice.chance is not None:
        return ()
    advised, before, most = choice.advised, choice.input_bytes, choice.get("most")
    whose = "of the raw vectors'" if choice.reference == RAW else "of the best"
    name = metric_of(choice.metric).name
    if advised is None:
        if most is None:
            return ()
        told = f"{whose} {name}{where(choice)} at most: {most.point}, {most.point.bytes:,} bytes"
        return ((share_text(most), told),)
    point = advised.point
    instead = "" if before is None else f" instead of {before:,}"
    count = f", {choice.n_new:,} {choice.unit}" if choice.on_new and choice.n_new is not None else ""
    whole = score_text(choice.reference_score)
    found = [
        (f"{point.bytes:,}", f"bytes per vector{instead}: {point}"),
        (share_text(advised), f"{whose} {name} of {whole}, kept{where(choice)}{count}"),
    ]
    rival = choice.get("ahead", "behind") if advised is choice.own else choice.own
    # A baseline that is nowhere near was not rounded: a few of its numbers in float32 are no comparison.
    if rival is not None and not (rival.point.code and rival.point.precision == "float32" != point.precision):
        # Whose share it is, and what it is over all queries where the choice is on new documents.
        limit, who = choice.limits.bytes_per_vector, "the best baseline" if rival.point.code else "this model"
        within = "" if limit is None or choice.limits.keep is not None else f" in at most {limit:,} bytes"
        told = f"by {who}{within}{where(choice)}: {rival.point}, {rival.point.bytes:,} bytes"
        if rival.over_all is not None and advised.over_all is not None:
            theirs, ours = (f"{percent(share)} %" for share in (rival.over_all, advised.over_all))
            told += f" (over all queries {theirs}, and {ours} by what is recommended)"
        found.append((share_text(rival), told))
    if before is not None and before > point.bytes:
        saved = before - point.bytes
        told = f"saved on {rows:,} vectors: {percent(saved / before, 1)} % of their bytes"
        found.append((bytes_text(rows * saved), told))
    return tuple(found)


def terms_of(choice: Choice | None, metric: str, confidence: float) -> tuple[tuple[str, str], ...]:
    """Explain what the recommendation speaks of: metric, precisions, baselines, intervals."""
    terms = [(metric, text)] if (text := metric_of(metric).text) else []
    if choice is None or choice.chance is not None:
        return tuple(terms)
    points = [offer.point for offer in choice.offers]
    if any(point.is_prefix for point in points):
        terms.append(COORDINATES_TERM)
    told = {"faiss", EMBEDDED} if ABOUT_BITS in explanation(choice) else {"faiss"}
    terms += known_terms(name for point in points for name in (point.code, point.precision) if name not in told)
    shown = next((offer for offer in choice.offers if offer.low is not None), None)
    if shown is not None:
        name, _ = interval_term(confidence)
        count = f"{choice.unit} evaluated" if choice.n_evaluated is None else f"{choice.n_evaluated:,} {choice.unit}"
        text = f"a {name}: the {count} cannot tell the share more exactly."
        terms.append((share_text(choice.advised or shown), text))
    return tuple(terms)


def asked_level(choice: Choice | None) -> tuple[str, float] | None:
    """Return the score that keeps the share that is asked for, and what a chart calls it."""
    if choice is None or choice.limits.keep is None or choice.chance is not None:
        return None
    whole = "raw" if choice.reference == RAW else "the best"
    return f"{100 * choice.limits.keep:g} % of {whole}", choice.reference_score * choice.limits.keep


def about_intervals(choice: Choice | None, confidence: float) -> str:
    """Say what bands and intervals are, and what the promised share is corrected for."""
    text = f"Bands and intervals are {100 * confidence:g} % bootstrap intervals over the evaluated data."
    if choice is not None and choice.advised is not None and choice.advised.low is not None:
        text += " The share that is promised is corrected for having been chosen on the same data."
    return text
