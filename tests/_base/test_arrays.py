"""Moments, checkpoints and indices as bytes: any change is noticed, and the same content has the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save

from firstk import FunnelIndex, PrefixEncoder
from firstk._base import arrays as array_files
from firstk._base import tensors
from firstk.contracts import Pencil
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.integrations import parts
from firstk.moments.checkpoint import Checkpoint
from firstk.moments.statistics import Statistics
from firstk.moments.stream import Accumulated
from firstk.search import index_file as _file
from firstk.solvers.closed_form import solve_pencil

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [4.0, 3.0, 2.0, 1.0]
Y = np.array(["a", "bc"])[np.arange(60) % 2]
PAYLOAD = array_files.to_bytes({"x": X[:2], "names": Y[:3], "none": np.zeros((0, 3)), "one": np.array(7)}, {"rows": 2})


# -- the checksum ------------------------------------------------------------------------------------------------------


def test_any_flipped_bit_is_noticed():
    for at in range(len(PAYLOAD)):
        for bit in range(8):
            spoilt = bytearray(PAYLOAD)
            spoilt[at] ^= 1 << bit
            with pytest.raises(CorruptModelError, match="These bytes cannot be read"):
                array_files.from_bytes(bytes(spoilt))


def test_any_length_is_noticed():
    for size in range(len(PAYLOAD)):
        with pytest.raises(CorruptModelError, match="cannot be read"):
            array_files.from_bytes(PAYLOAD[:size])
    with pytest.raises(CorruptModelError, match="does not match its checksum"):
        array_files.from_bytes(PAYLOAD + b"\0")


def test_what_is_stored_comes_back():
    arrays, facts = array_files.from_bytes(PAYLOAD)
    assert facts == {"rows": 2}
    assert {name: (part.dtype.str, part.shape) for name, part in arrays.items()} == {
        "x": ("<f8", (2, 4)), "names": ("<U2", (3,)), "none": ("<f8", (0, 3)), "one": ("<i8", ()),
    }  # fmt: skip
    np.testing.assert_array_equal(arrays["x"], X[:2])
    assert arrays["names"].tolist() == Y[:3].tolist()
    assert load(PAYLOAD)["x"].tobytes() == X[:2].tobytes(), "it is a file of safetensors, for anybody to read"


def test_the_checksum_is_the_sha256_of_everything_else():
    """Anybody can check it: in the file as it stands, with zeros in the place of the checksum."""
    said = safetensors_metadata(PAYLOAD)["sha256"]
    assert len(said) == 64
    assert hashlib.sha256(PAYLOAD.replace(said.encode(), b"0" * 64)).hexdigest() == said


def test_every_array_is_aligned_to_its_type():
    size = int.from_bytes(PAYLOAD[:8], "little")
    assert size % 8 == 0
    narrow_first = array_files.to_bytes({"a": np.zeros(3, np.int8), "b": np.zeros(1, np.float32), "c": np.zeros(2)})
    for name, part in load(narrow_first).items():
        size = int.from_bytes(narrow_first[:8], "little")
        begins = json.loads(narrow_first[8 : 8 + size])[name]["data_offsets"][0]
        assert begins % part.dtype.itemsize == 0, name


def forged(part, **said):
    """Return bytes with a checksum that is right around something that `to_bytes` does not write."""
    header = {"format": array_files.FORMAT, "text": json.dumps({"a": "U"}), "facts": "{}"} | said
    return b"".join(tensors.sealed({"a": np.array(part, dtype=np.uint32)}, header))


def test_text_is_characters_up_to_the_last_one():
    last = np.array([chr(0x10FFFF), "a"])
    np.testing.assert_array_equal(array_files.from_bytes(array_files.to_bytes({"a": last}))[0]["a"], last)
    assert array_files.from_bytes(forged([[97]]))[0]["a"].tolist() == ["a"]
    with pytest.raises(CorruptModelError, match="its text is not valid Unicode"):
        array_files.from_bytes(forged([[0x110000]]))


def test_another_format_raises_an_error_by_name():
    with pytest.raises(
        CorruptModelError, match="its format is 'firstk arrays 9', and this firstk reads 'firstk arrays 2'"
    ):
        array_files.from_bytes(forged([[97]], format="firstk arrays 9"))


def safetensors_metadata(payload):
    size = int.from_bytes(payload[:8], "little")
    return json.loads(payload[8 : 8 + size])["__metadata__"]


def without_checksum(payload):
    """Return the bytes as they were before there were checksums."""
    size = int.from_bytes(payload[:8], "little")
    header = json.loads(payload[8 : 8 + size])["__metadata__"]
    old = {"format": "firstk arrays 1", "text": header["text"], "facts": header["facts"]}
    return save(load(payload), metadata=old)


def test_moments_without_a_checksum_raise_an_error_and_the_way_out_is_to_measure_again():
    old = without_checksum(parts.measure(PrefixEncoder(), [X]))
    with pytest.raises(CorruptModelError, match=r"Part 0 .*no checksum.*older firstk.*Measure the partition again"):
        parts.finish(PrefixEncoder(), [old])


def test_stream_checkpoints_without_a_checksum_raise_an_error_and_the_way_out_is_to_start_again(tmp_path):
    file = tmp_path / "run.checkpoint"
    Checkpoint(file).write({"x": X}, {"end": 1}, {"job": "fit"})
    file.write_bytes(without_checksum(file.read_bytes()))
    with pytest.raises(
        CorruptModelError, match=r"run\.checkpoint' .*no checksum.*older firstk.*Remove it to start again"
    ):
        Checkpoint(file, resume=True).read({"job": "fit"})


def test_training_checkpoints_without_a_checksum_raise_an_error_and_the_way_out_is_to_start_again(tmp_path):
    torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
    from safetensors.torch import save

    from firstk.solvers.gradient import checkpoint as _checkpoint

    old = {"state": json.dumps({"dict": [["a", {"tensor": "state.a"}]]}), "mark": "mine"}
    (tmp_path / _checkpoint.FILE).write_bytes(save({"state.a": torch.zeros(3)}, metadata=old))
    with pytest.raises(CorruptModelError, match=r"no checksum.*older firstk.*Remove it to start again"):
        _checkpoint.read(tmp_path, "mine")


def test_training_checkpoints_notice_any_flipped_bit_and_come_back(tmp_path):
    torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
    from firstk.solvers.gradient import checkpoint as _checkpoint

    weight = torch.arange(6.0).reshape(2, 3).T  # not contiguous
    state = {"weight": weight, "step": torch.tensor(3.0), "half": weight.to(torch.bfloat16), "flag": torch.tensor(True),
             "complex": torch.tensor([1 + 2j]), "none": torch.zeros(0, 2), "at": {"epoch": 3, "best": float("inf")},
             "list": [1, None, "a"], 0: "number"}  # fmt: skip
    _checkpoint.write(tmp_path, state, "mine")
    back = _checkpoint.read(tmp_path, "mine")
    assert list(back) == list(state)
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            assert (back[name].dtype, back[name].shape) == (value.dtype, value.shape)
            assert torch.equal(back[name], value)
            back[name].zero_()  # it can be trained on
        else:
            assert back[name] == value
    whole = (tmp_path / _checkpoint.FILE).read_bytes()
    for at in range(0, len(whole), 3):
        spoilt = bytearray(whole)
        spoilt[at] ^= 0x20
        (tmp_path / _checkpoint.FILE).write_bytes(spoilt)
        with pytest.raises(CorruptModelError, match="cannot be read"):
            _checkpoint.read(tmp_path, "mine")


# -- parts without rows ------------------------------------------------------------------------------------------------


def test_a_partition_without_rows_says_so_and_a_lost_one_is_an_error():
    whole, none = parts.measure(PrefixEncoder(), [X]), parts.measure(PrefixEncoder(), [])
    assert none
    found = parts.finish(PrefixEncoder(), [none, parts.merge([]), whole, parts.merge([none])])
    assert found.components_.tobytes() == PrefixEncoder().fit(X).components_.tobytes()
    for call in (lambda given: parts.finish(PrefixEncoder(), given), parts.merge):
        for lost in (b"", bytearray(), None, "text"):
            with pytest.raises(InvalidInputError, match=r"Part 1 .*Measure the partition again"):
                call([whole, lost])
    with pytest.raises(InvalidInputError, match="No partition had a row"):
        parts.finish(PrefixEncoder(), [none, none])


# -- valid checksums, nonsense inside ----------------------------------------------------------------------------------


def changed(name, value):
    def change(state):
        state[name] = value if not callable(value) else value(state[name])

    return change


NONSENSE = {
    "NaN": changed("moments.within", lambda part: part * np.nan),
    "no weight": changed("moments.group_weight", lambda part: -part),
    "text for numbers": changed("moments.within", lambda part: part.astype(str)),
    "integers for numbers": changed("moments.within", lambda part: part.astype(np.int64)),
    "another width": changed("counts", lambda part: part + np.uint64(1)),
    "a negative fingerprint": changed("counts", np.array([4, 60, -5])),
    "no counts": changed("counts", np.array(["a", "b", "c"])),
    "counts of one": changed("moments.counts", np.array(3)),
    "a negative width": changed("moments.counts", lambda part: -part),
    "another precision": changed("moments.precision", np.array(["float12"])),
    "no precision": changed("moments.precision", np.zeros((1, 2, 2))),
    "a negative sample": changed("sample.capacity", np.array([-4])),
    "a sample without priorities": changed("sample.priority", np.array(5.0)),
}


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize("objective", ["fisher", "similarity"])
def test_statistics_that_make_no_sense_raise_an_error(name, objective):
    given = (X, Y) if objective == "fisher" else (X,)
    state = PrefixEncoder(objective=objective).fit(*given)._statistics.to_arrays()
    NONSENSE[name](state)
    payload = array_files.to_bytes(state, {"objective": objective})
    with pytest.raises(CorruptModelError):
        Statistics.from_arrays(array_files.from_bytes(payload)[0])
    with pytest.raises(CorruptModelError, match=r"Part 0.*Measure the partition again"):
        parts.finish(PrefixEncoder(objective=objective), [payload])


@pytest.mark.parametrize(
    "pencil", [Pencil(M=np.full((2, 2), np.inf)), Pencil(factor=np.full((2, 2), np.nan), N=np.eye(2))]
)
def test_numbers_that_no_solver_can_take_get_an_error_message(pencil):
    """Moments from a file may be finite, and their products not."""
    with pytest.raises(
        InvalidInputError, match=r"too large for the closed form .*the largest is .*compute the moments again"
    ):
        solve_pencil(pencil, 2, 1e-16)


@pytest.mark.parametrize(
    "counts", [{}, {"end": -1}, {"read": "3"}, {"rows": 10**9}, {"end": True}, {"end": 1.5}, {"rows": None}]
)
def test_stream_checkpoints_with_counts_that_make_no_sense_raise_an_error(counts):
    state = Accumulated(PrefixEncoder().fit(X)._statistics, end=1, read=60, rows=60)
    with pytest.raises(CorruptModelError, match="Remove it to start again"):
        Accumulated.restored(state.to_arrays(), counts and state.counts | counts)


def test_stream_checkpoints_with_columns_of_unequal_length_raise_an_error():
    state = Accumulated(PrefixEncoder().fit(X)._statistics, {"X": X[:3], "y": Y[:3]}, end=1, read=63, rows=60)
    arrays = state.to_arrays()
    with pytest.raises(CorruptModelError, match="Remove it to start again"):
        Accumulated.restored(arrays | {"held.y": Y[:2]}, state.counts)
    assert Accumulated.restored(arrays, state.counts).held["y"].tolist() == Y[:3].tolist()


TREES = [
    None,
    3,
    {"tensor": "nowhere"},
    {"dict": 3},
    {"dict": [[1]]},
    {"list": {}},
    {},
    {"tensor": "a", "dtype": "float9"},
]


@pytest.mark.parametrize("tree", TREES)
def test_training_checkpoints_of_nonsense_raise_an_error(tmp_path, tree):
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    from firstk.solvers.gradient import checkpoint as _checkpoint

    array_files.write(tmp_path / _checkpoint.FILE, {"a": X}, {"job": _checkpoint.job("mine"), "state": tree})
    with pytest.raises(CorruptModelError, match="Remove it to start again"):
        _checkpoint.read(tmp_path, "mine")


@pytest.mark.parametrize("spoil", ["at", "model", "optimizer", "generator", "global"])
def test_a_training_checkpoint_that_does_not_fit_the_run_raises_an_error(tmp_path, spoil, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    from firstk import Gradient
    from firstk.solvers.gradient import checkpoint as _checkpoint

    solver = Gradient(epochs=2, checkpoint=tmp_path, checkpoint_every=1)
    enc = PrefixEncoder(2, network="mlp", solver=solver, random_state=0).fit(X)
    read = _checkpoint.read
    monkeypatch.setattr(_checkpoint, "read", lambda folder, mark: read(folder, mark) | {spoil: {"strange": 1}})
    with pytest.raises(CorruptModelError, match="Remove it to start again"):
        enc.set_params(solver=replace(solver, resume=True)).fit(X)


INDEX = FunnelIndex.fit(X, schedule=[(2, 30), (3, 20)], n_neighbors=5)
FORGED = {
    "rows in words": {"schedule": {"rows": "60"}},
    "rows of a fraction": {"schedule": {"rows": 60.5}},
    "no rows": {"schedule": {"rows": 0}},
    "neighbors of a fraction": {"schedule": {"n_neighbors": 5.5}},
    "no neighbors": {"schedule": {"n_neighbors": 0}},
    "neighbors in a list": {"schedule": {"n_neighbors": [5]}},
    "an exact prefix of a fraction": {"schedule": {"exact_k": 2.5}},
    "an exact prefix that is true": {"schedule": {"exact_k": True}},
    "a cosine in words": {"schedule": {"remainder_cosine": "0.5"}},
    "a cosine of nothing": {"schedule": {"remainder_cosine": None}},
    "recall in words": {"schedule": {"recall": "high"}},
    "recall past one": {"schedule": {"recall": 7}},
    "measured recall below zero": {"schedule": {"measured_recall": -1}},
    "stages of fractions": {"schedule": {"stages": [[2.5, 30], [3.5, 20]]}},
    "stages of one number": {"schedule": {"stages": [3]}},
    "stages in words": {"schedule": {"stages": [["2", "30"]]}},
    "no stages": {"schedule": {"stages": []}},
    "a huge stage": {"schedule": {"stages": [[2, 10**400]]}},
    "a field too many": {"schedule": {"strange": 1}},
    "a schedule that is a list": {"schedule": [1, 2]},
    "a width of a fraction": {"d": 4.5},
    "a width in words": {"d": "4"},
    "the next id in words": {"next_id": "60"},
    "the next id of a fraction": {"next_id": 60.5},
    "a next id that is taken": {"next_id": 3},
    "a next id past 64 bits": {"next_id": 2**70},
    "a metric of nothing": {"metric": None},
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_facts_of_an_index_raise_an_error(tmp_path, name):
    path, change = INDEX.save(tmp_path / "index"), FORGED[name]
    facts, arrays = _file.read_index(path)
    if isinstance(change.get("schedule"), dict):
        change = {"schedule": facts["schedule"] | change["schedule"]}
    _file.write_index(path, facts | change, arrays)
    with pytest.raises(CorruptModelError, match="index' is a damaged firstk index"):
        FunnelIndex.load(path)


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_forged_codes_that_the_metric_does_not_allow_raise_an_error(tmp_path, metric):
    path = FunnelIndex.fit(X, metric=metric).save(tmp_path / "index")
    facts, arrays = _file.read_index(path)
    _file.write_index(path, facts, arrays | {"codes": arrays["codes"] * np.float32(1e19 if metric == "l2" else 2)})
    with pytest.raises(CorruptModelError, match="index' is a damaged firstk index"):
        FunnelIndex.load(path)


def test_an_encoder_of_another_width_does_not_belong_to_an_index(tmp_path):
    path = FunnelIndex.fit(X, encoder=PrefixEncoder(3).fit(X)).save(tmp_path / "index")
    facts, arrays = _file.read_index(path)
    _file.write_index(path, facts, arrays | _file.pack_encoder(PrefixEncoder(2).fit(X).encoder_))
    with pytest.raises(CorruptModelError, match="index' is a damaged firstk index"):
        FunnelIndex.load(path)


# -- the same content has the same bytes -------------------------------------------------------------------------------

WRITE_ALL = """
import hashlib, json, sys
from pathlib import Path
import numpy as np
from firstk import FunnelIndex, PrefixCurve, PrefixEncoder
from firstk.moments.checkpoint import Checkpoint
from firstk.data.files import write_vectors
from firstk.integrations import parts

