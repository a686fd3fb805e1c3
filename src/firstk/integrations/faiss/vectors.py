"""Encoders inside a faiss index, which then takes raw vectors: it centers, projects, truncates and normalizes them.

Needs the extra "search".

The index is an ordinary ``faiss.IndexPreTransform``, so ``faiss.write_index`` writes encoder and codes to one file
that faiss can read without firstk, in any of its languages.

Notes
-----
The chain is centering, a linear map without bias, and normalization if codes are normalized. Centering comes first
because a bias after the product loses digits if offsets are large. Unlike faiss's own PCA, it does not change inner
products: vectors are centered only if the objective was fitted that way, and its inner products are those of the
centered codes; objective "similarity" with ``keep="dot_products"`` does not center.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from firstk._base.atomic_file import atomic_file
from firstk._base.checks import bad_parameter, check_choice, check_prefix, check_same_length, require
from firstk._base.input_file import check_regular
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.integrations._codes import Codes, EncoderLike
from firstk.integrations._documents import Documents

if TYPE_CHECKING:
    import faiss as _faiss
    from numpy.typing import ArrayLike

    from firstk.data.files import VectorTable

Index: TypeAlias = "_faiss.Index"
PreTransform: TypeAlias = "_faiss.IndexPreTransform"

_OWNER = "to_faiss"
_SIDES = ("document", "query")
# Number of rows converted to float32 and added at a time.
_ROWS = 65_536
# Maximum number of training rows of an index; faiss samples from these.
_TRAINING_ROWS = 262_144
# Marker before the checksum at the end of a file.
_MARK = b"firstk-sha256:"


def to_faiss(
    encoder: EncoderLike,
    k: int | None = None,
    index: str = "Flat",
    *,
    documents: ArrayLike | VectorTable | None = None,
    ids: ArrayLike | str | None = None,
    metric: str = "auto",
    side: str | None = None,
    progress: bool = False,
) -> PreTransform:
    """Build a faiss index that takes raw vectors.

    Parameters
    ----------
    encoder : PrefixEncoder or FittedEncoder
        A linear encoder.
    k : int, optional
        Length of the prefix to search; the full width if not given.
    index : str
        Index of the codes, as a string of faiss's index_factory: "Flat", "HNSW32", "IVF256,Flat".
    documents : array-like of shape (n, p) or table, optional
        Raw vectors to train the index on and to add; a table of :func:`firstk.data.files.open_vectors` is read in
        blocks. The index that is returned takes queries.
    ids : array-like of n ints or str, optional
        Unique ids of the documents, returned by searches; of a table, the name of a column of whole numbers. Row
        numbers if not given.
    metric : str
        "cosine", "inner_product" or "l2"; "auto" is cosine, which curves evaluate.
    side : {"document", "query"}, optional
        Side whose mean the index subtracts. Only needed without documents, if the two means differ (see Notes).
    progress : bool
        Show a progress bar of the documents added.

    Returns
    -------
    index : faiss.IndexPreTransform

    Notes
    -----
    An index has the same transform for adding and for searching, but an encoder fitted on pairs subtracts a separate
    mean from queries and from documents. `documents` are added with the mean of documents, and the returned index
    subtracts the mean of queries. Add later documents with :func:`as_side`.
    """
    faiss = require("faiss", "search", "A faiss index")
    codes = Codes.of(encoder, metric, _OWNER)
    k = check_prefix(k, codes.encoder.d, _OWNER)
    check_linear(codes)
    if documents is None:
        if ids is not None:
            raise InvalidInputError("The 'ids' of to_faiss belong to 'documents'. Got no documents: pass both.")
        if side is None and not _one_mean(codes):
            raise InvalidInputError(
                "This encoder subtracts different means from queries and documents, but an index has one transform. "
                "Pass documents=..., or side='document' to add and as_side(index, encoder, 'query') to search."
            )
        check_choice(side or "document", _SIDES, "side", _OWNER)
        return transformed(faiss, codes, k, _store(faiss, k, index, codes.metric), side or "document")
    if side is not None:
        raise InvalidInputError("With 'documents', to_faiss handles both sides itself. Omit 'side'.")
    rows = Documents.of(documents, codes.encoder.p, _OWNER, "documents")
    numbers = _checked_ids(rows.column(ids) if isinstance(ids, str) else ids, rows)
    store = _store(faiss, k, index, codes.metric, with_ids=numbers is not None)
    whole = transformed(faiss, codes, k, store, "document")
    _fill(whole, rows, numbers, index, progress)
    return whole if _one_mean(codes) else as_side(whole, encoder, "query")


def as_side(index: PreTransform, encoder: EncoderLike, side: str) -> PreTransform:
    """Return a view of an index of :func:`to_faiss` for the vectors of one side; the stored codes are shared.

    Parameters
    ----------
    index : faiss.IndexPreTransform
    encoder : PrefixEncoder or FittedEncoder
        The encoder that the index was built from.
    side : {"document", "query"}
        "document" to add, "query" to search.
    """
    faiss = require("faiss", "search", "A faiss index")
    check_choice(side, _SIDES, "side", "as_side")
    chain, store = _taken_apart(faiss, index)
    # The transforms show whether rows are normalized; the rest is the metric of the store.
    metric = "cosine" if len(chain) == 3 else ("l2" if store.metric_type == faiss.METRIC_L2 else "inner_product")
    codes = Codes.of(encoder, metric, "as_side")
    if (codes.encoder.p, codes.unit) != (index.d, len(chain) == 3) or store.d > codes.encoder.d:
        raise InvalidInputError(
            f"This index takes {index.d} columns and holds codes of {store.d}; it was not built from this encoder, "
            f"which maps {codes.encoder.p} columns to {codes.encoder.d}."
        )
    view = transformed(faiss, codes, store.d, store, side)
    vars(view)["referenced_objects"].append(index)  # it owns the store
    return view


def save(index: Index, path: str | Path) -> Path:
    """Write an index to one file, atomically; ``faiss.read_index`` and :func:`load` read it.

    The file ends with a checksum, which faiss ignores and :func:`load` checks.
    """
    faiss = require("faiss", "search", "A faiss index")
    with atomic_file(path, "A faiss index", kinds=(".faiss", ".index")) as temporary:
        try:
            faiss.write_index(index, str(temporary))
        except RuntimeError as error:
            raise InvalidInputError(f"faiss could not write '{path}': {_reason(error)}. Nothing was changed.") from None
        checksum = _MARK + _digest(temporary, temporary.stat().st_size)
        with temporary.open("ab") as file:
            file.write(checksum)
    return Path(path)


def takes_ids(ids: np.ndarray) -> bool:
    """Tell whether a faiss index can return these ids: different whole numbers from 0 on."""
    return ids.ndim == 1 and ids.dtype.kind in "iu" and int(ids.min()) >= 0 and len(np.unique(ids)) == len(ids)


def save_ids(ids: np.ndarray, index: str | Path) -> Path:
    """Write ids that faiss cannot hold next to an index: a JSON list, in which the number of a row is its position.

    Examples
    --------
    >>> import json, tempfile
    >>> path = save_ids(np.array(["a", "b"]), tempfile.mkdtemp() + "/documents.faiss")
    >>> path.name, json.loads(path.read_text())
    ('documents.faiss.ids.json', ['a', 'b'])
    """
    path = ids_file(index)
    text = json.dumps(ids.tolist(), default=str)
    with atomic_file(path, "A list of ids", kinds=(".json",)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def ids_file(index: str | Path) -> Path:
    """Return the name of the file of ids of an index."""
    return Path(f"{index}.ids.json")


def load(path: str | Path) -> PreTransform:
    """Read an index written by :func:`save` or ``faiss.write_index``; raise CorruptModelError for other files."""
    faiss = require("faiss", "search", "A faiss index")
    file = Path(path)
    check_regular(file)
    # Files written by faiss itself have no checksum.
    size = file.stat().st_size - len(_MARK) - hashlib.sha256().digest_size
    if size >= 0:
        with file.open("rb") as stream:
            stream.seek(size)
            mark, stored = stream.read(len(_MARK)), stream.read()
        if mark == _MARK and stored != _digest(file, size):
            raise CorruptModelError(f"'{file}' does not match its own checksum: it is damaged. Copy or write it again.")
    try:
        index = faiss.read_index(str(file))
    except (RuntimeError, MemoryError) as error:
        raise CorruptModelError(f"'{file}' is not a readable faiss index ({_reason(error)}). Write it again.") from None
    _taken_apart(faiss, index)
    return index


def _digest(file: Path, size: int) -> bytes:
    """Return the SHA-256 of the first `size` bytes of a file."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while size > 0 and (piece := stream.read(min(size, 1 << 20))):
            digest.update(piece)
            size -= len(piece)
    return digest.digest()


