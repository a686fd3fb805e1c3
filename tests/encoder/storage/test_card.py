"""The card of a saved model: front matter that parses, a table that is the curve, three lines that load it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from firstk import FittedEncoder, PrefixCurve, PrefixEncoder
from firstk.encoder.record import FitRecord, ModelShape
from firstk.encoder.storage.card import model_card

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 6))
CURVE = PrefixCurve([1, 2, 4], [0.5, 0.9, 1.0], "own|accuracy", input_score=0.95, n_evaluated=1234)


@pytest.fixture
def model(tmp_path):
    return PrefixEncoder(4).fit(X).save(tmp_path / "model", curve=CURVE, source_model="some/model")


def front_matter(text):
    yaml = pytest.importorskip("yaml", reason="the front matter is read with PyYAML")
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)[1])


def test_the_front_matter_is_that_of_a_hugging_face_card(model):
    found = front_matter((model / "README.md").read_text())
    assert found["library_name"] == "firstk"
    assert found["base_model"] == "some/model"
    assert found["pipeline_tag"] == "feature-extraction"
    assert "embeddings" in found["tags"]


def test_the_hub_library_reads_the_card(model):
    hub = pytest.importorskip("huggingface_hub", reason="the card is read with the extra 'cloud'")
    card = hub.ModelCard.load(model / "README.md")
    assert card.data.library_name == "firstk"
    assert card.data.base_model == "some/model"


def test_the_table_is_the_curve(model):
    text = (model / "README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert [(int(k), float(score)) for k, score in rows] == list(CURVE)
    assert "keeps 0.99 of the score of the raw vectors is 4" in text
    assert "The raw vectors score 0.9500." in text
    assert "1,234" in text


def test_the_code_on_the_card_runs(model, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (model / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(model)
    namespace = {"vectors": X}
    exec(code, namespace)
    np.testing.assert_array_equal(namespace["codes"], PrefixEncoder(4).fit(X).transform(X, k=2))


@pytest.mark.parametrize("source", ["text-embedding-3-large", "a: b\n- c", "<script>", "x/y/z", "---", "|`*"])
def test_names_of_models_mean_themselves(source):
    text = model_card(ModelShape(4, 6, 4, normalized=False), FitRecord(source_model=source))
    assert "base_model" not in front_matter(text)
    assert "<script>" not in text
    assert text.count("\n---\n") == 1


def test_a_curve_without_a_share_has_no_smallest_k():
    curve = PrefixCurve([1, 2], [-0.5, -0.1], "r2")
    text = model_card(ModelShape(2, 6, 2, normalized=True), FitRecord(curve=curve))
    assert "smallest" not in text
    assert "| 2 | -0.1000 |" in text


def test_a_cut_encoder_is_saved_with_the_first_part_of_its_curve_and_intervals(tmp_path):
    ends = {"low": [0.4, 0.5, 0.6], "high": [0.6, 0.7, 0.8], "confidence": 0.9}
    curve = PrefixCurve([1, 2, 4], [0.5, 0.6, 0.7], "accuracy", **ends)
    PrefixEncoder(4).fit(X).save(tmp_path / "long", curve=curve)
    FittedEncoder.load(tmp_path / "long")[:2].save(tmp_path / "short")
    found = FittedEncoder.load(tmp_path / "short").record.curve
    assert (found.k, found.score, found.low, found.high) == ((1, 2), (0.5, 0.6), (0.4, 0.5), (0.6, 0.7))
