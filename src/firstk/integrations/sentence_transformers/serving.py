"""Folders that embedding servers read alike: vLLM, text-embeddings-inference, Infinity and sentence-transformers.

Servers do not run the modules of sentence-transformers: they read `modules.json` and compute pooling, all Dense layers,
the truncation to ``dimensions`` and the normalization in this order. A Normalize *before* a Dense layer is skipped
without a word, and module names or settings that a server does not know make it leave out the Dense layers. So a
folder for serving holds only what all of them compute, under the names and settings that all of them know.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sentence_transformers
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from torch import nn

from firstk._base.atomic_file import atomic_folder, explained_os_errors
from firstk._base.checks import bad_parameter
from firstk.exceptions import IllegalCombinationError, InvalidInputError

_OWNER = "save_for_serving"
# The names under which every version of sentence-transformers and every server knows the modules.
_NAMES = {kind: f"sentence_transformers.models.{kind.__name__}" for kind in (Transformer, Pooling, Dense, Normalize)}
_NAMES[StaticEmbedding] = "sentence_transformers.models.StaticEmbedding"
# Poolings that text-embeddings-inference knows, and the setting that says so.
_POOLINGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
_OTHER_POOLINGS = ("max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens")
_ACTIVATIONS = (nn.Identity, nn.Tanh)


def save_for_serving(model: SentenceTransformer, folder: str | os.PathLike[str]) -> Path:
    """Write a model that ends in an encoder, so that servers return its vectors of ``dimensions=k``, of unit norm.

    Parameters
    ----------
    model : SentenceTransformer
        From `fit_sentence_transformer` or `append_encoder` with ``serving=True``: a transformer, pooling and Dense
        layers, or a static embedding with the encoder in its table. A Normalize is put at the end: vLLM brings vectors
        to unit norm, after the truncation, only where it finds one.
    folder : path-like
        A new folder, or an empty one.

    Returns
    -------
    Path

    Raises
    ------
    IllegalCombinationError
        If a server would compute other vectors: because of a Normalize before the encoder, separate means of queries
        and documents, or an activation that not all servers know.
    """
    if not isinstance(model, SentenceTransformer):
        raise bad_parameter("model", _OWNER, "a SentenceTransformer", type(model).__name__)
    if model.truncate_dim is not None:
        raise InvalidInputError(
            f"{_OWNER} takes a model that returns all its coordinates. Got truncate_dim={model.truncate_dim}; append "
            "the encoder with k instead, or set model.truncate_dim = None."
        )
    modules = _checked(list(model))
    target = Path(folder)
    with explained_os_errors(folder):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InvalidInputError(f"{_OWNER} writes a new folder, and '{folder}' is there already. Name another.")
        with atomic_folder(target) as temporary:
            _write(model, modules, temporary)
    return target


def _checked(modules: list[nn.Module]) -> list[nn.Module]:
    """Return the modules that servers compute, in their order; raise an error where they would compute something else.

    The first is the model, a second one its pooling, then come Dense layers, and one Normalize.
    """
    first = modules[0]
    start = 1
    if isinstance(first, Transformer):
        start = 2
        if len(modules) < 2 or not isinstance(modules[1], Pooling) or modules[1].pooling_mode not in _POOLINGS:
            raise _unserved("a transformer without one pooling", f"servers know {', '.join(_POOLINGS)}", "one of them")
    elif not isinstance(first, StaticEmbedding):
        raise _unserved(f"{type(first).__name__} as its first module", "servers do not know it", "a transformer")
    last = max((i for i, module in enumerate(modules) if isinstance(module, Dense)), default=start - 1)
    for module in modules[start : last + 1]:
        if isinstance(module, Normalize):
            raise _unserved(
                "a Normalize before the encoder",
                "vLLM and text-embeddings-inference skip it, and the vectors would be others",
                "fit_sentence_transformer(..., serving=True) or append_encoder(..., serving=True)",
            )
        if not isinstance(module, Dense):
            raise _unknown(module)
        if not isinstance(module.activation_function, _ACTIVATIONS) or module.use_residual:
            raise _unserved(
                f"a Dense layer with {type(module.activation_function).__name__}",
                "text-embeddings-inference knows Identity and Tanh, and no residual",
                "network='linear'",
            )
    for module in modules[last + 1 :]:
        if not isinstance(module, Normalize):
            raise _unknown(module)
    if isinstance(first, StaticEmbedding) and last >= start:
        raise _unserved(
            "a Dense layer behind a static embedding",
            "servers of static models read their table only",
            "append_encoder(..., serving=True), which puts the encoder into the table",
        )
    return [*modules[: last + 1], Normalize()]


def _unknown(module: nn.Module) -> IllegalCombinationError:
    if isinstance(module, Router):
        return _unserved(
            "separate means of queries and documents (a Router)",
            "servers have one way for all texts",
            "append_encoder(..., serving=True), which leaves the means out",
        )
    return _unserved(f"the module {type(module).__name__}", "servers do not know it", "models without it")


def _unserved(what: str, why: str, instead: str) -> IllegalCombinationError:
    return IllegalCombinationError(f"{_OWNER} with {what}", why, instead)


def _write(model: SentenceTransformer, modules: list[nn.Module], folder: Path) -> None:
    listed = []
    for i, module in enumerate(modules):
        path = "" if i == 0 else f"{i}_{type(module).__name__}"
        place = folder / path
        place.mkdir(exist_ok=True)
        if isinstance(module, StaticEmbedding):
            # Write a static embedding in the form of model2vec, which servers and sentence-transformers read as well.
            table = module.embedding.weight.detach().to("cpu").contiguous()
            save_file({"embeddings": table}, _weights(place))
            module.tokenizer.save(str(place / "tokenizer.json"))
            rows, width = table.shape
            _write_json(
                place / "config.json",
                {
                    "model_type": "model2vec",
                    "architectures": ["StaticModel"],
                    "vocab_size": rows,
                    "hidden_dim": width,
                    "hidden_size": width,
                    "seq_length": 1_000_000,
                    "normalize": True,
                    **matryoshka_settings(width),
                },
            )
        elif isinstance(module, Transformer):
            module.save(str(place))
            if module.max_seq_length is None:
                raise InvalidInputError(
                    f"{_OWNER} needs the longest text in tokens. Set model.max_seq_length, such as 512."
                )
            _write_json(
                place / "sentence_bert_config.json",
                {
                    "max_seq_length": int(module.max_seq_length),
                    "do_lower_case": bool(getattr(module, "do_lower_case", False)),
                },
            )
        elif isinstance(module, Pooling):
            _write_json(
                place / "config.json",
                {
                    "word_embedding_dimension": module.embedding_dimension,
                    **{setting: mode == module.pooling_mode for mode, setting in _POOLINGS.items()},
                    **{f"pooling_mode_{name}": False for name in _OTHER_POOLINGS},
                    "include_prompt": module.include_prompt,
                },
            )
        elif isinstance(module, Dense):
            kind = type(module.activation_function)
            _write_json(
                place / "config.json",
                {
                    "in_features": module.in_features,
                    "out_features": module.out_features,
                    "bias": module.bias,
                    "activation_function": f"{kind.__module__}.{kind.__name__}",
                },
            )
            save_file({name: part.contiguous() for name, part in module.state_dict().items()}, _weights(place))
        listed.append({"idx": i, "name": str(i), "path": path, "type": _NAMES[type(module)]})
    _write_json(folder / "modules.json", listed)
    _write_json(
        folder / "config_sentence_transformers.json",
        {
            "__version__": {
                "sentence_transformers": sentence_transformers.__version__,
                "pytorch": str(torch.__version__),
            },
            "prompts": dict(model.prompts),
            "default_prompt_name": model.default_prompt_name,
            "similarity_fn_name": "cosine",
        },
    )


def matryoshka_settings(width: int) -> dict[str, Any]:
    """Return the settings by which a config says that vectors may be truncated at any length up to `width`."""
    return {"is_matryoshka": True, "matryoshka_dimensions": list(range(1, width + 1))}


def _weights(folder: Path) -> str:
    return str(folder / "model.safetensors")


def _write_json(path: Path, values: Mapping[str, Any] | list[Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False), encoding="utf-8")
