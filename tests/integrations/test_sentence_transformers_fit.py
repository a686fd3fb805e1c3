"""fit_sentence_transformer: encode, fit, append, judge."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")

import firstk
from firstk import PrefixEncoder
from firstk.exceptions import IllegalCombinationError, InvalidInputError


def turned(texts):
    return [" ".join(reversed(text.split())) for text in texts]


def test_texts_alone(tiny_model, sentences):
    model, texts = tiny_model(), sentences(150)
    found = firstk.fit_sentence_transformer(model, texts)
    assert found.curve.metric == "recall@10"
    assert found.curve.n_evaluated == 30
    assert found.k is None
    codes = found.model.encode(texts, truncate_dim=5, normalize_embeddings=True)
    np.testing.assert_allclose(codes, found.encoder.transform(model.encode(texts), 5), atol=1e-5)


def test_the_encoder_has_not_seen_what_judges_it(tiny_model, sentences):
    model, texts = tiny_model(), sentences(100)
    found = firstk.fit_sentence_transformer(model, texts, encoder=PrefixEncoder(), random_state=3)
    groups = np.unique(np.asarray(texts, dtype=object))
    out = set(groups[np.random.RandomState(3).permutation(100)[:20]])
    seen = [text for text in texts if text not in out]
    again = PrefixEncoder().fit(model.encode(seen))
    np.testing.assert_allclose(found.encoder.components_, again.components_, atol=1e-4)
    wanted = again.curve(model.encode([t for t in texts if t in out]), reference=model.encode(seen))
    np.testing.assert_allclose(found.curve.score, wanted.score, atol=1e-5)


def test_pairs_with_scores_and_a_cut(tiny_model, sentences):
    model, texts = tiny_model(), sentences(120)
    scores = np.linspace(0, 1, 120)
    found = firstk.fit_sentence_transformer(
        model, texts, turned(texts), scores=scores, k=4, encoder=PrefixEncoder(objective="similarity")
    )
    assert found.curve.metric == "spearman"
    assert found.k == 4
    codes = found.model.encode(texts)
    assert codes.shape == (120, 4)
    np.testing.assert_allclose(np.linalg.norm(codes, axis=1), 1, atol=1e-6)


def test_positives_are_held_out_by_partner(tiny_model, sentences):
    model, texts = tiny_model(), sentences(120)
    partners = [turned(texts)[i // 2] for i in range(120)]
    found = firstk.fit_sentence_transformer(model, texts, partners)
    assert found.curve.metric == "positive_recall@10"
    assert found.curve.n_evaluated == 24  # 12 of 60 partners, two texts each


@pytest.mark.parametrize(
    ("label_of", "metric"), [(lambda text: "cat" in text, "1nn_accuracy"), (lambda text: len(text) / 10, "r2")]
)
def test_labels_choose_the_objective(tiny_model, sentences, label_of, metric):
    texts = sentences(300)
    found = firstk.fit_sentence_transformer(tiny_model(), texts, labels=list(map(label_of, texts)), keep=0.9)
    assert found.curve.metric == metric
    assert found.k == found.curve.smallest(keep=0.9)
    assert found.model.get_embedding_dimension() == found.k


def test_errors(tiny_model, sentences):
    model, texts = tiny_model(), sentences(20)
    fit = firstk.fit_sentence_transformer
    with pytest.raises(InvalidInputError, match="'model' parameter"):
        fit("all-MiniLM-L6-v2", texts)
    with pytest.raises(
        InvalidInputError, match="'texts' parameter of fit_sentence_transformer must be a sequence of str"
    ):
        fit(model, "one text")
    with pytest.raises(InvalidInputError, match=r"at least four texts, for fitting and evaluation. Got 2"):
        fit(model, texts[:2])
    with pytest.raises(InvalidInputError, match="pass 'partners' too"):
        fit(model, texts, scores=np.ones(20))
    with pytest.raises(InvalidInputError, match="Got 20 and 19"):
        fit(model, texts, texts[1:])
    with pytest.raises(InvalidInputError, match="'held_out' parameter"):
        fit(model, texts, held_out=1)
    with pytest.raises(InvalidInputError, match="they are all the same"):
        fit(model, texts[:1] * 8)
    with pytest.raises(IllegalCombinationError, match="both determine the length"):
        fit(model, texts, k=3, keep=0.9)
    with pytest.raises(IllegalCombinationError, match="with partners and labels"):
        fit(model, texts, texts, labels=texts)
