"""One file per format that firstk writes, kept as the first release's promise: each gives what it gave.

``tests/fixtures/formats/make.py`` wrote them. A test that fails here means that files on disk are read differently, or
not at all.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstk
from firstk.data.files import open_vectors

FORMATS = Path(__file__).parent / "fixtures" / "formats"
EXPECTED = json.loads((FORMATS / "expected.json").read_text(encoding="utf-8"))
PROBE, OUTPUTS = np.array(EXPECTED["probe"], np.float32), EXPECTED["outputs"]


def assert_gives(found, name):
    assert set(found) == set(OUTPUTS[name])
    for part, value in found.items():
        np.testing.assert_allclose(value, OUTPUTS[name][part], rtol=1e-4, atol=1e-5, err_msg=part)


@pytest.mark.parametrize("name", ["fisher", "pairs", "mlp"])
def test_a_model_gives_what_it_gave(name):
    encoder = firstk.PrefixEncoder.load(FORMATS / name)
    assert_gives({"document": encoder.encode_document(PROBE), "query": encoder.encode_query(PROBE)}, name)


def test_an_alignment_gives_what_it_gave():
    alignment = firstk.PrefixAlignment.load(FORMATS / "alignment")
    assert_gives({"old": alignment.encode_old(PROBE), "new": alignment.encode_new(PROBE)}, "alignment")


@pytest.mark.parametrize(("kind", "name"), [(firstk.FunnelIndex, "funnel"), (firstk.CodeIndex, "bytes")])
def test_an_index_finds_what_it_found(kind, name):
    assert_gives({"ids": kind.load(FORMATS / f"{name}.safetensors").search(PROBE, 3).ids}, name)


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_codes_are_restored(precision):
    assert_gives({"codes": open_vectors(FORMATS / f"{precision}.safetensors").read().vectors}, precision)


def test_a_curve_is_read_and_written_as_it_was():
    text = (FORMATS / "curve.json").read_text(encoding="utf-8")
    curve = firstk.PrefixCurve.from_json(text)
    assert json.loads(curve.to_json()) == json.loads(text)
    config = json.loads((FORMATS / "fisher" / "config.json").read_text(encoding="utf-8"))
    assert config["curve"] == curve.to_dict()
