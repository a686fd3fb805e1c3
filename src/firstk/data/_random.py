"""Conversion of a `random_state` to a numpy Generator, shared by the synthetic sets and the splits."""

from __future__ import annotations

import numpy as np

from firstk._base.checks import bad_parameter, is_int

RandomState = int | np.random.Generator | np.random.RandomState | None


def generator(random_state: RandomState, owner: str) -> np.random.Generator:
    """Return a numpy Generator; equal ints give equal streams, on every call.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        None is fresh entropy. A Generator is used itself, so its state advances; a RandomState gives the seed.
    owner : str
        Name of the caller in error messages.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    if random_state is None or (is_int(random_state) and random_state >= 0):
        return np.random.default_rng(random_state)
    raise bad_parameter(
        "random_state",
        owner,
        "an int that is not negative, a numpy Generator or RandomState, or None",
        random_state,
    )
