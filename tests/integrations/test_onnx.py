"""The exported graph gives the codes of the encoder: both sides, every k, unit rows, zero rows, linear and MLP."""

import http.server
import itertools
import json
import shutil
import subprocess
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk import Classification, FittedEncoder, Gradient, PrefixEncoder, Similarity
from firstk.encoder.network import TrainedMLP
from firstk.encoder.record import FitRecord
from firstk.exceptions import CorruptModelError, InvalidInputError, MissingExtraError

onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")
ort = pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")

from firstk.integrations import onnx as exports  # noqa: E402


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def assert_same(found, wanted):
    """1e-6 of the largest coordinate, or of one: float32 itself has seven digits."""
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 1e-6 * max(1.0, np.abs(wanted).max())


def random_encoder(rng, p, d, *, normalized, widths=None, unit_network=False, offset=0.0):
    """Build an encoder of any kind without fitting; `widths` of hidden layers make it an MLP."""
    network = None
    if widths is not None:
        sizes = [p, *widths, d]
        pairs = list(itertools.pairwise(sizes))
        weights = tuple(rng.normal(size=(out, into)) / np.sqrt(into) for into, out in pairs)
        network = TrainedMLP(weights, tuple(0.1 * rng.normal(size=len(W)) for W in weights), unit_network)
    columns = p if network is None else d
    return FittedEncoder(
        components=rng.normal(size=(d, columns)) / np.sqrt(columns),
        spectrum=np.arange(d, 0, -1.0),
        mean=offset + rng.normal(size=p),
        query_mean=offset + rng.normal(size=p),
        normalized=normalized,
        record=FitRecord("made up"),
        network=network,
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 40),
    d=st.integers(1, 24),
    rows=st.integers(1, 30),
    normalized=st.booleans(),
    widths=st.sampled_from([None, (), (7,), (16, 5)]),
    unit_network=st.booleans(),
    offset=st.sampled_from([0.0, 3.0, 1000.0]),
    data=st.data(),
)
def test_parity_of_any_encoder(tmp_path_factory, seed, p, d, rows, normalized, widths, unit_network, offset, data):
    rng = np.random.default_rng(seed)
    encoder = random_encoder(rng, p, d, normalized=normalized, widths=widths, unit_network=unit_network, offset=offset)
    X = (offset + rng.normal(size=(rows, p))).astype(np.float32)
    path = exports.export(encoder, tmp_path_factory.mktemp("onnx") / "encoder.onnx")
    loaded = exports.load(path)
    assert (loaded.p, loaded.d) == (p, d)
    for side in ("document", "query"):
        for k in {1, d, data.draw(st.integers(1, d))}:
            assert_same(loaded.encode(X, k, side=side), encoder.encode(X, k, side=side))


@pytest.mark.parametrize("p", [384, 385, 768, 1500])
def test_parity_of_wide_rows_which_are_summed_in_pieces(p, tmp_path):
    rng = np.random.default_rng(p)
    encoder = random_encoder(rng, p, 24, normalized=False, offset=3.0)
    X = (3 + rng.normal(size=(50, p))).astype(np.float32)
    loaded = exports.load(exports.export(encoder, tmp_path / "encoder.onnx"))
    for k in (1, 2, 24):
        assert_same(loaded.encode(X, k), encoder.encode(X, k))


@given(width=st.integers(1, 10_000))
def test_pieces_cover_the_columns(width):
    sizes = exports._piece_sizes(width)
    assert sum(sizes) == width
    assert min(sizes) > 0
    assert max(sizes) <= 384


