"""Every documented object, in a user's file that type checkers read in their strictest mode; and planted mistakes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import firstk
from firstk import objectives, orderings, solvers
from firstk.upgrade import methods
from firstk.upgrade.contract import MethodName

GOOD = Path(__file__).with_name("documented_objects.py")
MISTAKES = [
    'PrefixEncoder(objective="fischer")',
    "PrefixEncoder(objective=FullPrefix())",
    'PrefixEncoder(ordering="full-prefix")',
    'PrefixEncoder(solver="closed form")',
    'PrefixEncoder(network="linaer")',
    'PrefixEncoder("ranks")',
    'Fisher(shrinkage="atuo")',
    'Gradient(epochs="many")',
    'PrefixAlignment(method="cac")',
    "PrefixAlignment(method=Fisher())",
    'PrefixEncoder().fit(X).predict(X, "3")',
    "PrefixEncoder().fit(X).predict(X).nothing",
]
HEAD = (
    "import numpy as np\nfrom firstk import Fisher, FullPrefix, Gradient, PrefixAlignment, PrefixEncoder\n"
    "X = np.eye(3)\n"
)


@pytest.fixture(scope="module")
def user_files(tmp_path_factory):
    """A folder of a user's, with firstk on the path: the good file, and one with a mistake on each line."""
    folder = tmp_path_factory.mktemp("user")
    shutil.copy(GOOD, folder / "good.py")
    (folder / "mistakes.py").write_text(HEAD + "\n".join(MISTAKES) + "\n")
    source = str(Path(firstk.__file__).parents[1])
    settings = {"include": ["."], "typeCheckingMode": "strict", "extraPaths": [source], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return folder


def assert_found(lines_of, said):
    """No error in the good file, and one on each line of the other that holds a mistake."""
    start = HEAD.count("\n") + 1
    assert not lines_of["good.py"], said
    missed = [line for i, line in enumerate(MISTAKES) if i + start not in lines_of["mistakes.py"]]
    assert not missed, said


def test_pyright_strict(user_files):
    pytest.importorskip("pyright")
    command = [sys.executable, "-m", "pyright", "-p", str(user_files), "--pythonpath", sys.executable, "--outputjson"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if not ran.stdout.startswith("{"):
        pytest.skip(f"pyright did not start: {ran.stderr[-200:]}")
    lines_of = {"good.py": {}, "mistakes.py": {}}
    for found in json.loads(ran.stdout)["generalDiagnostics"]:
        lines_of[Path(found["file"]).name][found["range"]["start"]["line"] + 1] = found["message"]
    assert_found(lines_of, lines_of["good.py"])


@pytest.mark.full  # half a minute without a cache
def test_mypy_strict(user_files):
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--config-file=",
            "good.py",
            "mistakes.py",
        ],
        cwd=user_files,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(Path(firstk.__file__).parents[1])},
    )
    lines_of = {"good.py": {}, "mistakes.py": {}}
    for line in ran.stdout.splitlines()[:-1]:
        file, number, said = line.split(":", 2)
        lines_of[file][int(number)] = said
    assert_found(lines_of, ran.stdout + ran.stderr)


def test_the_good_file_has_every_documented_name():
    text = GOOD.read_text()
    body = text[text.index("if TYPE_CHECKING") :]
    assert [name for name in firstk.__all__ if name not in body] == []


def test_names_are_those_of_the_registries():
    needs_settings = set(orderings.REGISTRY.needs_settings)
    assert set(get_args(objectives.ObjectiveName)) == set(objectives.PUBLIC)
    assert set(get_args(orderings.OrderingName)) == set(orderings.PUBLIC) - needs_settings
    assert set(get_args(solvers.SolverName)) == set(solvers.PUBLIC)
    assert set(get_args(MethodName)) == {"auto", *methods.PUBLIC}


def test_every_name_of_the_package_is_there():
    """Lazy names are looked up in modules that have them."""
    homes = {name: home for home, names in firstk._HOMES.items() for name in names}
    assert sum(len(names) for names in firstk._HOMES.values()) == len(homes)
    for name in firstk.__all__:
        assert getattr(firstk, name) is not None
