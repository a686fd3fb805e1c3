"""Files and functions stay small enough to read, and every member of an axis has its page and its test."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "firstk").rglob("*.py"))
MEMBERS = [
    (axis, path.stem)
    for axis in ("objectives", "orderings", "solvers")
    for path in sorted((ROOT / "src" / "firstk" / axis).glob("*.py"))
    if not path.stem.startswith("_") and path.stem != "noise"
]


def code_lines(node):
    """Lines of a function without its docstring."""
    doc = ast.get_docstring(node)
    return node.end_lineno - node.lineno + 1 - (len(doc.splitlines()) + 1 if doc else 0)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_small(path):
    text = path.read_text()
    assert text.count("\n") <= 500, "split the file"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert code_lines(node) <= 60, f"{node.name} is long: {code_lines(node)} lines"


@pytest.mark.parametrize(("axis", "name"), MEMBERS)
def test_every_member_has_a_page_and_a_test(axis, name):
    assert (ROOT / "docs" / axis / f"{name}.md").is_file()
    tests = " ".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert re.search(name, tests)


def test_nothing_is_called_utils():
    assert not [path for path in SOURCES if path.stem in ("utils", "helpers", "misc", "common")]