def check_linear(codes: Codes) -> None:
    """Raise an error for an encoder that is a network."""
    if codes.encoder.network is not None:
        raise InvalidInputError(
            "faiss has no transform for a network, so only linear encoders fit into an index. Encode first: "
            "add encoder.transform(X, k) to an index of faiss, or run the encoder as ONNX before it."
        )


def _one_mean(codes: Codes) -> bool:
    return np.array_equal(codes.encoder.mean, codes.encoder.query_mean)


def _store(faiss: ModuleType, k: int, description: str, metric: str, *, with_ids: bool = False) -> Index:
    """Build the index of the codes."""
    kind = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
    if not isinstance(description, str):
        raise bad_parameter("index", _OWNER, "a string of faiss's index_factory, such as 'HNSW32'", description)
    try:
        store = faiss.index_factory(k, description, kind)
    except RuntimeError as error:
        raise InvalidInputError(
            f"faiss cannot build an index '{description}' on {k} coordinates: {_reason(error)}. "
            "Examples that it can: 'Flat', 'HNSW32', 'IVF256,Flat'."
        ) from None
    takes_ids = isinstance(store, (faiss.IndexIVF, faiss.IndexIDMap, faiss.IndexIDMap2))
    return store if takes_ids or not with_ids else faiss.IndexIDMap2(store)