@pytest.mark.parametrize(
    "objective", ["reconstruction", "fisher", "similarity", Similarity(keep="dot_products")], ids=str
)
def test_parity_on_real_data(objective, digits, tmp_path):
    encoder = PrefixEncoder(objective=objective).fit(digits.X_train, digits.y_train)
    X = digits.X_test.astype(np.float32)
    loaded = exports.load(encoder.to_onnx(tmp_path / "encoder.onnx"))
    for k in (1, 2, 5, encoder.n_components_ // 2, encoder.n_components_):
        assert_same(loaded.encode(X, k), encoder.transform(X, k))


def test_parity_of_a_trained_network(digits, tmp_path):
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    settings = {"objective": Classification(shrinkage=0.5), "solver": Gradient(epochs=3), "random_state": 0}
    encoder = PrefixEncoder(8, network="mlp", **settings).fit(digits.X_train, digits.y_train)
    X = digits.X_test.astype(np.float32)
    loaded = exports.load(encoder.to_onnx(tmp_path / "encoder.onnx"))
    for k in (1, 3, 8):
        assert_same(loaded.encode(X, k), encoder.transform(X, k))


def test_parity_of_the_two_sides(tmp_path):
    rng = np.random.default_rng(0)
    left = rng.normal(size=(300, 12)).astype(np.float32) + 4
    right = left + rng.normal(size=left.shape).astype(np.float32) - 9
    encoder = PrefixEncoder(objective="similarity").fit_pairs(left, right)
    loaded = exports.load(encoder.to_onnx(tmp_path / "encoder.onnx"))
    assert np.abs(encoder.encode_query(left, 3) - encoder.encode_document(left, 3)).max() > 0.1
    assert_same(loaded.encode(left, 3, side="query"), encoder.encode_query(left, 3))
    assert_same(loaded.encode(left, 3), encoder.encode_document(left, 3))


def test_k_and_side_are_plain_inputs_and_the_batch_is_free(tmp_path):
    encoder = random_encoder(np.random.default_rng(0), 6, 4, normalized=True)
    run = session(exports.export(encoder, tmp_path / "encoder.onnx"))
    assert [one.name for one in run.get_inputs()] == ["vectors", "k", "query"]
    assert not run.get_overridable_initializers()
    for rows in (1, 2, 17):
        X = np.random.default_rng(rows).normal(size=(rows, 6)).astype(np.float32)
        assert_same(run.run(None, {"vectors": X, "k": np.array(4), "query": np.array(False)})[0], encoder.encode(X))
    empty = {"vectors": np.empty((0, 6), np.float32), "k": np.array(2), "query": np.array(True)}
    assert run.run(None, empty)[0].shape == (0, 2)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("widths", [None, (7,)])
def test_every_constant_is_used(tmp_path, normalized, widths):
    encoder = random_encoder(np.random.default_rng(0), 6, 4, normalized=normalized, widths=widths)
    graph = onnx.load(exports.export(encoder, tmp_path / "encoder.onnx")).graph
    used = {name for node in graph.node for name in node.input}
    assert {part.name for part in graph.initializer} <= used


RUN = """
async function run(ort, model, given) {
  const session = await ort.InferenceSession.create(new Uint8Array(model));
  const found = [];
  for (const [k, query] of given.calls) {
    const { codes } = await session.run({
      vectors: new ort.Tensor("float32", Float32Array.from(given.rows.flat()), [given.rows.length, 6]),
      k: new ort.Tensor("int64", BigInt64Array.of(BigInt(k)), []),
      query: new ort.Tensor("bool", [query], []),
    });
    found.push({ dims: codes.dims, data: Array.from(codes.data) });
  }
  return JSON.stringify(found);
}
"""
IN_NODE = """
const fs = require("fs");
run(require("onnxruntime-web"), fs.readFileSync("encoder.onnx"), JSON.parse(fs.readFileSync("given.json", "utf8")))
  .then(console.log);
"""
IN_BROWSER = """<!doctype html><meta charset="utf-8"><p id="found"></p>
<script src="dist/ort.wasm.min.js"></script><script>
%s
(async () => {
  const model = await (await fetch("encoder.onnx")).arrayBuffer();
  return run(ort, model, await (await fetch("given.json")).json());
})().catch(String).then((text) => { document.getElementById("found").textContent = text; });
</script>"""


def in_node(folder, request):
    (folder / "run.cjs").write_text(RUN + IN_NODE)
    ran = subprocess.run(["node", "run.cjs"], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def in_chromium(folder, request):
    driver = request.getfixturevalue("browser")
    (folder / "index.html").write_text(IN_BROWSER % RUN)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        driver.get(f"http://127.0.0.1:{server.server_address[1]}/index.html")
        deadline = time.monotonic() + 120
        while not (text := driver.find_element("id", "found").text) and time.monotonic() < deadline:
            time.sleep(0.1)
        server.shutdown()
    return text


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("place", [in_node, in_chromium])
def test_a_browsers_runtime_cuts_and_encodes_queries(place, normalized, tmp_path, request):
    """Needs node and its package onnxruntime-web, where NODE_PATH has it: ``npm install onnxruntime-web``."""
    if shutil.which("node") is None:
        pytest.skip("needs node")
    asked = subprocess.run(["node", "-p", 'require.resolve("onnxruntime-web")'], capture_output=True, text=True)
    if asked.returncode:
        pytest.skip("needs the package onnxruntime-web of node")
    (tmp_path / "dist").symlink_to(Path(asked.stdout.strip()).parent)
    rng = np.random.default_rng(0)
    encoder, X = random_encoder(rng, 6, 4, normalized=normalized), rng.normal(size=(5, 6)).astype(np.float32)
    exports.export(encoder, tmp_path / "encoder.onnx")
    calls = [(k, query) for k in (1, 2, 4) for query in (False, True)]
    (tmp_path / "given.json").write_text(json.dumps({"rows": X.tolist(), "calls": calls}))
    for (k, query), found in zip(calls, json.loads(place(tmp_path, request)), strict=True):
        codes = np.array(found["data"], dtype=np.float32).reshape(found["dims"])
        assert_same(codes, encoder.encode(X, k, side="query" if query else "document"))


def test_the_bare_graph_raises_for_a_wrong_k_or_width(tmp_path):
    encoder = random_encoder(np.random.default_rng(0), 6, 4, normalized=False)
    run = session(exports.export(encoder, tmp_path / "encoder.onnx"))
    X = np.ones((2, 6), np.float32)
    for k in (-4, -1, 0, 5, 10**12):
        with pytest.raises(Exception, match="k_must_be_from_1_to_4"):
            run.run(None, {"vectors": X, "k": np.array(k), "query": np.array(False)})
    with pytest.raises(Exception, match=r"[Ii]nvalid dimensions"):
        run.run(None, {"vectors": np.ones((2, 5), np.float32), "k": np.array(1), "query": np.array(False)})


def test_zero_rows_stay_zero(tmp_path):
    encoder = random_encoder(np.random.default_rng(0), 6, 4, normalized=True)
    encoder = replace(encoder, mean=np.arange(6) / 4)  # which float32 holds, so that a row can be the mean itself
    loaded = exports.load(exports.export(encoder, tmp_path / "encoder.onnx"))
    X = np.stack([encoder.mean.astype(np.float32), np.ones(6, np.float32)])
    Z = loaded.encode(X, 2)
    assert (Z[0] == 0).all()
    assert np.linalg.norm(Z[1]) == pytest.approx(1, abs=1e-6)


def test_unit_codes_agree_where_their_norm_nearly_vanishes(tmp_path):
    """float32 loses these digits: the first coordinates are a millionth of the others, and all of a unit code."""
    rng = np.random.default_rng(0)
    encoder = random_encoder(rng, 40, 6, normalized=True)
    X = rng.normal(size=(200, 40))
    first = encoder.components[:2]
    X -= (X - encoder.mean) @ np.linalg.pinv(first) @ first * (1 - 1e-6)
    X = X.astype(np.float32)
    loaded = exports.load(exports.export(encoder, tmp_path / "encoder.onnx"))
    exact = encoder.encode(X.astype(np.float64), 2)
    assert_same(loaded.encode(X, 2), encoder.encode(X, 2))
    np.testing.assert_allclose(encoder.encode(X, 2), exact, atol=1e-6)


def test_large_offsets_keep_their_digits(tmp_path):
    """A bias after the product would lose them: here x is 1e4 +- 1."""
    rng = np.random.default_rng(1)
    X = (1e4 + rng.normal(size=(200, 20))).astype(np.float32)
    encoder = PrefixEncoder(objective="reconstruction").fit(X.astype(float))
    loaded = exports.load(encoder.to_onnx(tmp_path / "encoder.onnx"))
    exact = (X.astype(float) - encoder.mean_) @ encoder.components_.T
    assert np.abs(loaded.encode(X) - encoder.transform(X)).max() <= 1e-6 * np.abs(exact).max()
    # The mean itself has seven digits in float32; nothing else may be lost.
    assert np.abs(loaded.encode(X) - exact).max() < 20 * np.spacing(np.float32(1e4))


def test_metadata_say_what_it_is_and_the_checker_passes(digits, tmp_path):
    encoder = PrefixEncoder(5, objective="fisher").fit(digits.X_train, digits.y_train)
    path = encoder[:3].to_onnx(tmp_path / "encoder.onnx")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert (facts["d"], facts["p"], facts["objective"], facts["network"]) == ("3", "64", "fisher", "linear")
    assert exports.load(path).record.objective == "fisher"


def test_a_custom_network_raises_with_the_way_out(tmp_path):
    torch = pytest.importorskip("torch", reason="needs the extra 'torch'")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    network = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh())
    settings = {"objective": Classification(shrinkage=0.5), "solver": Gradient(epochs=1), "random_state": 0}
    encoder = PrefixEncoder(4, network=network, **settings).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"torch\.onnx\.export"):
        encoder.to_onnx(tmp_path / "encoder.onnx")
    assert not list(tmp_path.iterdir())


