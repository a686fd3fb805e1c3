"""Merged classes: the matrix on targets against relabelled rows, and the identity over all merges into two."""

from dataclasses import replace

import numpy as np
import pytest

from firstk_papers.balestriero2024.alignment import aligned
from firstk_papers.balestriero2024.axes import principal_axes
from firstk_papers.balestriero2024.class_merging import halves_apart, merged, summary
from fixtures.small_task import small_task


@pytest.fixture
def rows():
    return small_task(n=400, classes=4)


def test_merging_targets_is_merging_labels(rows):
    groups = np.array([0, 1, 0, 1])
    relabelled = replace(rows, y=groups[rows.y])
    found, expected = (
        aligned(axes, "equation_7").score
        for axes in (merged(principal_axes(rows.moments()), groups), principal_axes(relabelled.moments()))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_all_merges_into_two_average_to_the_classes(rows):
    """Pooled by hand over the seven merges of four classes."""
    axes = principal_axes(rows.moments())
    gained = np.zeros(axes.rank)
    for bits in range(1, 8):
        groups = np.array([(bits >> c) & 1 for c in range(3)] + [0])
        gained += np.sum(merged(axes, groups).gains ** 2, axis=1)
    np.testing.assert_allclose(np.cumsum(gained) / gained.sum(), aligned(axes).score, rtol=1e-9)
    assert halves_apart(axes) < 1e-12


def test_the_identity_needs_gains_that_sum_to_zero(rows):
    axes = principal_axes(rows.moments())
    target = axes.target
    lifted = replace(axes, target=replace(target, cross=target.cross + 0.3 * np.abs(target.cross).max()))
    assert halves_apart(lifted) > 1e-3


def test_classes_as_they_are_change_nothing(rows):
    axes = principal_axes(rows.moments())
    same = summary(axes, np.arange(4), [1, 5, 16])
    np.testing.assert_allclose(same["curve"], [aligned(axes).at(k) for k in (1, 5, 16)], rtol=1e-5)
