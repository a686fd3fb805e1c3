import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstk._base.prefix_weights import PrefixWeights, resolve_omega
from firstk.exceptions import InvalidInputError

weights = st.lists(st.floats(0, 1e300), min_size=1, max_size=30).filter(lambda w: max(w) > 0)


@given(weights)
def test_arrays_are_divided_by_their_sum(values):
    found = resolve_omega(values, len(values))
    assert found.omega.sum() == pytest.approx(1)
    assert (found.omega >= 0).all()
    for k in range(len(values)):
        assert found.cum[k] == pytest.approx(found.omega[k:].sum(), abs=1e-12)


@pytest.mark.parametrize(("name", "raw"), [
    ("uniform", lambda k, d: 1.0),
    ("harmonic", lambda k, d: 1 / k),
    ("reverse_harmonic", lambda k, d: 1 / (d - k + 1)),
])  # fmt: skip
@pytest.mark.parametrize("d", [1, 2, 7])
def test_names(name, raw, d):
    wanted = np.array([raw(k, d) for k in range(1, d + 1)])
    np.testing.assert_allclose(resolve_omega(name, d).omega, wanted / wanted.sum())


def test_a_mapping_weighs_only_what_it_lists():
    found = resolve_omega({2: 1, 5: 3}, 6)
    assert found.omega.tolist() == [0, 0.25, 0, 0, 0.75, 0]
    assert found.support.tolist() == [2, 5]
    assert found.cum.tolist() == [1, 1, 0.75, 0.75, 0.75, 0]


def test_weights_pass_through_and_are_read_only():
    found = resolve_omega("uniform", 3)
    assert resolve_omega(found, 3) is found
    with pytest.raises(ValueError, match="read-only"):
        found.omega[0] = 2
    given_array = np.ones(3)
    resolve_omega(given_array, 3)
    given_array[0] = 2  # the caller's array is neither frozen nor kept


def test_without_first():
    found = resolve_omega("uniform", 3).without_first()
    assert found.omega.tolist() == [0, 0.5, 0.5]
    assert isinstance(found, PrefixWeights)
    assert found.without_first() is found
    assert resolve_omega("uniform", 1).without_first().omega.tolist() == [1]
    with pytest.raises(InvalidInputError, match="add a longer prefix"):
        resolve_omega({1: 2.0}, 3).without_first()


@pytest.mark.parametrize(("omega", "says"), [
    ("linear", "one of 'harmonic', 'reverse_harmonic', 'uniform', 4 weights, or a mapping.*Got 'linear'"),
    ([1, 2, 3], r"each of the 4 prefixes, or .* \(prefix lengths: \{1: 1, 2: 1, 3: 1\}\). Got 'shape \(3,\)'"),
    ([0.5, 2, 3], r"each of the 4 prefixes, or \{k: weight\} for some of them. Got 'shape \(3,\)'"),
    ([8, 16], r"each of the 4 prefixes, or \{k: weight\} for some of them. Got 'shape \(2,\)'"),
    ([[1, 2, 3, 4]], r"Got 'shape \(1, 4\)'"),
    ([1, -2, 3, 4], r"'omega\[2\]' parameter of loss must be a finite number that is not negative. Got -2.0"),
    ([1, 2, np.nan, 4], r"'omega\[3\]'.*Got nan"),
    ([1, 2, np.inf, 4], r"'omega\[3\]'.*Got inf"),
    ([0, 0, 0, 0], "weighs no prefix"),
    ({5: 1.0}, r"prefix lengths in \[1, 4\]. Got 5"),
    ({0: 1.0}, r"prefix lengths in \[1, 4\]. Got 0"),
    ({2.0: 1.0}, "Got 2.0"),
    ({True: 1.0}, "Got True"),
    ({2: -1.0}, r"'omega\[2\]'.*Got -1.0"),
    ({2: "much"}, r"'omega\[2\]'.*Got 'much'"),
    ({}, "weighs no prefix"),
    ({2: 0.0}, "Give at least one k a positive weight"),
    (["a", "b", "c", "d"], "a name, 4 numbers or a mapping"),
    (None, "'omega' parameter of loss"),
    (resolve_omega("uniform", 3), "made for width 4. Got 'weights for width 3'"),
])  # fmt: skip
def test_bad_input_raises_an_error(omega, says):
    with pytest.raises(InvalidInputError, match=says):
        resolve_omega(omega, 4, "loss")


@pytest.mark.parametrize("d", [0, -1, 2.5, "3", True])
def test_bad_width(d):
    with pytest.raises(InvalidInputError, match="'d' parameter"):
        resolve_omega("uniform", d)


def test_it_does_not_import_torch():
    code = "import sys, firstk, firstk._base.checks, firstk._base.prefix_weights; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
