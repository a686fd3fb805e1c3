"""The card of a saved model: its README.md, with the front matter of a Hugging Face card, and the curve as a table."""

from __future__ import annotations

import json
import re

from firstk.encoder.record import FitRecord, ModelShape
from firstk.quality.choice import EMBEDDED, Choice
from firstk.quality.curve import PrefixCurve, shown_lengths
from firstk.words.choice import answer, explanation

TAGS = ("firstk", "embeddings", "dimensionality-reduction", "matryoshka")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}", re.ASCII)
# What has a meaning in Markdown or HTML, anywhere in a line.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~])")


def model_card(shape: ModelShape, record: FitRecord) -> str:
    """Return the text of README.md for a model."""
    d, p, source = shape.d, shape.p, record.source_model
    curve, choice = record.curve_up_to(d), record.choice_up_to(d)
    vectors = f"vectors of {p} columns" + (f" made by {_escaped(source)}" if source else "")
    library = f"[firstk](https://pypi.org/project/firstk/) {record.library_version}"
    lines = ["---", "library_name: firstk", "pipeline_tag: feature-extraction", "tags:"]
    lines += [f"- {tag}" for tag in TAGS]
    if source and _REPOSITORY.fullmatch(source):
        lines.append(f"base_model: {json.dumps(source)}")
    # The prefix length of the example: the one that is chosen, where it is one.
    chosen = None if choice is None else choice.own
    parts = [
        "\n".join([*lines, "---", ""]),
        f"# A code of {d} coordinates, cut anywhere\n",
        f"An encoder for {vectors}, fitted by {library}. Its first k coordinates are a code, for every k.\n",
        _LOADING.format(k=(chosen.point.k if chosen is not None and chosen.point.is_prefix else max(1, d // 2)), p=p),
        *_in_bytes(choice),
        _facts(shape, record),
    ]
    if curve is not None:
        shown = shown_lengths(curve.k)
        rows = [f"| {k} | {score:.4f} |" for k, score in curve if k in shown]
        whose = "the best prefix" if curve.input_score is None else "the raw vectors"
        after = [] if choice is None else [_escaped(line) for line in (*answer(choice), *explanation(choice))]
        if choice is None:
            lengths = smallest_lengths(curve)
            after = [
                f"The smallest k that keeps {keep:.4g} of the score of {whose} is {k}." for keep, k in lengths.items()
            ]
        if curve.input_score is not None:
            after.append(f"The raw vectors score {curve.input_score:.4f}.")
        if curve.n_evaluated is not None:
            after.append(f"Evaluated on {curve.n_evaluated:,} rows, queries or pairs.")
        head = ["## Quality against k\n", f"| k | {_escaped(curve.metric)} |", "|---:|---:|"]
        parts.append("\n".join([*head, *rows, "", *after, ""]))
    parts.append(_CITATION.format(version=record.library_version))
    return "\n".join(parts)


def smallest_lengths(curve: PrefixCurve) -> dict[float, int]:
    """Return the smallest k for each share that is worth naming; none where a share means nothing."""
    return {keep: k for keep, k in curve.smallest_lengths().items() if k is not None}


_LOADING = """## Use

```python
from firstk import PrefixEncoder

encoder = PrefixEncoder.load(".")  # the folder that holds this file
codes = encoder.transform(vectors, k={k})  # vectors: (n, {p})
```
"""


_CITATION = """## Citation

```bibtex
@software{{firstk,
  title = {{firstk: codes you can cut anywhere}},
  author = {{{{The firstk developers}}}},
  version = {{{version}}},
  url = {{https://pypi.org/project/firstk/}}
}}
```
"""


_IN_BYTES = """Or in bytes, of which every prefix is a code:

```python
quantizer = encoder.quantizer(bytes={bytes})
codes = quantizer.encode(vectors)  # uint8, (n, {bytes})
scores = quantizer.scores(quantizer.encode_query(queries), codes)  # cosines; codes may have been cut
```
"""


def _in_bytes(choice: Choice | None) -> list[str]:
    """Return how embedded bits are made, where they are what is recommended."""
    chosen = None if choice is None else choice.own
    if chosen is None or chosen.point.precision != EMBEDDED:
        return []
    return [_IN_BYTES.format(bytes=chosen.point.bytes)]


def _facts(shape: ModelShape, record: FitRecord) -> str:
    omega = record.omega
    rows = [
        ("objective", record.title),
        ("ordering", record.ordering),
        (
            "weights of prefixes (omega)",
            omega if omega is None or isinstance(omega, str) else f"{len(omega)} weights, in config.json",
        ),
        ("solver", record.solver),
        (f"{record.unit}s seen", record.rows),
        ("data fingerprint", record.data_fingerprint),
        ("unit norm", "yes, after the cut" if shape.normalized else "no"),
        ("source model", record.source_model),
        ("firstk", record.library_version),
    ]
    lines = [f"| {name} | {_escaped(str(value))} |" for name, value in rows if value not in (None, "")]
    return "\n".join(["## What it is\n", "| | |", "|---|---|", *lines, ""])


def _escaped(text: str) -> str:
    """Return text of the user's as one line that means itself in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
