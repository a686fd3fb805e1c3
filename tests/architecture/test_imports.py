"""Importing firstk is quick because it imports almost nothing; and the core never imports torch."""

import json
import subprocess
import sys

import firstk


def modules_after(code):
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_firstk_loads_no_heavy_package():
    loaded = modules_after("import firstk")
    assert not loaded & {"numpy", "scipy", "sklearn", "torch", "matplotlib", "typer", "pandas"}


def test_command_line_help_loads_no_heavy_package():
    loaded = modules_after("import firstk.cli")
    assert not loaded & {"scipy", "sklearn", "torch", "matplotlib", "pandas"}


def test_a_closed_form_fit_never_imports_torch_or_matplotlib():
    code = (
        "import numpy as np\nfrom firstk import PrefixEncoder\n"
        "X = np.random.default_rng(0).normal(size=(50, 5))\n"
        "e = PrefixEncoder(objective='fisher').fit(X, np.arange(50) % 3)\n"
        "e.curve(X, np.arange(50) % 3, reference=(X, np.arange(50) % 3))"
    )
    assert not modules_after(code) & {"torch", "numba", "matplotlib"}


def test_every_public_name_can_be_loaded_and_is_documented():
    for name in firstk.__all__:
        thing = getattr(firstk, name)
        assert name == "__version__" or (thing.__doc__ and len(thing.__doc__.splitlines()[0]) > 20), name
    assert set(firstk.__all__) <= set(dir(firstk))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(firstk, "Nothing")
