"""What autoencoders learn and when: bands of axes, the time a band is learned, and twins compared at equal error."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk_papers.balestriero2024 import equal_reconstruction, learned_order


def test_bands_cover_every_axis_once_and_grow():
    for r in (1, 2, 7, 100, 1487):
        edges = learned_order.band_edges(r)
        widths = np.diff(edges)
        assert edges[0] == 0
        assert edges[-1] == r
        assert np.all(widths > 0)
        assert np.all(np.diff(widths[:-1]) >= 0)


def test_band_sums_are_sums_of_squared_coordinates():
    rng = np.random.default_rng(0)
    X, axes = rng.normal(size=(30, 9)), np.linalg.qr(rng.normal(size=(9, 9)))[0][:7]
    found = learned_order.band_sums(X, axes, np.array([0, 1, 3, 7]))
    slow = [sum(np.mean([(x @ axes[j]) ** 2 for x in X]) for j in band) for band in ([0], [1, 2], [3, 4, 5, 6])]
    np.testing.assert_allclose(found, slow)


def test_a_band_is_learned_when_half_is_gone_for_good():
    steps = [0, 10, 20, 40]
    assert learned_order.learned_at(steps, [1.0, 0.75, 0.25, 0.1]) == 15
    assert learned_order.learned_at(steps, [1.0, 0.3, 0.75, 0.25]) == 30  # it came back once
    assert learned_order.learned_at(steps, [1.0, 0.9, 0.8, 0.51]) is None
    assert learned_order.learned_at(steps, [0.4, 0.3, 0.2, 0.1]) == 0


def record(bands, loss, probe, steps):
    return {"steps": steps, "bands": bands, "loss": loss, "probe": probe}


def test_the_summary_ranks_bands_by_the_time_they_are_learned():
    steps = [0, 1, 10, 100, 1000]
    halves = [0.6, 4, 8, 30, 70, 300, 700, 5000]  # the last is not learned
    bands = [[1.0 if step < half else 0.0 for half in halves] for step in steps]
    found = learned_order._summary(record(bands, [1, 0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.35, 0.4], steps))
    assert found["top_first"] is True
    assert found["learned_bands"] == 7
    assert found["order"] > 0.95
    assert found["last_to_first"] == 1000
    assert found["appealing_at"] == 100
    assert found["probe_gain_after"] == pytest.approx(0.05)
    turned = learned_order._summary(record([row[::-1] for row in bands], [1.0] * 5, [0.1] * 5, steps))
    assert turned["top_first"] is False
    assert turned["order"] < 0.5
    assert turned["probe_gain_after"] is None


def twin(errors, accuracies, nonlinear=0.0, supervision=0.1):
    return {
        "supervision": supervision,
        "train_error": errors,
        "test_error": errors,
        "linear": accuracies,
        "nonlinear": nonlinear,
    }


def test_twins_are_compared_at_equal_error():
    plain = twin([0.9, 0.5, 0.1], [0.2, 0.3, 0.4])
    guided = twin([0.8, 0.4, 0.2], [0.4, 0.5, 0.6])
    # Both pass errors from 0.2 to 0.8; the gain is least at 0.8.
    gap = equal_reconstruction.gap_at_equal_error({False: plain, True: guided})
    assert gap == pytest.approx(0.4 - np.interp(0.8, [0.5, 0.9], [0.3, 0.2]))
    apart = {False: twin([0.9, 0.8], [0.1, 0.2]), True: twin([0.5, 0.4], [0.1, 0.2])}
    assert equal_reconstruction.gap_at_equal_error(apart) is None


def test_an_error_that_rises_again_does_not_count():
    plain = twin([0.9, 0.5, 0.6, 0.4], [0.2, 0.3, 0.9, 0.4])
    guided = twin([0.9, 0.4], [0.3, 0.5])
    gap = equal_reconstruction.gap_at_equal_error({False: plain, True: guided})
    assert gap == pytest.approx(0.1)


def test_the_twin_is_the_strongest_of_equal_training_error_whatever_its_accuracy():
    def one(weight, error, accuracy):
        return {"code": 8, "supervision": weight}, twin([1.0, error], [0.1, accuracy])

    results = [one(0.0, 0.5, 0.3), one(0.1, 0.52, 0.5), one(0.03, 0.51, 0.6), one(1.0, 0.7, 0.9)]
    assert equal_reconstruction.pairs_of(results)[8][True]["supervision"] == 0.1
    assert equal_reconstruction.pairs_of([results[0], one(0.3, 0.6, 0.5), results[3]])[8][True]["supervision"] == 0.3


def test_final_differences_of_twins():
    pair = {False: twin([1.0, 0.5], [0.2, 0.3], 0.35), True: twin([1.0, 0.52], [0.4, 0.6], 0.5)}
    found = equal_reconstruction.compared(pair)
    assert found["test_error_change"] == pytest.approx(0.04)
    assert found["linear_gap"] == pytest.approx(0.3)
    assert found["nonlinear_gap"] == pytest.approx(0.15)


def test_pixels_as_bytes_stay_in_range():
    assert equal_reconstruction.as_bytes(np.array([-0.2, 0.0, 0.5, 1.0, 1.7])) == bytes([0, 0, 128, 255, 255]).hex()


@pytest.mark.parametrize("name", ["perceptron", "convolutional", "deep"])
def test_autoencoders_return_images_of_their_shape_and_use_their_code(name):
    torch = pytest.importorskip("torch")
    from firstk_papers.balestriero2024.autoencoders import NETWORKS

    network = NETWORKS[name]((16, 24, 3), 5, 4)
    images = torch.randn(7, 3, 16, 24)
    codes = network.encoder(images)
    assert codes.shape == (7, 5)
    assert network.decoder(codes).shape == images.shape
    network.both(images).square().mean().backward()
    assert all(part.grad is not None for part in (*network.encoder.parameters(), *network.decoder.parameters()))


def test_images_that_cannot_be_halved_raise():
    pytest.importorskip("torch")
    from firstk_papers.balestriero2024.autoencoders import convolutional

    with pytest.raises(InvalidInputError, match="28 x 28"):
        convolutional((28, 28, 1), 8, 4)


def test_rows_and_images_are_inverses_and_the_mean_image_has_error_one():
    torch = pytest.importorskip("torch")
    from firstk_papers.balestriero2024.autoencoders import standardised
    from firstk_papers.balestriero2024.convolutional import as_images, as_rows
    from firstk_papers.balestriero2024.eigenspaces import Pixels

    X = np.random.default_rng(0).uniform(size=(20, 4 * 6 * 3)).astype(np.float32)
    images = as_images(X, (4, 6, 3))
    assert float(images[2, 1, 3, 5]) == X[2].reshape(4, 6, 3)[3, 5, 1]
    np.testing.assert_array_equal(as_rows(images), X)
    found = standardised(Pixels(X, np.zeros(20), X[:3], np.zeros(3), (4, 6, 3)))
    assert float(torch.square(found.train).mean()) == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(as_rows(found.test) * found.scale + found.mean, X[:3], atol=1e-6)


def test_training_visits_whole_batches_and_lowers_the_loss():
    torch = pytest.importorskip("torch")
    from firstk_papers.balestriero2024.convolutional import Schedule, training

    generator = torch.Generator().manual_seed(0)
    X = torch.randn(50, 3, generator=generator)
    target = X @ torch.tensor([[1.0], [2.0], [-1.0]])
    network, seen = torch.nn.Linear(3, 1), []

    def loss(rows):
        seen.append(rows.tolist())
        return (network(X[rows]) - target[rows]).square().mean()

    first = loss(torch.arange(50)).item()
    seen.clear()
    steps = list(training(network, 50, loss, Schedule(30, 8, 0.05, one_cycle=True), generator))
    assert steps == list(range(1, 30 * 6 + 1))
    assert {len(rows) for rows in seen} == {8}
    assert all(len(set().union(*seen[i : i + 6])) == 48 for i in range(0, len(seen), 6))
    assert loss(torch.arange(50)).item() < 0.05 * first
