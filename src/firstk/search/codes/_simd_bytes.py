"""Thirty-two bytes at a time: the vector vocabulary of table look-ups in compiled kernels.

A table of sixteen bytes is one register, and one instruction looks up 32 half-bytes in it (André, Kermarrec and Le
Scouarnec, "Cache locality is not enough", VLDB 2015). The instruction has another name on every machine; where there
is none, the same operation is spelled out lane by lane. Sums of bytes are widened to sixteen bits in two vectors, the
lanes of even and of odd places: `widen` and `even` have them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.datamodel import DataModelManager
from numba.core.typing import Context, Signature
from numba.extending import models, register_model
from numba.np.arrayobj import make_array

from firstk._base.simd import LANES, Intrinsic, Values, Vector, intrinsic

WIDTH = 2 * LANES
_INT32 = ir.IntType(32)
_HALF, _WHOLE, _WORDS = (ir.VectorType(ir.IntType(bits), n) for bits, n in ((8, LANES), (8, WIDTH), (16, LANES)))


class Bytes(types.Type):
    """The numba type of `WIDTH` unsigned bytes."""

    def __init__(self) -> None:
        super().__init__(name="firstk.Bytes")


class Words(types.Type):
    """The numba type of `LANES` unsigned numbers of sixteen bits."""

    def __init__(self) -> None:
        super().__init__(name="firstk.Words")


BYTES, WORDS = Bytes(), Words()


@register_model(Bytes)
class _BytesModel(models.PrimitiveModel):
    def __init__(self, dmm: DataModelManager, fe_type: Bytes):
        super().__init__(dmm, fe_type, _WHOLE)


@register_model(Words)
class _WordsModel(models.PrimitiveModel):
    def __init__(self, dmm: DataModelManager, fe_type: Words):
        super().__init__(dmm, fe_type, _WORDS)


def _loaded(
    context: BaseContext, builder: ir.IRBuilder, array: types.Array[types.Integer], args: Values, kind: ir.VectorType
) -> ir.Value:
    data = make_array(array)(context, builder, args[0]).data
    return builder.load(builder.bitcast(builder.gep(data, [args[1]]), kind.as_pointer()), align=1)


def _shuffled(builder: ir.IRBuilder, vector: ir.Value, lanes: list[int]) -> ir.Value:
    undefined = ir.Constant(vector.type, ir.Undefined)
    return builder.shuffle_vector(vector, undefined, ir.Constant(ir.VectorType(_INT32, len(lanes)), lanes))


def _joined(builder: ir.IRBuilder, low: ir.Value, high: ir.Value) -> ir.Value:
    return builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(_INT32, WIDTH), list(range(WIDTH))))


@intrinsic
def load_bytes(typing: Context, array: types.Array[types.Integer], index: types.Integer) -> Intrinsic:
    """Return the `WIDTH` bytes of `array` from `index` on."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        return _loaded(context, builder, array, args, _WHOLE)

    return BYTES(array, types.intp), code


@intrinsic
def load_table(typing: Context, array: types.Array[types.Integer], index: types.Integer) -> Intrinsic:
    """Return the sixteen bytes of `array` from `index` on, twice: a table for `look_up`."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        half = _loaded(context, builder, array, args, _HALF)
        return _shuffled(builder, half, [*range(LANES), *range(LANES)])

    return BYTES(array, types.intp), code


@intrinsic
def look_up(typing: Context, table: Bytes, places: Bytes) -> Intrinsic:
    """Return the entries of a table (see `load_table`) at places from 0 to 15."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        machine: Any = context  # numba has the method on contexts of a target
        triple, _, features = machine.codegen().magic_tuple()
        names = set(features.split(","))
        if triple.startswith("x86_64") and "+avx2" in names:
            return _call(builder, "llvm.x86.avx2.pshuf.b", _WHOLE, args)
        halves = [[_shuffled(builder, each, list(range(at, at + LANES))) for each in args] for at in (0, LANES)]
        if triple.startswith("x86_64") and "+ssse3" in names:
            return _joined(builder, *(_call(builder, "llvm.x86.ssse3.pshuf.b.128", _HALF, half) for half in halves))
        if triple.startswith(("aarch64", "arm64")):  # NEON is part of the architecture
            return _joined(builder, *(_call(builder, "llvm.aarch64.neon.tbl1.v16i8", _HALF, half) for half in halves))
        return _one_by_one(builder, *args)

    return BYTES(BYTES, BYTES), code


def _call(builder: ir.IRBuilder, name: str, kind: ir.VectorType, args: Values) -> ir.Value:
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind, kind]), name)
    return builder.call(function, args)


def _one_by_one(builder: ir.IRBuilder, table: ir.Value, places: ir.Value) -> ir.Value:
    """Look up without an instruction for it."""
    result = ir.Constant(_WHOLE, ir.Undefined)
    for lane in range(WIDTH):
        number = ir.Constant(_INT32, lane)
        place = builder.zext(builder.extract_element(places, number), _INT32)
        result = builder.insert_element(result, builder.extract_element(table, place), number)
    return result


@intrinsic
def low_half(typing: Context, x: Bytes) -> Intrinsic:
    """Return the lower four bits of each byte."""
    mask = ir.Constant(_WHOLE, [15] * WIDTH)
    return BYTES(BYTES), lambda context, builder, signature, args: builder.and_(args[0], mask)


@intrinsic
def high_half(typing: Context, x: Bytes) -> Intrinsic:
    """Return the upper four bits of each byte."""
    four = ir.Constant(_WHOLE, [4] * WIDTH)
    return BYTES(BYTES), lambda context, builder, signature, args: builder.lshr(args[0], four)


@intrinsic
def add_bytes(typing: Context, x: Bytes, y: Bytes) -> Intrinsic:
    """Return x + y modulo 256."""
    return BYTES(BYTES, BYTES), lambda context, builder, signature, args: builder.add(*args)


@intrinsic
def add_pairs(typing: Context, x: Words, y: Bytes) -> Intrinsic:
    """Return x + y modulo 2^16, the bytes taken two by two as numbers of sixteen bits."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        return builder.add(args[0], builder.bitcast(args[1], _WORDS))

    return WORDS(WORDS, BYTES), code


@intrinsic
def add_odd(typing: Context, x: Words, y: Bytes) -> Intrinsic:
    """Return x plus the bytes of y at odd places."""
    eight = ir.Constant(_WORDS, [8] * LANES)

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        return builder.add(args[0], builder.lshr(builder.bitcast(args[1], _WORDS), eight))

    return WORDS(WORDS, BYTES), code


@intrinsic
def even(typing: Context, pairs: Words, odd: Words) -> Intrinsic:
    """Return the sum of the bytes at even places, from the sums of `add_pairs` and of `add_odd`."""
    eight = ir.Constant(_WORDS, [8] * LANES)

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        return builder.sub(args[0], builder.shl(args[1], eight))

    return WORDS(WORDS, WORDS), code


@intrinsic
def no_words(typing: Context) -> Intrinsic:
    """Return zeros."""
    return WORDS(), lambda context, builder, signature, args: ir.Constant(_WORDS, [0] * LANES)


@intrinsic
def as_floats(typing: Context, x: Words) -> Intrinsic:
    """Return the numbers as float32."""
    kind = Vector(types.float32)

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        wide = builder.zext(args[0], ir.VectorType(_INT32, LANES))
        return builder.sitofp(wide, ir.VectorType(ir.FloatType(), LANES))

    return kind(WORDS), code
