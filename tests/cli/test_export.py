"""``firstk export`` writes files that other programs read, and refuses in sentences."""

import json
import sys
from typing import NamedTuple

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk.cli import main
from firstk.data import load_digits
from firstk.data.files import write_vectors


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def firstk(monkeypatch, capsys):
    """Run a command in this process: a new one would spend its time on imports."""

    def run(*arguments, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["firstk", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Return a folder with a saved encoder and its documents, and the encoder."""
    folder, digits = tmp_path_factory.mktemp("job"), load_digits()
    encoder = PrefixEncoder(objective="similarity").fit(digits.X_train)
    encoder.save(folder / "model")
    write_vectors(folder / "documents.npy", digits.X_train[:300].astype(np.float32))
    return folder, encoder, digits


def test_onnx(job, firstk):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    from firstk.integrations import onnx

    folder, encoder, digits = job
    done = firstk("export", "model", "--to", "onnx", "-k", 9, "-o", "out/encoder.onnx", cwd=folder)
    assert done.code == 0, done.err
    assert "64 numbers in, prefixes of 1 to 9 out" in done.out
    loaded = onnx.load(folder / "out" / "encoder.onnx")
    X = digits.X_test.astype(np.float32)
    assert np.abs(loaded.encode(X, 4) - encoder.transform(X, 4)).max() < 1e-6


PROGRAMS = {"numpy": "encoder.py", "js": "encoder.mjs", "sql": "encoder.sql"}


@pytest.mark.parametrize("target", PROGRAMS)
def test_programs_without_firstk(target, job, firstk):
    """What they compute is tested with the library; here, that the command writes the same."""
    from firstk.integrations.standalone import TARGETS

    folder, encoder, _ = job
    done = firstk("export", "model", "--to", target, "-k", 9, "-o", f"out/{PROGRAMS[target]}", cwd=folder)
    assert done.code == 0, done.err
    assert "64 numbers in, prefixes of 1 to 9 out" in done.out
    wanted = TARGETS[target](encoder[:9], folder / "wanted" / PROGRAMS[target])
    assert (folder / "out" / PROGRAMS[target]).read_text() == wanted.read_text()
    again = firstk("export", "model", "--to", target, "-o", f"out/{PROGRAMS[target]}", cwd=folder)
    assert again.code == 1
    assert "--force" in again.err
    again = firstk("export", "model", "documents.npy", "--to", target, "-o", f"b/{PROGRAMS[target]}", cwd=folder)
    assert "holds the encoder alone" in again.err


def test_sql_for_duckdb_and_other_names(job, firstk):
    folder, _, _ = job
    done = firstk(
        *("export", "model", "--to", "sql:duckdb,code", "-k", 4, "-o", "duck.sql"),
        cwd=folder,
    )
    assert done.code == 0, done.err
    assert "CREATE MACRO code(x, k := 4" in (folder / "duck.sql").read_text()
    assert "small letters" in firstk("export", "model", "--to", "sql:A-b", "-o", "c.sql", cwd=folder).err
    assert "ends in .py" in firstk("export", "model", "--to", "numpy", "-o", "c.txt", cwd=folder).err


def test_faiss(job, firstk):
    faiss = pytest.importorskip("faiss", reason="needs the extra 'search'")
    folder, encoder, digits = job
    arguments = ("documents.npy", "-k", 12, "-o", "documents.faiss", "--json")
    done = firstk("export", "model", "--to", "faiss:HNSW16", *arguments, cwd=folder)
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert (facts["documents"], facts["k"], facts["input_width"]) == (300, 12, 64)
    Q = digits.X_test[:50].astype(np.float32)
    found = faiss.read_index(str(folder / "documents.faiss")).search(Q, 1)[1].ravel()
    wanted = (encoder.transform(Q, 12) @ encoder.transform(digits.X_train[:300], 12).T).argmax(axis=1)
    assert (found == wanted).mean() > 0.95  # a graph may miss a few


def test_faiss_returns_the_ids_of_the_documents(job, firstk):
    faiss = pytest.importorskip("faiss", reason="needs the extra 'search'")
    folder, _, digits = job
    X = digits.X_train[:40].astype(np.float32)
    numbers, names = np.arange(40)[::-1] * 5, [f"doc {i}" for i in range(40)]
    write_vectors(folder / "named.npz", X, {"id": numbers, "name": np.array(names), "twice": numbers // 10})
    export = ("export", "model", "named.npz", "--to", "faiss", "-o")

    done = firstk(*export, "numbers.faiss", cwd=folder)
    assert "Searches return the numbers of column 'id'." in done.out, done.err
    index = faiss.read_index(str(folder / "numbers.faiss"))
    assert index.search(X, 1)[1].ravel().tolist() == numbers.tolist()
    assert not (folder / "numbers.faiss.ids.json").exists()

    for column, wanted in (("name", names), ("twice", (numbers // 10).tolist())):
        done = firstk(*export, f"{column}.faiss", "--id", column, cwd=folder)
        assert f"json.load(open('{column}.faiss.ids.json'))[i]" in done.out, done.err
        held = json.loads((folder / f"{column}.faiss.ids.json").read_text())
        found = faiss.read_index(str(folder / f"{column}.faiss")).search(X, 1)[1].ravel()
        assert [held[i] for i in found] == wanted

    (folder / "name.faiss").unlink()
    done = firstk(*export, "name.faiss", "--id", "name", cwd=folder)
    assert "'name.faiss.ids.json' is there already. Pass --force" in done.err
    assert not (folder / "name.faiss").exists()
    assert firstk(*export, "name.faiss", "--id", "name", "--force", cwd=folder).code == 0
    assert "no column 'nobody'" in firstk(*export, "other.faiss", "--id", "nobody", cwd=folder).err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--to", "csv", "-o", "a"), "one of 'faiss', 'js', 'numpy', 'onnx', 'sql'"),
        (("--to", "faiss", "-o", "a"), "firstk export MODEL VECTORS"),
        (("documents.npy", "--to", "onnx", "-o", "a"), "encoder alone"),
        (("--to", "onnx", "-k", "99", "-o", "a"), "[1, 53]"),
        (("--to", "onnx", "-o", "model"), "is a folder"),
        (("missing.npy", "--to", "faiss", "-o", "a"), "missing.npy"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(arguments, sentence, job, firstk):
    folder, _, _ = job
    done = firstk("export", "model", *arguments, cwd=folder)
    assert done.code == 1
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert not (folder / "a").exists()


def test_a_folder_that_is_no_model(tmp_path, firstk):
    done = firstk("export", tmp_path, "--to", "onnx", "-o", "a.onnx", cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert firstk("export", tmp_path, cwd=tmp_path).code == 2
