"""Embedded bytes inside a faiss index: an additive quantizer whose codebooks are the cells of coordinates.

Needs the extra "search". What a byte stands for depends on that byte alone, and a code is the sum over bytes of a
vector: a centroid of a codebook, or one that has the coordinates of the byte and zeros elsewhere. That is what faiss's
additive quantizers decode (Babenko and Lempitsky 2014), so ``faiss.IndexResidualQuantizer`` holds the bytes as they
are, and its look-ups give the scores of :class:`firstk.CodeIndex` up to the rounding of float32. Squared distances need
the expected squared norm of each row, for which faiss has four bytes more. A cosine is no sum over bytes, because it is
divided by the norm of the row: see `bytes_to_faiss` for what to do.
"""

from __future__ import annotations

import numpy as np

from firstk._base.checks import bad_parameter, require
from firstk.exceptions import InvalidInputError
from firstk.integrations import Codes
from firstk.integrations.faiss import PreTransform, check_linear, transformed
from firstk.search import CodeIndex

_OWNER = "bytes_to_faiss"


def bytes_to_faiss(index: CodeIndex) -> PreTransform:
    """Build a faiss index that takes the vectors of queries and gives the scores of a `CodeIndex`.

    Parameters
    ----------
    index : CodeIndex
        With metric "inner_product" or "l2", and a linear encoder.

    Returns
    -------
    faiss.IndexPreTransform
        Of an ``IndexIDMap2`` of an ``IndexResidualQuantizer``. ``faiss.write_index`` writes it. It is for searches:
        faiss would encode further vectors in its own way; add them to the `CodeIndex`, and export again.

    Notes
    -----
    There is no exact export for metric "cosine". Build the `CodeIndex` with "inner_product", which for vectors of one
    length asks for the same neighbors; or add decoded rows of unit length to an index of floats, such as
    ``faiss.IndexScalarQuantizer(k, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)``.
    """
    faiss = require("faiss", "search", "A faiss index")
    if not isinstance(index, CodeIndex):
        raise bad_parameter("index", _OWNER, "a CodeIndex", index)
    if index.metric == "cosine":
        raise InvalidInputError(
            "faiss adds up look-ups and does not divide by norms, so an index of metric 'cosine' has no exact export. "
            "Build it with metric='inner_product' where vectors have about the same length, or add decoded rows of "
            "unit length to an index of floats."
        )
    packing, rows = index.packing, index.packed()
    if len(rows) and int(rows.ids.min()) < 0:
        least = rows.ids.min()
        raise InvalidInputError(f"faiss takes ids from 0 on, and this index has {least}. Build it with other ids.")
    codes = Codes.of(index.quantizer.encoder, index.metric, _OWNER)
    check_linear(codes)
    # The tables of the packing are codebooks of 256 vectors, zero but for the coordinates that a byte speaks of.
    k = index.quantizer.k
    books = [np.pad(book, ((0, 0), (window.start, k - window.stop))) for window, book in packing.books]
    for coordinates, values in zip(packing.coordinate, packing.value, strict=True):
        book = np.zeros((values.shape[1], k + 1))  # slots that are not used have the coordinate k
        book[:, coordinates] = values.T
        books.append(book[:, :k])
    books[0] = books[0] + packing.fixed  # the same for every row: part of its first vector
    sizes = faiss.UInt64Vector()
    faiss.copy_array_to_vector(np.full(len(books), 8, np.uint64), sizes)
    kind = faiss.METRIC_L2 if index.metric == "l2" else faiss.METRIC_INNER_PRODUCT
    search = faiss.AdditiveQuantizer.ST_norm_float if index.metric == "l2" else faiss.AdditiveQuantizer.ST_LUT_nonorm
    store = faiss.IndexResidualQuantizer(k, sizes, kind, search)
    faiss.copy_array_to_vector(np.vstack(books).astype(np.float32).ravel(), store.rq.codebooks)
    store.rq.is_trained = store.is_trained = True
    named = faiss.IndexIDMap2(store)
    stored = rows.packed
    if rows.norms is not None:
        stored = np.hstack([stored, rows.norms.astype("<f4").view(np.uint8).reshape(-1, 4)])
    faiss.copy_array_to_vector(np.ascontiguousarray(stored).ravel(), store.codes)
    faiss.copy_array_to_vector(rows.ids, named.id_map)
    store.ntotal = named.ntotal = len(rows)
    named.construct_rev_map()
    quantizer, p = index.quantizer, codes.encoder.p
    if codes.encoder.normalized or quantizer.encode_query(np.zeros((1, p))).any():
        return transformed(faiss, codes, quantizer.k, named, "query")
    # Queries that are not centred: a linear map is all, and its columns are the codes of the axes.
    project = faiss.LinearTransform(p, quantizer.k, False)
    faiss.copy_array_to_vector(np.ascontiguousarray(quantizer.encode_query(np.eye(p)).T).ravel(), project.A)
    project.is_trained = True
    whole = faiss.IndexPreTransform(named)
    whole.prepend_transform(project)
    return whole
