"""What vector stores hold and how they compare it: one table with one row per product.

A store is a set of forms: a precision, how queries are held, whether float32 codes rescore a shortlist, and what a row
takes. Figures are those of each product's documentation; formulas of precisions are in `firstk.advice.store_scores`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from firstk.exceptions import InvalidInputError

# Bits per coordinate, and how queries are held where stored codes are compared with them. "scalar": 8 bits between
# the least and the largest number of all; "rotated bits": signs after a random rotation, with queries in floats.
FORMULAS: dict[str, tuple[int, str]] = {
    "float32": (32, "float32"),
    "float16": (16, "float32"),
    "int8": (8, "int8"),
    "scalar": (8, "float32"),
    "binary": (1, "binary"),
    "rotated bits": (1, "float32"),
}


@dataclass(frozen=True)
class Form:
    """One way in which a store holds vectors.

    Attributes
    ----------
    name : str
        What the product calls it.
    precision : str
        A name in `FORMULAS`: what a search goes through.
    lines : str
        What creates it, with {k} for the number of coordinates and {f} for the oversampling.
    most : int
        Coordinates that it takes at most, indexed.
    more : int
        Bytes per row beside those of the coordinates.
    rescored : bool
        Whether the store keeps float32 codes too, which rescore a shortlist.
    part : int
        Of a prefix index: the search goes through the first 1/part of the coordinates.
    multiple : int
        Of which the number of coordinates has to be a multiple.
    widest : int
        The largest oversampling that it takes.
    moved : str, optional
        How a move recodes vectors to fill it; None where moves do not.
    """

    name: str
    precision: str
    lines: str
    most: int
    more: int = 0
    rescored: bool = False
    part: int = 1
    multiple: int = 1
    widest: int = 50
    moved: str | None = None

    @property
    def queries(self) -> str:
        """How queries are held in the search: float32, int8 or binary."""
        return FORMULAS[self.precision][1]

    def searched(self, k: int) -> int:
        """Return how many coordinates the search goes through."""
        return max(1, k // self.part)

    def bytes(self, k: int) -> int:
        """Return the bytes of a row, without ids, graphs and what all rows share."""
        searched = -(-FORMULAS[self.precision][0] * self.searched(k) // 8) + self.more
        return searched + (4 * k + self.more if self.rescored else 0)

    def fits(self, k: int) -> bool:
        """Tell whether it takes codes of k coordinates."""
        return k <= self.most and k % self.multiple == 0

    def longest(self, size: int, d: int) -> int | None:
        """Return the most coordinates, up to d, of a row within so many bytes; None where none fits."""
        return max((k for k in range(1, d + 1) if self.fits(k) and self.bytes(k) <= size), default=None)

    def configuration(self, k: int, oversampling: int | None = None) -> str:
        """Return the lines that create it for codes of k coordinates."""
        return self._filled(self.lines, k, oversampling)

    def recode(self, k: int) -> dict[str, str] | None:
        """Return how a move recodes vectors to fill it; None where moves do not."""
        if self.moved is None:
            return None
        return dict(word.split("=") for word in self._filled(self.moved, k, None).split())

    def _filled(self, text: str, k: int, oversampling: int | None) -> str:
        factor = oversampling or 1
        return text.format(k=k, b=k // 8, s=self.searched(k), f=factor, n=10 * factor)


@dataclass(frozen=True)
class Store:
    """A product: the forms that it takes, and names that mean it too.

    Attributes
    ----------
    name : str
    title : str
        The product and the version from which on it has all of these.
    forms : tuple of Form
    relatives : tuple of str
        Products that hold the same, and other spellings.
    address : str
        Where ``firstk move`` writes to and ``firstk search`` asks.
    """

    name: str
    title: str
    forms: tuple[Form, ...]
    relatives: tuple[str, ...] = ()
    address: str = ""

    def form(self, name: str) -> Form:
        """Return the form of this name."""
        return next(form for form in self.forms if form.name == name)


_PG = "CREATE TABLE documents (id bigint PRIMARY KEY, code {type}({{k}}));"
_PG_INDEX = "CREATE INDEX ON documents USING hnsw (code {type}_{by}_ops);"
_PG_FIRST = "SET hnsw.ef_search = {n};  -- a shortlist of {n} for 10 results"


def _pg(kind: str, by: str) -> str:
    return "\n".join((_PG.format(type=kind), _PG_INDEX.format(type=kind, by=by)))


def _pg_rescored(expression: str, operators: str) -> str:
    return "\n".join(
        (_PG.format(type="vector"), f"CREATE INDEX ON documents USING hnsw (({expression}) {operators});", _PG_FIRST)
    )


def _json(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}").replace("<", "{").replace(">", "}")


_QDRANT = '{"vectors": {"size": <k>, "distance": "Cosine", %s}%s}'
_ELASTIC = (
    '{"type": "dense_vector", "dims": <k>, "element_type": "%s", "similarity": "%s", "index_options": {"type": "%s"%s}}'
)
_WEAVIATE = "Configure.VectorIndex.hnsw(quantizer=Configure.VectorIndex.Quantizer.%s)"
_RESCORE = ', "rescore_vector": {"oversample": <f>}'

STORES: tuple[Store, ...] = (
    Store("pgvector", "PostgreSQL with pgvector 0.8", (
        Form("vector", "float32", _pg("vector", "cosine"), 2000, 8, moved="k={k}"),
        Form("halfvec", "float16", _pg("halfvec", "cosine"), 4000, 8, moved="k={k} precision=float16"),
        Form("bit", "binary", _pg("bit", "hamming"), 64000, 8, moved="k={k} precision=binary"),
        Form("vector, index of bits", "binary",
             _pg_rescored("binary_quantize(code)::bit({k})", "bit_hamming_ops"), 16000, 8, rescored=True),
        Form("vector, index of a prefix", "float32",
             _pg_rescored("subvector(code, 1, {s})::vector({s})", "vector_cosine_ops"), 8000, 8, rescored=True, part=4,
             moved="k={s} full={k}"),
    ), ("postgresql", "postgres", "supabase", "neon", "alloydb", "timescale"),
        "postgresql://USER@HOST/DATABASE#documents"),
    Store("qdrant", "Qdrant 1.15", (
        Form("datatype float32", "float32", _json(_QDRANT % ('"datatype": "float32"', "")), 65536, moved="k={k}"),
        Form("datatype float16", "float16", _json(_QDRANT % ('"datatype": "float16"', "")), 65536,
             moved="k={k} precision=float16"),
        Form("float32, scalar quantization", "scalar", _json(_QDRANT % (
            '"on_disk": true', ', "quantization_config": {"scalar": {"type": "int8", "always_ram": true}}'))
            + "\nSearch with oversampling {f} and rescore.", 65536, rescored=True),
        Form("float32, binary quantization", "binary", _json(_QDRANT % (
            '"on_disk": true', ', "quantization_config": {"binary": {"always_ram": true}}'))
            + "\nSearch with oversampling {f} and rescore.", 65536, rescored=True),
    ), (), "qdrant:FOLDER#documents"),
    Store("lancedb", "LanceDB 0.20", (
        Form("float32 column", "float32", "vector: fixed_size_list(float32, {k}); distance_type('cosine')",
             65536, moved="k={k}"),
        Form("float16 column", "float16", "vector: fixed_size_list(float16, {k}); distance_type('cosine')", 65536),
        Form("uint8 column of bits", "binary", "vector: fixed_size_list(uint8, {b}); distance_type('hamming')",
             65536, multiple=8),
        Form("float32, IVF_RQ", "rotated bits",
             "table.create_index(config=IvfRq(distance_type='cosine')); search(...).refine_factor({f})", 65536, 8,
             rescored=True, multiple=8),
    ), ("lance",), "lancedb:FOLDER#documents"),
    Store("milvus", "Milvus 2.6", (
        Form("FLOAT_VECTOR", "float32", "DataType.FLOAT_VECTOR, dim={k}; metric_type COSINE", 32768, moved="k={k}"),
        Form("FLOAT16_VECTOR", "float16", "DataType.FLOAT16_VECTOR, dim={k}; metric_type COSINE", 32768),
        Form("INT8_VECTOR", "int8", "DataType.INT8_VECTOR, dim={k}; index HNSW, metric_type COSINE", 32768),
        Form("BINARY_VECTOR", "binary", "DataType.BINARY_VECTOR, dim={k}; index BIN_FLAT, metric_type HAMMING", 262144,
             multiple=8),
        Form("FLOAT_VECTOR, IVF_RABITQ refined", "rotated bits",
             "index IVF_RABITQ, refine: true, refine_type: FP32; search with refine_k {f}", 32768, 8, rescored=True),
    ), ("zilliz",), "milvus:FILE.db#documents"),
    Store("elasticsearch", "Elasticsearch 9.1", (
        Form("float", "float32", _json(_ELASTIC % ("float", "cosine", "hnsw", "")), 4096),
        Form("byte", "int8", _json(_ELASTIC % ("byte", "cosine", "hnsw", "")), 4096),
        Form("bit", "binary", _json(_ELASTIC % ("bit", "l2_norm", "hnsw", "")), 32768, multiple=8),
        Form("float, int8_hnsw", "scalar", _json(_ELASTIC % ("float", "cosine", "int8_hnsw", _RESCORE)), 4096, 4,
             rescored=True, widest=10),
        Form("float, bbq_hnsw", "rotated bits", _json(_ELASTIC % ("float", "cosine", "bbq_hnsw", _RESCORE)), 4096, 14,
             rescored=True, widest=10),
    ), ("elastic", "lucene", "solr")),
    Store("opensearch", "OpenSearch 2.17", (
        Form("float", "float32", _json('{"type": "knn_vector", "dimension": <k>, "space_type": "cosinesimil"}'), 16000),
        Form("float, encoder sq fp16", "float16", _json(
            '{"type": "knn_vector", "dimension": <k>, "method": {"engine": "faiss", "name": "hnsw", "parameters": '
            '{"encoder": {"name": "sq", "parameters": {"type": "fp16"}}}}}'), 16000),
        Form("byte", "int8", _json('{"type": "knn_vector", "dimension": <k>, "data_type": "byte"}'), 16000),
        Form("binary", "binary", _json(
            '{"type": "knn_vector", "dimension": <k>, "data_type": "binary", "space_type": "hamming"}'), 16000,
            multiple=8),
        Form("float, on_disk 32x", "binary", _json(
            '{"type": "knn_vector", "dimension": <k>, "mode": "on_disk", "compression_level": "32x"}; search with '
            '"rescore": {"oversample_factor": <f>}'), 16000, rescored=True),
    )),
    Store("weaviate", "Weaviate 1.33", (
        Form("float32 vectors", "float32", "Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)", 65535),
        Form("float32, rq 8 bits", "scalar", _WEAVIATE % "rq(bits=8, rescore_limit={n})", 65535, 16, rescored=True),
        Form("float32, bq", "binary", _WEAVIATE % "bq(rescore_limit={n})", 65535, rescored=True),
        Form("float32, rq 1 bit", "rotated bits", _WEAVIATE % "rq(bits=1, rescore_limit={n})", 65535, 8, rescored=True),
    )),
    Store("sqlite-vec", "sqlite-vec 0.1", (
        Form("float", "float32", "CREATE VIRTUAL TABLE documents USING vec0(code float[{k}] distance_metric=cosine);",
             8192, moved="k={k}"),
        Form("int8", "int8", "CREATE VIRTUAL TABLE documents USING vec0(code int8[{k}] distance_metric=cosine);", 8192),
        Form("bit", "binary", "CREATE VIRTUAL TABLE documents USING vec0(code bit[{k}]);", 8192, multiple=8),
        Form("float, rescored bits", "binary", "CREATE VIRTUAL TABLE documents USING vec0(code float[{k}], "
             "bits bit[{k}]);\nSELECT id FROM documents WHERE bits MATCH vec_quantize_binary(?) AND k = {n},\nthen "
             "order these by vec_distance_cosine(code, ?).", 8192, rescored=True, multiple=8),
    ), ("sqlite", "sqlite_vec"), "sqlite:FILE.db#documents"),
    Store("duckdb", "DuckDB 1.1", (
        Form("FLOAT", "float32", "CREATE TABLE documents (id BIGINT, code FLOAT[{k}]);\n"
             "SELECT id FROM documents ORDER BY array_cosine_distance(code, ?::FLOAT[{k}]) LIMIT 10;", 65536,
             moved="k={k}"),
        Form("BIT", "binary", "CREATE TABLE documents (id BIGINT, code BIT);\n"
             "SELECT id FROM documents ORDER BY bit_count(xor(code, ?)) LIMIT 10;", 65536, 1),
    ), ("motherduck",), "duckdb:FILE.db#documents"),
    Store("faiss", "faiss 1.11", (
        Form("Flat", "float32", 'faiss.index_factory({k}, "Flat", faiss.METRIC_INNER_PRODUCT)', 65536, moved="k={k}"),
        Form("SQfp16", "float16", 'faiss.index_factory({k}, "SQfp16", faiss.METRIC_INNER_PRODUCT)', 65536),
        Form("SQ8", "scalar", 'faiss.index_factory({k}, "SQ8", faiss.METRIC_INNER_PRODUCT)', 65536),
        Form("binary Flat", "binary", "faiss.IndexBinaryFlat({k})", 65536, multiple=8),
        Form("RaBitQ", "rotated bits", 'faiss.index_factory({k}, "RR{k},RaBitQ", faiss.METRIC_L2)', 65536, 8),
    ), (), "faiss:FOLDER"),
    Store("usearch", "usearch 2", (
        Form("f32", "float32", "Index(ndim={k}, metric='cos', dtype='f32')", 65536, moved="k={k}"),
        Form("f16", "float16", "Index(ndim={k}, metric='cos', dtype='f16')", 65536, moved="k={k} precision=float16"),
        Form("i8", "int8", "Index(ndim={k}, metric='cos', dtype='i8')", 65536),
        Form("b1", "binary", "Index(ndim={k}, metric='hamming', dtype='b1')", 65536, multiple=8),
    ), ("clickhouse", "scylladb"), "usearch:FOLDER"),
    Store("chroma", "Chroma 1", (
        Form("float32 vectors", "float32", _json('create_collection(configuration={"hnsw": {"space": "cosine"}})'),
             65536, moved="k={k}"),
    ), ("chromadb", "pinecone"), "chroma:FOLDER#documents"),
    Store("redis", "Redis 8", (
        Form("FLOAT32", "float32", "VECTOR HNSW 6 TYPE FLOAT32 DIM {k} DISTANCE_METRIC COSINE", 32768),
        Form("FLOAT16", "float16", "VECTOR HNSW 6 TYPE FLOAT16 DIM {k} DISTANCE_METRIC COSINE", 32768),
        Form("INT8", "int8", "VECTOR HNSW 6 TYPE INT8 DIM {k} DISTANCE_METRIC COSINE", 32768),
    ), ("valkey",)),
    # Files hold whatever firstk writes.
    Store("file", "files and indexes of firstk", (), ("files", "parquet", "index")),
)  # fmt: skip


def find_store(name: object, owner: str = "choose") -> Store:
    """Return the store of a name or of a relative; raise InvalidInputError, with the nearest name, for another."""
    known = {word: store for store in STORES for word in (store.name, *store.relatives)}
    if not isinstance(name, str):
        from firstk._base.checks import bad_parameter  # with numpy, which the help of commands does without

        raise bad_parameter("store", owner, "the name of a store", name)
    found = known.get(name.lower())
    if found is not None:
        return found
    near = difflib.get_close_matches(name.lower(), known, n=1)
    suggestion = f" Did you mean '{near[0]}'?" if near else ""
    raise InvalidInputError(
        f"{owner} knows no store '{name[:40]}'.{suggestion} Known are {', '.join(store.name for store in STORES)}. "
        "If yours is missing, name one that holds vectors as yours does."
    )
