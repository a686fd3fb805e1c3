"""The page of a held-out report: what was fitted, how it compares, what it saves, and each coordinate by itself."""

from __future__ import annotations

from dataclasses import replace

from firstk._base.checks import bad_parameter
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.recommendation import bytes_text
from firstk.evaluation.operating_points import PrecisionTable
from firstk.evaluation.records import Comparison, HeldOutReport
from firstk.evaluation.report.page import Page, Section, name_of
from firstk.evaluation.report.parts import AxesSection, ImagesSection, PrecisionSection, StorageSection
from firstk.evaluation.report.reading import score_text, size_of
from firstk.exceptions import InvalidInputError

# What a page calls a metric, what its curves are headed by, and how to read them.
METRICS: dict[str, tuple[str, str, str]] = {
    "1nn_accuracy": (
        "1-NN accuracy",
        "Are classes told apart?",
        "Share of held-out rows whose nearest training row, by cosine of the first k coordinates, has their label.",
    ),
    "probe_accuracy": (
        "probe accuracy",
        "Does a linear probe find the class?",
        "Accuracy on held-out rows of a least-squares probe that was fitted to the first k coordinates.",
    ),
    "head_accuracy": (
        "own-head accuracy",
        "Does the encoder's own head find the class?",
        "Accuracy on held-out rows of the head that was trained with the code. Baselines have no such head.",
    ),
    "r2": (
        "R²",
        "Are the targets predicted?",
        "R² on held-out rows of the best linear readout of the first k coordinates.",
    ),
    "readback_variance": (
        "variance rebuilt",
        "Are the vectors rebuilt?",
        "Share of the variance of held-out rows that the best linear decoder rebuilds from the first k coordinates.",
    ),
    "recall@10": (
        "recall@10",
        "Are neighbors kept?",
        "Share of the ten nearest neighbors at full width that are among the ten nearest by the first k coordinates.",
    ),
    "spearman": (
        "Spearman correlation",
        "Do cosines agree with scores?",
        "Spearman correlation, on held-out pairs, of the cosine of the first k coordinates with the score of the pair.",
    ),
    "positive_recall@10": (
        "recall@10 of partners",
        "Are partners found?",
        "Share of held-out pairs whose right side is among the ten nearest to the left, by the first k coordinates.",
    ),
}
AXES_TEXT = (
    "Each coordinate by itself, on the held-out rows. Where mean |z| falls as usefulness falls, the size of a "
    "coordinate tells how much it is worth."
)
PRECISION_TEXT = "A stored code can be cut and rounded. Stored vectors are rounded; queries stay float32."
IMAGES_TEXT = (
    "Held-out images above; below, what the best linear decoder rebuilds from their first k coordinates, and the share "
    "of the squared distance from the mean image that is rebuilt."
)


def page_of(report: HeldOutReport, *, rows: int | None = None, k: int | None = None, keep: float = 0.99) -> Page:
    """Return the page of a held-out report.

    Parameters
    ----------
    report : HeldOutReport
    rows : int, optional
        How many vectors are to be stored; as many as the file held, if not given.
    k : int, optional
        The prefix length to recommend; the smallest that keeps `keep` of the full-width score, if not given.
    keep : float in (0, 1]
    """
    chosen, promise = _chosen(report.lead.ours, k, keep)
    stored = StorageSection(
        "What is saved?",
        "Bytes of the vectors as they are, and of their first k coordinates, stored in the same precision.",
        report.rows if rows is None else rows,
        report.columns,
        report.itemsize,
    )
    sections = [_section(comparison) for comparison in report.comparisons]
    extras: list[object] = [stored]
    if report.precisions is not None:
        extras.append(_precision_section(report.precisions, promise))
    if report.axes is not None:
        extras.append(AxesSection("What is each coordinate worth?", AXES_TEXT, report.axes))
    if report.images is not None:
        extras.append(ImagesSection("What do k coordinates see?", IMAGES_TEXT, report.images))
    return Page(
        title=f"{report.facts.get('file', 'Vectors')}, cut anywhere",
        summary=_summary(sections[0], chosen, stored),
        sections=(*sections, *extras),
        chosen_k=chosen,
        keep=promise,
        facts=tuple(report.facts.items()),
        notes=(report.held_out, *_band_note(sections[0]), *_choice_note(chosen, promise), *report.notes),
    )


def _section(comparison: Comparison) -> Section:
    metric = comparison.ours.metric
    name, heading, text = METRICS.get(metric, (metric, metric, ""))
    ours, *baselines = (replace(curve, metric=name) for curve in (comparison.ours, *comparison.baselines))
    return Section(heading, text, (ours,), tuple(baselines))


def _precision_section(table: PrecisionTable, keep: float | None) -> PrecisionSection:
    """Show the table; where a share is to be kept, ring the cheapest pair of k and precision that keeps it."""
    chosen = None if keep is None else table.choose(keep=keep)
    text = PRECISION_TEXT
    if chosen is not None:
        text += (
            f" The fewest bytes that keep {100 * keep:g} %: {chosen.bytes:,} a vector, k = {chosen.k} in "  # type: ignore[operator]
            f"{chosen.precision}, which scores {score_text(chosen.score)}."
        )
    named = replace(table, metric=METRICS.get(table.metric, (table.metric,))[0])
    return PrecisionSection("What do fewer bits cost?", text, named, chosen)


def _chosen(curve: PrefixCurve, k: int | None, keep: float) -> tuple[int | None, float | None]:
    """Return the k to recommend and the share it was asked to keep; neither where a share means nothing."""
    if k is not None:
        if k not in curve.k:
            near = min(curve.k, key=lambda own: abs(own - k))
            allowed = f"a prefix length of this evaluation, up to {curve.k[-1]}; the nearest is {near}"
            raise bad_parameter("k", "report", allowed, k)
        return k, None
    try:
        return curve.smallest(keep), keep
    except InvalidInputError:
        if curve.full > 0:
            raise  # 'keep' itself is wrong
        return None, None


def _summary(lead: Section, k: int | None, stored: StorageSection) -> str:
    ours = lead.curves[0]
    if k is None:
        return f"The score of the full code is not positive ({ours.full:.4g}), so that no k can be said to keep it."
    size = size_of(ours)
    text = (
        f"The first {k} of {ours.k[-1]} coordinates reach {ours.metric} {score_text(ours.at(k), size)} on held-out "
        f"data; {'all' if ours.full_k == ours.k[-1] else 'the first'} {ours.full_k} reach {score_text(ours.full, size)}"
    )
    if ours.input_score is not None:
        text += f", the {stored.columns} raw columns {score_text(ours.input_score)}"
    others = [f"{name_of(curve)} {score_text(curve.at(k), size)}" for curve in lead.baselines if k in curve.k]
    text += f". At the same length: {', '.join(others)}." if others else "."
    before, after = bytes_text(stored.bytes_at()), bytes_text(stored.bytes_at(k))
    return f"{text} {stored.rows:,} vectors take {after} instead of {before}."


def _band_note(lead: Section) -> tuple[str, ...]:
    if lead.confidence is None:
        return ()
    return (f"Bands are {100 * lead.confidence:g} % bootstrap intervals over the held-out data.",)


def _choice_note(k: int | None, keep: float | None) -> tuple[str, ...]:
    if k is None or keep is None:
        return ()
    return (
        f"k = {k} was read off the same held-out rows as the scores, which flatters it a little; evaluate it on rows "
        "of your own with 'firstk curve'.",
    )
