"""Programs without firstk give its codes: at every k, for queries and documents, where offsets are large."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import TrainedMLP
from firstk.exceptions import InvalidInputError
from firstk.integrations.standalone import TARGETS, to_javascript, to_numpy, to_sql


def with_offset():
    rng = np.random.default_rng(0)
    left = rng.normal(size=(200, 12)) * np.arange(12, 0, -1) + 300
    return PrefixEncoder(8, objective="similarity").fit_pairs(
        left, left + rng.normal(size=left.shape) - 700
    ).encoder_, left


def mlp():
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=(16, 12)), rng.normal(size=(9, 16)))
    network = TrainedMLP(weights, tuple(rng.normal(size=len(W)) for W in weights), normalize=True)
    mean = rng.normal(size=12)
    encoder = FittedEncoder(rng.normal(size=(7, 9)), np.arange(7, 0, -1.0), mean, mean + 1, network=network)
    return encoder, rng.normal(size=(20, 12))


def unit_codes():
    digits = load_digits()
    return PrefixEncoder(objective="similarity").fit(digits.X_train).encoder_, digits.X_test


def plain_codes():
    digits = load_digits()
    return PrefixEncoder(20, objective="reconstruction").fit(digits.X_train).encoder_, digits.X_test


CASES = {"unit codes": unit_codes, "plain codes": plain_codes, "pairs with offsets": with_offset, "mlp": mlp}


def of_numpy(encoder, X, k, query, folder):
    path = to_numpy(encoder, folder / "code.py")
    spec = importlib.util.spec_from_file_location("code_of_an_export", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert len([line for line in path.read_text().splitlines() if line.startswith("    ")]) <= 15
    with pytest.raises(ValueError, match="k must be from 1"):
        module.encode(X, 0)
    for wrong in (X[:, :1], X[:, :-1], X[None], X[0].tolist()[:-1], np.full_like(X, np.nan), 1.0):
        with pytest.raises(ValueError, match=rf"X must be finite numbers of shape \(n, {X.shape[1]}\), got shape"):
            module.encode(wrong)
    return module.encode(X, k, query=query)


def of_js(encoder, X, k, query, folder):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    to_javascript(encoder, folder / "code.mjs")
    (folder / "rows.json").write_text(json.dumps(X.tolist()))
    (folder / "run.mjs").write_text(
        'import { readFileSync } from "fs"; import { encode, width, inputWidth } from "./code.mjs";\n'
        'const X = JSON.parse(readFileSync("rows.json"));\n'
        f"const Z = X.map((x) => Array.from(encode(x, {k}, {{ query: {str(query).lower()} }})));\n"
        "let refused = 0;\n"
        "const calls = [() => encode([1]), () => encode(X[0], 0), () => encode(X[0], width + 1)];\n"
        "for (const odd of [NaN, Infinity, null, undefined, 'a']) calls.push(() => encode([odd, ...X[0].slice(1)]));\n"
        "for (const wrong of calls)\n"
        "  try { wrong(); } catch (error) { refused += error instanceof RangeError; }\n"
        "console.log(JSON.stringify({ Z, refused, inputWidth }));\n"
    )
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["refused"] == 8
    assert found["inputWidth"] == X.shape[1]
    return np.array(found["Z"])


def of_duckdb(encoder, X, k, query, folder):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra 'stores'")
    connection = duckdb.connect()
    connection.execute(to_sql(encoder, folder / "code.sql", dialect="duckdb", name="code").read_text()).fetchall()
    connection.execute("CREATE TABLE rows (i INTEGER, x DOUBLE[])").fetchall()
    connection.executemany("INSERT INTO rows VALUES (?, ?)", [[i, x.tolist()] for i, x in enumerate(X)]).fetchall()
    found = connection.execute(f"SELECT code(x, k := {k}, query := {query}) FROM rows ORDER BY i").fetchall()
    assert connection.execute("SELECT code(x) FROM (VALUES (NULL::DOUBLE[])) AS t(x)").fetchall() == [(None,)]
    rest = ", ".join(map(str, X[0, 1:]))
    for wrong, message in (
        ("[1, 2]", f"a vector has {X.shape[1]} numbers"),
        (f"{X[0].tolist()}, k := 0", "k must be"),
        (f"[NULL, {rest}]", "finite numbers|NULL values"),
        (f"['nan'::DOUBLE, {rest}]", "finite numbers"),
        (f"['inf'::DOUBLE, {rest}]", "finite numbers"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            connection.execute(f"SELECT code({wrong})").fetchall()
    return np.array([row[0] for row in found])


def of_postgresql(encoder, X, k, query, folder, address):
    import psycopg

    with psycopg.connect(address) as connection:
        connection.autocommit = True
        connection.execute("DROP TABLE IF EXISTS code_axes, code_means; DROP FUNCTION IF EXISTS code")
        connection.execute(to_sql(encoder, folder / "code.sql", name="code").read_text())
        rows = [
            connection.execute("SELECT code(%s::float8[], %s, query => %s)", (x.tolist(), k, query)).fetchone()[0]
            for x in X
        ]
        assert connection.execute("SELECT code(NULL)").fetchone() == (None,)
        rest = X[0, 1:].tolist()
        for wrong, message in (
            (([1.0], 1), f"a vector has {X.shape[1]} numbers"),
            ((X[0].tolist(), 0), "k must be"),
            *((([odd, *rest], 1), "finite numbers") for odd in (None, np.nan, np.inf, -np.inf)),
        ):
            with pytest.raises(psycopg.Error, match=message):
                connection.execute("SELECT code(%s::float8[], %s)", wrong)
    return np.array(rows)


def close(codes, encoder, X, k, query):
    wanted = encoder.encode(X, k, side="query" if query else "document")
    np.testing.assert_allclose(codes, wanted, atol=1e-5 * max(1, np.abs(wanted).max()), rtol=0)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("program", [of_numpy, of_js, pytest.param(of_duckdb, marks=pytest.mark.wings)])
def test_codes_are_those_of_the_library(program, case, tmp_path):
    encoder, X = CASES[case]()
    X = np.vstack([X[:20], encoder.mean])  # whose code is zero
    if case == "mlp" and program is of_duckdb:
        with pytest.raises(InvalidInputError, match="has an MLP"):
            program(encoder, X, 1, False, tmp_path)
        return
    for k, query in ((1, False), (encoder.d, False), (3, True)):
        close(program(encoder, X, k, query, tmp_path), encoder, X, k, query)


@pytest.mark.wings
@pytest.mark.parametrize("case", ["unit codes", "plain codes", "pairs with offsets"])
def test_codes_of_postgresql_are_those_of_the_library(case, tmp_path, postgres):
    encoder, X = CASES[case]()
    X = np.vstack([X[:8], encoder.mean])
    for k, query in ((1, False), (encoder.d, False), (3, True)):
        close(of_postgresql(encoder, X, k, query, tmp_path, postgres), encoder, X, k, query)


def test_names_of_files_and_functions_are_checked(tmp_path):
    encoder, _ = plain_codes()
    for wrong, message in (
        (lambda: to_numpy(encoder, tmp_path / "code.txt"), "ends in .py"),
        (lambda: to_numpy(encoder, tmp_path / "my-code.py"), "identifier"),
        (lambda: to_numpy(encoder, tmp_path / "class.py"), "identifier"),
        (lambda: to_javascript(encoder, tmp_path / "code.ts"), "ends in .mjs or .js"),
        (lambda: to_sql(encoder, tmp_path / "code.txt"), "ends in .sql"),
        (lambda: to_sql(encoder, tmp_path / "code.sql", name="a; DROP TABLE b"), "small letters"),
        (lambda: to_sql(encoder, tmp_path / "code.sql", dialect="oracle"), "'duckdb', 'postgresql', 'sqlite'"),
        (lambda: to_sql(encoder, tmp_path / "code.sql", dialect="sqlite"), "Give bytes"),
        (lambda: to_sql(encoder, tmp_path / "code.sql", dialect="duckdb", bytes=4), "Leave bytes out for DuckDB"),
        (lambda: to_javascript(encoder, tmp_path / "code.mjs", bytes=0), "int in"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            wrong()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_of_ones_own_raises(target, tmp_path):
    class Own:
        p, width = 4, 4

        def __call__(self, X):
            return X

    own = FittedEncoder(np.eye(3, 4), np.ones(3), np.zeros(4), np.zeros(4), network=Own())
    with pytest.raises(InvalidInputError, match="a network of your own"):
        TARGETS[target](own, tmp_path / "code.py")
