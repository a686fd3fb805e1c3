"""The demo does the whole job and says where everything is."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from firstk import PrefixEncoder
from firstk.cli import app
from firstk.cli import demo as banking

DOCS = Path(__file__).resolve().parents[2] / "docs"


def run(out):
    result = CliRunner().invoke(app, ["demo", "--out", str(out)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The demo without torch, whatever is installed: the tests of training train."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(banking, "torch_is_installed", lambda: False)
        yield out, run(out)


def row_of(printed, name):
    return [float(x) for x in re.search(rf"^  {name} +([\d. ]+)$", printed, re.MULTILINE).group(1).split()]


def accuracy(stored, labels, queries, wanted):
    """1-NN by cosine, the plain way."""
    unit = [Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (queries, stored)]
    return np.mean(labels[(unit[0] @ unit[1].T).argmax(axis=1)] == wanted)


def test_table_is_that_of_the_saved_encoder_and_of_the_raw_numbers(done):
    out, printed = done
    bank = banking.embedded_parts().bank
    enc = PrefixEncoder.load(out / "model")
    for i, k in enumerate((4, 8, 16, 32)):
        ours = accuracy(enc[:k].transform(bank.X_train), bank.y_train, enc[:k].transform(bank.X_test), bank.y_test)
        assert row_of(printed, "firstk, error_bound")[i] == pytest.approx(ours, abs=6e-4)
        cut = accuracy(bank.X_train[:, :k], bank.y_train, bank.X_test[:, :k], bank.y_test)
        assert row_of(printed, "plain truncation")[i] == pytest.approx(cut, abs=6e-4)
    raw = accuracy(bank.X_train, bank.y_train, bank.X_test, bank.y_test)
    assert row_of(printed, "all 384 numbers") == [pytest.approx(raw, abs=6e-4)]


def test_short_codes_beat_every_baseline(done):
    _, printed = done
    ours = row_of(printed, "firstk, error_bound")
    for name in ("plain truncation", "random dimensions", "PCA"):
        assert all(own > other for own, other in zip(ours, row_of(printed, name), strict=True))


def test_parts_share_no_question():
    parts = banking.embedded_parts()
    assert parts.counts == (2399, 600, 1001)
    assert len({*parts.bank.ids_train, *parts.bank.ids_test}) == 2399 + 1001
    assert parts.chosen_on.reference.X is parts.test.reference.X


def test_named_code_keeps_what_is_printed(done):
    _, printed = done
    k, precision, size = re.search(r"(\d+) coordinates as (\w+), (\d+) bytes", printed).groups()
    assert (precision, int(size)) == ("int4", int(k) // 2)
    assert f"[:{k}]" in printed
    assert f"10,000,000 vectors: {int(size) * 10:.1f} MB instead of 15.4 GB" in printed
    assert float(re.search(r"it keeps ([\d.]+) %", printed).group(1)) > 98


def test_sentences_are_those_of_the_data(done):
    _, printed = done
    bank = banking.embedded_parts().bank
    found = re.findall(r"^    (all 384 numbers|truncation, k = 8|firstk, k = 8) +(x?) (\S.*)$", printed, re.MULTILINE)
    assert len(found) == 9
    assert {text.strip() for _, _, text in found} <= set(bank.texts_train)
    marks = [mark for name, mark, _ in found if name.startswith("truncation")]
    assert marks.count("x") > [mark for name, mark, _ in found if name.startswith("firstk")].count("x")


def test_what_torch_would_add_is_in_the_docs(done):
    _, printed = done
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    for scores in banking.ON_ALL_QUESTIONS.values():
        assert scores in printed
        assert scores in page


def test_page_is_whole_and_self_contained(done):
    out, printed = done
    page = (out / "report.html").read_text()
    assert page.rstrip().endswith("</html>")
    assert 'class="texts"' in page
    assert not re.search(r"(?:src|href)=[\"']https?:", page)
    assert (out / "report.html").resolve().as_uri() in printed
    assert sorted(path.name for path in out.iterdir()) == ["model", "report.html"]


def test_a_second_run_replaces_the_first(done):
    out, printed = done
    before = (out / "model" / "model.safetensors").read_bytes()
    assert run(out) == printed
    assert (out / "model" / "model.safetensors").read_bytes() == before  # same data, same bytes


@pytest.mark.full
def test_with_torch_a_trained_row_is_added(tmp_path):
    pytest.importorskip("torch")
    assert row_of(run(tmp_path / "out"), "firstk, classification")[1] > 0.8
