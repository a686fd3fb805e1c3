"""Sixteen lanes at a time: the vector vocabulary of the compiled kernels.

numba leaves vectorising to LLVM, which gives up on loops that mix several arrays and an exp, and spends
most of its time in remainders when rows are short. Here a vector is a type of its own and each operation
is one LLVM instruction or a short fixed sequence of them; LLVM splits the sixteen lanes into what the
machine has (one AVX-512 register, two AVX2, four NEON). `load` and `store` take no notice of bounds or
strides: arrays are one-dimensional and contiguous, and padded to a multiple of `LANES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.datamodel import DataModelManager
from numba.core.typing import Context, Signature
from numba.extending import models, register_model
from numba.np.arrayobj import make_array

LANES = 16
# Values of arguments in the code that is made, and what numba asks of an intrinsic: its types, and what makes its code.
Values = Sequence[ir.Value]
Intrinsic = tuple[Signature, Callable[[BaseContext, ir.IRBuilder, Signature, Values], ir.Value]]
# Compiled code calls an intrinsic with numbers, and not with their types as it is written.
intrinsic: Any = extending.intrinsic
_INT32 = ir.IntType(32)


class Vector(types.Type):
    """The numba type of `LANES` numbers of one float type."""

    def __init__(self, dtype: types.Float):
        self.dtype = dtype
        super().__init__(name=f"firstk.Vector({dtype})")


def _vector_of(dtype: types.Float) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), LANES)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: DataModelManager, fe_type: Vector):
        super().__init__(dmm, fe_type, _vector_of(fe_type.dtype))


def _integers(dtype: types.Float) -> ir.VectorType:
    return ir.VectorType(ir.IntType(dtype.bitwidth), LANES)


def _constant(vector: ir.VectorType, value: float | int) -> ir.Constant:
    return ir.Constant(vector, [value] * vector.count)


def _fma(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    # fmuladd, not fma: on a machine without the instruction it becomes a product and a sum, not a call.
    kind = x.type
    name = f"llvm.fmuladd.v{LANES}f{32 if kind.element == ir.FloatType() else 64}"
    signature = ir.FunctionType(kind, [kind] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), [x, y, z])


def _larger(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _pointer(
    context: BaseContext, builder: ir.IRBuilder, array: types.Array[types.Float], value: ir.Value, index: ir.Value
) -> ir.Value:
    data = make_array(array)(context, builder, value).data
    return builder.bitcast(builder.gep(data, [index]), _vector_of(array.dtype).as_pointer())


@intrinsic
def load(typing: Context, array: types.Array[types.Float], index: types.Integer) -> Intrinsic:
    """Return the `LANES` numbers of `array` from `index` on."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        return builder.load(_pointer(context, builder, array, *args), align=array.dtype.bitwidth // 8)

    return Vector(array.dtype)(array, types.intp), code


@intrinsic
def store(typing: Context, array: types.Array[types.Float], index: types.Integer, vector: Vector) -> Intrinsic:
    """Write `vector` to `array` from `index` on."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        pointer = _pointer(context, builder, array, args[0], args[1])
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


def _splat(builder: ir.IRBuilder, number: ir.Value, kind: ir.VectorType) -> ir.Value:
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(_INT32, 0))
    lanes = ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, lanes)


@intrinsic
def splat(typing: Context, x: types.Float) -> Intrinsic:
    """Return a vector with `x` in every lane."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        return _splat(builder, args[0], _vector_of(x))

    return Vector(x)(x), code


