"""Change one thing at a time in the source and see whether a test notices: a check of the tests, for maintainers.

    pip install coverage
    python tests/mutants.py --map /tmp/map --record mutants.json --jobs 2
    python tests/mutants.py --map /tmp/map --only metrics losses --count 60 --seed 3

The first run goes through the tests once under coverage and keeps in the folder of ``--map`` which test runs which
line, and for how long. Mutants are drawn by seed, the same number from every room, so a run can be repeated; a run that
was stopped goes on from its record. Each mutant is written into a temporary copy of ``src`` and met there by tests that
run its line: those of its room first, quick ones first, as many as the budget of seconds holds. The working tree is
never touched. A run that hangs kills the mutant, and so does a test that fails, if it passes on the unchanged source. A
mutant that survives is either equivalent to the original or a hole in the tests: somebody has to look. The last table
also has the share of lines of every room that tests run.

The libraries are imported once and every run is a fork of that process, which saves several seconds a mutant; so this
needs a system that can fork.
"""

from __future__ import annotations

import argparse
import ast
import collections
import compileall
import contextlib
import copy
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "firstk"
# Tests that do not run the library's code to check it, or that are of another package.
ELSEWHERE = ("tests/papers", "tests/evidence", "tests/docs", "tests/architecture", "tests/processors")

# Imported before the forks, where they are installed.
_LIBRARIES = ("numpy", "scipy.linalg", "scipy.sparse", "scipy.stats", "sklearn", "sklearn.utils.estimator_checks",
              "sklearn.decomposition", "sklearn.discriminant_analysis", "sklearn.linear_model", "torch",
              "torch._dynamo", "numba", "safetensors.numpy", "hypothesis", "tqdm.auto", "pyarrow.parquet",
              "pandas", "typer.testing")  # fmt: skip
# A run that takes this many times as long as the unchanged source hangs.
_HANGS = 4.0
_SHORTEST_LIMIT = 30.0


# -- which test runs which line ---------------------------------------------------------------------------------------

