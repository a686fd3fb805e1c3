"""Change one thing at a time in the source and see whether a test notices: a check of the tests, for maintainers.

    python tests/mutants.py --jobs 2 --record mutants.json
    python tests/mutants.py --only selection --count 60 --seed 3

Mutants are drawn by seed, so a run can be repeated; a run that was stopped goes on from its record. Each mutant is
written into a temporary copy of ``src`` and met there by the tests that concern its module, quickest first; the working
tree is never touched. A test that fails, or a run that hangs, kills the mutant. One that survives is either equivalent
to the original or a hole in the tests: somebody has to look.

The libraries are imported once and every run is a fork of that process, which saves several seconds a mutant; so this
needs a system that can fork.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import copy
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_PLAIN = ("-k", "not compiled and not random_shapes and not torch_compile")
_LINEAR = (
    "tests/losses/functional/test_linear.py",
    "tests/losses/functional/test_invariance.py",
    "tests/losses/test_losses.py",
    *_PLAIN,
)
_COSINES = (
    "tests/losses/functional/test_cosine.py",
    "tests/losses/functional/test_cosent.py",
    "tests/losses/functional/test_sampling.py",
)
_LONG = ("killed_process", "favour_no_direction", "lbfgs", "cost_of_a_step", "threads", "mlp", "stream")
_HALVES = "tests/losses/functional/test_training_losses.py"
_TRAINING = ("tests/solvers/test_gradient.py", "-k", " and ".join(f"not {name}" for name in _LONG))
_BACK = "tests/moments/test_stream.py::test_moments_come_back_from_bytes_and_go_on"
_SPOILT = "tests/moments/test_stream.py::test_spoilt_state_raises_an_error"
_BYTES = (
    *("tests/_base/test_arrays.py::test_what_is_stored_comes_back", _BACK, _SPOILT),
    *(f"tests/_base/test_arrays.py::test_any_{what}_is_noticed" for what in ("flipped_bit", "length")),
    "tests/_base/test_arrays.py::test_the_order_in_which_arrays_and_facts_are_given_does_not_matter",
    "tests/moments/test_stream.py::test_samples_come_back_with_labels_as_text",
    "tests/moments/test_stream.py::test_objects_raise_an_error_by_name",
    *(
        f"tests/_base/test_arrays.py::{name}"
        for name in (
            "test_the_checksum_is_the_sha256_of_everything_else",
            "test_every_array_is_aligned_to_its_type",
            "test_text_is_characters_up_to_the_last_one",
            "test_another_format_raises_an_error_by_name",
        )
    ),
    "tests/_base/test_atomic_file.py::test_what_is_written_is_on_the_disk_before_it_has_its_name_and_then_the_name_is",
)
_SOLVED = (
    "tests/_base/test_linalg.py",
    *(f"tests/objectives/test_{name}.py" for name in ("reconstruction", "regression", "fisher")),
)
_FOLDERS = ("tests/_base/test_atomic_file.py", "tests/encoder/storage/test_folder.py")

# Module under src/firstk: how many mutants are drawn from it, and the arguments of pytest, quickest tests first.
MODULES: dict[str, tuple[int, tuple[str, ...]]] = {
    "moments/moments.py": (32, ("tests/moments/test_moments.py", _BACK, _SPOILT)),
    "moments/pairs.py": (10, ("tests/moments/test_pairs.py",)),
    "solvers/closed_form.py": (12, (*_SOLVED, "tests/parity/test_pca_lda.py")),
    "_base/linalg.py": (10, _SOLVED),
    "losses/functional/cross_entropy.py": (10, ("tests/losses/functional/test_cross_entropy.py", *_PLAIN)),
    "losses/functional/sweep_torch.py": (
        14,
        ("tests/losses/functional/test_cross_entropy.py", "tests/losses/functional/test_contrastive.py", *_PLAIN),
    ),
    "losses/functional/contrastive.py": (
        10,
        ("tests/losses/functional/test_contrastive.py", "tests/losses/functional/test_sampling.py", *_PLAIN),
    ),
    "losses/functional/cosine.py": (8, (*_COSINES, "tests/losses/functional/test_contrastive.py", *_PLAIN)),
    "losses/functional/cosent.py": (6, (*_COSINES, *_PLAIN)),
    "losses/functional/reconstruction.py": (12, _LINEAR),
    "losses/functional/fisher.py": (10, _LINEAR),
    "losses/functional/regression.py": (8, _LINEAR),
    "solvers/gradient/losses/base.py": (3, (_HALVES, *_TRAINING)),
    "solvers/gradient/losses/cross_entropy.py": (4, ("tests/objectives/test_classification.py", *_TRAINING)),
    "solvers/gradient/losses/least_squares.py": (4, (_HALVES, *_TRAINING)),
    "solvers/gradient/losses/pairs.py": (3, (_HALVES, *_TRAINING)),
    "solvers/gradient/losses/ratio_trace.py": (4, (_HALVES, *_TRAINING)),
    "solvers/gradient/loop.py": (16, _TRAINING),
    "estimator/auto.py": (14, ("tests/estimator/test_auto.py",)),
    "metrics/_sweep.py": (16, ("tests/metrics/test_neighbors.py", "tests/properties/test_last_bits.py")),
    "_base/arrays.py": (10, _BYTES),
    "_base/tensors.py": (8, ("tests/encoder/storage/test_folder.py", *_BYTES)),
    "_base/atomic_file.py": (14, _FOLDERS),
    "encoder/storage/folder.py": (12, _FOLDERS),
}

# Imported before the forks, where they are installed.
_LIBRARIES = ("numpy", "scipy.linalg", "scipy.sparse", "scipy.stats", "sklearn", "sklearn.utils.estimator_checks",
              "sklearn.decomposition", "sklearn.discriminant_analysis", "sklearn.linear_model", "torch",
              "torch._dynamo", "numba", "safetensors.numpy", "hypothesis", "tqdm.auto", "pytest")  # fmt: skip
# A run that takes this many times as long as the unchanged source hangs.
_HANGS = 4.0
_SHORTEST_LIMIT = 20.0


# -- mutants ---------------------------------------------------------------------------------------------------------

_COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
             ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
_COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
             ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Add, ast.BitAnd: ast.BitOr,
             ast.BitOr: ast.BitAnd}  # fmt: skip
_RENAMED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmax": "argmin",
            "argmin": "argmax", "amax": "amin", "any": "all", "all": "any", "zeros": "ones", "triu": "tril",
            "tril": "triu", "sum": "mean", "mean": "sum", "floor": "ceil", "ceil": "floor"}  # fmt: skip
_DROPPED_CALLS = {"sqrt", "abs", "square", "exp", "log", "symmetrised", "contiguous", "detach", "sorted", "resolve"}
# What only people read.
_FOR_PEOPLE = {"__repr__", "__str__", "warn", "debug", "info", "warning", "InvalidInputError", "CorruptModelError",
               "TrainingDivergedError", "TrainingWarning", "RankWarning", "IllegalCombinationError", "bad_parameter",
               "misfit", "set_postfix_str"}  # fmt: skip
_Change = Callable[[ast.AST], None]


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    line: int
    what: str
    text: str  # of the whole module

    @property
    def key(self) -> str:
        """Return what tells it from the others of one source."""
        return f"{self.module}:{self.line} {self.what}"


@dataclass(frozen=True)
class _Place:
    """A change that could be made: the number of its node in the module, and of the change among those of the node."""

    line: int
    node: int
    change: int


def _places(tree: ast.Module) -> list[_Place]:
    """List every change of a module, in the order of its source."""
    return [
        _Place(node.lineno, number, each)
        for number, (node, parent) in enumerate(_nodes(tree))
        for each, _ in enumerate(_changes(node, parent))
    ]


def _mutant(module: str, tree: ast.Module, place: _Place) -> Mutant:
    """Make a change."""
    changed = copy.deepcopy(tree)
    node, parent = _nodes(changed)[place.node]
    name, change = list(_changes(node, parent))[place.change]
    before = _shown(node)
    change(node)
    after = "" if name == "statement deleted" else f" -> {_shown(node)}"
    text = ast.unparse(ast.fix_missing_locations(changed))
    return Mutant(module, place.line, f"{name}: {before}{after}", text)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:87] + "..."


def _nodes(tree: ast.Module) -> list[tuple[Any, ast.AST]]:
    """List what may be changed, with its parent: no annotation, docstring, message or import."""
    found: list[tuple[Any, ast.AST]] = []

    def visit(node: ast.AST, parent: ast.AST) -> None:
        if _skipped(node):
            return
        if isinstance(node, ast.expr | ast.stmt):
            found.append((node, parent))
        for field, value in ast.iter_fields(node):
            if field in (
                "annotation",
                "returns",
                "decorator_list",
                "bases",
                "keywords" * isinstance(node, ast.ClassDef),
            ):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child, node)

    visit(tree, tree)
    return found


def _skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Raise | ast.Assert):
        return True
    if isinstance(node, ast.FunctionDef) and node.name in _FOR_PEOPLE:
        return True
    if isinstance(node, ast.AnnAssign) and "ClassVar" in ast.dump(node.annotation):
        return True  # settings that were chosen by measuring: no test says what they are
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return True
    if isinstance(node, ast.Call) and _called(node) in _FOR_PEOPLE | {"TypeVar", "cast"}:
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _changes(node: ast.AST, parent: ast.AST) -> Iterator[tuple[str, _Change]]:
    """Yield the names of what can be done to a node, and how, in place."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield "comparison", lambda n: n.ops.__setitem__(0, _COMPARED[type(n.ops[0])]())  # type: ignore[attr-defined]
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        yield "operator", lambda n: setattr(n, "op", _COMPUTED[type(n.op)]())  # type: ignore[attr-defined]
    if isinstance(node, ast.BoolOp):
        yield "and/or", lambda n: setattr(n, "op", ast.Or() if isinstance(n.op, ast.And) else ast.And())  # type: ignore[attr-defined]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield (
            "sign dropped",
            lambda n: setattr(n, "op", ast.UAdd()) if isinstance(n.op, ast.USub) else _become(n, n.operand),
        )  # type: ignore[attr-defined]
    if isinstance(node, ast.Constant):
        yield from _of_constant(node.value)
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    if isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(node, bound) is not None:
                yield "slice bound", lambda n, bound=bound: setattr(n, bound, _one_more(getattr(n, bound)))  # type: ignore[misc]
    if isinstance(node, ast.Return) and isinstance(parent, ast.If) and not _is_none(node.value):
        yield "return value dropped", lambda n: setattr(n, "value", None)
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Continue | ast.Break):
        yield "statement deleted", lambda n: _become(n, ast.Pass())
    if isinstance(node, ast.IfExp):
        yield "condition turned", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))  # type: ignore[attr-defined]
    if isinstance(node, ast.If):
        yield "branch never taken", lambda n: setattr(n, "test", ast.Constant(False))


