"""The papers use what an outsider can: every name they import from firstk is in the `__all__` of a public package."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import firstk_papers

FOLDER = Path(firstk_papers.__file__).parent
PUBLIC = {
    "firstk",
    "firstk.contracts",
    "firstk.data",
    "firstk.exceptions",
    "firstk.losses",
    "firstk.metrics",
    "firstk.orderings",
}


def imported(source):
    """Return the pairs of module and name that a file imports from firstk, at any depth."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "firstk":
            found += [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names if alias.name.partition(".")[0] == "firstk"]
    return found


def hidden(pairs):
    """Return the pairs that are not public: another module, or a name its package does not list."""
    return [(module, name) for module, name in pairs if module not in PUBLIC or name not in listed(module)]


def listed(module):
    found = import_module(module)
    return getattr(found, "__all__", [name for name in vars(found) if not name.startswith("_")])


# The command belongs to the command line, and takes its options and progress.
@pytest.mark.parametrize(
    "path", sorted(set(FOLDER.rglob("*.py")) - {FOLDER / "command.py"}), ids=lambda path: str(path.relative_to(FOLDER))
)
def test_every_name_is_public(path):
    pytest.importorskip("torch")  # firstk.losses needs it
    assert hidden(imported(path.read_text())) == []


def test_hidden_names_are_found():
    pytest.importorskip("torch")
    source = "import firstk._base\nif 1:\n    from firstk.metrics import rank\n    from firstk.metrics.task import x\n"
    assert hidden(imported(source)) == [
        ("firstk._base", None),
        ("firstk.metrics", "rank"),
        ("firstk.metrics.task", "x"),
    ]
    assert hidden(imported("from firstk import PrefixEncoder\nfrom firstk.losses import FullPrefixFisher\n")) == []