@intrinsic
def splat_at(typing: Context, array: types.Array[types.Float], index: types.Integer) -> Intrinsic:
    """Return a vector with the number of `array` at `index` in every lane."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        data = make_array(array)(context, builder, args[0]).data
        return _splat(builder, builder.load(builder.gep(data, [args[1]])), _vector_of(array.dtype))

    return Vector(array.dtype)(array, types.intp), code


@intrinsic
def fma(typing: Context, x: Vector, y: Vector, z: Vector) -> Intrinsic:
    """Return x y + z."""
    return x(x, x, x), lambda context, builder, signature, args: _fma(builder, *args)


@intrinsic
def add(typing: Context, x: Vector, y: Vector) -> Intrinsic:
    """Return x + y."""
    return x(x, x), lambda context, builder, signature, args: builder.fadd(*args)


@intrinsic
def sub(typing: Context, x: Vector, y: Vector) -> Intrinsic:
    """Return x - y."""
    return x(x, x), lambda context, builder, signature, args: builder.fsub(*args)


@intrinsic
def mul(typing: Context, x: Vector, y: Vector) -> Intrinsic:
    """Return x y."""
    return x(x, x), lambda context, builder, signature, args: builder.fmul(*args)


@intrinsic
def larger(typing: Context, x: Vector, y: Vector) -> Intrinsic:
    """Return the larger of x and y in each lane."""
    return x(x, x), lambda context, builder, signature, args: _larger(builder, *args)


@intrinsic
def above(typing: Context, x: Vector, y: Vector) -> Intrinsic:
    """Return which lanes of x exceed those of y, as bits: lane i is bit i."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        lanes = builder.fcmp_ordered(">", *args)
        return builder.zext(builder.bitcast(lanes, ir.IntType(LANES)), _INT32)

    return types.uint32(x, x), code


@intrinsic
def lowest_bit(typing: Context, bits: types.Integer) -> Intrinsic:
    """Return the place of the lowest bit that is set; at least one must be."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        return builder.zext(builder.cttz(args[0], ir.Constant(ir.IntType(1), 1)), ir.IntType(64))

    return types.int64(types.uint32), code


def _fold(builder: ir.IRBuilder, vector: ir.Value, combine: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Combine the lanes by halves, so that the depth is log2(LANES)."""
    while vector.type.count > 1:
        half = vector.type.count // 2
        undefined = ir.Constant(vector.type, ir.Undefined)
        lanes = [ir.Constant(ir.VectorType(_INT32, half), list(range(at, at + half))) for at in (0, half)]
        low, high = (builder.shuffle_vector(vector, undefined, mask) for mask in lanes)
        vector = combine(low, high)
    return builder.extract_element(vector, ir.Constant(_INT32, 0))


@intrinsic
def sum_lanes(typing: Context, x: Vector) -> Intrinsic:
    """Return the sum of the lanes."""
    return x.dtype(x), lambda context, builder, signature, args: _fold(builder, args[0], builder.fadd)


@intrinsic
def max_lanes(typing: Context, x: Vector) -> Intrinsic:
    """Return the largest lane."""
    return x.dtype(x), lambda context, builder, signature, args: _fold(
        builder, args[0], lambda low, high: _larger(builder, low, high)
    )


# Coefficients of the polynomial for 2^f on [-1/2, 1/2], lowest power first: the minimax fit of the relative
# error among those with constant 1, so that 2^x of an integer is exact. Errors 9.2e-8 and 2.3e-16.
_POWERS_32 = (1.0, 0.6931470036506653, 0.24022242426872253, 0.05550733581185341, 0.009671512991189957,
              0.001326472731307149)  # fmt: skip
_POWERS_64 = (1.0, 0.6931471805599472, 0.24022650695910033, 0.05550410866473934, 0.009618129107593007,
              0.001333355815871577, 0.00015403530481150398, 1.5252725552745531e-05, 1.3215418109343915e-06,
              1.0180665030745977e-07, 7.077147129580304e-09, 4.1433982219555703e-10)  # fmt: skip
# Per float width: coefficients, 1.5 times 2^(mantissa bits), lowest exponent kept, mantissa bits.
_EXP2 = {32: (_POWERS_32, 1.5 * 2.0**23, -125.0, 23), 64: (_POWERS_64, 1.5 * 2.0**52, -1021.0, 52)}


