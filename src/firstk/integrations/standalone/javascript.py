"""An encoder as a JavaScript module with its numbers in it, for browsers and node."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from firstk._base.atomic_file import atomic_file
from firstk.exceptions import InvalidInputError
from firstk.integrations._codes import EncoderLike, exportable, single
from firstk.integrations.standalone.stored_bytes import StoredBytes, as_text

_ENDINGS = (".mjs", ".js")
_PROGRAM = """// Codes of vectors of {p} numbers: their first k coordinates, k from 1 to {d}. Written by firstk.
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const floats = (text) => new Float32Array(bytes(text));
const doubles = (text) => new Float64Array(bytes(text));

export const inputWidth = {p};
export const width = {d};
const mean = doubles("{mean}");
const queryMean = doubles("{query_mean}");
const components = floats("{components}");
const layers = [{layers}];

// rows x, a matrix stored row by row: the first `rows` products with its rows
function product(matrix, x, rows) {{
  const out = new Float64Array(rows);
  for (let i = 0, at = 0; i < rows; i++) {{
    let sum = 0;
    for (let j = 0; j < x.length; j++) sum += matrix[at++] * x[j];
    out[i] = sum;
  }}
  return out;
}}

function unit(z) {{
  const norm = Math.sqrt(z.reduce((sum, value) => sum + value * value, 0));
  return norm > 0 ? z.map((value) => value / norm) : z;
}}

/** The first k coordinates of the code of a vector, as Float32Array; queries may have a mean of their own. */
export function encode(vector, k = width, {{ query = false }} = {{}}) {{
  if (vector.length !== inputWidth) throw new RangeError(`a vector has ${{inputWidth}} numbers`);
  if (!Array.prototype.every.call(vector, Number.isFinite)) throw new RangeError("a vector has finite numbers");
  if (!Number.isInteger(k) || k < 1 || k > width) throw new RangeError(`k must be from 1 to ${{width}}, got ${{k}}`);
  const centre = query ? queryMean : mean;
  let z = Float64Array.from(vector, (value, i) => value - centre[i]);
  layers.forEach(({{ weight, bias }}, i) => {{
    z = product(weight, z, bias.length).map((value, j) => value + bias[j]);
    if (i < layers.length - 1) z = z.map((value) => Math.max(value, 0));
  }});
{body_unit}  z = product(components, z, k);
  return Float32Array.from({result});
}}
"""


def to_javascript(encoder: EncoderLike, path: str | Path, *, bytes: int | None = None) -> Path:
    """Write an ES module, a file that ends in .mjs or .js.

    ``encode(vector, k, {query})`` of that module gives the codes of the library, to 1e-5 and better. Numbers are
    float32, the means and sums float64. With `bytes`, ``new Codes(strings).search(vector, limit)`` searches embedded
    bits, of so many bytes per vector or fewer, by cosine.
    """
    owner = "to_javascript"
    found, network = exportable(encoder, owner)
    file = Path(path)
    if file.suffix not in _ENDINGS:
        raise InvalidInputError(f"A JavaScript module ends in {' or '.join(_ENDINGS)}. Got '{file.name}'.")
    layers = ""
    if network is not None:
        layers = ", ".join(
            f'{{ weight: floats("{as_text(single(weight, owner))}"), bias: floats("{as_text(single(bias, owner))}") }}'
            for weight, bias in zip(network.weights, network.biases, strict=True)
        )
    program = _PROGRAM.format(
        p=found.p,
        d=found.d,
        mean=as_text(np.asarray(found.mean, "<f8")),
        query_mean=as_text(np.asarray(found.query_mean, "<f8")),
        components=as_text(single(found.components, owner)),
        layers=layers,
        body_unit="  z = unit(z);\n" if network is not None and network.normalize else "",
        result="unit(z)" if found.normalized else "z",
    )
    if bytes is not None:
        program += StoredBytes.of(found, bytes).javascript()
    with atomic_file(file, "A JavaScript module", kinds=_ENDINGS) as temporary:
        temporary.write_text(program, "utf-8")
    return file
