"""``firstk info``: sentences for people, one JSON document for programs, exit codes for scripts."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from command_line import firstk
from firstk import PrefixCurve, PrefixEncoder, Similarity
from firstk.cli import app
from firstk.encoder.storage.info import model_info
from firstk.exceptions import CorruptModelError
from firstk.words.text import bytes_text

X = np.random.default_rng(0).standard_normal((120, 6))
CURVE = PrefixCurve([1, 2, 3, 4], [0.5, 0.9, 0.98, 1.0], "recall@10", input_score=1.0)


def info(*arguments):
    return CliRunner().invoke(app, ["info", *map(str, arguments)])


@pytest.fixture(scope="module")
def enc():
    return PrefixEncoder(4, objective=Similarity(keep="neighbors")).fit(X)


@pytest.fixture
def model(enc, tmp_path):
    return enc.save(tmp_path / "model", curve=CURVE, source_model="some/model", extra={"study.json": "{}"})


def test_sentences_and_table(model):
    done = info(model)
    assert done.exit_code == 0
    for said in (
        "from vectors of 6 columns (made by some/model) to codes of 4 coordinates",
        "Objective similarity, neighbors, ordering full_prefix, fitted on 120 rows by firstk",
        "Codes are brought to unit norm after the cut.",
        "The first 4 coordinates keep 99 % of the raw vectors' recall@10.",
        "The files are whole: config.json matches its digest, the others their checksums.",
        "smallest k that keeps 0.95 of the score of the raw vectors, as float32: 3",
    ):
        assert said in done.stdout
    size = sum(file.stat().st_size for file in model.iterdir())
    assert re.search(rf"size on disk +{re.escape(bytes_text(size))}, 4 files", done.stdout)
    assert re.search(r"bytes per vector +16 as float32, uncut; 24 raw", done.stdout)
    assert re.search(r"^ +2 +0.9000 +8$", done.stdout, re.MULTILINE)


def test_json(model):
    done = info(model, "--json")
    found = json.loads(done.stdout)
    assert (found["d"], found["p"], found["rows"], found["normalized"]) == (4, 6, 120, True)
    assert found["curve"]["score"] == list(CURVE.score)
    assert found["smallest_k"] == {"0.9": 2, "0.95": 3, "0.99": 4}
    assert found["bytes_per_vector"] == {
        "raw": 24,
        "full": 16,
        "keep 0.9": 8,
        "keep 0.95": 12,
        "keep 0.99": 16,
        "embedded": 4,
    }
    assert found["bytes_on_disk"] == sum(file.stat().st_size for file in model.iterdir())
    assert {name: part["integrity"] for name, part in found["files"].items()} == {
        "config.json": "matches",
        "model.safetensors": "matches",
        "study.json": "matches",
        "README.md": "not checked",
    }
    assert found["whole"] is True
    assert found["data_fingerprint"].startswith("120 rows, ")


def test_without_a_curve_it_says_how_to_have_one(enc, tmp_path):
    assert "No curve was saved with it" in info(enc.save(tmp_path / "model")).stdout


@pytest.mark.parametrize("damage", ["missing", "does not match"])
def test_a_broken_extra_file_is_named_and_exits_with_1(model, damage):
    if damage == "missing":
        (model / "study.json").unlink()
    else:
        (model / "study.json").write_text("changed")
    done = info(model)
    assert done.exit_code == 1
    assert f"The encoder itself is whole, but: study.json {damage}." in done.stdout
    assert json.loads(info(model, "--json").stdout)["files"]["study.json"]["integrity"] == damage


def test_a_file_of_someone_elses_is_named(model):
    (model / "mine.txt").write_text("mine")
    done = info(model)
    assert done.exit_code == 0
    assert "Files that are not the model's: mine.txt." in done.stdout


def test_a_damaged_model_is_refused(model):
    (model / "config.json").write_text("{}")
    done = info(model)
    assert done.exit_code == 1
    assert isinstance(done.exception, CorruptModelError)  # `main` makes it one sentence on standard error


def test_texts_of_a_model_do_not_steer_the_terminal(enc, tmp_path):
    model = enc.save(tmp_path / "model", source_model="evil\x1b[2Jmodel\r\nnext")
    assert "\x1b" not in str(model_info(model))
    assert "evil?[2Jmodel??next" in str(model_info(model))


def test_a_baseline_without_an_objective_is_described(tmp_path):
    from firstk.advice.baselines import plain_truncation

    assert "Objective unknown" in str(model_info(plain_truncation(X).save(tmp_path / "model")))


def test_a_network_of_the_users_own_is_described(tmp_path):
    torch = pytest.importorskip("torch", reason="training needs the extra 'torch'")
    from firstk import Gradient

    net = torch.nn.Linear(6, 3)
    enc = PrefixEncoder(3, objective="classification", network=net, solver=Gradient(epochs=1), random_state=0)
    model = enc.fit(X, np.arange(120) % 3).save(tmp_path / "model")
    assert re.search(r"network +custom", str(model_info(model)))


def test_help_shows_an_example():
    done = info("--help")
    assert done.exit_code == 0
    assert "Example: firstk info model/" in done.stdout


def test_without_a_model_it_names_versions_processor_and_blas_and_no_file():
    import os

    import numpy as np

    done = firstk("info")
    assert done.returncode == 0
    assert f"numpy: {np.__version__}" in done.stdout
    assert "blas: " in done.stdout
    assert f"cores: {os.cpu_count()}" in done.stdout
    assert os.path.expanduser("~") not in done.stdout
    facts = json.loads(firstk("info", "--json").stdout)
    assert facts["numpy"] == np.__version__


def test_an_address_that_cannot_be_reached_is_a_message(monkeypatch):
    from firstk.cli.info import info
    from firstk.data.remote import RemotePath
    from firstk.exceptions import InvalidInputError

    def fails(path):
        raise OSError(5, "Asking for it failed: refused")

    monkeypatch.setattr(RemotePath, "is_file", fails)
    with pytest.raises(InvalidInputError, match=r"Cannot read 's3://bucket/model'.*refused"):
        info("s3://bucket/model")
