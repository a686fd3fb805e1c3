"""Damage of every kind to everything that firstk stores and reads back: an error message, or exactly what was stored.

Three kinds of result are allowed, and counted: "same" (the content is what was stored), "refused" (an error of
firstk), and for records that people may edit, JSON without a checksum, "edit" (it is read as another valid record).
Anything else is a failure: other content, an exception that is not firstk's, or a load that does not end.

The short form is part of every run. The long one damages thousands of files: ``pytest -m full tests/fuzz -s``.
"""

from __future__ import annotations

import copy
import hashlib
import json
import signal
import struct
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstk import Evaluation, FunnelIndex, PrefixCurve, PrefixEncoder
from firstk._base import arrays as array_files
from firstk.advice.records import AxisStatistics, ImageSamples, Packed, Report
from firstk.data.files.code_file import open_codes
from firstk.encoder.storage.folder import read_extra
from firstk.encoder.storage.info import model_info
from firstk.estimator.transform_files import transform_files
from firstk.exceptions import FirstkError
from firstk.integrations import parts
from firstk.moments.checkpoint import Checkpoint
from firstk.moments.stream import Accumulated
from firstk.quality.choice import Point
from firstk.search import CodeIndex
from firstk.search import index_file as _file
from firstk.upgrade import PrefixAlignment

try:
    import torch

    from firstk.solvers.gradient import checkpoint as _checkpoint
except ImportError:
    torch = None

SECONDS = 20  # after which a load counts as one that does not end; each takes milliseconds
RNG = np.random.default_rng(1)
X = RNG.standard_normal((30, 3)) * [3, 2, 1]
Y = np.array(["a", "b", "c"])[np.arange(30) % 3]
CURVE = PrefixCurve([1, 2, 4], [0.5, 0.75, 0.8], "accuracy", 0.9, "ours", n_evaluated=30, details={"metric": "cosine"},
                    low=[0.4, 0.7, 0.7], high=[0.6, 0.8, 0.9], confidence=0.95)  # fmt: skip
EVALUATION = Evaluation(
    (Point(1, "int8", 1, 0.2), Point(2, "float32", 8, 0.5), Point(2, "float32", 8, 0.3, code="PCA")), "accuracy"
)
STUDY = Report(
    facts={"file": "a.npz", "rows": 30},
    rows=30,
    columns=6,
    itemsize=4,
    held_out="Evaluated on 6 rows.",
    evaluations=(EVALUATION,),
    choice=EVALUATION.choose(keep=0.9, relative_to="best"),
    axes=AxisStatistics((3.0, 2.0), (1.0, 0.5), (1.5, 0.4), (0.4, 0.2), "accuracy", 0.1, 1.0, 2),
    images=ImageSamples(
        (2, 3), ("a", "b"), *(Packed.of(RNG.random(s)) for s in ((2, 6), (2, 4), (4, 6), (1, 6))), 0, 1
    ),
    notes=("a note",),
)
JOB = {"job": "fit"}
CODES = ["npz", "arrow", "safetensors", "parquet"] if find_spec("pyarrow") else ["npz", "safetensors"]


@dataclass(frozen=True)
class Kind:
    """A format: how it is written, read back into something to compare, and whether people may edit it."""

    write: Callable[[Path], list[Path]]
    read: Callable[[Path], Any]
    editable: bool = False
    forge: Callable[[Path, Any, np.random.Generator], None] | None = None


# -- the formats -------------------------------------------------------------------------------------------------------


def contents(arrays):
    return {name: (part.dtype.str, part.shape, part.tolist()) for name, part in sorted(arrays.items())}


def write_model(home):
    enc = PrefixEncoder(2, objective="fisher").fit(X, Y)
    model = enc.save(home / "model", curve=PrefixCurve([1, 2], [0.5, 0.75], "accuracy"), source_model="some/model",
                     extra={"study.json": STUDY.to_json()}, moments=True)  # fmt: skip
    return [model / name for name in ("config.json", "model.safetensors", "study.json", "moments.safetensors")]


def read_model(home):
    enc = PrefixEncoder.load(home / "model")
    found = [enc.transform(X), enc.encode_query(X, 1), enc.spectrum_, enc.encoder_.read_out(X, 1)]
    told = [line for line in str(model_info(home / "model")).splitlines() if "size on disk" not in line]
    facts = (enc.predict(X).tolist(), enc.encoder_.record, told)
    return (
        [part.tobytes() for part in found],
        repr(enc.get_params()),
        facts,
        contents(enc._statistics.to_arrays()),
        Report.from_json(read_extra(home / "model", "study.json")),
    )


