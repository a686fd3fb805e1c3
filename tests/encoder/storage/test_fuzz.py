"""Damage of every kind to a saved model: an error, or a load that equals the original in every output.

Two kinds of damage. Unsealed, as disks and editors do it: it must be noticed, or mean nothing. Sealed again, as a
forger does it: the folder is then another model or none, so nothing but an error or a usable encoder may come of it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firstk import Fisher, FullPrefix, PrefixCurve, PrefixEncoder
from firstk.encoder.storage.info import model_info
from firstk.exceptions import CorruptModelError, InvalidInputError
from sealing import seal

RNG = np.random.default_rng(1)
ROWS = RNG.standard_normal((30, 3)) * [3, 2, 1]
ENC = PrefixEncoder(2, objective=Fisher(None), ordering=FullPrefix(omega=[2.0, 1.0])).fit(
    ROWS, np.array(["a", "b", "c"])[np.arange(30) % 3]
)
BOUNDED = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def outputs(enc):
    """Everything that an encoder tells, as bytes and text."""
    parts = [enc.transform(ROWS), enc.encode_query(ROWS, 1), enc.spectrum_, enc.encoder_.read_out(ROWS, 1)]
    facts = (enc.get_params(), enc.objective_, enc.solver_, enc.predict(ROWS).tolist(), enc.encoder_.record)
    return [part.tobytes() for part in parts], repr(facts)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    curve = PrefixCurve([1, 2], [0.5, 0.75], "accuracy")
    return ENC.save(tmp_path_factory.mktemp("fuzz") / "model", curve=curve, source_model="some/model")


@pytest.fixture(scope="module")
def truth(model):
    files = {name: (model / name).read_bytes() for name in ("config.json", "model.safetensors")}
    return files, outputs(PrefixEncoder.load(model))


def refused_or_equal(model, truth, name, payload):
    """Put `payload` in the place of a file, load, and put the file back; return whether it was refused."""
    files, expected = truth
    (model / name).write_bytes(payload)
    loaded, message = None, ""
    try:
        loaded = PrefixEncoder.load(model)
    except CorruptModelError as error:
        message = str(error)
    finally:
        (model / name).write_bytes(files[name])
    assert outputs(loaded) == expected if loaded is not None else str(model) in message
    return loaded is None


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_every_truncation_raises_an_error(model, truth, name):
    whole = truth[0][name]
    last = len(whole.rstrip())  # the line end after the last brace means nothing
    kept = [size for size in range(0, len(whole), 7) if not refused_or_equal(model, truth, name, whole[:size])]
    assert [size for size in kept if size < last] == []


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("mask", [0x01, *(pytest.param(mask, marks=pytest.mark.full) for mask in (0x20, 0x80))])
def test_every_flipped_byte_is_noticed_or_means_nothing(model, truth, name, mask):
    whole = truth[0][name]
    step = 3 if name == "model.safetensors" else 1
    for at in range(0, len(whole), step):
        spoiled = bytearray(whole)
        spoiled[at] ^= mask
        refused = refused_or_equal(model, truth, name, bytes(spoiled))
        assert refused or (name == "config.json" and whole[at : at + 1].isspace())


@pytest.mark.parametrize("at", [0, 5, 300, -1])
def test_inserted_and_repeated_bytes_are_noticed(model, truth, at):
    for name, whole in truth[0].items():
        for piece in (b"\x00", b"}", b'"', b"\xff\xfe", whole[:40]):
            assert refused_or_equal(model, truth, name, whole[:at] + piece + whole[at:])


HOSTILE = {
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a huge integer": b'{"format": "firstk-encoder", "format_version": ' + b"9" * 10_000 + b"}",
    "a huge exponent": b'{"format": "firstk-encoder", "format_version": 1, "d": 1e999}',
    "NaN": b'{"format": "firstk-encoder", "format_version": 1, "d": NaN}',
    "minus infinity": b'{"format": "firstk-encoder", "format_version": 1, "d": -Infinity}',
    "a repeated name": b'{"format": "firstk-encoder", "format": "firstk-encoder", "format_version": 1}',
    "a boolean version": b'{"format": "firstk-encoder", "format_version": true}',
    "a version of floats": b'{"format": "firstk-encoder", "format_version": 1.0}',
    "a version in a list": b'{"format": "firstk-encoder", "format_version": [1]}',
    "a version in words": b'{"format": "firstk-encoder", "format_version": "1"}',
    "a lone surrogate": b'{"format": "firstk-encoder", "format_version": 1, "d": "\\ud800"}',
    "a byte order mark": b'\xef\xbb\xbf{"format": "firstk-encoder", "format_version": 1}',
    "another encoding": '{"format": "firstk-encoder"}'.encode("utf-16"),
    "zeros": bytes(1000),
    "a pickle": b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00cos\nsystem\n.",
    "nothing": b"",
    "null": b"null",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_configs_raise_an_error(model, truth, case):
    assert refused_or_equal(model, truth, "config.json", HOSTILE[case])


@pytest.mark.parametrize("case", ["deep lists", "a huge integer", "a pickle", "null"])
def test_hostile_configs_raise_an_error_where_a_model_is_to_be_saved(tmp_path, case):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_bytes(HOSTILE[case])
    with pytest.raises(InvalidInputError, match="not a firstk model"):
        ENC.save(tmp_path / "model")


# -- forged: whatever is in it, its digest and checksums are right ---------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12) | st.sampled_from(["auto", "linear", "mlp", "custom", "fisher", "full_prefix", "gradient"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def with_change(config, path, change):
    changed = copy.deepcopy(config)
    at = changed
    for key in path[:-1]:
        at = at[key]
    if change is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = change
    return changed


def usable_or_refused(model):
    """Load a forged model: an error, or an encoder that encodes, and a description that can be read."""
    try:
        enc = PrefixEncoder.load(model)
    except (CorruptModelError, InvalidInputError):
        return
    Z = enc.transform(ROWS)
    assert Z.shape == (30, enc.n_components_)
    assert str(model_info(model))
    json.dumps(model_info(model).to_dict())


@BOUNDED
@given(data=st.data())
def test_forged_configs_raise_an_error_or_usable(model, truth, data):
    config = json.loads(truth[0]["config.json"])
    path = data.draw(st.sampled_from([path for path in places(config) if path and path[0] != "digest"]))
    try:
        seal(model, with_change(config, path, data.draw(JSON | st.just(...))))
        usable_or_refused(model)
    finally:
        (model / "config.json").write_bytes(truth[0]["config.json"])


def with_tensors(model, truth, payload):
    """Put bytes in the place of the arrays, and their checksum into a sealed config.json."""
    config = json.loads(truth[0]["config.json"])
    (model / "model.safetensors").write_bytes(payload)
    try:
        seal(model, config | {"files": {"model.safetensors": hashlib.sha256(payload).hexdigest()}})
        usable_or_refused(model)
    finally:
        for name, whole in truth[0].items():
            (model / name).write_bytes(whole)


def parts_of(payload):
    (size,) = struct.unpack("<Q", payload[:8])
    return json.loads(payload[8 : 8 + size]), payload[8 + size :]


def packed(header, body):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


@BOUNDED
@given(data=st.data())
def test_forged_headers_of_safetensors_raise_an_error_or_usable(model, truth, data):
    header, body = parts_of(truth[0]["model.safetensors"])
    path = data.draw(st.sampled_from([path for path in places(header) if path]))
    dtypes = st.sampled_from(["F16", "BF16", "F32", "I64", "BOOL", "F8_E4M3", "C64", "X"])
    change = data.draw(dtypes | st.integers(-(2**70), 2**70) | JSON | st.just(...))
    with_tensors(model, truth, packed(with_change(header, path, change), body))


@pytest.mark.parametrize("size", [0, 1, 7, 2**32, 2**63, 2**64 - 1])
def test_sizes_of_the_header_that_lie_raise_an_error(model, truth, size):
    whole = truth[0]["model.safetensors"]
    with_tensors(model, truth, struct.pack("<Q", size) + whole[8:])
    with_tensors(model, truth, struct.pack("<Q", size))


@BOUNDED
@given(payload=st.binary(max_size=200))
def test_any_bytes_for_arrays_raise_an_error(model, truth, payload):
    with_tensors(model, truth, payload)


@BOUNDED
@given(payload=st.binary(max_size=200))
def test_any_bytes_for_config_raise_an_error(model, truth, payload):
    assert refused_or_equal(model, truth, "config.json", payload)
