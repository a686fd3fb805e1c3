"""mteb: its scores of a wrapped model are those of the codes, for coordinates and for bytes."""

import numpy as np
import pytest
from benchmarks.evidence.mteb_model import PrefixModel

from firstk import PrefixEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics import pair_spearman

mteb = pytest.importorskip("mteb", reason="the extra 'mteb' is needed")
datasets = pytest.importorskip("datasets")

RNG = np.random.default_rng(0)
E = (RNG.standard_normal((80, 12)) * np.linspace(3, 0.5, 12)).astype(np.float32)
TEXTS = [f"text {i}" for i in range(80)]
SCORES = RNG.random(40) * 5


class Stored:
    """A model of mteb with vectors of 80 texts; what it was asked for as queries is kept."""

    def __init__(self, width=12):
        from mteb.models.model_meta import ModelMeta

        self.width, self.types = width, []
        self.mteb_model_meta = ModelMeta.create_empty({"name": "made/stored", "embed_dim": 12})

    def encode(self, inputs, *, prompt_type=None, **_):
        self.types.append(prompt_type)
        names = [name for batch in inputs for name in batch["text"]]
        return E[[TEXTS.index(name) for name in names]][:, : self.width]


@pytest.fixture(scope="module")
def encoder():
    return PrefixEncoder(8, objective="similarity").fit(E)


def sts():
    task = mteb.get_task("STSBenchmark")
    columns = {"sentence1": TEXTS[:40], "sentence2": TEXTS[40:], "score": SCORES.tolist()}
    task.dataset, task.data_loaded = datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns)}), True
    return task


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("k", [2, 5, None])
def test_scores_of_mteb_are_those_of_the_codes(encoder, k):
    found = mteb.evaluate(PrefixModel(Stored(), encoder, k), sts(), cache=None, show_progress_bar=False)
    codes = encoder.encoder_.encode(E, k)
    wanted = pair_spearman(codes[:40], codes[40:], SCORES, ks=[codes.shape[1]])[0]
    assert found.task_results[0].get_score() == pytest.approx(wanted, abs=1e-6)


def test_queries_are_encoded_as_queries_and_bytes_as_stored():
    left, right = E[:40] + 1, E[40:]
    encoder = PrefixEncoder(6, objective="similarity").fit_pairs(left, right)
    from mteb.types import PromptType

    batches = [{"text": TEXTS[:5]}]
    about = {"task_metadata": None, "hf_split": "test", "hf_subset": "default"}
    fitted, model = encoder.encoder_, PrefixModel(Stored(), encoder, 3)
    asked = model.encode(batches, prompt_type=PromptType.query, **about)
    np.testing.assert_array_equal(asked, fitted.encode(E[:5], 3, side="query"))
    stored = model.encode(batches, prompt_type=PromptType.document, **about)
    np.testing.assert_array_equal(stored, fitted.encode(E[:5], 3))
    assert not np.array_equal(asked, stored)
    in_bytes = PrefixModel(Stored(), encoder, bytes_per_vector=2)
    quantizer = fitted.quantizer(2)
    np.testing.assert_array_equal(in_bytes.encode(batches, **about), quantizer.decode(quantizer.encode(E[:5])))
    np.testing.assert_array_equal(
        in_bytes.encode(batches, prompt_type=PromptType.query, **about), quantizer.encode_query(E[:5])
    )


def test_its_metadata_name_the_width_and_leave_those_of_the_model_alone(encoder):
    model = Stored()
    meta = PrefixModel(model, encoder, 4).mteb_model_meta
    assert meta.embed_dim == 4
    assert dict(meta.experiment_kwargs) == {"firstk": "neighbors", "k": 4}
    assert model.mteb_model_meta.embed_dim == 12


@pytest.mark.parametrize(("arguments", "says"), [
    ((Stored(), "no encoder"), "a FittedEncoder or a fitted PrefixEncoder"),
    (("no model",), "takes a model of mteb"),
    ((Stored(), None, 9), r"k.*in \[1, 8\]"),
])  # fmt: skip
def test_wrong_arguments_are_named(encoder, arguments, says):
    given = (
        [*arguments, encoder][:2] if len(arguments) == 1 else [encoder if each is None else each for each in arguments]
    )
    with pytest.raises(InvalidInputError, match=says):
        PrefixModel(*given)


def test_both_lengths_and_vectors_of_another_width_are_errors(encoder):
    with pytest.raises(InvalidInputError, match="'k' or 'bytes_per_vector', not both"):
        PrefixModel(Stored(), encoder, 4, bytes_per_vector=8)
    with pytest.raises(InvalidInputError, match=r"bytes_per_vector.*at least 1"):
        PrefixModel(Stored(), encoder, bytes_per_vector=0)
    about = {"task_metadata": None, "hf_split": "test", "hf_subset": "default"}
    with pytest.raises(InvalidInputError, match="7 coordinates, and its encoder takes 12"):
        PrefixModel(Stored(7), encoder).encode([{"text": TEXTS[:5]}], **about)