def write_codes(home):
    """A model with codebooks and a mean of queries, and files of its codes, which hold the codebooks too."""
    rows = np.random.default_rng(2).standard_normal((4096, 4)) + [4, 2, 0, 0] * np.sign(RNG.standard_normal((4096, 1)))
    enc = PrefixEncoder(4).fit(rows).with_queries(rows[:300] + 1)
    np.save(home / "rows.npy", rows[:30].astype(np.float32))
    files = [home / f"codes.{ending}" for ending in CODES]
    for file in files:
        transform_files(enc, home / "rows.npy", file, bytes_per_vector=4)
    return [enc.save(home / "coded") / "model.safetensors", *files]


def read_codes(home):
    enc = PrefixEncoder.load(home / "coded")
    quantizer = enc.quantizer(None)
    assert quantizer.embedded.codebooks.levels
    told = [open_codes(home / f"codes.{ending}").table.read(()).vectors.tobytes() for ending in CODES]
    return quantizer.encode(np.load(home / "rows.npy")).tobytes(), enc.encode_query(np.ones((1, 4))).tobytes(), told


def write_index(home):
    return [FunnelIndex.fit(X, encoder=PrefixEncoder(3).fit(X), n_neighbors=4, metric="cosine").save(home / "index")]


def read_index(home):
    index = FunnelIndex.load(home / "index")
    found = index.search(X[:5])
    return found.ids.tolist(), found.scores.tobytes(), repr(index), index.schedule, index.add(X[:1]).tolist()


def write_bytes(home):
    return [CodeIndex.fit(X, encoder=PrefixEncoder(3).fit(X), bytes=None).save(home / "bytes")]


def read_bytes(home):
    index = CodeIndex.load(home / "bytes")
    found = index.search(X[:5], 4)
    return found.ids.tolist(), found.scores.tobytes(), repr(index), index.add(X[:1]).tolist()


def write_alignment(home):
    folder = PrefixAlignment(method="procrustes").fit(X, X[:, ::-1]).save(home / "alignment")
    return [file for file in sorted(folder.iterdir()) if file.suffix != ".md"]


def read_alignment(home):
    alignment = PrefixAlignment.load(home / "alignment")
    return alignment.old_to_new(X[:4]).tobytes(), alignment.encode_new(X[:4]).tobytes()


def write_part(home):
    (home / "part").write_bytes(
        parts.measure(PrefixEncoder(2, objective="fisher"), [(X[:20], Y[:20]), (X[20:], Y[20:])])
    )
    return [home / "part"]


def read_part(home):
    payload = (home / "part").read_bytes()
    enc = parts.finish(PrefixEncoder(2, objective="fisher"), [payload])
    arrays, facts = array_files.from_bytes(payload)
    return enc.components_.tobytes(), enc.spectrum_.tobytes(), contents(arrays), facts


def write_stream(home):
    statistics = PrefixEncoder(objective="similarity").fit(X)._statistics
    state = Accumulated(statistics, {"X": X[:4], "y": Y[:4]}, {"X": X[:2]}, end=3, read=40, rows=30)
    Checkpoint(home / "stream").write(state.to_arrays(), state.counts, JOB)
    return [home / "stream"]


def read_stream(home):
    found = Checkpoint(home / "stream", resume=True).read(JOB)
    state = Accumulated.restored(*found)
    return contents(state.to_arrays()), state.counts


def write_training(home):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    state = {"at": {"epoch": 3, "best": float("inf")}, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
             "generator": torch.Generator().get_state()[:200], "half": torch.ones(3, dtype=torch.bfloat16)}  # fmt: skip
    _checkpoint.write(home, state, "mine")
    return [home / _checkpoint.FILE]


def read_training(home):
    arrays: dict[str, np.ndarray] = {}
    tree = _checkpoint.flattened(_checkpoint.read(home, "mine"), "state", arrays)
    return contents(arrays), repr(tree)


def record(name, value):
    """Return the format of a record that is written as JSON, without a checksum."""

    def write(home):
        (home / name).write_text(value.to_json(), encoding="utf-8")
        return [home / name]

    def read(home):
        found = type(value).from_json((home / name).read_bytes())
        assert type(value).from_json(found.to_json()) == found, "a record that is read can be written"
        assert str(found)
        return found

    return Kind(write, read, editable=True)


