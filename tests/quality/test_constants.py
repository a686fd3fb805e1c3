"""One confidence, one tolerance and one number of draws: those of `firstk.quality.paired`, in the whole library."""

import ast
import re
from pathlib import Path

import firstk

SOURCE = Path(firstk.__file__).parent
NAMES = re.compile(r"(CONFIDENCE|TOLERANCE|DRAWS|RESAMPLES|DEVIATIONS)", re.IGNORECASE)
ARGUMENTS = ("confidence", "resamples")
# What bears such a name and compares no scores.
OTHER = {
    ("search/funnel/index.py", "_UNIT_TOLERANCE"): "norms that count as 1",
    ("estimator/check.py", "TOLERANCE"): "what `check` lets a score fall before it says so: its user's to set",
    ("search/moving/checksum.py", "_TOLERANCE"): "rounding of stored numbers",
    ("search/moving/checksum.py", "_DEVIATIONS"): "of that rounding",
}


def is_number(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def constants(source):
    """Yield the names of constants, arguments and defaults that are numbers and look like those of `paired`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            if any(is_number(part) for part in ast.walk(node.value)):
                yield from (name for name in names if name.lstrip("_").isupper() and NAMES.search(name))
        elif isinstance(node, ast.Call):
            yield from (one.arg for one in node.keywords if one.arg in ARGUMENTS and is_number(one.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            plain = zip(given.args[len(given.args) - len(given.defaults) :], given.defaults, strict=True)
            for argument, default in (*plain, *zip(given.kwonlyargs, given.kw_defaults, strict=True)):
                if argument.arg in ARGUMENTS and default is not None and is_number(default):
                    yield argument.arg


def test_no_other_constants():
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        if path != SOURCE / "quality" / "paired.py"
        for name in constants(path.read_text("utf-8"))
    }
    assert found - OTHER.keys() == set()
    assert OTHER.keys() <= found  # none of these is kept for nothing


def test_constants_are_found():
    source = "DRAWS, X = 100, 2\n_LEVEL_TOLERANCE: float = 0.1\nf(confidence=0.9)\ndef g(a, *, resamples=1000): ..."
    assert list(constants(source)) == ["DRAWS", "_LEVEL_TOLERANCE", "resamples", "confidence"]
