"""The tables of upgrades are those of their record, and what is required follows from it."""

import pytest
from benchmarks.upgrade.page import PAGES, rewritten
from benchmarks.upgrade.tables import checks, read


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_its_record(page):
    text = page.read_text("utf-8")
    assert "<!-- table: " in text
    assert rewritten(text, read()) == text


def made(auto=0.5, ridge=0.5, half=0.5, action="stay", high=0.01, translate=0.4):
    scores = {"auto": auto, "auto, half": half, "ridge": ridge, "procrustes": 0.4, "low_rank_affine": 0.3}
    said = {"gain": 0.0, "low": -0.01, "high": high, "action": action, "translation": "cca, k = 4", "stay": 0.45}
    return {
        "one case": {"scores": {name: [score, score, score] for name, score in scores.items()},
                     "verdict": said | {"translate": translate}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("record", "missed"),
    [
        (made(auto=0.52), set()),
        (made(auto=0.489), {"auto within", "auto has"}),
        (made(auto=0.495), {"auto has"}),
        (made(auto=0.52, half=0.49), {"half of"}),
        (made(auto=0.52, action="translate", translate=0.42), {"mean regret", "wrong by"}),
        (made(auto=0.52, action="stay", translate=0.455, high=0.0), {"wrong by"}),
        (made(auto=0.52, action="stay", translate=0.455), set()),
    ],
)
def test_what_is_required_follows_from_the_record(record, missed):
    found = {" ".join(text.split()[:2]) for text, held in checks(record).items() if not held}
    assert found == missed
