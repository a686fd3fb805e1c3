"""What is imported before anything is done: the time of a start is that of its modules, which can be counted."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from firstk import PrefixEncoder

# Packages that take a tenth of a second or more.
HEAVY = {"numpy", "scipy", "sklearn", "torch", "numba", "pyarrow", "pandas", "matplotlib", "tqdm"}


def loaded(script, *arguments):
    """Run a script in a process of its own; return the heavy packages and the modules of ours that it imports."""
    tail = "finally:\n    print('modules:', *sys.modules)"
    code = f"import sys\ntry:\n    {script}\nexcept SystemExit as end:\n    assert not end.code, end.code\n{tail}"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    names = done.stdout.rpartition("modules:")[2].split()
    return HEAVY & set(names), {name for name in names if name.partition(".")[0] in ("firstk", "firstk_papers")}


COMMAND = "from firstk.cli import main; main()"


def test_the_package_loads_nothing_but_itself():
    assert loaded("import firstk") == (set(), {"firstk"})


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_commands_and_checks_of_their_words(arguments):
    heavy, own = loaded(COMMAND, *arguments)
    assert heavy == set()
    # Help lists the commands of the wings by their first sentence; no other command loads them.
    wings = {
        f"{wing}{part}" for wing in ("firstk.search", "firstk.upgrade", "firstk_papers") for part in ("", ".command")
    }
    listed = wings if arguments == ["--help"] else set()
    assert {name for name in own if not name.startswith(("firstk.cli", "firstk.words"))} == listed | {
        "firstk",
        "firstk.exceptions",
        "firstk._base",
        "firstk._base.lazy_names",
        "firstk._base.atomic_file",
        "firstk.data",
        "firstk.data.remote",
        "firstk.data.remote.path",
        "firstk.data.remote.secrets",
        "firstk.data.stores",
    }


def test_info_loads_numpy_and_what_a_model_is(tmp_path):
    PrefixEncoder(4).fit(np.random.default_rng(0).normal(size=(60, 8))).save(tmp_path / "model")
    heavy, own = loaded(COMMAND, "info", str(tmp_path / "model"))
    assert heavy == {"numpy"}
    rooms = {".".join(name.split(".")[:2]) for name in own}
    below = {"firstk.bits", "firstk.data", "firstk._base", "firstk.exceptions", "firstk.quality", "firstk.words"}
    assert rooms == {"firstk", "firstk.cli", "firstk.encoder"} | below
    of_data = {name for name in own if name.startswith("firstk.data")}
    of_remote = {"firstk.data.remote", "firstk.data.remote.path", "firstk.data.remote.secrets"}
    assert of_data == {"firstk.data", "firstk.data.precision", "firstk.data.stamp", "firstk.data.stores"} | of_remote


def test_a_small_curve_does_not_load_the_compiler():
    """Compiling takes seconds: it is for what takes longer."""
    script = "import numpy as np; from firstk.metrics import nearest_neighbors as f; f(np.eye(9), np.eye(9), 2)"
    heavy, own = loaded(script)
    assert not {"numba", "torch"} & heavy
    assert "firstk.metrics._sweep_compiled" not in own