def test_weights_beyond_float32_raise(tmp_path):
    encoder = random_encoder(np.random.default_rng(0), 3, 2, normalized=False)
    encoder.components[0, 0] = 1e200
    with pytest.raises(InvalidInputError, match=r"'components'.*float32"):
        exports.export(encoder, tmp_path / "encoder.onnx")
    assert not list(tmp_path.iterdir())


def test_bad_calls_get_sentences(tmp_path):
    encoder = random_encoder(np.random.default_rng(0), 6, 4, normalized=False)
    loaded = exports.load(exports.export(encoder, tmp_path / "encoder.onnx"))
    with pytest.raises(InvalidInputError, match=r"6 columns\. Got 5"):
        loaded.encode(np.ones((2, 5)))
    with pytest.raises(InvalidInputError, match="at least one row"):
        loaded.encode(np.ones((0, 6)))
    with pytest.raises(InvalidInputError, match=r"\[1, 4\]"):
        loaded.encode(np.ones((2, 6)), 5)
    with pytest.raises(InvalidInputError, match="'side'"):
        loaded.encode(np.ones((2, 6)), side="left")
    with pytest.raises(InvalidInputError, match="a FittedEncoder or a fitted PrefixEncoder"):
        exports.export("model", tmp_path / "encoder.onnx")


