"""What embedding servers compute from a folder of sentence-transformers, restated from their sources.

- vLLM 0.33.0: `transformers_utils/config.py` (get_pooling_config, try_get_dense_modules), `config/model.py`
  (is_matryoshka, embedding_size), `pooling_params.py` (which dimensions are accepted),
  `model_executor/models/adapters.py` (the Dense layers) and `layers/pooler/seqwise/heads.py` (Dense, cut, normalize).
- text-embeddings-inference: `backends/src/lib.rs` (ModuleType: an unknown name means no Dense layers at all),
  `backends/candle/src/models/dense.rs`, `router/src/lib.rs` (PoolConfig, STConfig) and `core/src/infer.rs` (cut, then
  normalize).
- Infinity 0.0.78: `transformer/embedder/sentence_transformer.py` (the modules, then normalize) and
  `inference/batch_handler.py` (cut afterwards, so that norms are below 1).

They need pooled vectors, which the tests take from sentence-transformers.
"""

from __future__ import annotations

import json

import numpy as np
from safetensors.numpy import load_file

_LONG_KNOWN = {
    f"sentence_transformers.models.{name}": name for name in ("Transformer", "Pooling", "Dense", "Normalize")
}
_NEW = {
    "sentence_transformers.base.modules.transformer.Transformer": "Transformer",
    "sentence_transformers.sentence_transformer.modules.pooling.Pooling": "Pooling",
    "sentence_transformers.base.modules.normalize.Normalize": "Normalize",
}
KNOWN = {
    "vllm": _LONG_KNOWN | _NEW | {"sentence_transformers.base.modules.dense.Dense": "Dense"},
    # The new name of Dense is not among those that it reads.
    "tei": _LONG_KNOWN | _NEW,
}


class Refused(Exception):
    """The server does not start, or answers a request with an error."""


def read(folder, name):
    return json.loads((folder / name).read_text())


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def dense(folder, names, pooled):
    """Apply all layers of the type Dense, whatever is between them."""
    for module in read(folder, "modules.json"):
        if names.get(module["type"]) == "Dense":
            settings = read(folder, f"{module['path']}/config.json")
            weights = load_file(folder / module["path"] / "model.safetensors")
            pooled = pooled @ weights["linear.weight"].T + weights["linear.bias"]
            kind = settings["activation_function"]
            if kind == "torch.nn.modules.activation.Tanh":
                pooled = np.tanh(pooled)
            elif kind != "torch.nn.modules.linear.Identity":
                raise Refused(kind)
    return pooled


def vllm(folder, pooled, dimensions):
    """Answer a request with dimensions=... as vLLM does."""
    types = [module["type"] for module in read(folder, "modules.json")]
    config = read(folder, "config.json")
    widths = [
        read(folder, f"{module['path']}/config.json")["out_features"]
        for module in read(folder, "modules.json")
        if KNOWN["vllm"].get(module["type"]) == "Dense"
    ]
    listed = config.get("matryoshka_dimensions")
    if not (listed or config.get("is_matryoshka")):
        raise Refused("does not support Matryoshka")
    if not 1 <= dimensions <= (widths or [config["hidden_size"]])[-1] or (listed and dimensions not in listed):
        raise Refused(f"dimensions={dimensions}")
    Z = dense(folder, KNOWN["vllm"], pooled)[:, :dimensions]
    return unit(Z) if "Normalize" in map(KNOWN["vllm"].get, types) else Z


def tei(folder, pooled, dimensions, *, normalize=True):
    """Answer a request with dimensions=... as text-embeddings-inference does; it normalizes unless told not to."""
    settings = read(folder, "1_Pooling/config.json")
    missing = {"pooling_mode_cls_token", "pooling_mode_mean_tokens"} - set(settings)
    if missing or "max_seq_length" not in read(folder, "sentence_bert_config.json"):
        raise Refused(f"settings of pooling or length: {missing}")
    types = [module["type"] for module in read(folder, "modules.json")]
    Z = dense(folder, KNOWN["tei"], pooled) if all(kind in KNOWN["tei"] for kind in types) else pooled
    if not 1 <= dimensions <= Z.shape[1]:
        raise Refused(f"dimensions={dimensions}")
    return unit(Z[:, :dimensions]) if normalize else Z[:, :dimensions]


def infinity(whole, dimensions):
    """Answer a request with dimensions=... as Infinity does, from the vectors of sentence-transformers."""
    if not 1 <= dimensions <= whole.shape[1]:
        raise Refused(f"dimensions={dimensions}")
    return unit(whole)[:, :dimensions]
