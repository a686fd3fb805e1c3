"""The library speaks of parameters; the command line turns them into options, in one place."""

import ast
import re
from pathlib import Path

import pytest

from firstk.cli._options import in_options, know_options

LIBRARY = Path(__file__).parents[2] / "src" / "firstk"
# What an option looks like at the beginning of a word; styles of a page are none.
OPTION = re.compile(r"(?<![\w(-])--[a-z]|\(--[a-z][a-z-]*[ )]")
# The command line itself, the sentences and commands that it prints, and torchrun, whose option is its own.
SPEAKS = ("cli/", "words/", "search/", "upgrade/", "integrations/distributed.py", "advice/report/")


def texts(tree):
    """Return the strings of a module that are no docstrings."""
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def test_errors_of_the_library_name_no_options():
    found = [
        f"{path.relative_to(LIBRARY)}: {text}"
        for path in sorted(LIBRARY.rglob("*.py"))
        if not str(path.relative_to(LIBRARY)).startswith(SPEAKS)
        for text in texts(ast.parse(path.read_text("utf-8")))
        if OPTION.search(text)
    ]
    assert not found, found


class Parameter:
    def __init__(self, name, *opts, metavar=None):
        self.name, self.opts, self.metavar = name, opts, metavar


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("name their column with vectors=.", "name their column with VECTORS:COLUMN."),
        ("Name one: vectors='x'.", "Name one: VECTORS:x."),
        ("leave them out with nan='drop'.", "leave them out with --nan drop."),
        ("Pass force=True to replace it", "Pass --force to replace it"),
        ("Say ids='a,b' or by_row=True.", "Say --id a,b or --id :row."),
        ("name them by labels=", "name them by --label"),
        ("relevance=FILE:QUERY,DOCUMENT,GRADE.", "--relevance FILE:QUERY,DOCUMENT,GRADE."),
        ("in Python: save(path, moments=True)", "in Python: save(path, moments=True)"),
        ("Gradient(force=True), open(path, vectors='e')", "Gradient(force=True), open(path, vectors='e')"),
        ("The 'k' parameter of PrefixEncoder.transform must be an int", "-k must be an int"),
        ("The 'tau' parameter of Loss must be positive", "The 'tau' parameter of Loss must be positive"),
        ("relevance= and queries= belong together: k = 3", "--relevance and --queries belong together: k = 3"),
    ],
)
def test_parameters_of_a_command_become_its_options(said, shown):
    names = ("nan", "force", "label", "relevance", "queries")
    options = [*(Parameter(name, f"--{name}") for name in names), Parameter("ids", "--id"), Parameter("k", "-k")]
    know_options([Parameter("source", "source", metavar="VECTORS"), *options])
    assert in_options(said) == shown
    know_options([])
    assert in_options(said) == said
