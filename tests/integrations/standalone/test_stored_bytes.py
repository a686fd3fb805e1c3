"""Embedded bits asked in JavaScript and SQL: scores are those of the library, whole and cut."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

from firstk import PrefixEncoder, Similarity
from firstk.exceptions import InvalidInputError
from firstk.integrations.standalone import to_javascript, to_sql

BYTES = 6


def rows(n):
    """Return rows with a mean that no axis holds."""
    rng = np.random.default_rng(4)
    return (rng.normal(size=(n, 12)) * np.arange(12, 0, -1) + 3).astype(np.float32)


# Cosines of normalized codes; of the vectors themselves, whose mean is off the axes; and codebooks, which need rows.
CASES = {
    "codes": lambda: PrefixEncoder(objective=Similarity(keep="neighbors")).fit(rows(600)),
    "vectors": lambda: PrefixEncoder(8, objective="reconstruction").fit(rows(600)),
    "codebooks": lambda: PrefixEncoder(objective=Similarity(keep="neighbors")).fit(rows(4200)),
}


@pytest.fixture(scope="module", params=CASES)
def asked(request):
    """Return an encoder, strings of some rows, and queries."""
    encoder = CASES[request.param]()
    assert bool(encoder.encoder_.quantizer(BYTES).embedded.levels) == (request.param == "codebooks")
    X = rows(650)
    return encoder, encoder.encoder_.quantizer(BYTES).encode(X[:60]), X[600:603]


def expected(encoder, codes, queries):
    """Return the cosines that the library gives."""
    quantizer = encoder.encoder_.quantizer(codes.shape[1])
    Q = quantizer.encode_query(queries)
    return quantizer.scores(Q, codes) / np.linalg.norm(Q, axis=1, keepdims=True)


@pytest.mark.parametrize("m", [BYTES, 3, 1])
def test_javascript(asked, m, tmp_path):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    encoder, codes, queries = asked
    to_javascript(encoder, tmp_path / "code.mjs", bytes=BYTES)
    (tmp_path / "codes.bin").write_bytes(np.ascontiguousarray(codes[:, :m]).tobytes())
    (tmp_path / "run.mjs").write_text(
        'import { readFileSync } from "fs"; import { Codes, quantizer } from "./code.mjs";\n'
        f'const codes = new Codes(new Uint8Array(readFileSync("codes.bin")), {m});\n'
        "let refused = 0;\n"
        "for (const wrong of [() => new Codes(new Uint8Array(5), 2), () => new Codes(new Uint8Array(6), 0),\n"
        "  () => codes.search([1])]) try { wrong(); } catch (error) { refused += error instanceof RangeError; }\n"
        f"const found = {json.dumps(queries.tolist())}.map((query) => codes.search(query, 60));\n"
        "console.log(JSON.stringify({ found, quantizer, refused, z: Array.from(codes.decode(7)) }));\n"
    )
    done = subprocess.run(["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["refused"] == 3
    assert found["quantizer"] == encoder.encoder_.quantizer(BYTES).fingerprint
    np.testing.assert_allclose(found["z"], encoder.encoder_.quantizer(m).decode(codes[7:8, :m])[0], atol=1e-5)
    for hits, scores in zip(found["found"], expected(encoder, codes[:, :m], queries), strict=True):
        assert sorted(hit["row"] for hit in hits) == list(range(60))
        given = [hit["score"] for hit in hits]
        assert given == sorted(given, reverse=True)
        np.testing.assert_allclose(given, scores[[hit["row"] for hit in hits]], atol=1e-5)


@pytest.mark.parametrize("m", [BYTES, 3, 1])
def test_sqlite(asked, m, tmp_path):
    encoder, codes, queries = asked
    database = sqlite3.connect(":memory:")
    program = to_sql(encoder, tmp_path / "code.sql", dialect="sqlite", name="code", bytes=BYTES)
    database.executescript(program.read_text())
    stored = [(row, code[:m].tobytes()) for row, code in enumerate(codes)]
    database.executemany("INSERT INTO code_codes VALUES (?, ?)", stored)
    for query, scores in zip(queries, expected(encoder, codes[:, :m], queries), strict=True):
        code = encoder.encoder_.quantizer(m).encode_query(query[None])[0]
        database.execute("DELETE FROM code_query")
        database.execute("INSERT INTO code_query SELECT key, value FROM json_each(?)", [json.dumps(code.tolist())])
        found = dict(database.execute("SELECT id, score FROM code_nearest").fetchall())
        np.testing.assert_allclose([found[row] for row in range(60)], scores, atol=1e-5)
    with pytest.raises(sqlite3.IntegrityError):
        database.execute("INSERT INTO code_codes VALUES (99, ?)", [bytes(BYTES + 1)])


@pytest.mark.wings
def test_postgresql(asked, tmp_path, postgres):
    psycopg = pytest.importorskip("psycopg", reason="needs the extra 'stores'")
    encoder, codes, queries = asked
    program = to_sql(encoder, tmp_path / "code.sql", name="coded", bytes=BYTES).read_text()
    tables = "coded_axes, coded_means, coded_bits, coded_books, coded_query_axes"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {tables} CASCADE")
        for name in ("coded", "coded_decode", "coded_query", "coded_score"):
            connection.execute(f"DROP FUNCTION IF EXISTS {name}")
        connection.execute(program)
        for m in (BYTES, 3, 1):
            wanted = expected(encoder, codes[:, :m], queries)
            for query, scores in zip(queries, wanted, strict=True):
                found = [
                    connection.execute(
                        "SELECT coded_score(%s, coded_query(%s, %s))", [code[:m].tobytes(), query.tolist(), m]
                    ).fetchone()[0]
                    for code in codes[:9]
                ]
                np.testing.assert_allclose(found, scores[:9], atol=1e-5)
        for wrong in (b"", bytes(BYTES + 1)):
            with pytest.raises(psycopg.Error, match=f"1 to {BYTES} bytes"):
                connection.execute("SELECT coded_decode(%s)", [wrong])


def test_the_command_takes_bytes_after_the_colon(asked, tmp_path):
    from command_line import firstk

    encoder, _, _ = asked
    encoder.save(tmp_path / "model")
    done = firstk("export", "model", "--to", f"js:{BYTES}", "-o", "code.mjs", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["bytes_per_vector"] == BYTES
    assert (tmp_path / "code.mjs").read_bytes() == to_javascript(
        encoder, tmp_path / "again.mjs", bytes=BYTES
    ).read_bytes()
    done = firstk("export", "model", "--to", f"sql:sqlite,{BYTES},code", "-o", "code.sql", cwd=tmp_path)
    assert "CREATE VIEW code_nearest" in (tmp_path / "code.sql").read_text()
    refused = firstk("export", "model", "--to", "js:4", "-k", "3", "-o", "no.mjs", cwd=tmp_path)
    assert refused.returncode == 1
    assert "leave -k out" in refused.stderr


def test_a_program_of_bytes_needs_cells():
    few = PrefixEncoder(2).fit(rows(3))
    with pytest.raises(InvalidInputError):
        to_javascript(few, "code.mjs", bytes=400)