def transformed(faiss: ModuleType, codes: Codes, k: int, store: Index, side: str) -> PreTransform:
    """Prepend the encoder to an index of codes: x to B_k (x - mean), then to unit norm if codes are normalized."""
    encoder = codes.encoder
    mean = encoder.query_mean if side == "query" else encoder.mean
    return chained(faiss, store, mean, encoder.components[:k], unit=codes.unit)


def chained(
    faiss: ModuleType, store: Index, mean: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, *, unit: bool
) -> PreTransform:
    """Prepend ``weight (x - mean) + bias`` to an index, and normalization if rows are to have unit norm."""
    d, p = weight.shape
    centre, project = faiss.CenteringTransform(p), faiss.LinearTransform(p, d, bias is not None)
    faiss.copy_array_to_vector(mean.astype(np.float32), centre.mean)
    faiss.copy_array_to_vector(weight.astype(np.float32).ravel(), project.A)
    if bias is not None:
        faiss.copy_array_to_vector(bias.astype(np.float32), project.b)
    centre.is_trained = project.is_trained = True
    whole = faiss.IndexPreTransform(store)
    if unit:
        whole.prepend_transform(faiss.NormalizationTransform(d, 2.0))
    whole.prepend_transform(project)
    whole.prepend_transform(centre)
    return whole


def _taken_apart(faiss: ModuleType, index: PreTransform) -> tuple[list[_faiss.VectorTransform], Index]:
    """Return the transforms of a firstk index, and the index of its codes."""
    chain = []
    if isinstance(index, faiss.IndexPreTransform):
        chain = [faiss.downcast_VectorTransform(index.chain.at(i)) for i in range(index.chain.size())]
    kinds = (faiss.CenteringTransform, faiss.LinearTransform, faiss.NormalizationTransform)
    ours = len(chain) in (2, 3) and all(isinstance(part, kind) for part, kind in zip(chain, kinds, strict=False))
    if not ours:
        raise InvalidInputError(
            f"This faiss index ({type(index).__name__}) holds no firstk encoder. Build one with to_faiss, or read it "
            "with faiss.read_index."
        )
    return chain, faiss.downcast_index(index.index)


def _checked_ids(ids: ArrayLike | None, documents: Documents) -> np.ndarray | None:
    """Return unique ids as int64, or None if row numbers suffice; not negative, as faiss returns -1 for no result."""
    if ids is None:
        return None if documents.gapless else np.arange(documents.rows)
    numbers = np.asarray(ids)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise bad_parameter("ids", _OWNER, "a list of ints", ids)
    check_same_length(numbers, range(documents.rows), "ids", "documents", _OWNER)
    if int(numbers.min()) < 0 or int(numbers.max()) >= 2**63:
        raise InvalidInputError(f"The 'ids' of to_faiss must lie in [0, 2^63). Got {numbers.min()} to {numbers.max()}.")
    values, counts = np.unique(numbers, return_counts=True)
    if (counts > 1).any():
        raise InvalidInputError(
            f"The 'ids' of to_faiss must be unique: {int((counts > 1).sum())} occur more than once, the first of them "
            f"{values[counts > 1][0]}. faiss would keep all copies; drop the rows that were replaced."
        )
    return numbers.astype(np.int64)


def _fill(whole: PreTransform, documents: Documents, ids: np.ndarray | None, description: str, progress: bool) -> None:
    """Train the store if necessary, then add documents in blocks."""
    from tqdm.auto import tqdm

    if not whole.is_trained:
        sample = documents.sample(_TRAINING_ROWS)
        try:
            whole.train(np.ascontiguousarray(sample, dtype=np.float32))
        except RuntimeError as error:
            raise InvalidInputError(
                f"'{description}' cannot be trained on {len(sample)} documents: {_reason(error)}."
            ) from None
    with tqdm(total=documents.rows, desc="adding", unit="row", disable=None if progress else True) as bar:
        for block in documents.blocks(_ROWS):
            vectors = np.ascontiguousarray(block.vectors, dtype=np.float32)
            if ids is None:
                whole.add(vectors)
            else:
                whole.add_with_ids(vectors, ids[block.rows])
            bar.update(len(block))


def _reason(error: Exception) -> str:
    """Return the message of a faiss error, without the source location."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    return said.rsplit("failed: ", 1)[-1].split(".cpp:", 1)[-1].split(": ", 1)[-1].rstrip(".")
