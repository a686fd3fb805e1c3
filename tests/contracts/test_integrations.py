"""Every integration keeps the same contract: a loop over the modules of `firstk.integrations`, stores and moves.

Its docstring names its extra; its package is imported when it is used and not before; without the package an error
names the extra and how to install it; and the codes that it gives are those of the encoder.
"""

from __future__ import annotations

import ast
import json
import pkgutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from firstk import PrefixEncoder, integrations, search
from fixtures.sentence_model import WORDS, small_sentence_model

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Where each one is: stores and moves are in the wing of search.
HOMES = {found.name: integrations for found in pkgutil.iter_modules(integrations.__path__) if found.name[0] != "_"}
HOMES |= {"moving": search, "stores": search}
MODULES = sorted(HOMES)
K = 3


@dataclass(frozen=True)
class Contract:
    """What is tested of an integration.

    Attributes
    ----------
    package : str or None
        The optional package; None where there is none.
    extra : str or None
        The extra that installs it.
    use : str
        Code that needs the package; the import alone, where the integration is made of the package's classes.
    """

    package: str | None
    extra: str | None
    use: str

    @property
    def lazy(self) -> bool:
        return not self.use.startswith("import ")


CONTRACTS = {
    "dask": Contract("dask", "dask", "integration.encode(encoder.encoder_, X, 2, 'document', 'a test')"),
    "distributed": Contract("torch", "torch", "import firstk.integrations.distributed"),
    "faiss": Contract("faiss", "search", "integration.to_faiss(encoder)"),
    "moving": Contract(
        "sqlite_vec",
        "stores",
        "np.save(f'{(place := __import__(\"tempfile\").mkdtemp())}/X.npy', X); "
        "integration.move(f'{place}/X.npy', 'sqlite::memory:#codes')",
    ),
    "onnx": Contract("onnx", "onnx", "integration.export(encoder, 'encoder.onnx')"),
    "parts": Contract(None, None, "integration.measure(encoder, [X])"),
    "ray": Contract("ray", "ray", "integration.fit(PrefixEncoder(4), None)"),
    "spark": Contract("pyspark", "spark", "integration.fit(PrefixEncoder(4), None)"),
    "standalone": Contract(None, None, "integration.to_numpy(encoder, 'code.py')"),
    "stores": Contract("sqlite_vec", "stores", "integration.push(encoder, X, integration.SqliteVec(':memory:'), 2)"),
    "sentence_transformers": Contract(
        "sentence_transformers", "text", "import firstk.integrations.sentence_transformers"
    ),
}
OPTIONAL = [name for name in MODULES if CONTRACTS[name].package is not None]


