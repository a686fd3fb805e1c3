"""Embedded bytes asked without firstk: what strings stand for, as parts of the programs in JavaScript and SQL.

A string is decoded as in :class:`firstk.bits.Embedded`: bytes of codebooks are numbers of centroids, which are added
up; each bit after them leads from cell c of the tree of a coordinate to cell 2 c + 1 or 2 c + 2. The score of a string
is the cosine of what it stands for and the code of the query.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np

from firstk.bits import EmbeddedQuantizer
from firstk.encoder.fitted import FittedEncoder

_JAVASCRIPT = """
// -- stored bytes: strings of {bytes} bytes per vector, which may be cut after any byte -----------------------------

export const bytesPerVector = {bytes};
export const quantizer = "{fingerprint}"; // the stamp of codes that can be compared
const order = [{order}]; // the coordinate of each bit after the bytes of codebooks
const heaps = [{heaps}].map(floats); // the cells of each coordinate; of a cell c the next are 2 c + 1 and 2 c + 2
const offset = floats("{offset}");
const books = [{books}]; // of each of the first bytes: its first coordinate, and 256 centroids of int8 steps
const queryAxes = {query_axes}; // where scores are cosines of the vectors themselves
const since = [{since}]; // the number of bytes from which on they tell something about each coordinate

/** Strings of n vectors, one after the other in a Uint8Array, each of m bytes: m is less where they have been cut. */
export class Codes {{
  constructor(codes, m = bytesPerVector) {{
    if (!Number.isInteger(m) || m < 1 || m > bytesPerVector || codes.length % m !== 0)
      throw new RangeError(`codes have 1 to ${{bytesPerVector}} bytes per vector, got ${{codes.length}} by ${{m}}`);
    this.bytes = m;
    const n = (this.length = codes.length / m);
    this.books = books.slice(0, m);
    const bits = order.slice(0, 8 * (m - this.books.length));
    const depth = new Uint8Array(heaps.length);
    bits.forEach((i) => depth[i]++);
    // The bits of a coordinate are far apart in a string. A search wants them in one byte: one look-up is then enough.
    const planes = [];
    const place = heaps.map((_, i) => {{
      if (!depth[i]) return null;
      let plane = planes.find((one) => one.used + depth[i] <= 8);
      if (!plane) planes.push((plane = {{ used: 0, parts: [], rows: new Uint8Array(n) }}));
      const values = heaps[i].subarray(2 ** depth[i] - 1, 2 ** (depth[i] + 1) - 1);
      const part = {{ i, plane, shift: plane.used, values }};
      plane.used += depth[i];
      plane.parts.push(part);
      return part;
    }});
    const cells = new Uint8Array(heaps.length);
    for (let row = 0, at = 0; row < n; row++, at += m) {{
      cells.fill(0);
      bits.forEach((i, t) => {{
        const byte = codes[at + this.books.length + (t >> 3)];
        cells[i] = 2 * cells[i] + ((byte >> (7 - (t & 7))) & 1);
      }});
      for (const part of place) if (part) part.plane.rows[row] |= cells[part.i] << part.shift;
    }}
    this.planes = planes;
    this.bookRows = this.books.map((_, j) => Uint8Array.from({{ length: n }}, (_, row) => codes[row * m + j]));
    this.fixed = offset.map((value, i) => value + (i < heaps.length && !depth[i] ? heaps[i][0] : 0));
    this.norms = new Float64Array(n);
    for (let row = 0; row < n; row++)
      this.norms[row] = Math.sqrt(this.decode(row).reduce((sum, value) => sum + value * value, 0)) || 1;
  }}

  /** The code of a query, whose cosine with what a string stands for is the score of its row. */
  encodeQuery(vector) {{
    const z = encode(vector, width, {{ query: true }}); // checks the vector
    if (queryAxes) return product(queryAxes, vector, offset.length);
    return z.map((value, i) => (since[i] <= this.bytes ? value : 0));
  }}

  /** What the string of a row stands for, as Float64Array. */
  decode(row) {{
    const z = Float64Array.from(this.fixed);
    for (const {{ parts, rows }} of this.planes)
      for (const {{ i, shift, values }} of parts) z[i] += values[(rows[row] >> shift) & (values.length - 1)];
    this.books.forEach(({{ start, width, step, centroids }}, j) => {{
      const first = this.bookRows[j][row] * width;
      for (let c = 0; c < width; c++) z[start + c] += step * centroids[first + c];
    }});
    return z;
  }}