def forge_arrays(file, change, rng):
    """Change the facts, the header or the numbers of a sealed file, and seal it again."""
    payload, what = file.read_bytes(), rng.integers(3)
    if what == 0:
        arrays, facts = array_files.from_bytes(payload)
        file.write_bytes(array_files.to_bytes(arrays, change(facts)))
        return
    header, body = unpacked(payload)
    fixed = header.pop("__metadata__")
    change, body = (change, body) if what == 1 else (dict, flips(body, rng))
    resealed = bytearray(packed({"__metadata__": fixed | {"sha256": "0" * 64}} | change(header), body, (",", ":")))
    at = bytes(resealed).index(b"0" * 64)
    resealed[at : at + 64] = hashlib.sha256(resealed).hexdigest().encode()
    file.write_bytes(resealed)


def forge_index(file, change, rng):
    facts, arrays = _file.read_index(file)
    if rng.random() < 0.6:
        _file.write_index(file, change(facts), arrays)
        return
    name = sorted(arrays)[rng.integers(len(arrays))]
    spoilt = np.frombuffer(flips(arrays[name].tobytes(), rng), arrays[name].dtype).reshape(arrays[name].shape)
    _file.write_index(file, facts, arrays | {name: spoilt[: rng.integers(2) or None]})


KINDS = {
    "model": Kind(write_model, read_model),
    "codes": Kind(write_codes, read_codes),
    "index": Kind(write_index, read_index, forge=forge_index),
    "bytes index": Kind(write_bytes, read_bytes),
    "alignment": Kind(write_alignment, read_alignment),
    "moments part": Kind(write_part, read_part, forge=forge_arrays),
    "stream checkpoint": Kind(write_stream, read_stream, forge=forge_arrays),
    "curve": record("curve.json", CURVE),
    "study": record("study.json", STUDY),
    "evaluation": record("table.json", EVALUATION),
}
if torch is not None:
    KINDS["training checkpoint"] = Kind(write_training, read_training, forge=forge_arrays)


# -- damage ------------------------------------------------------------------------------------------------------------


def unpacked(payload):
    (size,) = struct.unpack("<Q", payload[:8])
    return json.loads(payload[8 : 8 + size]), payload[8 + size :]


def packed(header, body, separators=None):
    text = json.dumps(header, separators=separators).encode()
    return struct.pack("<Q", len(text)) + text + body


