"""Folders for servers: vectors of ``dimensions=k`` are the encoder's by the rules of each; what is not raises."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding

from firstk import PrefixEncoder, fit_sentence_transformer
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.integrations.sentence_transformers import append_encoder, save_for_serving, uncentred
from integrations import serving_rules as rules

KS = (1, 3, 10)


@pytest.fixture
def ends_in_normalize(tiny_model):
    """Return a model like all-MiniLM-L6-v2: a transformer, mean pooling, Normalize."""
    return SentenceTransformer(modules=[*tiny_model(), Normalize()], device="cpu")


@pytest.fixture
def static_model():
    """Return a model like those of model2vec: a table of 40 tokens by 12 coordinates, Normalize."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    from fixtures.sentence_model import WORDS

    words = {word: i for i, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    table = np.random.default_rng(0).normal(size=(len(words), 12)).astype(np.float32) + 0.3
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, table), Normalize()], device="cpu")


@pytest.mark.parametrize("server", ["vllm", "tei"])
def test_servers_return_the_encoders_codes_at_any_length(server, ends_in_normalize, sentences, tmp_path):
    texts = sentences(150)
    found = fit_sentence_transformer(ends_in_normalize, texts, serving=True)
    folder = save_for_serving(found.model, tmp_path / "model")
    pooled = SentenceTransformer(modules=list(ends_in_normalize)[:2], device="cpu").encode(texts[:20])
    assert np.ptp(np.linalg.norm(pooled, axis=1)) > 0.01  # a Normalize would make a difference
    for k in KS:
        served = getattr(rules, server)(folder, pooled, k)
        wanted = found.encoder.transform(ends_in_normalize.encode(texts[:20]).astype(np.float64), k)
        np.testing.assert_allclose(served, wanted, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(served, axis=1), 1, atol=1e-5)
    for k in (0, found.encoder.n_components_ + 1):
        with pytest.raises(rules.Refused, match=f"dimensions={k}"):
            getattr(rules, server)(folder, pooled, k)


def test_sentence_transformers_and_infinity_read_the_folder(ends_in_normalize, sentences, tmp_path):
    """Their vectors point in the same direction; of unit norm they are where the cut ones are normalized."""
    texts = sentences(150)
    found = fit_sentence_transformer(ends_in_normalize, texts, serving=True)
    loaded = SentenceTransformer(str(save_for_serving(found.model, tmp_path / "model")), device="cpu")
    rows = ends_in_normalize.encode(texts[:20]).astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(loaded.encode(texts[:20]), axis=1), 1, atol=1e-6)
    assert loaded.similarity_fn_name == "cosine"
    for k in (3, 10):
        wanted = found.encoder.transform(rows, k)
        served = loaded.encode(texts[:20], truncate_dim=k, normalize_embeddings=True)
        np.testing.assert_allclose(served, wanted, atol=1e-5)
        cut = rules.infinity(loaded.encode(texts[:20]), k)
        assert np.linalg.norm(cut, axis=1).max() < 0.999
        np.testing.assert_allclose(rules.unit(cut), wanted, atol=1e-5)


@pytest.mark.parametrize("server", ["vllm", "tei"])
def test_what_sentence_transformers_saves_itself_is_served_wrong(server, ends_in_normalize, sentences, tmp_path):
    """The reason for `save_for_serving`: the rules skip Normalize, or do not know the names, and give other vectors."""
    texts = sentences(150)
    unit_vectors = ends_in_normalize.encode(texts)
    encoder = PrefixEncoder(objective="similarity").fit(unit_vectors)
    append_encoder(ends_in_normalize, encoder).save_pretrained(str(tmp_path / "model"), create_model_card=False)
    pooled = SentenceTransformer(modules=list(ends_in_normalize)[:2], device="cpu").encode(texts)
    try:
        served = getattr(rules, server)(tmp_path / "model", pooled, 3)
    except rules.Refused:
        return
    assert np.abs(served - encoder.transform(unit_vectors, 3)).max() > 1e-3


def test_a_static_model_has_its_codes_in_the_table(static_model, sentences, tmp_path):
    texts = sentences(150)
    found = fit_sentence_transformer(static_model, texts, serving=True)
    assert [type(module) for module in found.model] == [StaticEmbedding]
    folder = save_for_serving(found.model, tmp_path / "model")
    rows, d = static_model.encode(texts).astype(np.float64), found.encoder.n_components_
    loaded = SentenceTransformer(str(folder), device="cpu")
    for k in (2, d):
        served = loaded.encode(texts, truncate_dim=k, normalize_embeddings=True)
        np.testing.assert_allclose(served, found.encoder.transform(rows, k), atol=1e-5)
    config = json.loads((folder / "config.json").read_text())
    assert config["is_matryoshka"] is True
    assert config["matryoshka_dimensions"] == list(range(1, d + 1))
    assert (config["hidden_size"], config["vocab_size"]) == (d, static_model[0].num_embeddings)
    assert config["normalize"] is True
    short = append_encoder(static_model, found.encoder, 2, serving=True)
    assert short[0].embedding_dim == 2
    np.testing.assert_allclose(short.encode(texts), found.encoder.transform(rows, 2), atol=1e-5)


def test_a_static_model_keeps_its_table_where_the_encoder_wants_unit_vectors(static_model, sentences):
    texts = sentences(150)
    X = static_model.encode(texts)
    encoder = PrefixEncoder(objective="similarity").fit(X)
    model = append_encoder(static_model, encoder)
    assert [type(module) for module in model] == [StaticEmbedding, Normalize, Dense]
    np.testing.assert_allclose(
        model.encode(texts, normalize_embeddings=True), encoder.transform(X.astype(np.float64)), atol=1e-5
    )
    np.testing.assert_array_equal(static_model.encode(texts), X)


