"""Encoders as ONNX files, which run without firstk, numpy or Python.

Needs the extra "onnx". One file holds both sides and every k. All three inputs are given with
each call: browsers (onnxruntime-web) cannot override a default.

====================  ===================  ============================================
input                 type and shape       meaning
====================  ===================  ============================================
``vectors``           float32 (rows, p)    rows to encode
``k``                 int64, a scalar      length of the prefix
``query``             bool, a scalar       centre as a query, not as a document
====================  ===================  ============================================

The output ``codes`` is float32 (rows, k). A `k` outside [1, d] is a run-time error, with a node name that states the
allowed range.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.atomic_file import atomic_file
from firstk._base.checks import check_choice, check_matrix, check_prefix, require
from firstk._base.input_file import check_regular
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.encoder.network import TrainedMLP
from firstk.encoder.record import FitRecord
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.integrations._codes import EncoderLike

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto
    from onnxruntime import InferenceSession

    from firstk.upgrade import FittedAlignment, PrefixAlignment

# Supported by onnxruntime 1.12 and later.
_OPSET, _IR = 17, 8
_FORMAT = "firstk-encoder"
# Number of columns summed at a time.
_PIECE = 384
# Maximum size of a protobuf file: 2 GiB.
_MOST_BYTES = 2**31 - 2**20


def export(encoder: EncoderLike, path: str | Path) -> Path:
    """Write an encoder as one ONNX file, atomically.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
        Linear, or with an MLP. Truncate it first (``encoder[:k]``) for a smaller file.
    path : path-like
        The file; an existing one is replaced.

    Returns
    -------
    path : Path
        The file that was written.

    Notes
    -----
    The graph follows :meth:`firstk.FittedEncoder.encode` on float32 rows step by step and in the same precision
    (float64 internally if codes are normalized): x - mean before the product, layers with ReLU between them, the
    truncated axes, the norm after truncation (zero rows stay zero). The model's metadata contain the encoder's config
    as JSON.
    """
    onnx = require("onnx", "onnx", "Export to ONNX")
    return _write(_model(onnx, check_fitted(encoder, "onnx.export")), path)


def export_translation(
    alignment: PrefixAlignment | FittedAlignment, path: str | Path, direction: str = "old_to_new"
) -> Path:
    """Write a translation between two models as one ONNX file, atomically: ``vectors`` in, ``translated`` out, float32.

    Parameters
    ----------
    alignment : PrefixAlignment or FittedAlignment
    path : path-like
        The file; an existing one is replaced.
    direction : {"old_to_new", "new_to_old"}
    """
    onnx = require("onnx", "onnx", "Export to ONNX")
    check_choice(direction, ("old_to_new", "new_to_old"), "direction", "onnx.export_translation")
    fitted_alignment = getattr(alignment, "alignment_", alignment)
    # Build the model of a translation, in float64 as rows are brought to unit norm at the end.
    helper, kinds = onnx.helper, onnx.TensorProto
    chosen = getattr(fitted_alignment.solution, direction)
    unit = fitted_alignment.unit_new if direction == "old_to_new" else fitted_alignment.unit_old
    graph = _Graph(onnx, np.float64)
    x = graph.cast("vectors", np.float64, to="exact")
    y = graph.step("Sub", x, graph.constant("mean", chosen.mean), to="centred")
    y = graph.product(y, graph.constant("weight", chosen.weight), chosen.p, to="product")
    y = graph.step("Add", y, graph.constant("offset", chosen.offset), to="moved")
    if unit:
        y = graph.unit_rows(y, to="unit")
    graph.cast(y, np.float32, to="translated")
    inputs = [helper.make_tensor_value_info("vectors", kinds.FLOAT, ["rows", chosen.p])]
    output = helper.make_tensor_value_info("translated", kinds.FLOAT, ["rows", chosen.d])
    model = graph.model(inputs, output)
    facts = {"format": "firstk-translation", "direction": direction, "alignment": fitted_alignment.fingerprint()}
    helper.set_model_props(
        model, facts | {"method": str(fitted_alignment.config.get("method", "")), "sha256": _digest(model)}
    )
    onnx.checker.check_model(model, full_check=True)
    return _write(model, path)


def _write(model: ModelProto, path: str | Path) -> Path:
    with atomic_file(path, "An ONNX model", kinds=(".onnx",)) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return Path(path)


def load(path: str | Path) -> OnnxEncoder:
    """Load an exported encoder, to run on onnxruntime.

    A file that is damaged, or was not written by :func:`export`, raises CorruptModelError.
    """
    onnx = require("onnx", "onnx", "Reading an ONNX model")
    runtime = require("onnxruntime", "onnx", "Running an ONNX model")
    file = Path(path)
    check_regular(file)
    payload = file.read_bytes()
    try:
        model = onnx.load_model_from_string(payload)
        facts = {entry.key: entry.value for entry in model.metadata_props}
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # protobuf, checker and shape inference raise different types
        raise CorruptModelError(
            f"'{file}' is not a readable ONNX model ({_first_line(error)}). Export it again."
        ) from None
    if facts.get("format") != _FORMAT:
        raise CorruptModelError(
            f"'{file}' is an ONNX model that firstk did not write: its metadata have no '{_FORMAT}'."
        )
    if facts.get("sha256") != _digest(model):
        raise CorruptModelError(f"'{file}' does not match its own checksum: it is damaged. Copy or export it again.")
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors only
    try:
        session = runtime.InferenceSession(payload, options, providers=["CPUExecutionProvider"])
        return OnnxEncoder(int(facts["d"]), int(facts["p"]), FitRecord.from_dict(json.loads(facts["config"])), session)
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise CorruptModelError(f"'{file}' is damaged ({_first_line(error)}). Export it again.") from None


@dataclass(frozen=True, eq=False)
class OnnxEncoder:
    """An exported encoder on onnxruntime: the codes of the encoder it was exported from.

    Attributes
    ----------
    d, p : int
        Widths of the code and of the input.
    record : FitRecord
        How the encoder was fitted.
    session : onnxruntime.InferenceSession
    """

    d: int
    p: int
    record: FitRecord
    session: InferenceSession = field(repr=False)

    def encode(self, X: ArrayLike, k: int | None = None, *, side: str = "document") -> np.ndarray:
        """Return the first `k` coordinates of the code of each row, in float32."""
        owner = "OnnxEncoder.encode"
        k = check_prefix(k, self.d, owner)
        check_choice(side, ("document", "query"), "side", owner)
        vectors = np.ascontiguousarray(check_matrix(X, owner, width=self.p), dtype=np.float32)
        inputs = {"vectors": vectors, "k": np.array(k), "query": np.array(side == "query")}
        codes: np.ndarray = self.session.run(["codes"], inputs)[0]
        return codes


class _Graph:
    """Nodes and constants in the order of creation; every step returns the name of its result."""

    def __init__(self, onnx: ModuleType, real: DTypeLike):
        self._onnx = onnx
        self.real = real
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, name: str, value: ArrayLike, dtype: DTypeLike | None = None) -> str:
        """Add an array, by default in the precision of the graph; raise an error if numbers overflow."""
        with np.errstate(over="ignore"):
            part = np.array(value, dtype=self.real if dtype is None else dtype, order="C")
        if not np.isfinite(part).all():
            raise InvalidInputError(
                f"The array '{name}' of this encoder does not fit into float32, which ONNX export uses."
            )
        self.constants.append(self._onnx.numpy_helper.from_array(part, name))
        return name

    def step(
        self, operation: str, *inputs: str, to: str, name: str | None = None, **attributes: int | list[int]
    ) -> str:
        """Add a node with one output."""
        self.nodes.append(self._onnx.helper.make_node(operation, inputs, [to], name=name or to, **attributes))
        return to

    def model(self, inputs: list[ValueInfoProto], output: ValueInfoProto) -> ModelProto:
        """Return the model of all nodes."""
        helper = self._onnx.helper
        whole = helper.make_graph(self.nodes, "firstk", inputs, [output], initializer=self.constants)
        opset = [helper.make_opsetid("", _OPSET)]
        return helper.make_model(whole, producer_name="firstk", ir_version=_IR, opset_imports=opset)

    def product(self, x: str, weight: str, width: int, to: str) -> str:
        """Compute ``x W^T`` as a sum over blocks of columns."""
        sizes = _piece_sizes(width)
        if len(sizes) == 1:
            return self.step("Gemm", x, weight, to=to, transB=1)
        split = self.constant(f"{to}/sizes", sizes, np.int64)
        x_pieces, w_pieces = ([f"{to}/{kind}{i}" for i in range(len(sizes))] for kind in ("x", "w"))
        for whole, pieces in ((x, x_pieces), (weight, w_pieces)):
            self.nodes.append(self._onnx.helper.make_node("Split", [whole, split], pieces, name=pieces[0], axis=1))
        total: tuple[str, ...] = ()
        for i, piece in enumerate(zip(x_pieces, w_pieces, strict=True)):
            name = to if i == len(sizes) - 1 else f"{to}/sum{i}"
            total = (self.step("Gemm", *piece, *total, to=name, transB=1),)
        return to

    def cast(self, x: str, dtype: DTypeLike, to: str) -> str:
        """Change the precision."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.nodes.append(self._onnx.helper.make_node("Cast", [x], [to], name=to, to=kind))
        return to

    def unit_rows(self, z: str, to: str) -> str:
        """Divide rows by their norms; zero rows are divided by one."""
        if not any(part.name == "one" for part in self.constants):
            self.constant("zero", 0.0)
            self.constant("one", 1.0)
        norm = self.step("ReduceL2", z, to=f"{to}/norm", axes=[1], keepdims=1)
        positive = self.step("Greater", norm, "zero", to=f"{to}/positive")
        return self.step("Div", z, self.step("Where", positive, norm, "one", to=f"{to}/divisor"), to=to)