def places(value, path=()):
    """Return every place in a JSON value but the whole."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *places(item, (*path, key)))]


OTHERS = [
    None,
    True,
    -1,
    0,
    1,
    2.5,
    1e308,
    10**30,
    "",
    "F64",
    "F16",
    "BF16",
    "I64",
    "ä",
    [],
    [1],
    {},
    {"a": 1},
    "0",
    [[]],
]


def edited(value, rng):
    """Return a JSON value with one place taken out, exchanged for something strange, or put elsewhere."""
    value = copy.deepcopy(value)
    found = places(value)
    *inner, last = found[rng.integers(len(found))]
    at = value
    for key in inner:
        at = at[key]
    what = rng.integers(4)
    if what == 0:
        del at[last]
    elif what == 1 and isinstance(at[last], (int, float)) and not isinstance(at[last], bool):
        at[last] += int(rng.integers(-9, 9))
    elif what == 2:
        *_, other = found[rng.integers(len(found))]
        if isinstance(at, dict):
            at[str(other)] = at.pop(last)
        else:
            at.append(at[last])
    else:
        at[last] = OTHERS[rng.integers(len(OTHERS))]
    return value


def _at(whole, rng, most=64):
    start = int(rng.integers(len(whole)))
    return start, min(len(whole), start + int(rng.integers(1, most)))


def flip(whole, rng):
    spoilt = bytearray(whole)
    spoilt[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
    return bytes(spoilt)


def flips(whole, rng):
    for _ in range(int(rng.integers(2, 20))):
        whole = flip(whole, rng)
    return whole


def truncated(whole, rng):
    return whole[: rng.integers(len(whole))]


def zeroed(whole, rng):
    a, b = _at(whole, rng)
    return whole[:a] + bytes(b - a) + whole[b:]


def exchanged(whole, rng):
    (a, b), (c, d) = sorted([_at(whole, rng), _at(whole, rng)])
    return whole[:a] + whole[c:d] + whole[b:c] + whole[a:b] + whole[d:] if b <= c else whole[:a] + whole[b:]


def inserted(whole, rng):
    a, b = _at(whole, rng)
    more = whole[a:b] if rng.random() < 0.3 else rng.bytes(int(rng.integers(1, 9))) if rng.random() < 0.7 else b"0"
    return whole[:a] + more + whole[a:]


def resized(whole, rng):
    """Let the length of a header say something else."""
    (size,) = struct.unpack("<Q", whole[:8])
    sizes = [0, 1, size - 1, size + 1, size + 8, len(whole), 2**31, 2**63, 2**64 - 1, int(rng.integers(2 * size))]
    return struct.pack("<Q", sizes[rng.integers(len(sizes))] % 2**64) + whole[8:]


def headed(whole, rng):
    """Edit the JSON header, with its length made right."""
    header, body = unpacked(whole)
    return packed(edited(header, rng), body, (",", ":") if rng.random() < 0.5 else None)


def digits(whole, rng):
    """Exchange one digit of the text for another."""
    spots = [i for i, byte in enumerate(whole) if chr(byte).isdigit()]
    at = spots[rng.integers(len(spots))]
    return whole[:at] + str(rng.integers(10)).encode() + whole[at + 1 :]


def rewritten(whole, rng):
    """Edit JSON text."""
    return json.dumps(edited(json.loads(whole), rng)).encode()


ANY = (flip, flips, truncated, zeroed, exchanged, inserted)


def damages_of(file, whole):
    if whole[:1] == b"{":
        return (*ANY, rewritten, digits)
    return ANY if file.suffix in (".npz", ".arrow", ".parquet") else (*ANY, resized, headed)


# -- what comes of it --------------------------------------------------------------------------------------------------


class Endless(BaseException):
    """A load took too long."""


@contextmanager
def limited(seconds):
    def stop(*_):
        raise Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def verdict(kind, home, truth, *, forged=False):
    """Read a damaged file and say what came of it; what must not come of it begins with a capital."""
    try:
        with limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = kind.read(home)
    except FirstkError as error:
        return "refused" if len(str(error)) > 20 else f"Mute: {error!r}"
    except Endless:
        return "Endless"
    except Exception as error:
        return f"Raw: {error!r}"
    if found == truth:
        return "same"
    return "edit" if kind.editable else "forged" if forged else "Wrong"


def campaign(name, home, count, seed):
    """Damage the files of a format `count` times; return how often what came of it, and the failures."""
    kind, rng = KINDS[name], np.random.default_rng([seed, sum(name.encode())])
    files = [(file, file.read_bytes()) for file in kind.write(home)]
    truth, tally, failures = kind.read(home), Counter(), []
    for i in range(count):
        file, whole = files[i % len(files)]
        choices = damages_of(file, whole)
        damage, again = choices[i // len(files) % len(choices)], kind.forge is not None and i % 4 == 3
        try:
            if again:
                damage = kind.forge
                try:
                    kind.forge(file, lambda value: edited(value, rng), rng)
                except FirstkError:
                    tally["cannot be written"] += 1
                    continue
            else:
                file.write_bytes(damage(whole, rng))
            if file.read_bytes() == whole:
                continue
            result = verdict(kind, home, truth, forged=again)
        finally:
            spoilt = file.read_bytes()
            file.write_bytes(whole)
        tally[result.partition(":")[0]] += 1
        if result[0].isupper():
            failures.append(f"{name}, {file.name}, {damage.__name__}, number {i}: {result} ({spoilt[:300]!r})")
    assert kind.read(home) == truth
    return tally, failures


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files_raise_an_error_or_equal(name, tmp_path):
    tally, failures = campaign(name, tmp_path, 24, seed=0)
    assert failures == []
    assert sum(tally.values()) >= 16
    assert tally["refused"] >= 4


@pytest.mark.full
def test_thousands_of_damaged_files_raise_an_error_or_equal(tmp_path):
    total, failures, lines = Counter(), [], []
    for name in KINDS:
        (tmp_path / name).mkdir()
        tally, wrong = campaign(name, tmp_path / name, 600, seed=1)
        total, failures = total + tally, failures + wrong
        lines.append(f"{name}: {dict(sorted(tally.items()))}")
    print("\n".join(["", *lines, f"all: {sum(total.values())} files, {dict(sorted(total.items()))}"]))  # noqa: T201
    assert failures == []
    assert sum(total.values()) >= 2000