def _of_constant(value: Any) -> Iterator[tuple[str, _Change]]:
    if isinstance(value, bool):
        yield "constant", lambda n: setattr(n, "value", not value)
    elif isinstance(value, int | float):
        others = [1.0] if value == 0.0 and isinstance(value, float) else [value + 1, value * 2]
        for other in dict.fromkeys(each for each in others if each != value):
            yield "constant", lambda n, other=other: setattr(n, "value", other)  # type: ignore[misc]


def _of_call(node: ast.Call) -> Iterator[tuple[str, _Change]]:
    name = _called(node)
    if name in _RENAMED:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        yield "function", lambda n: setattr(n.func, field, _RENAMED[name])  # type: ignore[attr-defined]
    if name in _DROPPED_CALLS and (node.args or isinstance(node.func, ast.Attribute)):
        yield "call dropped", lambda n: _become(n, n.args[0] if n.args else n.func.value)  # type: ignore[attr-defined]


def _become(node: Any, other: ast.AST) -> None:
    """Turn a node into another in place."""
    other = copy.deepcopy(other)
    place = {name: getattr(node, name) for name in ("lineno", "col_offset") if hasattr(node, name)}
    node.__class__ = other.__class__
    node.__dict__.clear()
    node.__dict__.update({**other.__dict__, **place})


