"""What is said of a search beside its curve: other metrics, and queries of seen and of unseen documents apart."""

from __future__ import annotations

from firstk.encoder.curve import PrefixCurve
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.recommendation import ABOVE_RAW
from firstk.evaluation.new_documents import Population, parts_by_seen
from firstk.metrics.curve import SEARCH, EvaluationData, prefix_curve

# Prefix lengths at which scores are shown.
_SHOWN = (16, 32, 64, 128)


def curves_by_seen(
    encoder: FittedEncoder, data: EvaluationData, metric: str = "ndcg@10", ks: list[int] | None = None
) -> dict[str, PrefixCurve]:
    """Return the curves of "seen" queries, of which a relevant document was learned from, and of "unseen" ones.

    One that no query belongs to is left out; both are where `data` does not tell them apart.
    """
    return {name: prefix_curve(encoder, part, metric, ks) for name, part in parts_by_seen(data).items()}


def search_notes(encoder: FittedEncoder, people: Population, metric: str = "ndcg@10") -> list[str]:
    """Say how a code fares by the other metrics of search, and on seen and unseen queries, at a few prefix lengths."""
    ks = sorted({*(k for k in _SHOWN if k < encoder.d), encoder.d})
    at = f"at k = {', '.join(map(str, ks))}{' on new documents' if people.on_new else ''}"
    others = [prefix_curve(encoder, people.data, name, ks) for name in SEARCH if name != metric]
    notes = [f"By other metrics {at}: {'; '.join(f'{curve.metric} {_scores(curve)}' for curve in others)}."]
    curves = curves_by_seen(encoder, people.whole, metric, ks)
    if not curves:
        return notes
    lead = f"Of the raw vectors' {metric}, k = {', '.join(map(str, ks))} keep"
    meaning = {
        "unseen": "on new documents, which the fit has not learned from",
        "seen": "on documents that it has learned from",
    }
    said = "; ".join(
        f"{_shares(curves[name])} % {what} ({curves[name].n_evaluated:,} queries)"
        for name, what in meaning.items()
        if name in curves
    )
    above = any(score > 1.005 * (curve.input_score or score) for curve in curves.values() for score in curve.score)
    return [f"{lead} {said}.{f' {ABOVE_RAW}' if above else ''}", *notes]


def _shares(curve: PrefixCurve) -> str:
    whole = curve.input_score or 0.0
    return ", ".join("-" if whole <= 0 else f"{100 * score / whole:.0f}" for score in curve.score)


def _scores(curve: PrefixCurve) -> str:
    return f"{', '.join(f'{score:.3f}' for score in curve.score)} (raw {curve.input_score:.3f})"
