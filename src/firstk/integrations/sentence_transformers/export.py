"""Export of fitted encoders to the end of a sentence-transformers model, in stock modules, so that it loads anywhere.

B (x - mean) is a Dense layer with bias -B mean; behind a static embedding, whose vectors are means of rows of a table,
it is a map of the table itself. If truncated at k, it is followed by Normalize. At full width it is not: `truncate_dim`
truncates the output of the last module, and vectors truncated after Normalize lose their unit norm.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Module, Normalize, Router
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import nn

from firstk._base.checks import bad_parameter, check_choice, check_prefix
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.encoder.network import TrainedMLP
from firstk.estimator.prefix_encoder import PrefixEncoder
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.integrations._codes import EncoderLike
from firstk.integrations.sentence_transformers.serving import matryoshka_settings

_OWNER = "append_encoder"
AnyModule = TypeVar("AnyModule", bound=nn.Module)
SIDES = ("both", "query", "document")
# What an encoder without decoder and head is scored by, instead of metrics that need them.
_METRICS = {"explained_variance": "recall@10", "mixture": "recall@10", "head_accuracy": "1nn_accuracy"}


def append_encoder(
    model: SentenceTransformer,
    encoder: EncoderLike,
    k: int | None = None,
    *,
    side: str = "both",
    normalize: bool = True,
    normalized_input: bool = False,
    prompts: Mapping[str, str] | None = None,
    serving: bool = False,
) -> SentenceTransformer:
    """Return a model that ends in the encoder; it shares the modules of `model`, which is not modified.

    A saved model loads with sentence-transformers only, without firstk and without trust_remote_code.

    Parameters
    ----------
    model : SentenceTransformer
        The model whose vectors the encoder was fitted on. A Normalize module at its end is kept before the encoder.
    encoder : PrefixEncoder or FittedEncoder
        Linear, or an MLP.
    k : int, optional
        Truncate at k: the model returns unit vectors of k coordinates. None: all d coordinates, not normalized, for
        ``encode(texts, truncate_dim=k, normalize_embeddings=True)`` at any k.
    side : "both", "query" or "document"
        Encoders of pairs subtract a separate mean for each side. "both": a Router selects the mean for
        ``encode_query`` and ``encode_document``; plain ``encode`` uses that of documents. If both means are equal,
        there is no Router.
    normalize : bool
        With `k`: normalize the output. False keeps the norms, for codes used in decoding or prediction.
    normalized_input : bool
        Normalize before the encoder, if it was fitted on unit vectors and the model does not return them.
    prompts : mapping from str to str, optional
        Text that is put before queries and documents: ``{"query": ..., "document": ...}``. Default: those of `model`.
    serving : bool
        Leave out the means, and a Normalize at the end of `model`. The code B x of a vector has the same direction as
        that of ``x / |x|``, so that servers, which skip a Normalize before a Dense layer and know one way for texts,
        compute it (`save_for_serving`). Codes are then those of `uncentred`.

    Returns
    -------
    SentenceTransformer
        The config of its transformer sets ``is_matryoshka`` and lists every length in ``matryoshka_dimensions``. A
        static embedding at the end of `model` is replaced by one of codes; a text without known tokens then has the
        code 0.
    """
    if not isinstance(model, SentenceTransformer):
        raise bad_parameter("model", _OWNER, "a SentenceTransformer", type(model).__name__)
    fitted = check_fitted(encoder, _OWNER)
    if serving:
        fitted, modules = _without_means(fitted), list(model)
        while len(modules) > 1 and isinstance(modules[-1], Normalize):
            modules.pop()
        model = SentenceTransformer(
            modules=modules,
            device=str(model.device),
            prompts=dict(model.prompts),  # type: ignore[arg-type]
            default_prompt_name=model.default_prompt_name,
        )
    width = check_prefix(k, fitted.d, _OWNER)
    if model.truncate_dim is not None:
        raise InvalidInputError(
            f"{_OWNER} needs a model that returns all its coordinates. Got truncate_dim={model.truncate_dim}; "
            "set model.truncate_dim = None and fit the encoder on the full vectors."
        )
    raw = model.get_embedding_dimension()
    if raw is not None and raw != fitted.p:
        raise InvalidInputError(f"{_OWNER} needs an encoder of the model's {raw} coordinates. Got one of {fitted.p}.")
    # From a vector to its code, routed by side if the sides differ.
    cut, dtype = fitted[:width], model.dtype or torch.float32
    check_choice(side, SIDES, "side", _OWNER)
    if side == "both" and not np.array_equal(cut.mean, cut.query_mean):
        query, document = (_layers(cut, mean, dtype) for mean in (cut.query_mean, cut.mean))
        code: list[Module] = [Router.for_query_document(query_modules=query, document_modules=document)]
    else:
        code = _layers(cut, cut.query_mean if side == "query" else cut.mean, dtype)
    before = [Normalize()] if normalized_input else []
    after = [Normalize()] if k is not None and normalize else []
    modules = [_matryoshka(module, width) if i == 0 else module for i, module in enumerate(model)]
    last = modules[-1]
    if isinstance(last, StaticEmbedding) and not before and len(code) == 1 and isinstance(code[0], Dense):
        # A static embedding whose vectors are codes: the code of a mean of rows is the mean of their codes.
        with torch.no_grad():
            table = code[0].linear(last.embedding.weight.to(code[0].linear.weight)).to(last.embedding.weight)
        modules, code = modules[:-1], [StaticEmbedding(copy.deepcopy(last.tokenizer), embedding_weights=table)]
    return SentenceTransformer(
        modules=[*modules, *before, *code, *after],
        device=str(model.device),
        prompts={**model.prompts, **check_prompts(prompts, _OWNER)},  # type: ignore[dict-item]
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name="cosine",
    )


def check_prompts(prompts: Mapping[str, str] | None, owner: str) -> dict[str, str]:
    """Return prompts by name; raise an error unless all are text."""
    found = {} if prompts is None else prompts
    if not isinstance(found, Mapping) or not all(isinstance(part, str) for item in found.items() for part in item):
        raise bad_parameter("prompts", owner, "a mapping from names, such as 'query', to text", prompts)
    return dict(found)


def uncentred(encoder: PrefixEncoder) -> PrefixEncoder:
    """Return a fitted encoder without its means: B x instead of B (x - mean), the same map for queries and documents.

    Its cosines do not depend on the norms of vectors.
    """
    return encoder.with_encoder(_without_means(check_fitted(encoder, "uncentred")))


def _without_means(fitted: FittedEncoder) -> FittedEncoder:
    """Return an encoder of zero means, without decoder and head, which read centred codes; its metric needs neither."""
    if fitted.network is not None:
        raise IllegalCombinationError(
            f"{_OWNER} with serving=True and a network",
            "its codes depend on the norms of vectors, which servers do not normalize before it",
            "network='linear'",
        )
    record = replace(fitted.record, metric=_METRICS.get(fitted.record.metric, fitted.record.metric))
    zero, gone = np.zeros(fitted.p), dict.fromkeys(("decoder", "origin", "head", "cells", "profile", "sample"))
    return replace(fitted, mean=zero, query_mean=zero, record=record, **gone)  # type: ignore[arg-type]


def _layers(fitted: FittedEncoder, mean: np.ndarray, dtype: torch.dtype) -> list[Module]:
    """Return Dense layers for z = B network(x - mean); the mean is part of the first bias."""
    if fitted.network is None:
        return [_dense(fitted.components, -fitted.components @ mean, None, dtype)]
    if not isinstance(fitted.network, TrainedMLP):
        raise IllegalCombinationError(
            f"{_OWNER} with a network of your own",
            "stock modules can represent linear encoders and multilayer perceptrons only",
            "network='linear' or network='mlp'",
        )
    weights, biases = fitted.network.weights, list(fitted.network.biases)
    biases[0] = biases[0] - weights[0] @ mean
    activations = [nn.ReLU()] * (len(weights) - 1) + [None]
    layers = [_dense(W, b, f, dtype) for W, b, f in zip(weights, biases, activations, strict=True)]
    unit = [Normalize()] if fitted.network.normalize else []
    return [*layers, *unit, _dense(fitted.components, np.zeros(fitted.d), None, dtype)]


def _dense(weight: np.ndarray, bias: np.ndarray, activation: nn.Module | None, dtype: torch.dtype) -> Dense:
    return Dense(
        in_features=weight.shape[1],
        out_features=weight.shape[0],
        bias=True,
        activation_function=activation,
        init_weight=torch.tensor(weight, dtype=dtype),
        init_bias=torch.tensor(bias, dtype=dtype),
    )


def _matryoshka(module: nn.Module, width: int) -> nn.Module:
    """Return a copy of a transformer module whose config marks its vectors as truncatable; weights are shared."""
    inner = getattr(module, "auto_model", None)
    if not isinstance(inner, nn.Module) or not hasattr(inner, "config"):
        return module
    name = next(name for name, child in module.named_children() if child is inner)
    shown, own = _shallow(module), _shallow(inner)
    config: Any = copy.deepcopy(inner.config)
    for name_of, value in matryoshka_settings(width).items():
        setattr(config, name_of, value)
    own.config = config
    shown._modules[name] = own
    return shown


def _shallow(module: AnyModule) -> AnyModule:
    """Return a copy of a module that shares parameters and children with the original."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin
