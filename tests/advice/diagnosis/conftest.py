"""Short training in diagnoses: these tests are about what is tried and said, not about what training reaches."""

import pytest

from firstk.advice.diagnosis import compare


@pytest.fixture(scope="module", autouse=True)
def short_training():
    """Make a twentieth of the usual passes over the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "PASSES", 0.05)
        yield
