"""Types of what a user may pass as rows, for annotations: arrays, sparse matrices and collections of dask.

No module is imported for them at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix


class DaskCollection(Protocol):
    """A collection of dask, recognized by its protocol."""

    def __dask_graph__(self) -> object:
        """Return the graph of tasks."""


SparseMatrix: TypeAlias = "spmatrix | sparray"
MatrixLike: TypeAlias = "ArrayLike | spmatrix | sparray | DaskCollection"