HIDE = """
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Hide())
"""
# Each piece of code runs in a copy of one process, which has imported firstk: a start takes seconds.
APART = """
import json, os, sys
import numpy as np
from firstk import PrefixEncoder
from firstk.exceptions import MissingExtraError
X = np.random.default_rng(0).normal(size=(30, 5))
encoder = PrefixEncoder(4).fit(X)
for name, code in json.load(sys.stdin).items():
    if not os.fork():
        print(chr(30), name, sep="")
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


def run_apart(codes):
    """Return what each piece of code printed, by its name."""
    done = subprocess.run(
        [sys.executable, "-c", APART], input=json.dumps(codes), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    parts = (part.partition("\n") for part in done.stdout.split(chr(30))[1:])
    return {name: said for name, _, said in parts}


def test_every_integration_has_a_contract():
    assert sorted(CONTRACTS) == MODULES == sorted(CODES)


@pytest.mark.parametrize("name", MODULES)
def test_the_docstring_names_the_extra(name):
    path = Path(HOMES[name].__path__[0]) / name
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    text = " ".join((ast.get_docstring(ast.parse(source)) or "").split())
    extra = CONTRACTS[name].extra
    if extra is None:
        assert "Needs no extra" in text
    else:
        assert f'Needs the extra "{extra}"' in text
        package = CONTRACTS[name].package.replace("_", "-")
        assert any(package.split("-")[0] in wanted for wanted in EXTRAS[extra]), "the extra installs the package"


def test_the_package_is_imported_when_it_is_used():
    codes = {}
    for name in OPTIONAL:
        module = f"import {HOMES[name].__name__}" + (f".{name}" if CONTRACTS[name].lazy else "")
        codes[name] = f"{module}\nprint({CONTRACTS[name].package!r} in sys.modules)"
    assert run_apart(codes) == dict.fromkeys(OPTIONAL, "False\n")


@pytest.fixture(scope="module")
def without_packages():
    """What each integration says without its package."""
    codes = {}
    for name in OPTIONAL:
        contract = CONTRACTS[name]
        module = f"import {HOMES[name].__name__}.{name} as integration\n" if contract.lazy else ""
        use = f"try:\n    {contract.use}\nexcept MissingExtraError as error: print(error)\n"
        codes[name] = HIDE.format(package=contract.package) + module + use
    return run_apart(codes)


@pytest.mark.parametrize("name", OPTIONAL)
def test_without_the_package_an_error_names_the_extra_and_the_way_out(name, without_packages):
    contract, said = CONTRACTS[name], without_packages[name]
    assert f"'{contract.package}', which is not installed" in said
    assert f"pip install 'firstk[{contract.extra}]'" in said


# -- codes -----------------------------------------------------------------------------------------------------------


def of_dask(encoder, X, folder):
    arrays = pytest.importorskip("dask.array")
    return encoder.transform(arrays.from_array(X, chunks=(17, -1)), K).compute()


def of_distributed(encoder, X, folder):
    """Fit in a group of one process."""
    dist = pytest.importorskip("torch.distributed")
    from firstk.integrations import distributed

    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)
    try:
        return distributed.fit(clone(encoder), X).transform(X, K)
    finally:
        dist.destroy_process_group()


def of_faiss(encoder, X, folder):
    faiss = pytest.importorskip("faiss")
    index = encoder.to_faiss(K, documents=X, metric="inner_product")  # cosine would normalize the codes
    return faiss.downcast_index(index.index).reconstruct_n(0, len(X))


def of_onnx(encoder, X, folder):
    pytest.importorskip("onnxruntime")
    from firstk.integrations import onnx

    return onnx.load(onnx.export(encoder, folder / "encoder.onnx")).encode(X, K)


def of_parts(encoder, X, folder):
    from firstk.integrations import parts

    new = clone(encoder)
    return parts.finish(new, [parts.measure(new, [X[:20]]), parts.measure(new, [X[20:]])]).transform(X, K)


def of_ray(encoder, X, folder):
    """One batch, as a worker has it; tests/engines starts the engines."""
    pa = pytest.importorskip("pyarrow")
    from firstk.data.files.arrow_tables import list_array
    from firstk.estimator.encoding import Wish
    from firstk.integrations._arrow_batches import coder

    made = coder(encoder, ["vector"], "vector", Wish(k=K), "refuse", [])
    found = made(pa.RecordBatch.from_arrays([list_array(X)], names=["vector"]))
    return np.array(found["vector"].to_pylist())


of_spark = of_ray


def of_standalone(encoder, X, folder):
    from firstk.integrations.standalone import to_numpy

    namespace = {"__file__": str(to_numpy(encoder, folder / "code.py"))}
    exec((folder / "code.py").read_text(), namespace)
    return namespace["encode"](X, K)


def of_stores(encoder, X, folder):
    """One store, by a metric that does not normalize; tests/search/stores has all of them."""
    pytest.importorskip("sqlite_vec")
    from firstk.search.stores import SqliteVec, push

    with push(encoder, X, SqliteVec(folder / "codes.db"), K, metric="l2") as store:
        (rows,) = store.rows(len(X))
    assert rows.ids == list(range(len(X)))
    return rows.codes


def of_moving(encoder, X, folder):
    """From a file to a store and back to a file; tests/search/moving has all of them."""
    pytest.importorskip("sqlite_vec")
    pytest.importorskip("pyarrow")
    from firstk.data.files import open_vectors
    from firstk.search.moving import Recode, move

    np.save(folder / "rows.npy", X)
    store = f"sqlite:{folder}/codes.db#codes"
    move(folder / "rows.npy", store, Recode(encoder, K, metric="l2"))
    move(store, folder / "codes.parquet")
    return open_vectors(folder / "codes.parquet").read().vectors


def of_sentence_transformers(encoder, X, folder):
    """Encode texts with a model that ends in the encoder; `X` are the vectors of the model without it."""
    from firstk.integrations.sentence_transformers import append_encoder

    model = append_encoder(small_sentence_model(folder), encoder, K, normalize=encoder.encoder_.normalized)
    return model.encode(TEXTS)


CODES = {name.removeprefix("of_"): value for name, value in list(globals().items()) if name.startswith("of_")}
TEXTS = [f"{first} {second}" for first in WORDS[:12] for second in WORDS[12:18]]


# Of the stores, which are of a wing.
OF_WINGS = ("moving", "stores")


@pytest.mark.parametrize("objective", ["reconstruction", "similarity"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.wings) if name in OF_WINGS else name for name in MODULES]
)
def test_codes_are_those_of_the_encoder(name, objective, tmp_path):
    """Plain codes and codes of unit norm."""
    if name == "sentence_transformers":
        pytest.importorskip("sentence_transformers")
        X = small_sentence_model(tmp_path).encode(TEXTS)
    else:
        X = (np.random.default_rng(0).normal(size=(60, 8)) * np.arange(8, 0, -1) + 1).astype(np.float32)
    encoder = PrefixEncoder(5, objective=objective).fit(X)
    codes = CODES[name](encoder, X, tmp_path)
    np.testing.assert_allclose(codes, encoder.transform(X, K), rtol=1e-4, atol=1e-5 * np.abs(X).max())
