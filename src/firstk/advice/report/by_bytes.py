"""What a number of bytes keeps: embedded bits, prefixes and other codes side by side, for the slider over bytes."""

from __future__ import annotations

from html import escape

from firstk.advice.report.reading import NOTHING, score_text
from firstk.advice.report.tradeoff import name_of_code
from firstk.quality.evaluation import Evaluation
from firstk.quality.point import RAW, Point


def byte_stops(table: Evaluation) -> list[int]:
    """Return the numbers of bytes that the slider stops at: those of embedded bits."""
    return [point.bytes for point in table.embedded]


def start_of_bytes(table: Evaluation, size: int | None) -> int:
    """Return the stop to begin with: that of a number of bytes, or the nearest below."""
    stops = byte_stops(table)
    wanted = stops[len(stops) // 2] if size is None else size
    return max((i for i, size in enumerate(stops) if size <= wanted), default=0)


def cells_of_bytes(table: Evaluation) -> list[list[str]]:
    """Return, for each stop, the score, the interval and the name of the best that each kind of code has in it."""
    kinds = _kinds(table)
    return [[text for points in kinds.values() for text in _best(table, points, size)] for size in byte_stops(table)]


def bytes_html(table: Evaluation, size: int | None, number: int) -> str:
    """Return the slider and its table; empty where there are no embedded bits. The script rewrites the cells."""
    stops = byte_stops(table)
    if not stops:
        return ""
    start = start_of_bytes(table, size)
    texts = iter(cells_of_bytes(table)[start])
    rows = "".join(
        f'<tr{" class=ours" if not i else ""}><th scope="row">{escape(name)}</th>'
        + "".join(f'<td><span class="value">{escape(next(texts))}</span></td>' for _ in range(3))
        + "</tr>"
        for i, name in enumerate(_kinds(table))
    )
    slider = (
        f'<label for="bytes-{number}">Bytes a vector</label> '
        f'<input id="bytes-{number}" type="range" min="0" max="{len(stops) - 1}" step="1" value="{start}">'
    )
    return (
        f'<div class="by-bytes" data-section="{number}"><div class="bytes-control" hidden>{slider}</div>'
        '<div class="scroll" role="region" tabindex="0" aria-label="What so many bytes keep"><table class="full">'
        f'<caption>{escape(table.metric)} in <span class="k">{stops[start]:,}</span> bytes a vector at most</caption>'
        '<thead><tr><th scope="col">stored</th><th scope="col">score</th><th scope="col">interval</th>'
        f'<th scope="col">as</th></tr></thead><tbody aria-live="polite">{rows}</tbody></table></div></div>'
    )


def bytes_data(table: Evaluation) -> dict[str, object]:
    """Return what the script looks up: the stops, and the cells at each."""
    return {"sizes": {"bytes": byte_stops(table), "cells": cells_of_bytes(table)}}


def _kinds(table: Evaluation) -> dict[str, tuple[Point, ...]]:
    """Return the points of each kind of code: our bits, our prefixes, then the others."""
    others = {
        name_of_code(code): tuple(o for o in table.points if o.code == code and o.queries == "float32")
        for code in table.codes
    }
    return {"embedded bits": table.embedded, "first k coordinates": table.prefixes, **others}


def _best(table: Evaluation, points: tuple[Point, ...], size: int) -> tuple[str, str, str]:
    best = max((o for o in points if o.bytes <= size), key=lambda o: (o.score, -o.bytes), default=None)
    if best is None:
        return NOTHING, NOTHING, NOTHING
    ends = table.interval_of(best)
    interval = NOTHING if ends is None else f"{score_text(ends[0])} to {score_text(ends[1])}"
    return score_text(best.score), interval, f"{_how(best)}, {best.bytes:,} bytes"


def _how(point: Point) -> str:
    """Return how a point is stored, without the name of its code, which its row says."""
    return point.stored_as if point.code == RAW or not point.is_prefix else f"k = {point.k}, {point.stored_as}"