@intrinsic
def exp2(typing: Context, x: Vector) -> Intrinsic:
    """Return 2^x, and 2^-125 (float64: 2^-1021) for everything below that; NaN stays NaN.

    2^x = 2^r 2^f with r the nearest integer. Adding 1.5 * 2^23 rounds x to r and leaves r in the low bits,
    from where a shift brings it into the exponent of the polynomial for 2^f.
    """
    (*rest, last), magic, lowest, shift = _EXP2[x.dtype.bitwidth]

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        kind, integers = _vector_of(x.dtype), _integers(x.dtype)
        low, high = _constant(kind, lowest), _constant(kind, magic)
        t = builder.select(builder.fcmp_ordered("<", args[0], low), low, args[0])
        rounded = builder.fadd(t, high)
        f = builder.fsub(t, builder.fsub(rounded, high))
        power = _constant(kind, last)
        for coefficient in reversed(rest):
            power = _fma(builder, power, f, _constant(kind, coefficient))
        exponent = builder.shl(builder.bitcast(rounded, integers), _constant(integers, shift))
        return builder.bitcast(builder.add(builder.bitcast(power, integers), exponent), kind)

    return x(x), code


# Coefficients for 2^x on [-1, 1], lowest power first, with constant 1, so that 2^0 is exact. Errors 3.8e-8 and 6.8e-17.
_SMALL_POWERS = {
    32: (1.0, 0.6931471824645996, 0.2402266561985016, 0.055504120886325836, 0.009616962634027004,
         0.0013332661474123597, 0.0001563635014463216, 1.543182588648051e-05),
    64: (1.0, 0.6931471805599453, 0.24022650695910072, 0.05550410866482154, 0.009618129107628475,
         0.0013333558146434476, 0.00015403530393384222, 1.525273380044119e-05, 1.3215486788577673e-06,
         1.017808704280544e-07, 7.054912068282689e-09, 4.445386770952559e-10, 2.567778002870827e-11,
         1.3801536629803963e-12, 6.826381028029354e-14),
}  # fmt: skip


@intrinsic
def exp2_small(typing: Context, x: Vector) -> Intrinsic:
    """Return 2^x for x in [-1, 1], without the range reduction of `exp2`; NaN stays NaN."""
    *rest, last = _SMALL_POWERS[x.dtype.bitwidth]

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        kind = _vector_of(x.dtype)
        power = _constant(kind, last)
        for coefficient in reversed(rest):
            power = _fma(builder, power, args[0], _constant(kind, coefficient))
        return power

    return x(x), code


# Per float width: terms of the series, mantissa bits.
_LOG2 = {32: (5, 23), 64: (11, 52)}


@intrinsic
def log2(typing: Context, x: Vector) -> Intrinsic:
    """Return log2(x) for positive, finite, normal x.

    x = 2^e m with m in [sqrt(1/2), sqrt(2)); log2 m = 2/ln 2 artanh r, r = (m - 1)/(m + 1), |r| < 0.172.
    """
    terms, bits = _LOG2[x.dtype.bitwidth]

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        kind, integers = _vector_of(x.dtype), _integers(x.dtype)
        one = _constant(kind, 1.0)
        # The bits of sqrt(1/2) split every binade at sqrt(2) instead of at 2.
        offset = int(np.array(np.sqrt(0.5), f"f{x.dtype.bitwidth // 8}").view(f"i{x.dtype.bitwidth // 8}"))
        raw = builder.sub(builder.bitcast(args[0], integers), _constant(integers, offset))
        exponent = builder.ashr(raw, _constant(integers, bits))
        mantissa = builder.sub(builder.bitcast(args[0], integers), builder.shl(exponent, _constant(integers, bits)))
        m = builder.bitcast(mantissa, kind)
        r = builder.fdiv(builder.fsub(m, one), builder.fadd(m, one))
        square = builder.fmul(r, r)
        series = _constant(kind, 2 / np.log(2) / (2 * terms - 1))
        for i in range(terms - 1, 0, -1):
            series = _fma(builder, series, square, _constant(kind, 2 / np.log(2) / (2 * i - 1)))
        return _fma(builder, series, r, builder.sitofp(exponent, kind))

    return x(x), code
