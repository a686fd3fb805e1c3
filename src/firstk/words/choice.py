"""An evaluation in words: three lines that answer what to store, the rest for those who ask, and tables of scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from firstk.data.stores import find_store
from firstk.words.commands import FITTED_BASELINES
from firstk.words.text import (
    EMBEDDED,
    PRODUCT_QUANTIZER,
    RAW,
    at_least,
    bytes_text,
    number_of,
    percent,
    rounded_up,
    score_text,
)

if TYPE_CHECKING:
    from firstk.metrics.same_axes import SameAxes
    from firstk.metrics.threshold import Threshold
    from firstk.quality.choice import Choice, Offer, Point
    from firstk.quality.evaluation import Evaluation

# A share below this is a loss that few uses can bear.
HEAVY = 0.8
# Differences in share that are worth a sentence.
NOTABLE = 0.005
# What is stored once is worth a sentence from this share of the codes on.
SHARED = 0.01
# Said once wherever embedded bits are recommended.
ABOUT_BITS = (
    "Embedded bits: each vector becomes a string of bytes, the most important bits first. It can be cut after any "
    "byte, and queries stay float32."
)
# Said where codes cannot go into a database as they are.
TO_A_STORE = "for a database add --store NAME"
# Said once wherever a share above 100 % is printed.
ABOVE_RAW = "More than 100 % means better than the raw vectors: a fit can drop what misleads them."


def answer(choice: Choice, rows: int | None = None) -> list[str]:
    """Return what to store, what it keeps, and how sure that is; with `rows`, the bytes of so many vectors."""
    if choice.chance is not None:
        scored = f"{choice.metric} {choice.reference_score:.4f}"
        return [
            f"Check the inputs: neither the raw vectors ({scored}) nor the codes do better than chance "
            f"({choice.chance:.4f}). Most often labels, ids or row numbers do not belong to these vectors."
        ]
    advised = choice.advised
    if advised is None:
        return [out_of_reach(choice)]
    return [
        _what(choice, advised, rows),
        *_kept(choice, advised),
        *_how_sure(choice, advised),
        *_asked(choice, advised),
    ]


def headline(choice: Choice) -> str:
    """Return the first two lines of the answer as one."""
    return " ".join(answer(choice)[:2])


def explanation(choice: Choice) -> list[str]:
    """Return what else there is to say: other codes, other shares, new documents, what words mean."""
    return [] if choice.chance is not None else list(_explained(choice))


def _what(choice: Choice, advised: Offer, rows: int | None) -> str:
    point, before = advised.point, choice.input_bytes
    instead = f" instead of {before:,}" if before is not None and point.bytes < before else ""
    place = f" in {choice.store}" if choice.store else ""
    told = f"{_lead(advised)} {point}{place}: {number_of(point.bytes, 'byte')} per vector{instead}."
    if rows is not None:
        stored = "" if before is None else f" instead of {bytes_text(rows * before)}"
        once = point.stored_once or 0
        shared = f", and {bytes_text(once)} once for axes and cells" if once >= SHARED * rows * point.bytes else ""
        told += f" {rows:,} vectors take {bytes_text(rows * point.bytes)}{stored}{shared}."
    return told


def _lead(advised: Offer) -> str:
    """Return how the advice to take a code begins."""
    code = advised.point.code
    if not code:
        return "Store"
    if advised.reason == "better":
        return "Do not cut: store" if code == RAW else "Use"
    if code == RAW:
        return "No encoder is needed here: store"
    name = code if code.startswith("plain") else f"plain {code}"
    return f"{name[0].upper()}{name[1:]} is as good here: use"


def _kept(choice: Choice, advised: Offer) -> Iterator[str]:
    score = f"{choice.metric} {score_text(advised.point.score)}"
    if advised.share is None:
        yield f"{score}. A share of it means nothing, because the score to keep is not positive."
        return
    measured = f"{score_text(advised.point.score)} of {score_text(choice.reference_score)}"
    count = "" if choice.n_evaluated is None else f", {_count(choice)}"
    yield f"{_they(advised.point)} {share_text(advised)} of {whose(choice)}: {measured}{count}."


def _count(choice: Choice) -> str:
    unit = choice.unit if choice.n_evaluated != 1 else choice.unit.removesuffix("s")
    return f"{choice.n_evaluated:,} {unit}{' for new documents' if choice.on_new else ''}"


def whose(choice: Choice) -> str:
    """Name the score that shares are of."""
    return f"the {RAW}' {choice.metric}" if choice.reference == RAW else f"the {choice.metric} of {choice.reference}"


def _digits(offer: Offer) -> int:
    return 0 if offer.noise >= 0.004 else 1


def share_text(offer: Offer) -> str:
    """Write a share with its interval, no finer than the noise."""
    if offer.share is None:
        return "–"
    digits = _digits(offer)
    if offer.low is None or offer.high is None or offer.noise < 5e-4:
        return f"{percent(offer.share, digits)} %"
    return f"{at_least(offer.low, digits)} to {percent(offer.high, digits)} %"


def offer_text(offer: Offer) -> str:
    """Write a point with its bytes and share."""
    return f"{offer.point}: {number_of(offer.point.bytes, 'byte')}, {share_text(offer)}"


def _how_sure(choice: Choice, advised: Offer) -> Iterator[str]:
    """Say how sure the share is, or what a limit costs."""
    own, keep, most = choice.own, choice.limits.keep, choice.limits.bytes_per_vector
    if keep is not None:
        if choice.unsure and own is not None and own.low is not None:
            count = "The units at hand" if choice.n_evaluated is None else _count(choice)
            told = f"{count} cannot tell {100 * keep:g} % from {at_least(own.low, _digits(own))} %"
            told += "" if choice.needed is None else f"; about {rounded_up(choice.needed):,} would"
            safe = choice.get("safe")
            yield f"{told}." if safe is None else f"{told}. To be safe: {offer_text(safe)}."
        elif own is not None and own.low is not None:
            yield f"The whole interval keeps {100 * keep:g} %."
        return
    others = choice.limits.k is not None or not choice.limits.any_precision
    if most is None or others or advised.share is None:
        return
    if (advised.share if advised.high is None else advised.high) < HEAVY:
        yield f"Less than {HEAVY:.0%} is a heavy loss. Allow more than {number_of(most, 'byte')}, or ask for a share."
    elif advised.point.bytes < most and advised.reason != "simpler":
        yield f"Nothing that was evaluated in at most {number_of(most, 'byte')} scored better."


def _asked(choice: Choice, advised: Offer) -> Iterator[str]:
    """Say which queries a promise holds for, where codes are rounded, and where such codes can be kept."""
    point, rounded = advised.point, choice.get("rounded")
    if point.oversampling is not None:
        shortlist = f"{10 * point.oversampling:,} rows for ten results (oversampling {point.oversampling})"
        yield f"This holds for a shortlist of {shortlist}, which {choice.store} rescores by the float32 codes."
    elif point.queries != "float32":
        how = "bits, compared by Hamming distance" if point.queries == "binary" else f"{point.queries} too"
        yield f"This holds for queries that become {how}, as {choice.store or 'an index of bits'} does."
    elif choice.store:
        return
    elif point.precision == EMBEDDED:
        yield f"Embedded bits live in files, CodeIndex and the JavaScript program; {TO_A_STORE}."
    elif point.precision == "binary":
        told = "" if rounded is None else f"; with queries as bits (Hamming distance) it is {share_text(rounded)}"
        yield f"This holds for float32 queries, in files and CodeIndex{told}. {TO_A_STORE[0].upper()}{TO_A_STORE[1:]}."
    elif point.precision in ("int8", "int4"):
        yield f"This holds for float32 queries. {TO_A_STORE[0].upper()}{TO_A_STORE[1:]}."


def store_lines(evaluation: Evaluation, *, model: bool = True) -> Iterator[str]:
    """Compare what a vector store holds: the raw vectors in each form, and the best codes of the model."""
    if not evaluation.store:
        return
    yield f"{evaluation.store} holds these, by {evaluation.metric} and bytes per vector (x: oversampling):"
    for form in dict.fromkeys(point.form for point in evaluation.points if point.form):
        cells = []
        for name, code in (("raw vectors", RAW), ("this model", ""))[: 1 + model]:
            found = [point for point in evaluation.points if (point.form, point.code) == (form, code)]
            if not found:
                continue
            best = max(found, key=lambda point: (round(point.score, 3), -point.bytes))
            often = "" if best.oversampling is None else f", {best.oversampling} x"
            k = "" if code else f" k = {best.k}"
            cells.append(f"{name}{k} {score_text(best.score)} ({best.bytes:,}{often})")
        yield f"  {form}: {'; '.join(cells)}"


def out_of_reach(choice: Choice) -> str:
    """Say that no code within the limits keeps the share, or that there is none, and the best that is reached."""
    keep, most = choice.limits.keep, choice.get("most")
    best = ""
    if most is not None and most.share is not None:
        estimate = f"{percent(most.share, 1)} %"
        best = f"{estimate}" if share_text(most) == estimate else f"{estimate} ({share_text(most)})"
        best = f" The best is {best}: {most.point}."
        if keep is not None and most.share >= keep:
            best += " Longer codes do not reach it, so this score may be noise."
    if keep is None:
        return f"No code of this model{_limits(choice)} was evaluated.{best}"
    whole = f"{whose(choice)} ({choice.reference_score:.4f})"
    return f"No code of this model{_limits(choice)} keeps {100 * keep:g} % of {whole}{where(choice)}.{best}"


def where(choice: Choice) -> str:
    """Say on which searches shares are, where these are not all."""
    return " on new documents" if choice.on_new else ""


def _limits(choice: Choice) -> str:
    limits = choice.limits
    return "".join(
        (
            "" if limits.k is None else f" with k = {limits.k}",
            "" if limits.any_precision else f" as {' or '.join(limits.precisions)}",
            "" if limits.bytes_per_vector is None else f" in {number_of(int(limits.bytes_per_vector), 'byte')}",
        )
    )


def _explained(choice: Choice) -> Iterator[str]:
    advised, own, rival = choice.advised, choice.own, choice.get("ahead")
    yield from _about_new(choice, advised)
    if advised is not None and advised is not own:
        if own is None:
            yield out_of_reach(choice)
        else:
            lead = (
                "is not clearly better" if advised.reason == "simpler" else "needs more bytes, or keeps less in as many"
            )
            yield f"This model {lead}: {offer_text(own)}.{_over_all(own, advised, 'it')}"
    elif advised is not None and rival is not None:
        told = f"Better in {number_of(rival.point.bytes, 'byte')}, but not clearly: {rival.point}, "
        told += f"{score_text(rival.point.score)} ({share_text(rival)})."
        yield told + _over_all(advised, rival, "this model")
    if choice.store and advised is not None:
        form = find_store(choice.store).form(advised.point.form)
        yield f"What creates it: {form.configuration(advised.point.k, advised.point.oversampling)}"
    shares = [offer for offer in choice.offers if offer.reason == "share"]
    if shares:
        parts = (f"{100 * (o.asked or 0):g} %: {o.point} ({number_of(o.point.bytes, 'byte')})" for o in shares)
        yield f"Cheapest codes of this model by the share of {whose(choice)} that they keep{where(choice)}: " + (
            f"{'; '.join(parts)}."
        )
    named = [offer for offer in choice.offers if offer.reason not in ("behind", "most", "rounded") or advised is None]
    if any(offer.point.precision == EMBEDDED for offer in named):
        yield ABOUT_BITS
    ends = [offer.share if offer.high is None else offer.high for offer in named]
    if choice.reference == RAW and any(end is not None and end > 1.005 for end in ends):
        yield ABOVE_RAW


def _about_new(choice: Choice, advised: Offer | None) -> Iterator[str]:
    """Say what is kept beyond new documents; or that new ones may fare worse, where the choice is not by them."""
    if choice.n_known is None or choice.n_new is None:
        return
    if not choice.on_new:
        yield (
            f"{choice.n_known:,} of the {choice.unit} ask for documents that the fit has learned from, and "
            f"{choice.n_new:,} for new ones only, too few to choose by: new documents may fare worse."
            if choice.n_new
            else f"All {choice.n_known:,} {choice.unit} ask for documents that the fit has learned from: new documents "
            "may fare worse."
        )
        return
    told = "New documents: no judgement that the fit learned from names them, as with any that are added later."
    if advised is not None and advised.over_all is not None:
        total = choice.n_known + choice.n_new
        told += f" Over all {total:,} {choice.unit} {_they(advised.point).lower()} {percent(advised.over_all)} %."
    yield told


def _over_all(one: Offer, other: Offer, name: str) -> str:
    """Say what one code keeps over all queries, where that is notably more than another."""
    if one.over_all is None or other.over_all is None or one.over_all - other.over_all <= NOTABLE:
        return ""
    return f" Over all queries {name} keeps {percent(one.over_all)} %, against {percent(other.over_all)} %."


def _they(point: Point) -> str:
    """Return the subject and verb of a sentence on what a point keeps."""
    one = point.precision == PRODUCT_QUANTIZER or (point.is_prefix and point.k == 1)
    return "It keeps" if one else "They keep"


# Prefix lengths in the short table.
MOST_LENGTHS = 8


def threshold_line(found: Threshold) -> str:
    """Return which cut-off on codes stands for a cosine of raw vectors, and what it gets wrong."""
    ends = (f"({100 * low:.1f} to {100 * high:.1f} %)" for low, high in (found.false_ends, found.miss_ends))
    false, missed = next(ends), next(ends)
    return (
        f"A raw cosine of {found.cosine:g} is {found.cut:.4f} for {found.codes}. "
        f"{100 * found.false_matches:.1f} % {false} of the pairs above it are false matches, and "
        f"{100 * found.misses:.1f} % {missed} of their {found.matches:,} matches are missed."
    )


def axes_line(found: SameAxes, other: str) -> str:
    """Return what two encoders share, with the mean correlations behind it and their intervals."""
    levels = "; ".join(
        f"{name} {level.value:.3f} ({level.low:.3f} to {level.high:.3f})" for name, level in found.levels.items()
    )
    return f"Shared with {other}: {found.verdict}. Mean correlation by {levels}."


def lengths_table(evaluation: Evaluation, p: int) -> list[str]:
    """Return scores as float32 at some k, a line for each code: the powers of two, and the full width."""
    lead, others = evaluation.curve(), evaluation.baselines
    shown = [k for k in lead.k if k & (k - 1) == 0 or k == lead.k[-1]][-MOST_LENGTHS:]
    wide = max(len(name) for name in (RAW, lead.label, *(curve.label for curve in others))) + 2
    lines = [f"{lead.metric} at k".ljust(wide + 2) + "".join(f"{k:>8}" for k in shown)]
    for curve in (lead, *others):
        scores = "".join(f"{score_text(curve.at(k)):>8}" if k in curve.k else " " * 8 for k in shown)
        lines.append(f"  {curve.label:<{wide}}{scores}".rstrip())
    if lead.input_score is not None:
        lines.append(f"  {RAW:<{wide}}{score_text(lead.input_score):>8} with all {p} numbers")
    best = max(evaluation.embedded, key=lambda point: (round(point.score, 3), -point.bytes), default=None)
    if best is not None and best.score > lead.at(lead.k[-1]) + NOTABLE:
        lines.append(
            f"  Embedded bits reach {score_text(best.score)} ({number_of(best.bytes, 'byte')}): their cosines are the "
            "vectors', while those of codes in floats are centred."
        )
    return lines


def score_table(evaluation: Evaluation, ks: Sequence[int], p: int) -> Iterator[str]:
    """Yield scores at some k, with intervals, next to those of the baselines."""
    curve, baselines = evaluation.curve(), evaluation.baselines
    interval = "" if curve.confidence is None else f"  {f'{100 * curve.confidence:g} % interval':<16}"
    wide, others = max(16, len(curve.label) + 2), [(one, max(9, len(one.label) + 2)) for one in baselines]
    heads = "".join(f"{one.label:>{width}}" for one, width in others)
    yield f"{'k':>5}{curve.label or 'score':>{wide}}{interval}{heads}"
    for k in ks:
        ends = ""
        if curve.low is not None and curve.high is not None:
            ends = f"  {f'{curve.low[curve.k.index(k)]:.4f} to {curve.high[curve.k.index(k)]:.4f}':<16}"
        cells = (f"{score_text(one.at(k), 4) if k in one.k else '':>{width}}" for one, width in others)
        yield f"{k:>5}{score_text(curve.at(k), 4):>{wide}}{ends}{''.join(cells)}".rstrip()
    if curve.input_score is not None:
        yield f"{'raw':>5}{curve.input_score:>{wide}.4f}  with all {p} numbers"
    told = [f"{b.label} is {' '.join(FITTED_BASELINES[b.label])}" for b in baselines if b.label in FITTED_BASELINES]
    if told:
        yield f"({'; '.join(told)})"


# Points of embedded bits in one line of text.
_CELLS = 6


def precision_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield scores and bytes of each k in each precision, then those of others, a size on each line."""
    title = ": ".join(part for part in (evaluation.label, evaluation.metric) if part)
    yield f"{title}{'' if evaluation.over_all is None else ' on new documents'} (bytes per vector)"
    front, lengths = set(evaluation.pareto_front), evaluation.lengths
    held = bool(evaluation.store)  # what a store cannot hold has no column
    ours = [o for o in evaluation.points if not o.code and o.is_prefix and o.k in lengths and bool(o.form) is held]
    if ours:
        names = list(dict.fromkeys(o.stored_as for o in ours))
        texts = {(o.k, o.stored_as): f"{o.score:.4f} ({o.bytes}){'*' if o in front else ' '}" for o in ours}
        width = max(len(name) for name in (*(text[:-1] for text in texts.values()), *names))
        yield f"{'k':>4}" + "".join(f"  {name:>{width}}" for name in names)
        for k in sorted({o.k for o in ours}):
            cells = (f" {texts.get((k, name), '- '):>{width + 1}}" for name in names)
            yield f"{k:>4} {''.join(cells)}".rstrip()
    bits = [f"{o.score:.4f} ({o.bytes}){'*' * (o in front)}" for o in evaluation.embedded]
    for start in range(0, len(bits), _CELLS):
        yield f"{' ' * 14 if start else 'embedded bits:'} {', '.join(bits[start : start + _CELLS])}"
    yield "* best score for its size"
    codes = evaluation.codes
    if RAW not in codes and evaluation.input_score is not None:
        given = "" if evaluation.input_bytes is None else f" ({evaluation.input_bytes})"
        yield f"{RAW}: {evaluation.input_score:.4f}{given}"
    points = {(point.bytes, code): point for code in codes for point in evaluation.front_of(code)}
    # The raw vectors in every precision, as they are what shares are of.
    points |= {(o.bytes, RAW): o for o in evaluation.points if o.code == RAW and o.queries == "float32"}
    if not points:
        return
    found = {}
    for key, one in points.items():
        how = one.stored_as if one.code == RAW or not one.is_prefix else f"{one.k} {one.stored_as}"
        found[key] = f"{score_text(one.score, 4)} ({'PQ' if one.precision == PRODUCT_QUANTIZER else how})"
    wide = {code: max(len(code), *(len(text) for (_, c), text in found.items() if c == code)) for code in codes}
    yield ""
    yield "Others, the best score of each in as many bytes"
    yield f"{'bytes':>5}" + "".join(f"  {code:>{wide[code]}}" for code in codes)
    for size in sorted({size for size, _ in points}):
        row = "".join(f"  {found.get((size, code), ''):>{wide[code]}}" for code in codes)
        yield f"{size:>5}{row}".rstrip()


def further_lines(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield what other metrics say, at a few prefix lengths."""
    for one in evaluations:
        curve = one.curve()
        shown = [k for k in curve.k if k & (k - 1) == 0 or k == curve.k[-1]][-4:]
        scores = ", ".join(score_text(curve.at(k)) for k in shown)
        raw = "" if one.input_score is None else f" (raw {score_text(one.input_score)})"
        where = " on new documents" if one.over_all is not None else ""
        yield f"By {one.metric} at k = {', '.join(map(str, shown))}{where}: {scores}{raw}."
