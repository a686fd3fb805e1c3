"""Integer sample weights count as repeated rows, for orderings that look at the codes of rows too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstk import Gradient, MonotoneL1, PrefixEncoder
from firstk.contracts import View

torch = pytest.importorskip("torch")


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.01, 0.1, 0.5]))
def test_weights_are_repeated_rows_under_monotone_l1(seed, alpha):
    """A few steps, because differences of the last bits grow in long ones."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((40, 5)) * [3.0, 2.0, 1.5, 1.0, 0.5]
    weight = draw.integers(0, 6, len(X))

    def fitted(rows, **more):
        solver = Gradient(epochs=20)
        return PrefixEncoder(3, ordering=MonotoneL1(alpha), solver=solver, random_state=0).fit(rows, **more)

    weighted, repeated = fitted(X, sample_weight=weight), fitted(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-6)


def test_means_of_a_view_count_rows_by_weight():
    draw = np.random.default_rng(0)
    code, weight = torch.tensor(draw.standard_normal((6, 2))), np.array([1, 3, 0, 2, 1, 2])
    weighted = View(None, code, None, None, weight=torch.tensor(weight / weight.mean()))
    repeated = View(None, code[np.repeat(np.arange(6), weight)], None, None)
    torch.testing.assert_close(weighted.mean(code.abs()), repeated.mean(repeated.code.abs()))
    torch.testing.assert_close(weighted.second_moment(), repeated.second_moment())