def _one_more(bound: ast.expr) -> ast.expr:
    return ast.BinOp(bound, ast.Add(), ast.Constant(1))


def _is_none(node: ast.AST | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def drawn(module: str, count: int, seed: int) -> list[Mutant]:
    """Draw some mutants of a module: of every line at most one before any line has two."""
    tree = ast.parse((ROOT / "src" / "firstk" / module).read_text(encoding="utf-8"))
    places = _places(tree)
    random.Random(f"{seed} {module}").shuffle(places)
    seen: dict[int, int] = {}
    ranks = []
    for place in places:
        seen[place.line] = seen.get(place.line, 0) + 1
        ranks.append(seen[place.line])
    order = sorted(range(len(places)), key=lambda i: ranks[i])
    return [_mutant(module, tree, place) for place in sorted((places[i] for i in order[:count]), key=lambda p: p.line)]


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


# -- runs ------------------------------------------------------------------------------------------------------------


class _Run:
    """The tests of one module in a process of their own, on a copy of the source."""

    def __init__(self, copied: Path, arguments: tuple[str, ...], limit: float):
        self.began, self.limit = time.monotonic(), limit
        self.log = copied.parent / f"{copied.name}.log"
        self.process = os.fork()
        if not self.process:
            _tested(copied, arguments, self.log)

    def ended(self) -> str | None:
        """Return how it ended, or None while it goes on."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {0: "survived", 5: "no tests", 4: "no tests"}.get(code, "killed")
        if self.seconds > self.limit:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            return "killed (hangs)"
        return None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def _tested(copied: Path, arguments: tuple[str, ...], log: Path) -> None:
    """Run pytest in this process, which ends with it."""
    code = 70
    try:
        os.setpgid(0, 0)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(ROOT)
        sys.path.insert(0, str(copied))
        os.environ |= {"PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        import pytest

        where = tempfile.mkdtemp(dir=copied.parent)
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={where}/t", *arguments]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def _copied(into: Path, name: str) -> Path:
    target = into / name
    shutil.copytree(ROOT / "src", target, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(target, quiet=2)  # runs write no bytecode, so what is here is of the unchanged source
    return target


class _Record:
    """Verdicts by mutant, in a file that a later run goes on from."""

    def __init__(self, path: Path | None):
        self.path = path
        self.verdicts: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            self.verdicts = json.loads(path.read_text(encoding="utf-8"))

    def note(self, mutant: Mutant, verdict: str, seconds: float) -> None:
        found = {"module": mutant.module, "line": mutant.line, "verdict": verdict, "seconds": round(seconds, 1)}
        self.verdicts[mutant.key] = found
        if self.path is not None:
            draft = self.path.with_suffix(".partial")
            draft.write_text(json.dumps(self.verdicts, indent=1), encoding="utf-8")
            draft.replace(self.path)


def _limits(modules: list[str], into: Path) -> dict[str, float]:
    """Run the tests of each module on the unchanged source, where they must pass; return how long a mutant may take."""
    took: dict[tuple[str, ...], float] = {}
    copied = _copied(into, "unchanged")
    for module in modules:
        arguments = MODULES[module][1]
        if arguments not in took:
            run = _Run(copied, arguments, 600.0)
            while (ended := run.ended()) is None:
                time.sleep(0.05)
            if ended != "survived":
                raise SystemExit(f"The tests of {module} do not pass on the unchanged source:\n{run.log.read_text()}")
            took[arguments] = run.seconds
            _say(f"unchanged: {run.seconds:5.1f} s  {' '.join(arguments)}")
    return {module: max(_SHORTEST_LIMIT, _HANGS * took[MODULES[module][1]]) for module in modules}


def _try(mutants: list[Mutant], record: _Record, limits: dict[str, float], jobs: int, into: Path) -> None:
    """Run the tests of every mutant, `jobs` at a time."""
    free = [_copied(into, f"copy-{j}") for j in range(jobs)]
    waiting, going = list(reversed(mutants)), []
    while waiting or going:
        while waiting and free:
            mutant, copied = waiting.pop(), free.pop()
            (copied / "firstk" / mutant.module).write_text(mutant.text, encoding="utf-8")
            going.append((mutant, copied, _Run(copied, MODULES[mutant.module][1], limits[mutant.module])))
        time.sleep(0.05)
        for entry in list(going):
            mutant, copied, run = entry
            if (verdict := run.ended()) is not None:
                record.note(mutant, verdict, run.seconds)
                _say(f"{verdict:9} {run.seconds:5.1f} s  {mutant.key}")
                shutil.copy(ROOT / "src" / "firstk" / mutant.module, copied / "firstk" / mutant.module)
                going.remove(entry)
                free.append(copied)


def main() -> int:
    """Draw, run and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], help="modules whose path contains one of these")
    parser.add_argument("--count", type=int, help="mutants a module, instead of the number declared for it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--record", type=Path, help="JSON file of verdicts, to go on from")
    parser.add_argument("--limit", type=float, help="seconds a run may take; else four times the unchanged source")
    parser.add_argument("--again", action="store_true", help="run survivors of the record again")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    chosen = parser.parse_args()

    modules = [name for name in MODULES if not chosen.only or any(part in name for part in chosen.only)]
    mutants = [m for name in modules for m in drawn(name, chosen.count or MODULES[name][0], chosen.seed)]
    if chosen.list:
        _say("\n".join(mutant.key for mutant in mutants))
        return 0
    record = _Record(chosen.record)
    done = {key for key, found in record.verdicts.items() if not (chosen.again and found["verdict"] == "survived")}
    left = [mutant for mutant in mutants if mutant.key not in done]
    # Every copy of the source would compile its kernels anew; without a compiler the losses take their torch paths.
    os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_DISABLE_JIT": "1"}
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="firstk-mutants-") as folder:
        concerned = sorted({mutant.module for mutant in left})
        limits = dict.fromkeys(concerned, chosen.limit) if chosen.limit else _limits(concerned, Path(folder))
        _try(left, record, limits, chosen.jobs, Path(folder))
    survived = 0
    for name in modules:
        verdicts = [record.verdicts[m.key]["verdict"] for m in mutants if m.module == name]
        alive = verdicts.count("survived")
        survived += alive
        _say(f"{name:34} {len(verdicts):4} mutants {len(verdicts) - alive:4} killed {alive:4} survived")
    _say(f"{'in all':34} {len(mutants):4} mutants {len(mutants) - survived:4} killed {survived:4} survived")
    for mutant in mutants:
        if record.verdicts[mutant.key]["verdict"] == "survived":
            _say(f"survived  {mutant.key}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
