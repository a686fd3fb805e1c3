"""Appended encoders: the same vectors in a process that does not know firstk, at any k, of unit norm where promised."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router

from firstk import PrefixEncoder
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.integrations.sentence_transformers import append_encoder

KS = (2, 5, 16)
# Loads the models that it is given with plain sentence-transformers; importing firstk is an error there.
STRANGER = """
import sys, json, numpy as np
class Missing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == "firstk":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
try:
    import firstk
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("firstk is here")
from sentence_transformers import SentenceTransformer
job = json.loads(sys.argv[1])
out = {}
for name, path in job["models"].items():
    model = SentenceTransformer(path, device="cpu")
    for side in ("query", "document"):
        encode = model.encode_query if side == "query" else model.encode_document
        encoder, form = name.split("-")
        if form == "full":
            for k in job["ks"]:
                out[f"{encoder}-full-{k}-{side}"] = encode(job["texts"], truncate_dim=k, normalize_embeddings=True)
        else:
            out[f"{encoder}-cut-{form}-{side}"] = encode(job["texts"])
np.savez(job["out"], **out)
"""


def stranger(models, texts, folder):
    """Save models, encode the texts with them in a process without firstk, and return what it found."""
    paths = {}
    for name, model in models.items():
        paths[name] = str(folder / name)
        model.save_pretrained(paths[name], create_model_card=False)
    job = {"models": paths, "texts": texts, "ks": KS, "out": str(folder / "found.npz")}
    subprocess.run([sys.executable, "-c", STRANGER, json.dumps(job)], check=True, capture_output=True, text=True)
    return dict(np.load(folder / "found.npz"))


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.wings
def test_the_same_vectors_where_firstk_is_not_installed(minilm, tiny_model, sentences, tmp_path):
    """One side on a tiny model, two sides (a Router) on a real one that ends in Normalize; both forms, several k."""
    texts, tiny = sentences(120), tiny_model()
    X, Y = tiny.encode(texts), minilm.encode(texts)
    one = PrefixEncoder(objective="similarity").fit(X)
    two = PrefixEncoder(objective="similarity").fit_pairs(Y[:60], Y[60:])
    models = {"one-full": append_encoder(tiny, one), "two-full": append_encoder(minilm, two)}
    models |= {f"one-{k}": append_encoder(tiny, one, k) for k in KS} | {"two-5": append_encoder(minilm, two, 5)}
    assert [any(isinstance(m, Router) for m in models[name]) for name in ("one-full", "two-full")] == [False, True]
    found = stranger(models, texts[:12], tmp_path)
    assert len(found) == 2 * (2 * len(KS) + len(KS) + 1)
    for form, vectors in found.items():
        name, _, k, side = form.split("-")
        enc, rows = (one, X) if name == "one" else (two, Y)
        encode = enc.encode_query if side == "query" else enc.encode_document
        np.testing.assert_allclose(vectors, encode(rows[:12].astype(np.float64), int(k)), atol=1e-6, err_msg=form)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_config_says_that_vectors_may_be_cut_and_the_source_is_left_as_it_is(tiny_model, sentences, tmp_path):
    model = tiny_model()
    texts = sentences(80)
    X = model.encode(texts)
    enc = PrefixEncoder(20, objective="reconstruction").fit(X)
    append_encoder(model, enc).save_pretrained(str(tmp_path / "full"))
    config = json.loads((tmp_path / "full" / "config.json").read_text())
    assert config["is_matryoshka"] is True
    assert config["matryoshka_dimensions"] == list(range(1, 21))
    assert not hasattr(model[0].auto_model.config, "is_matryoshka")
    assert len(model) == 2
    np.testing.assert_array_equal(model.encode(texts), X)


def test_which_modules_are_appended(tiny_model, sentences):
    model, texts = tiny_model(), sentences(80)
    enc = PrefixEncoder(6).fit(model.encode(texts))

    def tail(*args, **options):
        return [type(module) for module in list(append_encoder(model, *args, **options))[2:]]

    assert tail(enc) == [Dense]
    assert tail(enc, 3) == [Dense, Normalize]
    assert tail(enc, 3, normalize=False) == [Dense]
    assert tail(enc, normalized_input=True) == [Normalize, Dense]
    two = PrefixEncoder(objective="similarity").fit_pairs(model.encode(texts[:40]), model.encode(texts[40:]))
    assert tail(two, 3) == [Router, Normalize]
    assert tail(two, 3, side="query") == [Dense, Normalize]
    query = append_encoder(model, two, 3, side="query").encode(texts)
    np.testing.assert_allclose(query, two.encode_query(model.encode(texts), 3), atol=1e-5)


def test_lengths_are_kept_where_asked_for_and_inputs_normalized(tiny_model, sentences):
    model, texts = tiny_model(), sentences(80)
    X = model.encode(texts, normalize_embeddings=True)
    enc = PrefixEncoder(6).fit(X)
    found = append_encoder(model, enc, 4, normalize=False, normalized_input=True).encode(texts)
    np.testing.assert_allclose(found, enc.transform(X, 4), atol=1e-5)


def test_a_perceptron_becomes_layers(tiny_model, sentences, tmp_path):
    model, texts = tiny_model(), sentences(80)
    X = model.encode(texts)
    enc = PrefixEncoder(4, objective="classification", network="mlp", random_state=0).fit(X, np.arange(80) % 3)
    append_encoder(model, enc).save_pretrained(str(tmp_path / "mlp"))
    loaded = SentenceTransformer(str(tmp_path / "mlp"), device="cpu")
    np.testing.assert_allclose(loaded.encode(texts), enc.transform(X), atol=1e-5)


def test_errors(tiny_model, sentences):
    model, texts = tiny_model(), sentences(80)
    enc = PrefixEncoder(6).fit(model.encode(texts))
    with pytest.raises(InvalidInputError, match=r"'k' parameter of append_encoder must be an int in \[1, 6\]"):
        append_encoder(model, enc, 7)
    with pytest.raises(InvalidInputError, match=r"encoder of the model's 32 coordinates. Got one of 5"):
        append_encoder(model, PrefixEncoder().fit(np.random.default_rng(0).normal(size=(20, 5))))
    with pytest.raises(InvalidInputError, match="append_encoder must be a FittedEncoder or a fitted PrefixEncoder"):
        append_encoder(model, "encoder")
    with pytest.raises(InvalidInputError, match="'model' parameter"):
        append_encoder("model", enc)
    with pytest.raises(InvalidInputError, match="'side' parameter"):
        append_encoder(model, enc, side="left")
    model.truncate_dim = 8
    with pytest.raises(InvalidInputError, match="truncate_dim=8"):
        append_encoder(model, enc)


def test_a_network_of_ones_own_raises(tiny_model, sentences):
    from torch import nn

    model, texts = tiny_model(), sentences(40)
    net = nn.Sequential(nn.Linear(32, 4), nn.Tanh())
    enc = PrefixEncoder(4, objective="classification", network=net, random_state=0)
    enc.fit(model.encode(texts), np.arange(40) % 2)
    with pytest.raises(
        IllegalCombinationError, match="stock modules can represent linear encoders and multilayer perceptrons only"
    ):
        append_encoder(model, enc)
