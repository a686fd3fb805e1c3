"""The shape of the library: rooms and layers, a page and a test for every member, and types that say something.

Sizes are guidance and not tested: about 500 lines a file and 60 a function, and what is one thought stays together.
"""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "firstk"
SOURCES = sorted(LIBRARY.rglob("*.py"))
MODULES = {"contracts", "exceptions"}
ROOMS = {
    "_base",
    "advice",
    "bits",
    "cli",
    "data",
    "encoder",
    "estimator",
    "integrations",
    "losses",
    "metrics",
    "moments",
    "objectives",
    "orderings",
    "quality",
    "search",
    "solvers",
    "upgrade",
    "words",
}
# Tests of more than one room.
ACROSS = {"architecture", "contracts", "docs", "engines", "evidence", "fixtures"} | {
    "fuzz",
    "papers",
    "parity",
    "processors",
    "properties",
}
PACKAGES = sorted(path.parent for path in (ROOT / "src").rglob("__init__.py"))
MEMBERS = [
    (axis, path.stem)
    for axis in ("objectives", "orderings", "solvers")
    for path in sorted((LIBRARY / axis).glob("*.py"))
    if not path.stem.startswith("_") and path.stem != "noise"
]
MOST_BARE_ANY = 400


def folders(path):
    return {part.name for part in path.iterdir() if part.is_dir() and part.name != "__pycache__"}


def test_the_top_of_the_library_is_its_rooms_and_two_modules():
    files = {part.name for part in LIBRARY.iterdir() if part.is_file()}
    assert files == {"__init__.py", "__main__.py", "py.typed"} | {f"{name}.py" for name in MODULES}
    assert folders(LIBRARY) == ROOMS


def test_every_package_says_what_lives_in_it_and_what_does_not():
    for package in PACKAGES:
        lines = (ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or "").splitlines()
        assert len([line for line in lines if line.strip()]) >= 2, package
        if package.parent == LIBRARY:
            elsewhere = set(re.findall(r"`(?:firstk\.)?(\w+)`", " ".join(lines[1:])))
            assert elsewhere & (ROOMS - {package.name}), f"{package}: name the room of what could be looked for in vain"


def test_tests_mirror_the_rooms():
    assert folders(ROOT / "tests") - ACROSS == ROOMS
    for room in ROOMS:
        below = folders(ROOT / "tests" / room)
        assert below <= folders(LIBRARY / room), f"tests/{room} has folders that src/firstk/{room} has not"


def test_every_module_is_in_one_layer():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [contract for contract in settings["contracts"] if contract["type"] == "layers"]
    assert layers["exhaustive"], "import-linter then fails where a module is in no layer"
    assert layers["exhaustive_ignores"] == ["__main__"]
    names = [name.strip() for layer in layers["layers"] for name in layer.split("|")]
    assert sorted(names) == sorted(ROOMS | MODULES)


def test_every_member_has_a_page_and_a_test():
    tests = " ".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for axis, name in MEMBERS:
        assert (ROOT / "docs" / axis / f"{name}.md").is_file()
        assert name in tests


def test_nothing_is_called_utils():
    assert not [path for path in SOURCES if path.stem in ("utils", "helpers", "misc", "common")]


def bound_names(path):
    """Return the constants and classes that the body of a module binds."""
    bound = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            bound += [
                part.id
                for target in node.targets
                for part in ast.walk(target)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            ]
        elif isinstance(node, ast.ClassDef):
            bound.append(node.name)
    return bound


def test_no_module_binds_a_name_twice():
    """A constant that is written again far below silently changes what stands above."""
    for path in SOURCES:
        bound = bound_names(path)
        assert sorted(bound) == sorted(set(bound)), path


def bare_any(source):
    """Count annotations that are `Any`, or a name that stands for it, and nothing else."""
    tree = ast.parse(source)
    aliases = {"Any"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):  # NAME: TypeAlias = Any
            targets, value = [node.target], node.value
        else:
            continue
        if isinstance(value, ast.Name) and value.id in aliases:
            aliases |= {target.id for target in targets if isinstance(target, ast.Name)}
    annotations = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            annotations.append(node.returns)
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            annotations.append(node.annotation)
    named = [part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in annotations if part]
    return sum(name in aliases for name in named)


def test_bare_any_is_counted_with_its_aliases():
    assert bare_any("import typing\nfrom typing import Any\nT = Any\ndef f(a: Any, b: list[Any], *c: T) -> T: ...") == 3
    assert bare_any("import typing\nx: typing.Any = 1\ny: int = 2") == 1


def test_few_annotations_are_bare_any():
    counts = {
        path.relative_to(ROOT / "src"): bare_any(path.read_text()) for path in sorted((ROOT / "src").rglob("*.py"))
    }
    total = sum(counts.values())
    for path, count in sorted(counts.items(), key=lambda item: -item[1])[:20]:
        print(f"{count:5d} {path}")  # noqa: T201
    print(f"{total:5d} bare Any in src; at most {MOST_BARE_ANY - 1} are allowed")  # noqa: T201
    assert total < MOST_BARE_ANY