def test_prompts_are_used_in_the_fit_and_saved(ends_in_normalize, sentences, tmp_path):
    texts = sentences(120)
    prompts = {"query": "cat ", "document": "old dog "}
    found = fit_sentence_transformer(ends_in_normalize, texts, prompts=prompts, serving=True)
    folder = save_for_serving(found.model, tmp_path / "model")
    assert json.loads((folder / "config_sentence_transformers.json").read_text())["prompts"] == prompts
    plain = SentenceTransformer(modules=list(ends_in_normalize), device="cpu")
    for side, encode in (("query", "encode_query"), ("document", "encode_document")):
        loaded = getattr(SentenceTransformer(str(folder), device="cpu"), encode)(texts[:9])
        rows = plain.encode([prompts[side] + text for text in texts[:9]])
        np.testing.assert_allclose(loaded, found.encoder.transform(rows.astype(np.float64)), atol=1e-5)
    # Without serving=True the encoder has a mean, which is that of texts with the prompt of documents.
    rows = plain.encode([prompts["document"] + text for text in texts])
    without = plain.encode(texts)
    mean = fit_sentence_transformer(ends_in_normalize, texts, prompts=prompts).encoder.mean_
    assert np.linalg.norm(rows.mean(0) - mean) < 0.5 * np.linalg.norm(without.mean(0) - mean)
    assert "cat " not in str(ends_in_normalize.prompts)
    with pytest.raises(InvalidInputError, match="'prompts' parameter of append_encoder"):
        append_encoder(ends_in_normalize, found.encoder, prompts={"query": 3})


def test_models_that_servers_would_compute_otherwise_raise(ends_in_normalize, tiny_model, sentences, tmp_path):
    texts = sentences(120)
    X, plain = ends_in_normalize.encode(texts), tiny_model()
    P = plain.encode(texts)

    def refused(model, match):
        with pytest.raises(IllegalCombinationError, match=match):
            save_for_serving(model, tmp_path / "model")
        assert not (tmp_path / "model").exists()

    refused(append_encoder(ends_in_normalize, PrefixEncoder(6).fit(X)), "a Normalize before the encoder")
    pairs = PrefixEncoder(objective="similarity").fit_pairs(P[:60], P[60:])
    refused(append_encoder(plain, pairs), r"separate means .* append_encoder\(..., serving=True\)")
    mlp = PrefixEncoder(4, objective="classification", network="mlp", random_state=0).fit(P, np.arange(120) % 3)
    refused(append_encoder(plain, mlp), "a Dense layer with ReLU")
    pooled = SentenceTransformer(modules=[plain[0], Pooling(32, pooling_mode="max")], device="cpu")
    refused(append_encoder(pooled, PrefixEncoder(6).fit(pooled.encode(texts))), "servers know cls, mean, lasttoken")
    with pytest.raises(IllegalCombinationError, match="serving=True and a network"):
        append_encoder(plain, mlp, serving=True)
    folder = save_for_serving(append_encoder(plain, pairs, serving=True), tmp_path / "pairs")
    with pytest.raises(InvalidInputError, match="is there already"):
        save_for_serving(append_encoder(plain, pairs, serving=True), folder)
    with pytest.raises(InvalidInputError, match="'model' parameter of save_for_serving"):
        save_for_serving("model", tmp_path / "other")
    plain.truncate_dim = 4
    with pytest.raises(InvalidInputError, match="truncate_dim=4"):
        save_for_serving(plain, tmp_path / "other")


def test_without_means_both_sides_have_one_code_whatever_the_norms(tiny_model, sentences):
    plain, texts = tiny_model(), sentences(120)
    P = plain.encode(texts)
    pairs = PrefixEncoder(objective="similarity").fit_pairs(P[:60], P[60:])
    assert not np.allclose(pairs.encode_query(P[:5]), pairs.encode_document(P[:5]))
    one = uncentred(pairs)
    wanted = rules.unit(P[:5].astype(np.float64) @ pairs.components_.T[:, :4])
    for rows in (P[:5], P[:5] * np.array([[0.1], [1], [2], [30], [4]])):
        for encode in (one.encode_query, one.encode_document, one.transform):
            np.testing.assert_allclose(encode(rows.astype(np.float64), 4), wanted, atol=1e-6)
    assert np.abs(pairs.mean_).max() > 0  # the original is left as it is


@pytest.mark.parametrize("objective", ["similarity", "reconstruction", "fisher", "regression", "classification"])
def test_any_linear_encoder_is_evaluated_as_it_is_served(objective, ends_in_normalize, sentences):
    texts = sentences(90)
    y = None if objective in ("similarity", "reconstruction") else np.arange(90) % 3
    y = y.astype(float) if objective == "regression" else y
    encoder = PrefixEncoder(6, objective=objective, random_state=0)
    found = fit_sentence_transformer(ends_in_normalize, texts, labels=y, encoder=encoder, serving=True)
    assert found.curve.k[-1] <= 6
    assert not np.abs(found.encoder.mean_).any()
    served = found.model.encode(texts[:9], truncate_dim=2, normalize_embeddings=True)
    codes = found.encoder.transform(ends_in_normalize.encode(texts[:9]).astype(np.float64), 2)
    np.testing.assert_allclose(served, rules.unit(codes), atol=1e-5)