_took: dict[str, float] = collections.defaultdict(float)
_failed: set[str] = set()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """As a plugin of the run under coverage: what runs from here on is run by this test."""
    import coverage

    if (running := coverage.Coverage.current()) is not None:
        running.switch_context(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up how long a test takes."""
    _took[report.nodeid] += report.duration
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Keep how long each test that passed takes."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        took = {test: seconds for test, seconds in _took.items() if test not in _failed}
        Path(os.environ["FIRSTK_MUTANTS_TIMES"]).write_text(json.dumps(took), encoding="utf-8")


class TestMap:
    """Which tests run a line, and how long they take; made by one run of the tests under coverage."""

    def __init__(self, folder: Path, paths: list[str], jobs: int):
        try:
            import coverage
        except ImportError:
            raise SystemExit("The map of tests needs coverage: pip install coverage") from None
        folder = folder.resolve()
        self.times = folder / "times.json"
        self.settings = folder / "coveragerc"
        if not self.times.exists():
            self._make(folder, paths, jobs)
        self.coverage = coverage.Coverage(config_file=str(self.settings))
        if not (folder / "data").exists():
            self.coverage.combine([str(folder)])
            self.coverage.save()
        self.coverage.load()
        self.took: dict[str, float] = json.loads(self.times.read_text(encoding="utf-8"))

    def _make(self, folder: Path, paths: list[str], jobs: int) -> None:
        """Run the tests; processes that they start count for the test that started them."""
        (folder / "site").mkdir(parents=True, exist_ok=True)
        (folder / "site" / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n", "utf-8")
        started_by = "${PYTEST_CURRENT_TEST-}"
        self.settings.write_text(
            f"[run]\nsource = {SOURCE}\ndata_file = {folder}/data\nparallel = true\n"
            f"concurrency = thread,multiprocessing\ncontext = {started_by}\n"
            f"disable_warnings = no-data-collected\n[paths]\nsource = {SOURCE}\n",
            "utf-8",
        )
        path = [str(folder / "site"), str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
        own = {
            "COVERAGE_PROCESS_START": str(self.settings),
            "PYTHONPATH": os.pathsep.join(path),
            "FIRSTK_MUTANTS_TIMES": str(self.times),
            "OMP_NUM_THREADS": "1",
        }
        ignored = [f"--ignore={each}" for each in (*ELSEWHERE, "src")]
        several = ["-n", str(jobs)] if jobs > 1 else []
        subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "mutants", "-p", "no:cacheprovider", *several, *ignored, *paths],
            cwd=ROOT,
            env=os.environ | own,
            check=False,
        )

    def of(self, module: str) -> dict[int, set[str]]:
        """Return the tests of every line of a module that a test runs."""
        found: dict[int, set[str]] = {}
        for line, contexts in self.coverage.get_data().contexts_by_lineno(str(SOURCE / module)).items():
            tests = {part.rpartition(" (")[0] or part for each in contexts for part in each.split("|") if part}
            if tests := {test for test in tests if test in self.took}:
                found[line] = tests
        return found

    def chosen(self, mutant: Mutant, budget: float) -> list[str]:
        """Return the tests that meet a mutant: of its room first, quick ones first, within the budget of seconds."""
        lines = self.of(mutant.module)
        tests = set().union(*(lines.get(line, ()) for line in {mutant.line, mutant.statement}))
        tests = tests or set().union(*lines.values())  # run while it is imported, or compiled
        room = f"tests/{mutant.room}"
        chosen, seconds = [], 0.0
        for test in sorted(tests, key=lambda test: (not test.startswith(room), self.took[test], test)):
            if chosen and seconds + self.took[test] > budget:
                continue
            chosen.append(test)
            seconds += self.took[test]
        return chosen[:_MOST_TESTS]

    def shares(self) -> dict[str, tuple[int, int]]:
        """Return how many lines of every room tests run, of how many."""
        found: dict[str, tuple[int, int]] = {}
        for module in _modules():
            _, statements, _, missing, _ = self.coverage.analysis2(str(SOURCE / module))
            run, of = found.get(_room(module), (0, 0))
            found[_room(module)] = (run + len(statements) - len(missing), of + len(statements))
        return found


_MOST_TESTS = 200


def _modules() -> list[str]:
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def _room(module: str) -> str:
    return module.partition("/")[0].removesuffix(".py")


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
    statement: int  # the line where its statement begins
    what: str
    text: str  # of the whole module

    @property
    def room(self) -> str:
        """Return the package under firstk."""
        return _room(self.module)

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
    statement = max(
        (n.lineno for n, _ in _nodes(tree) if isinstance(n, ast.stmt) and n.lineno <= place.line), default=1
    )
    return Mutant(module, place.line, statement, f"{name}: {before}{after}", text)


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


def drawn(room: str, count: int, seed: int) -> list[Mutant]:
    """Draw some mutants of a room: of every line at most one before any line has two."""
    trees = {name: ast.parse((SOURCE / name).read_text(encoding="utf-8")) for name in _modules() if _room(name) == room}
    places = [(name, place) for name, tree in trees.items() for place in _places(tree)]
    random.Random(f"{seed} {room}").shuffle(places)
    seen: dict[tuple[str, int], int] = collections.defaultdict(int)
    ranks = []
    for name, place in places:
        seen[name, place.line] += 1
        ranks.append(seen[name, place.line])
    order = sorted(range(len(places)), key=lambda i: ranks[i])  # stable: drawn order within a rank
    return [_mutant(name, trees[name], place) for name, place in (places[i] for i in order[:count])]


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


# -- runs ------------------------------------------------------------------------------------------------------------


class _Chosen:
    """Plugin that keeps the chosen tests, in their order, and notes the first that fails."""

    def __init__(self, tests: list[str], note: Path):
        self.place = {test: i for i, test in enumerate(tests)}
        self.note = note

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.note.write_text(report.nodeid, encoding="utf-8")


class _Run:
    """Some tests in a process of their own, on a copy of the source."""

    def __init__(self, copied: Path, tests: list[str], limit: float):
        self.began, self.limit = time.monotonic(), limit
        self.tests = tests
        self.log = copied.parent / f"{copied.name}.log"
        self.note = copied.parent / f"{copied.name}.failed"
        self.note.unlink(missing_ok=True)
        self.process = os.fork()
        if not self.process:
            _tested(copied, tests, self.log, self.note)

    def ended(self) -> str | None:
        """Return how it ended, or None while it goes on."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        if done:
            return {0: "survived", 5: "no tests"}.get(os.waitstatus_to_exitcode(status), "killed")
        if self.seconds > self.limit:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            return "killed (hangs)"
        return None

    def wait(self) -> str:
        """Return how it ended, when it has."""
        while (ended := self.ended()) is None:
            time.sleep(0.05)
        return ended

    @property
    def culprit(self) -> str | None:
        """The test that failed; none where the source could not even be imported."""
        return self.note.read_text(encoding="utf-8") if self.note.exists() else None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def _tested(copied: Path, tests: list[str], log: Path, note: Path) -> None:
    """Run pytest in this process, which ends with it."""
    code = 70
    try:
        os.setpgid(0, 0)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(ROOT)
        sys.path.insert(0, str(copied))
        path = os.pathsep.join(filter(None, [str(copied), os.environ.get("PYTHONPATH")]))
        os.environ |= {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        where = tempfile.mkdtemp(dir=copied.parent)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        arguments = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={where}/t", *files]
        code = int(pytest.main(arguments, plugins=[_Chosen(tests, note)]))
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

    def note(self, mutant: Mutant, verdict: str, run: _Run) -> None:
        self.verdicts[mutant.key] = {"room": mutant.room, "verdict": verdict, "by": run.culprit,
                                     "tests": len(run.tests), "seconds": round(run.seconds, 1)}  # fmt: skip
        if self.path is not None:
            draft = self.path.with_suffix(".partial")
            draft.write_text(json.dumps(self.verdicts, indent=1), encoding="utf-8")
            draft.replace(self.path)


def _try(mutants: list[Mutant], record: _Record, tests: TestMap, budget: float, jobs: int, into: Path) -> None:
    """Run the tests of every mutant, `jobs` at a time."""
    unchanged = _copied(into, "unchanged")
    free = [_copied(into, f"copy-{j}") for j in range(jobs)]
    passes: dict[str, bool] = {}  # of tests that failed on some mutant: on the unchanged source
    waiting, going = list(reversed(mutants)), []
    while waiting or going:
        while waiting and free:
            mutant, copied = waiting.pop(), free.pop()
            chosen = [test for test in tests.chosen(mutant, budget) if passes.get(test, True)]
            (copied / "firstk" / mutant.module).write_text(mutant.text, encoding="utf-8")
            limit = _SHORTEST_LIMIT + _HANGS * sum(tests.took[test] for test in chosen)
            going.append((mutant, copied, _Run(copied, chosen, limit)))
        time.sleep(0.05)
        for entry in list(going):
            mutant, copied, run = entry
            if (verdict := run.ended()) is None:
                continue
            shutil.copy(SOURCE / mutant.module, copied / "firstk" / mutant.module)
            going.remove(entry)
            free.append(copied)
            if (test := run.culprit) is not None and test not in passes:
                passes[test] = _Run(unchanged, [test], 300.0).wait() == "survived"
            if test is not None and not passes[test]:
                waiting.append(mutant)  # again, without it
                continue
            record.note(mutant, verdict, run)
            _say(f"{verdict:9} {run.seconds:5.1f} s  {mutant.key}")


def main() -> int:
    """Draw, run and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--map", type=Path, required=True, help="folder of which test runs which line; made if missing")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="what is run to make the map")
    parser.add_argument("--only", nargs="*", default=[], help="rooms: the packages under firstk")
    parser.add_argument("--count", type=int, default=20, help="mutants a room; 0: the shares of lines alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--record", type=Path, help="JSON file of verdicts, to go on from")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests that a mutant meets")
    parser.add_argument("--again", action="store_true", help="run survivors of the record again")
    chosen = parser.parse_args()

    tests = TestMap(chosen.map, chosen.tests, chosen.jobs)
    shares = tests.shares()
    rooms = [room for room in shares if not chosen.only or room in chosen.only]
    mutants = [mutant for room in rooms for mutant in drawn(room, chosen.count, chosen.seed)]
    record = _Record(chosen.record)
    done = {key for key, found in record.verdicts.items() if not (chosen.again and found["verdict"] == "survived")}
    left = [mutant for mutant in mutants if mutant.key not in done]
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="firstk-mutants-") as folder:
        _try(left, record, tests, chosen.budget, chosen.jobs, Path(folder))
    for room in [*rooms, "in all"]:
        verdicts = [record.verdicts[m.key]["verdict"] for m in mutants if room in (m.room, "in all")]
        run, of = shares[room] if room in shares else (sum(column) for column in zip(*shares.values(), strict=True))
        killed = sum(verdict.startswith("killed") for verdict in verdicts)
        lines = f"{run:6} of {of:6} lines ({run / max(of, 1):.1%})"
        _say(f"{room:14} {len(verdicts):4} mutants {killed:4} killed {lines}")
    for mutant in mutants:
        if not record.verdicts[mutant.key]["verdict"].startswith("killed"):
            _say(f"survived  {mutant.key}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
