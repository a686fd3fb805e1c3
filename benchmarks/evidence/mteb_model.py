"""Codes under the protocol of mteb: a model of its kind, with its vectors encoded and cut to k coordinates or bytes.

Needs the package mteb (extra "benchmarks"). Tasks, splits and scores are those of mteb, so that figures can be set
beside its tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import bad_parameter, check_prefix, is_int
from firstk.encoder.fitted import check_fitted
from firstk.exceptions import InvalidInputError
from firstk.integrations._codes import EncoderLike

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta

_OWNER = "PrefixModel"


class PrefixModel:
    """A model of mteb whose vectors are encoded by firstk and cut.

    Queries (mteb's prompt type "query") are encoded as queries, everything else as documents. Codes are compared by
    cosine.

    Parameters
    ----------
    model : model of mteb, or SentenceTransformer
    encoder : PrefixEncoder or FittedEncoder
        Fitted on vectors of this model.
    k : int, optional
        Coordinates that are kept; None keeps all.
    bytes_per_vector : int, optional
        Instead of k: documents are stored in so many bytes (`FittedEncoder.quantizer`) and queries stay floats.

    Examples
    --------
    ::

        import mteb
        from benchmarks.evidence.mteb_model import PrefixModel

        model = mteb.get_model("sentence-transformers/all-MiniLM-L6-v2")
        mteb.evaluate(PrefixModel(model, encoder, 32), mteb.get_task("STSBenchmark"))
    """

    def __init__(
        self, model: Any, encoder: EncoderLike, k: int | None = None, *, bytes_per_vector: int | None = None
    ) -> None:
        self.encoder = check_fitted(encoder, _OWNER)
        self.model = _mteb_model(model)
        if k is not None and bytes_per_vector is not None:
            raise InvalidInputError(
                f"{_OWNER} takes 'k' or 'bytes_per_vector', not both: the number of bytes decides which coordinates "
                f"are stored. Got k={k} and bytes_per_vector={bytes_per_vector}."
            )
        if bytes_per_vector is not None and not (is_int(bytes_per_vector) and bytes_per_vector >= 1):
            raise bad_parameter("bytes_per_vector", _OWNER, "an int of at least 1", bytes_per_vector)
        self.k = check_prefix(k, self.encoder.d, _OWNER)
        self.quantizer = None if bytes_per_vector is None else self.encoder.quantizer(bytes_per_vector)
        self.bytes_per_vector = bytes_per_vector

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """Metadata of the model, with the width of the code, and how it was made as an experiment of the model."""
        meta = self.model.mteb_model_meta
        settings = dict(meta.experiment_kwargs or {}) | {"firstk": self.encoder.record.objective}
        settings |= {"k": self.k} if self.quantizer is None else {"bytes": self.bytes_per_vector}
        width = self.k if self.quantizer is None else self.quantizer.k
        return meta.model_copy(update={"embed_dim": width, "experiment_kwargs": settings})

    def encode(
        self,
        inputs: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **options: Any,
    ) -> np.ndarray:
        """Return codes of inputs, as mteb asks for them."""
        found = self.model.encode(
            inputs,
            task_metadata=task_metadata,
            hf_split=hf_split,
            hf_subset=hf_subset,
            prompt_type=prompt_type,
            **options,
        )
        # In float32: numpy has no bfloat16.
        vectors = np.asarray(found.detach().float().cpu() if hasattr(found, "detach") else found)
        if vectors.shape[1] != self.encoder.p:
            raise InvalidInputError(
                f"{_OWNER} got vectors of {vectors.shape[1]} coordinates, and its encoder takes {self.encoder.p}. Fit "
                "the encoder on vectors of this model."
            )
        query = prompt_type is not None and str(getattr(prompt_type, "value", prompt_type)) == "query"
        if self.quantizer is None:
            return self.encoder.encode(vectors, self.k, side="query" if query else "document")
        if query:
            return self.quantizer.encode_query(vectors)
        return self.quantizer.decode(self.quantizer.encode(vectors))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of all codes of one side with all of the other, a tensor."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Return the cosines of codes with their partners, a tensor."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)


def _mteb_model(model: Any) -> Any:
    """Return a model of mteb; a SentenceTransformer is wrapped as mteb does it."""
    if hasattr(model, "mteb_model_meta"):
        return model
    if type(model).__name__ == "SentenceTransformer":
        from mteb.models import SentenceTransformerEncoderWrapper

        return SentenceTransformerEncoderWrapper(model)
    raise InvalidInputError(
        f"{_OWNER} takes a model of mteb (mteb.get_model) or a SentenceTransformer. Got {type(model).__name__}."
    )