home = Path(sys.argv[1])
home.mkdir()
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(60, 4)) * [4, 3, 2, 1], np.array(["a", "b"])[np.arange(60) % 2]
enc = PrefixEncoder(objective="fisher").fit(X, Y)
enc.save(home / "model", curve=PrefixCurve([1], [0.5], "accuracy"), extra={"study.json": "{}", "notes": "none"})
FunnelIndex.fit(X, encoder=enc).save(home / "index")
(home / "part").write_bytes(parts.measure(enc, [(X, Y)]))
named = {name: name for name in {"one", "two", "three", "four"}}
Checkpoint(home / "stream").write({"a": X, "b": Y, "c": X[:, 0]}, {"end": 1, "rows": 2}, named)
write_vectors(home / "data.safetensors", X, {"id": np.arange(60)}, metadata=named)
try:
    import torch
    from firstk.solvers.gradient import checkpoint as _checkpoint
except ImportError:
    pass
else:
    _checkpoint.write(home / "training", {"b": torch.zeros(3), "a": [torch.ones(2), {"c": 3}]}, "mark")
files = sorted(path for path in home.rglob("*") if path.is_file())
print(json.dumps({str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}))
"""


def test_the_same_content_has_the_same_bytes_in_every_process(tmp_path):
    written = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", WRITE_ALL, str(tmp_path / seed)], capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        written.append(json.loads(done.stdout))
    assert len(written[0]) >= 9
    assert written[0] == written[1]


def test_the_order_in_which_arrays_and_facts_are_given_does_not_matter():
    one = array_files.to_bytes({"a": X, "b": Y, "c": X[0]}, {"x": 1, "y": {"p": 1, "q": 2}})
    other = array_files.to_bytes({"c": X[0], "b": Y, "a": X}, {"y": {"q": 2, "p": 1}, "x": 1})
    assert hashlib.sha256(one).digest() == hashlib.sha256(other).digest()
