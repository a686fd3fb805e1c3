"""FullPrefixLoss against the given loss of sentence-transformers, called once for every k."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="needs the extra 'text'")

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses as stock
from sentence_transformers.util import dot_score
from torch import nn

from firstk._base.prefix_weights import resolve_omega
from firstk.exceptions import IllegalCombinationError, InvalidInputError, TrainingWarning
from firstk.integrations.sentence_transformers import FullPrefixLoss, LoggedLoss

N, D = 7, 12
HARDNESS = {"hardness_mode": "all_negatives", "hardness_strength": 1.0}
SYMMETRIC = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}


class Table(nn.Module):
    """Stands for a model: embeddings are looked up, and trained, in a table."""

    config_keys: tuple[str, ...] = ()

    def __init__(self, rows=64):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, D))

    def forward(self, features):
        return {"sentence_embedding": self.table[features["input_ids"][:, 0]]}

    def get_embedding_dimension(self):
        return D


@pytest.fixture
def model():
    torch.manual_seed(0)
    return SentenceTransformer(modules=[Table()], device="cpu")


def columns(count):
    """Return features of `count` columns of N texts; every row of the table is read once."""
    return [{"input_ids": torch.arange(N)[:, None] + i * N} for i in range(count)]


def scores():
    return torch.linspace(0, 1, N)[torch.tensor([3, 0, 6, 2, 5, 1, 4])]


def classes():
    return torch.tensor([0, 1, 2, 0, 1, 2, 0])


def reference(model, loss, features, labels, omega="harmonic"):
    """Return sum_k omega_k loss(first k coordinates at unit norm), by the given loss itself."""
    table = model[0].table
    total = 0
    for k, weight in enumerate(resolve_omega(omega, D).without_first().omega, start=1):
        if weight:
            short = [F.normalize(table[f["input_ids"][:, 0]][:, :k], dim=1) for f in features]
            total = total + float(weight) * loss.compute_loss_from_embeddings(short, labels)
    return total


def gradient(model, loss):
    model.zero_grad()
    loss.backward()
    return model[0].table.grad.clone()


EXACT = {
    "ranking": (lambda m: stock.MultipleNegativesRankingLoss(m), 2, None),
    "ranking, hard negatives": (lambda m: stock.MultipleNegativesRankingLoss(m, scale=5), 4, None),
    "ranking, both ways": (lambda m: stock.MultipleNegativesRankingLoss(m, **SYMMETRIC), 3, None),
    "ranking, gathered": (lambda m: stock.MultipleNegativesRankingLoss(m, gather_across_devices=True), 3, None),
    "scores": (lambda m: stock.CosineSimilarityLoss(m), 2, scores),
    "order of scores": (lambda m: stock.CoSENTLoss(m, scale=7), 2, scores),
}


@pytest.mark.parametrize("omega", ["harmonic", {2: 1.0, 5: 3.0, 12: 1.0}])
@pytest.mark.parametrize("name", EXACT)
def test_exact_is_the_sum_over_every_prefix(model, name, omega):
    build, count, labels = EXACT[name]
    given, features, labels = build(model), columns(count), labels and labels()
    loss = FullPrefixLoss(model, given, omega=omega)
    assert loss.estimator in ("auto", "exact")
    found, wanted = loss(features, labels), reference(model, given, features, labels, omega)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient(model, found), gradient(model, wanted), rtol=1e-4, atol=1e-6)


def test_dot_products_are_not_normalized(model):
    given = stock.MultipleNegativesRankingLoss(model, scale=1, similarity_fct=dot_score)
    found = FullPrefixLoss(model, given, omega="uniform", log_prefixes=[3])(columns(2))
    a, b = model[0].table[:N], model[0].table[N : 2 * N]
    at = [F.cross_entropy(a[:, :k] @ b[:, :k].T, torch.arange(N)) for k in range(1, D + 1)]
    torch.testing.assert_close(found["full_prefix"], sum(at) / D)
    torch.testing.assert_close(found["loss_at_3"], at[2].detach())


@pytest.mark.parametrize("options", [{}, {"concatenation_sent_multiplication": True, "concatenation_sent_rep": False}])
def test_a_classifier_reads_the_first_coordinates_of_every_part(model, options):
    given = stock.SoftmaxLoss(model, D, num_labels=3, **options)
    loss, features, labels = FullPrefixLoss(model, given, omega="uniform"), columns(2), classes()
    u, v = model[0].table[:N], model[0].table[N : 2 * N]
    parts = [torch.abs(u - v), u * v] if options else [u, v, torch.abs(u - v)]
    total = 0
    for k in range(1, D + 1):
        zeroed = torch.cat([torch.cat([part[:, :k], torch.zeros(N, D - k)], 1) for part in parts], 1)
        total = total + F.cross_entropy(given.classifier(zeroed), labels) / D
    found = loss(features, labels)
    torch.testing.assert_close(found, total, rtol=1e-5, atol=1e-6)
    found.backward()
    mine = given.classifier.weight.grad.clone()
    given.zero_grad()
    total.backward()
    torch.testing.assert_close(mine, given.classifier.weight.grad, rtol=1e-4, atol=1e-6)


def test_a_perfect_student_has_no_loss_and_another_has_the_mean_of_its_errors(model):
    loss = FullPrefixLoss(model, stock.MSELoss(model), omega="uniform")
    teacher = model[0].table[:N].detach()
    assert loss(columns(1), teacher).item() == 0
    errors = torch.arange(1.0, D + 1)
    wanted = sum(errors[:k].square().mean() for k in range(1, D + 1)) / D
    assert loss(columns(1), teacher + errors).item() == pytest.approx(float(wanted), rel=1e-5)
    with pytest.raises(InvalidInputError, match=r"both need 12 coordinates. Got a teacher of 5"):
        loss(columns(1), teacher[:, :5])


@pytest.mark.parametrize("both_ways", [False, True])
def test_cached_losses_have_the_gradients_of_uncached_ones(model, both_ways):
    options = SYMMETRIC if both_ways else {}
    cached = FullPrefixLoss(
        model, stock.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2, **options), log_prefixes=[4, D]
    )
    plain = FullPrefixLoss(model, stock.MultipleNegativesRankingLoss(model, **options), log_prefixes=[4, D])
    found, wanted = cached(columns(3)), plain(columns(3))
    for key in wanted:
        torch.testing.assert_close(found[key], wanted[key])
    torch.testing.assert_close(gradient(model, found), gradient(model, wanted))
    with torch.no_grad():
        assert cached(columns(3)).item() == pytest.approx(wanted.item(), rel=1e-5)


RANDOM = {
    "ranking": ("sampled", lambda m: stock.MultipleNegativesRankingLoss(m), 2, None),
    "ranking, drawn": ("drawn", lambda m: stock.MultipleNegativesRankingLoss(m), 2, None),
    "scores": ("sampled", lambda m: stock.CosineSimilarityLoss(m), 2, scores),
    "triplets": ("drawn", lambda m: stock.TripletLoss(m), 3, None),
    "batch triplets": ("drawn", lambda m: stock.BatchAllTripletLoss(m), 1, classes),
    "hardness": ("drawn", lambda m: stock.MultipleNegativesRankingLoss(m, **HARDNESS), 2, None),
}


@pytest.mark.filterwarnings("ignore::firstk.exceptions.TrainingWarning")
@pytest.mark.parametrize("name", RANDOM)
def test_random_prefixes_estimate_the_sum(model, name):
    estimator, build, count, labels = RANDOM[name]
    given, features, labels = build(model), columns(count), labels and labels()
    options = {"omega": "harmonic", "generator": torch.Generator().manual_seed(0)}
    loss = FullPrefixLoss(model, given, estimator=estimator, draws=3, **options)
    with torch.no_grad():
        draws = torch.stack([loss(features, labels) for _ in range(600)])
        wanted = reference(model, given, features, labels)
    error = draws.std() / len(draws) ** 0.5
    assert draws.std() > 0
    assert abs(draws.mean() - wanted) < 4 * error


def test_the_log_holds_single_prefixes_and_the_sum_only_the_loss(model):
    given = stock.MultipleNegativesRankingLoss(model)
    found = FullPrefixLoss(model, given, log_prefixes="auto")(columns(2))
    assert isinstance(found, LoggedLoss)
    assert list(found) == ["full_prefix", "loss_at_8", "loss_at_12"]
    assert found.values() == [found["full_prefix"]]
    assert not found["loss_at_8"].requires_grad
    short = [F.normalize(model[0].table[i * N : i * N + N, :8], dim=1) for i in range(2)]
    torch.testing.assert_close(found["loss_at_8"], given.compute_loss_from_embeddings(short, None).detach())


def test_the_loss_is_a_tensor_that_can_be_scaled_and_added(model):
    loss = FullPrefixLoss(model, stock.MultipleNegativesRankingLoss(model))
    half = loss(columns(2)) / 2 + 1.0
    assert isinstance(half, torch.Tensor)
    assert half.requires_grad


def test_a_list_of_lengths_has_half_of_the_weight_and_is_logged(model):
    given = stock.MultipleNegativesRankingLoss(model)
    loss = FullPrefixLoss(model, given, [12, 6], log_prefixes="auto")
    omega, plain = loss.weights(D).omega, FullPrefixLoss(model, given).weights(D).omega
    np.testing.assert_allclose(omega, (plain + np.isin(np.arange(1, D + 1), (6, 12)) / 2) / 2)
    assert list(loss(columns(2))) == ["full_prefix", "loss_at_6", "loss_at_12"]
    with pytest.raises(InvalidInputError, match="'matryoshka_dims' parameter"):
        FullPrefixLoss(model, given, matryoshka_dims=[D + 1])


def test_settings_without_an_exact_sum_are_told(model):
    with pytest.warns(TrainingWarning, match="hardness_mode"):
        loss = FullPrefixLoss(model, stock.MultipleNegativesRankingLoss(model, **HARDNESS))
    assert loss.estimator == "drawn"


def test_the_model_is_left_as_it_is(model):
    forward = model.forward
    given = stock.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2)
    calculate = given.calculate_loss
    FullPrefixLoss(model, given)(columns(2)).backward()
    assert model.forward == forward
    assert given.calculate_loss == calculate


def test_errors_name_what_is_supported(model):
    ranking = stock.MultipleNegativesRankingLoss(model)
    with pytest.raises(IllegalCombinationError, match=r"around AnglELoss is not possible: .* Instead: Multiple"):
        FullPrefixLoss(model, stock.AnglELoss(model))
    with pytest.raises(IllegalCombinationError, match="MatryoshkaLoss is not possible: it sums over prefixes itself"):
        FullPrefixLoss(model, stock.MatryoshkaLoss(model, ranking, [D]))
    with pytest.raises(IllegalCombinationError, match="cannot be computed from embeddings alone"):
        FullPrefixLoss(model, nn.Linear(2, 2))
    with pytest.raises(IllegalCombinationError, match="TripletLoss with estimator='exact' is not possible"):
        FullPrefixLoss(model, stock.TripletLoss(model), estimator="exact")
    with pytest.raises(IllegalCombinationError, match="CoSENTLoss with estimator='sampled' is not possible"):
        FullPrefixLoss(model, stock.CoSENTLoss(model), estimator="sampled")
    with pytest.raises(InvalidInputError, match="'log_prefixes' parameter"):
        FullPrefixLoss(model, ranking, log_prefixes=[D + 1])
    with pytest.raises(InvalidInputError, match="'omega' parameter"):
        FullPrefixLoss(model, ranking, omega={D + 1: 1.0})
    with pytest.raises(InvalidInputError, match=r"needs anchors and positives. Got 1"):
        FullPrefixLoss(model, ranking, log_prefixes=())(columns(1))
    with pytest.raises(InvalidInputError, match="needs labels"):
        FullPrefixLoss(model, stock.CoSENTLoss(model), log_prefixes=())(columns(2))
    with pytest.raises(InvalidInputError, match=r"takes pairs, two columns of texts. Got 3"):
        FullPrefixLoss(model, stock.CosineSimilarityLoss(model), log_prefixes=())(columns(3), scores())
