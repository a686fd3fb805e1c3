"""What is promised of embedded codes, checked on the measured lines: held, missed, or not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from benchmarks.bytes.cases import MODELS
from benchmarks.bytes.ours import HEADLINE, SUPERVISED
from benchmarks.bytes.results import Line, interval
from benchmarks.bytes.tables import between

RABITQ = ("faiss RaBitQ", "faiss PCA+RaBitQ")
TURBOQUANT = ("faiss TurboQuant", "turbovec", "turboquant-pro")
OPQ = "faiss OPQ+PQ"
# How far behind OPQ a code of 8 to 16 bytes may be.
NEAR = 0.02

Lines = Mapping[str, Mapping[int, Line]]


@dataclass(frozen=True)
class Checked:
    """A promise and what became of it; `held` is None where a line is missing."""

    claim: str
    held: bool | None
    found: str

    def record(self) -> dict[str, object]:
        """Return the record as JSON values."""
        return asdict(self)


def checked(recall: Mapping[str, Lines], other: Mapping[str, Lines]) -> Iterator[Checked]:
    """Check every promise on the lines of each case."""
    for case, least in (("banking77-minilm", 0.855), ("scifact-minilm", 0.75)):
        yield _at_least(recall, case, HEADLINE, 32, least, "recall@10")
    for size, least in ((16, 0.925), (8, 0.91)):
        yield _at_least(other, "banking77-minilm", SUPERVISED, size, least, "1-NN accuracy")
    for data in ("banking77", "scifact", "sts"):
        for model in MODELS:
            lines = recall.get(f"{data}-{model}", {})
            yield _against(f"{data}-{model}", lines, RABITQ, (16, 24, 32, 48, 64, 96), "level with RaBitQ", 0.0)
            yield _against(f"{data}-{model}", lines, TURBOQUANT, (16, 24, 32, 48, 64, 96), "level with TurboQuant", 0.0)
    for data in ("banking77", "scifact"):
        for model in MODELS:
            lines = recall.get(f"{data}-{model}", {})
            yield _ahead(f"{data}-{model}", lines, OPQ, (32, 48, 64, 96))
            yield _against(f"{data}-{model}", lines, (OPQ,), (8, 12, 16), f"within {NEAR} of OPQ", NEAR)


def _at_least(tables: Mapping[str, Lines], case: str, family: str, size: int, least: float, measure: str) -> Checked:
    claim = f"{case}, {size} bytes: {measure} at least {least}"
    found = tables.get(case, {}).get(family, {}).get(size)
    if found is None:
        return Checked(claim, None, "not measured")
    return Checked(claim, round(found.mean, 4) >= least, f"{found.mean:.4f}")


def _differences(lines: Lines, peers: tuple[str, ...], sizes: tuple[int, ...]) -> Iterator[tuple[int, str, float, str]]:
    """Yield the bytes, the best peer, ours minus it, and the interval in words."""
    for size in sizes:
        ours = lines.get(HEADLINE, {}).get(size)
        others = [lines[peer][size] for peer in peers if size in lines.get(peer, {})]
        if ours is not None and others:
            best = max(others, key=lambda line: line.mean)
            gap, ends = ours.mean - best.mean, [] if best.earlier else list(interval(ours.values - best.values))
            yield size, best.family, gap, f"{size}: {gap:+.3f} ({between(ends)})"


def _against(case: str, lines: Lines, peers: tuple[str, ...], sizes: tuple[int, ...], what: str, slack: float):
    found = list(_differences(lines, peers, sizes))
    claim = f"{case}, {_words(sizes)} bytes: {what}"
    if not found:
        return Checked(claim, None, "not measured")
    return Checked(claim, all(gap >= -slack for _, _, gap, _ in found), "; ".join(words for *_, words in found))


def _ahead(case: str, lines: Lines, peer: str, sizes: tuple[int, ...]) -> Checked:
    found = list(_differences(lines, (peer,), sizes))
    claim = f"{case}, {_words(sizes)} bytes: ahead of OPQ"
    if not found:
        return Checked(claim, None, "not measured")
    return Checked(claim, all(gap > 0 for _, _, gap, _ in found), "; ".join(words for *_, words in found))


def _words(sizes: tuple[int, ...]) -> str:
    return f"{sizes[0]} to {sizes[-1]}"