  /** The rows with the highest cosine, best first: [{{ row, score }}]; `query` is a vector as the encoder takes it. */
  search(query, limit = 10) {{
    const q = this.encodeQuery(query);
    const scores = new Float64Array(this.length).fill(this.fixed.reduce((sum, value, i) => sum + value * q[i], 0));
    const add = (rows, table) => {{
      for (let row = 0; row < scores.length; row++) scores[row] += table[rows[row]];
    }};
    for (const {{ parts, rows }} of this.planes)
      add(rows, Float64Array.from({{ length: 256 }}, (_, byte) =>
        parts.reduce((sum, {{ i, shift, values }}) => sum + q[i] * values[(byte >> shift) & (values.length - 1)], 0)));
    this.books.forEach(({{ start, width, step, centroids }}, j) =>
      add(this.bookRows[j], Float64Array.from({{ length: 256 }}, (_, entry) => {{
        let sum = 0;
        for (let c = 0; c < width; c++) sum += q[start + c] * centroids[entry * width + c];
        return step * sum;
      }})));
    const length = Math.sqrt(q.reduce((sum, value) => sum + value * value, 0)) || 1;
    if (!(limit >= 1)) throw new RangeError(`limit must be at least 1, got ${{limit}}`);
    const best = [];
    let least = -Infinity;
    for (let row = 0; row < scores.length; row++) {{
      const score = scores[row] / this.norms[row];
      if (best.length >= limit && score <= least) continue;
      let at = best.length;
      while (at > 0 && best[at - 1].score < score) at--;
      best.splice(at, 0, {{ row, score }});
      if (best.length > limit) best.pop();
      least = best[best.length - 1].score;
    }}
    return best.map(({{ row, score }}) => ({{ row, score: score / length }}));
  }}
}}
"""


@dataclass(frozen=True)
class StoredBytes:
    """What strings of bytes stand for, as plain arrays.

    Attributes
    ----------
    quantizer : EmbeddedQuantizer
    order : list of int
        The coordinate of each bit after the bytes of codebooks.
    heaps : list of ndarray of float32
        The cells of each coordinate, from the root.
    offset : ndarray of float32
        What decoding adds to each coordinate.
    books : list of (first coordinate, step, int8 array of shape (256, width))
    """

    quantizer: EmbeddedQuantizer
    order: list[int]
    heaps: list[np.ndarray]
    offset: np.ndarray
    books: list[tuple[int, float, np.ndarray]]

    @classmethod
    def of(cls, encoder: FittedEncoder, bytes: int) -> StoredBytes:
        """Return those of an encoder's own quantizer, searched by cosine."""
        quantizer = encoder.quantizer(bytes)
        stored = quantizer.stored
        heaps = [row[: 2 ** (b + 1) - 1] for row, b in zip(stored.trees.centroids, stored.bits, strict=True)]
        offset = np.zeros(stored.width, np.float32) if stored.offset is None else stored.offset
        coded = stored.codebooks
        starts = (start for start, _ in coded.windows.tolist())
        books = list(zip(starts, coded.steps.tolist(), coded.in_steps, strict=True))
        return cls(quantizer, stored.order.tolist(), heaps, offset, books)

    @property
    def query_axes(self) -> np.ndarray | None:
        """Axes of the code of a query where scores are cosines of the vectors themselves, which are not centred."""
        axes = self.quantizer.query_encoder
        return None if axes is self.quantizer.encoder else axes.components

    @property
    def since(self) -> list[int]:
        """For each coordinate the number of bytes from which on they tell something about it; 1,000,000 for never."""
        found = [1_000_000] * len(self.heaps)
        for n, (start, _, book) in enumerate(self.books, start=1):
            for i in range(start, start + book.shape[1]):
                found[i] = min(found[i], n)
        for t, i in enumerate(self.order):
            found[i] = min(found[i], len(self.books) + t // 8 + 1)
        return found

    def javascript(self) -> str:
        """Return the part of a module that decodes and searches strings."""
        axes = self.query_axes
        return _JAVASCRIPT.format(
            bytes=self.quantizer.bytes,
            fingerprint=self.quantizer.fingerprint,
            order=", ".join(map(str, self.order)),
            heaps=", ".join(f'"{as_text(heap)}"' for heap in self.heaps),
            since=", ".join(map(str, self.since)),
            offset=as_text(self.offset),
            books=", ".join(
                f"{{ start: {start}, width: {book.shape[1]}, step: {step!r}, "
                f'centroids: new Int8Array(bytes("{as_text(book)}")) }}'
                for start, step, book in self.books
            ),
            query_axes="null" if axes is None else f'floats("{as_text(axes.astype(np.float32))}")',
        )


def as_text(array: np.ndarray) -> str:
    """Return the bytes of an array, lowest first, as base64."""
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()