def _model(onnx: ModuleType, encoder: FittedEncoder) -> ModelProto:
    """Build the model, add metadata and check it."""
    network = encoder.network
    if network is not None and not isinstance(network, TrainedMLP):
        raise InvalidInputError(
            "ONNX export takes linear encoders and firstk's own MLP; this one has a network of your own. Export that "
            "network with torch.onnx.export, and apply it to vectors - encoder.mean, then encoder.components."
        )
    helper, kinds = onnx.helper, onnx.TensorProto
    graph = _Graph(onnx, np.float64 if encoder.normalized else np.float32)
    mean = graph.step(
        "Where",
        "query",
        graph.constant("query_mean", encoder.query_mean),
        graph.constant("document_mean", encoder.mean),
        to="mean",
    )
    vectors = graph.cast("vectors", graph.real, to="exact") if encoder.normalized else "vectors"
    z = graph.step("Sub", vectors, mean, to="centred")
    if network is not None:
        z = _layers(graph, network, z)
    # The first k axes. A k out of range indexes past the list of lengths, which is a run-time error.
    d = encoder.d
    graph.constant("first", 1, np.int64)
    too_small = graph.step("Less", "k", "first", to="k/too_small")
    place = graph.step("Sub", "k", "first", to="k/place")
    nowhere = graph.constant("k/nowhere", d, np.int64)
    wanted = graph.step("Where", too_small, nowhere, place, to="k/wanted")
    lengths = graph.constant("k/lengths", np.arange(1, d + 1), np.int64)
    k = graph.step("Gather", lengths, wanted, to="k/checked", name=f"k_must_be_from_1_to_{d}")
    start = graph.constant("start", [0], np.int64)
    stop = graph.step("Reshape", k, graph.constant("as_list", [1], np.int64), to="stop")
    axes = graph.step("Slice", graph.constant("components", encoder.components), start, stop, start, to="axes")
    z = graph.product(z, axes, encoder.components.shape[1], to="coordinates" if encoder.normalized else "codes")
    if encoder.normalized:
        graph.cast(graph.unit_rows(z, to="unit"), np.float32, to="codes")
    inputs = [
        helper.make_tensor_value_info("vectors", kinds.FLOAT, ["rows", encoder.p]),
        helper.make_tensor_value_info("k", kinds.INT64, []),
        helper.make_tensor_value_info("query", kinds.BOOL, []),
    ]
    model = graph.model(inputs, helper.make_tensor_value_info("codes", kinds.FLOAT, ["rows", "width"]))
    facts = {  # all of them strings, as ONNX requires
        "format": _FORMAT,
        "d": str(encoder.d),
        "p": str(encoder.p),
        "pinned": str(encoder.pinned),
        "normalized": json.dumps(encoder.normalized),
        "network": "linear" if encoder.network is None else "mlp",
        "objective": encoder.record.objective,
        "config": json.dumps(encoder.record.to_dict(), ensure_ascii=False),
    }
    helper.set_model_props(model, facts | {"sha256": _digest(model)})
    if model.ByteSize() > _MOST_BYTES:
        raise InvalidInputError(
            f"An ONNX file holds at most 2 GiB, and this encoder of {encoder.p} x {encoder.d} takes more. "
            "Cut it first: encoder[:k]."
        )
    onnx.checker.check_model(model, full_check=True)
    return model


