"""``firstk move``: what it prints, its exit codes, and what it never shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from command_line import firstk
from firstk import PrefixEncoder
from firstk.data.files import open_vectors, write_vectors

pytest.importorskip("pyarrow", reason="the extra 'tables' is not installed")
pytest.importorskip("sqlite_vec", reason="the extra 'stores' is not installed")


@pytest.fixture
def place(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 12)).astype(np.float32)
    PrefixEncoder(8).fit(X).save(tmp_path / "model")
    write_vectors(tmp_path / "rows.parquet", X, {"id": np.arange(200), "title": np.array(["a", "b"] * 100)})
    return tmp_path


def done(*arguments, cwd):
    run = firstk("move", *arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_file_to_a_store_to_a_file(place):
    said = done("rows.parquet", "sqlite:codes.db#documents", "--model", "model", "-k", "4", cwd=place)
    assert "200 rows of 12 numbers moved from 'rows.parquet' to the table 'documents'" in said.replace("The", "the")
    assert "4 coordinates, 16 bytes each" in said
    assert "Read back and compared: rows, ids, payloads and codes are those that were sent." in said
    assert re.search(
        r"Checksum of ids and payloads: 200-\w+-\w+\. Codes are compared up to rounding, and not in it", said
    )
    found = json.loads(done("sqlite:codes.db#documents", "back.parquet", "--json", cwd=place))
    assert (found["rows"], found["written"], found["k"], found["verified"]) == (200, 200, 4, True)
    table = open_vectors(place / "back.parquet")
    assert (table.rows, table.width, table.columns) == (200, 4, ("id", "title"))


def test_decoding_is_told_with_its_bytes(place):
    done("rows.parquet", "short.parquet", "--model", "model", "--precision", "int4", cwd=place)
    said = done("short.parquet", "sqlite:codes.db#documents", cwd=place)
    assert "(int4, 4 bytes each) were decoded: they take 32 bytes each in the target." in said
    assert "decoded" not in done("short.parquet", "copy.parquet", cwd=place)


def test_a_dry_run_says_rows_bytes_and_time_and_writes_nothing(place):
    arguments = ["rows.parquet", "sqlite:codes.db#documents", "--model", "model", "-k", "4", "--dry-run"]
    said = done(*arguments, cwd=place)
    assert "9.60 kB of vectors become 3.20 kB of codes" in said
    assert "Nothing was written" in said
    found = json.loads(done(*arguments, "--json", cwd=place))
    assert (found["rows"], found["source_bytes"], found["target_bytes"]) == (200, 9600, 3200)
    assert not (place / "codes.db").exists()


def test_a_second_move_needs_to_be_told_what_to_do(place):
    arguments = ["rows.parquet", "sqlite:codes.db#documents", "--model", "model", "-k", "4"]
    done(*arguments, cwd=place)
    run = firstk("move", *arguments, cwd=place)
    assert run.returncode == 1
    assert "--resume" in run.stderr
    assert "200 rows were there from an earlier run" in done(*arguments, "--resume", cwd=place)
    done(*arguments, "--force", cwd=place)


@pytest.mark.parametrize(
    "address",
    [
        "lancedb:s3://me:s3cret@bucket#t",
        "duckdb:md:db?motherduck_token=s3cret#t",
        "chroma+http://me:x@s3cret@127.0.0.1:1#t",
        "qdrant+http://me:x:s3cret@127.0.0.1:1#t",
        "milvus+http://me:x/s3cret@127.0.0.1:1#t",
        "postgresql://me:x@s3cret@127.0.0.1:1/db#t",
        "postgresql://me:x#s3cret@127.0.0.1:1/db",
        "s3://KEY:s3cret@bucket/rows.npy",
        "https://127.0.0.1:1/rows.npy#s3cret",
        "ftp://me:s3cret@127.0.0.1/rows.npy",
    ],
)
def test_no_form_of_an_address_shows_its_secret(place, address, monkeypatch):
    """In this process, so that nothing is reached but this machine."""
    from firstk.exceptions import FirstkError
    from firstk.search.moving import move

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("firstk.data.remote.range_file.ATTEMPTS", 1)
    monkeypatch.setattr("firstk.data.remote.storage.ATTEMPTS", 1)
    monkeypatch.chdir(place)
    with pytest.raises((FirstkError, OSError)) as caught:
        move(address, "out.parquet")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["postgresql://me:s3cret@127.0.0.1:1/db#t", "pgvector://me:s3cret@127.0.0.1:1/db#t"]
)
def test_passwords_are_not_shown(place, address):
    pytest.importorskip("psycopg", reason="the extra 'stores' is not installed")
    for arguments in ([address, "out.parquet"], ["rows.parquet", address, "--model", "model"]):
        run = firstk("move", *arguments, cwd=place)
        assert run.returncode == 1
        assert run.stderr.startswith("firstk: The connection to PostgreSQL failed")
        assert "s3cret" not in run.stdout + run.stderr


def test_ctrl_c_says_how_to_go_on(place):
    X = np.random.default_rng(0).normal(size=(40_000, 12)).astype(np.float32)
    write_vectors(place / "many.parquet", X, {"id": np.arange(len(X))})
    command = [sys.executable, "-c", "from firstk.cli import main; main()", "move", "many.parquet", "sqlite:many.db#d"]
    # A background job of a shell ignores Ctrl-C unless its program asks for it, as this one does.
    ask = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    small = "import functools, firstk.search.moving as m; m.move = functools.partial(m.move, batch=20); "
    command[2] = ask + small + command[2]
    run = subprocess.Popen(
        [*command, "--model", "model"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (place / "many.db").exists() and run.poll() is None:
        time.sleep(0.01)
    time.sleep(0.2)
    run.send_signal(2)
    _, said = run.communicate()
    assert run.returncode == 130, said
    assert "--resume goes on" in said
    assert "Traceback" not in said
    done("many.parquet", "sqlite:many.db#d", "--model", "model", "--resume", cwd=place)