def test_damaged_and_foreign_files_raise(tmp_path):
    encoder = random_encoder(np.random.default_rng(0), 6, 4, normalized=True)
    path = exports.export(encoder, tmp_path / "encoder.onnx")
    whole = path.read_bytes()
    for length in (0, 1, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptModelError, match=r"encoder\.onnx"):
            exports.load(path)
    path.write_bytes(b"\x00not a model" * 9)
    with pytest.raises(CorruptModelError):
        exports.load(path)
    with pytest.raises(InvalidInputError, match="No such file"):
        exports.load(tmp_path / "missing.onnx")
    place = whole.index(np.ascontiguousarray(encoder.components).tobytes()) + 2
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(CorruptModelError, match="checksum"):
        exports.load(path)
    model = onnx.load_model_from_string(whole)
    del model.metadata_props[:]
    onnx.save(model, path)
    with pytest.raises(CorruptModelError, match="did not write"):
        exports.load(path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    encoder = random_encoder(np.random.default_rng(0), 6, 4, normalized=True)
    path = exports.export(encoder, tmp_path / "deep" / "encoder.onnx")
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(InvalidInputError, match="no space left"):
        exports.export(encoder[:2], path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(InvalidInputError, match="is a folder"):
        exports.export(encoder, tmp_path)


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"firstk\[onnx\]"):
        exports.export(random_encoder(np.random.default_rng(0), 3, 2, normalized=False), tmp_path / "a.onnx")
