"""The demo does the whole job and says where everything is."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from firstk import PrefixEncoder
from firstk.cli import app
from firstk.data import load_digits


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    result = CliRunner().invoke(app, ["demo", "--out", str(out), "--quiet"], catch_exceptions=False)
    assert result.exit_code == 0
    return out, result.output


def test_tables_hold_ours_and_every_baseline(done):
    _, printed = done
    for name in ("fisher", "mixture", "similarity", "denoising"):
        assert re.search(rf"^  {name}.*0\.\d{{3}}", printed, re.MULTILINE)
    for name in ("PCA", "uncentred SVD", "plain truncation", "random dimensions"):
        assert len(re.findall(rf"^- {name}.*0\.\d{{3}}", printed, re.MULTILINE)) == 2  # once a question


def test_printed_accuracy_is_that_of_the_saved_encoder(done):
    from sklearn.neighbors import KNeighborsClassifier

    from firstk.cli.demo import embedded_data

    out, printed = done
    data = embedded_data()
    enc = PrefixEncoder.load(out / "model")[:8]
    judge = KNeighborsClassifier(1, metric="cosine", algorithm="brute").fit(enc.transform(data.X_train), data.y_train)
    row = re.search(r"^  fisher \(labels\)(.*)$", printed, re.MULTILINE).group(1).split()
    assert float(row[3]) == pytest.approx(judge.score(enc.transform(data.X_test), data.y_test), abs=6e-4)


def test_named_k_cuts_the_saved_encoder(done):
    out, printed = done
    k = int(re.search(r"chosen on validation rows: (\d+)", printed).group(1))
    assert f"[:{k}]" in printed
    code = PrefixEncoder.load(out / "model")[:k].transform(load_digits().X_test)
    assert code.shape == (360, k)
    assert np.isfinite(code).all()


def test_page_is_whole_and_self_contained(done):
    out, printed = done
    page = (out / "report.html").read_text()
    assert page.rstrip().endswith("</html>")
    assert "plain truncation" in page
    assert not re.search(r"(?:src|href)=[\"']https?:", page)
    assert (out / "report.html").resolve().as_uri() in printed
    assert sorted(path.name for path in out.iterdir()) == ["model", "report.html"]


def test_a_second_run_replaces_the_first(done):
    out, _ = done
    before = (out / "model" / "model.safetensors").read_bytes()
    assert CliRunner().invoke(app, ["demo", "--out", str(out), "--quiet"]).exit_code == 0
    assert (out / "model" / "model.safetensors").read_bytes() == before  # same data, same bytes