def _piece_sizes(width: int) -> list[int]:
    """Return the sizes of the blocks of columns: 384 each, the rest in halves, as in OpenBLAS.

    Sums in the same order have the same rounding errors as in numpy. Normalization by a very small norm still amplifies
    rounding errors: docs/decisions/integrations.md has the figures.
    """
    sizes = []
    while width >= 2 * _PIECE:
        sizes.append(_PIECE)
        width -= _PIECE
    half = -(-width // 2)
    return sizes + ([width] if width <= _PIECE else [half, width - half])


def _layers(graph: _Graph, network: TrainedMLP, z: str) -> str:
    last = len(network.weights) - 1
    for i, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        weight, bias = graph.constant(f"layer{i}/weight", W), graph.constant(f"layer{i}/bias", b)
        # The product and then the sum, as in numpy.
        z = graph.step("Add", graph.product(z, weight, W.shape[1], to=f"layer{i}/product"), bias, to=f"layer{i}")
        if i < last:
            z = graph.step("Relu", z, to=f"layer{i}/relu")
    return graph.unit_rows(z, to="body") if network.normalize else z


def _digest(model: ModelProto) -> str:
    """Return the SHA-256 of all numbers of a model."""
    digest = hashlib.sha256()
    for part in model.graph.initializer:
        digest.update(part.name.encode())
        digest.update(part.raw_data)
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
