"""Every registered store goes through the contract of `firstk.search.stores.contract`.

A new store is one line in ``STORES``, and is tested here by one more with its address, in ``benchmarks.stores.FILES``.
"""

from __future__ import annotations

import datetime
import uuid

import numpy as np
import pytest

from firstk import PrefixEncoder, Similarity
from firstk.data.files import open_vectors, write_vectors
from firstk.exceptions import InvalidInputError
from firstk.search.stores import PrefixStore, push
from firstk.search.stores.filters import holds, read_filter
from search.stores.slow_search import codes, recall, two_stages

SHORT, FULL = 6, 16


def test_two_stages_are_those_of_the_slow_way(store, engine, coder, vectors, payloads):
    """The stores search their small tables exactly, or by graphs that find nearly all."""
    X, Q = vectors
    made = push(coder, X, engine(store), SHORT, FULL, payloads=payloads)
    assert made.count() == len(X)
    found = made.search(Q, 10, shortlist=40)
    rows, scores = two_stages(coder, X, Q, 10, SHORT, FULL, 40)
    assert recall(found.ids, rows) >= 0.98
    for i in range(len(Q)):
        assert found.scores[i] == sorted(found.scores[i], reverse=True)
        for row, score, payload in zip(found.ids[i], found.scores[i], found.payloads[i], strict=True):
            assert payload == payloads[row]
            if row in rows[i]:
                assert score == pytest.approx(scores[i][rows[i].index(row)], abs=1e-5)


FILTERS = [
    {"kind": "blog"},
    {"kind": "naïve 'quoted' \"text\""},
    {"open": True},
    {"year": {"gte": 2000, "lt": 2010}},
    {"score": {"gt": 40.5}},
    {"kind": ["news", "blog"], "year": [1991, 2003, 2007]},
    {"kind": {"gte": "bloh"}},
]


@pytest.mark.parametrize("given", FILTERS, ids=str)
def test_a_filter_holds_before_the_shortlist_is_taken(store, engine, coder, vectors, payloads, given):
    X, Q = vectors
    place = engine(store)
    made = push(coder, X, place, SHORT, FULL, payloads=payloads)
    where = read_filter(given, "a test")
    if not place.orders_text and any(one.kind == "text" and one.operator == "gte" for one in where):
        with pytest.raises(InvalidInputError, match="cannot order text"):
            made.search(Q, 5, filter=given)
        return
    allowed = [i for i, one in enumerate(payloads) if holds(one, where)]
    found = made.search(Q, 5, shortlist=30, filter=given)
    rows, _ = two_stages(coder, X, Q, 5, SHORT, FULL, 30, allowed=allowed)
    assert len(allowed) > 5
    assert set().union(*found.ids) <= set(allowed)
    assert [len(one) for one in found.ids] == [len(one) for one in rows]
    assert recall(found.ids, rows) >= 0.98


def test_recall_of_a_filtered_search_is_that_of_numpy(store, engine, coder, vectors, payloads):
    """Within 0.01 at the same shortlist, as ``python -m benchmarks.stores`` has it for 20,000 rows."""
    X, Q = vectors
    given = {"open": True, "score": {"lt": 60}}
    allowed = [i for i, one in enumerate(payloads) if holds(one, read_filter(given, "a test"))]
    exact, _ = two_stages(coder, X, Q, 10, FULL, FULL, 10, allowed=allowed)
    staged, _ = two_stages(coder, X, Q, 10, SHORT, FULL, 25, allowed=allowed)
    assert 0.5 < recall(staged, exact) < 0.98
    found = push(coder, X, engine(store), SHORT, FULL, payloads=payloads).search(Q, 10, shortlist=25, filter=given)
    assert recall(found.ids, exact) == pytest.approx(recall(staged, exact), abs=0.01)


def test_a_filter_that_nothing_meets_finds_nothing(store, engine, coder, vectors, payloads):
    made = push(coder, vectors[0][:50], engine(store), SHORT, FULL, payloads=payloads[:50])
    for given in ({"kind": "none"}, {"missing": 1}, {"open": 1}, {"kind": 1}, {"year": "2000"}):
        if store == "milvus" and given == {"open": 1}:
            continue  # to Milvus Lite, true is 1
        assert made.search(vectors[1][:2], 5, filter=given).ids == [[], []], given


def test_rows_are_read_from_an_engine_that_was_just_opened(store, address, engine, coder, vectors):
    place = address(store)
    push(coder, vectors[0][:30], engine(store, place), SHORT, FULL).close()
    batches = list(engine(store, place).read(20))
    assert sorted(key for batch in batches for key in batch.ids) == list(range(30))
    assert all(batch.codes.dtype == np.float32 and batch.codes.shape[1] == FULL for batch in batches)


@pytest.mark.parametrize("metric", ["cosine", "inner_product", "l2"])
@pytest.mark.parametrize("unit", [True, False])
def test_metrics_are_those_of_the_encoder(store, engine, vectors, metric, unit):
    X, Q = vectors
    objective = "similarity" if unit else Similarity(keep="dot_products")
    encoder = PrefixEncoder(16, objective=objective).fit(X)
    assert encoder.encoder_.normalized == unit
    place = engine(store)
    compared = "cosine" if unit else metric
    if compared not in place.metrics:
        with pytest.raises(InvalidInputError, match=f"cannot compare by {compared}"):
            push(encoder, X, place, SHORT, FULL, metric=metric)
        return
    found = push(encoder, X, place, SHORT, FULL, metric=metric).search(Q, 5, shortlist=50)
    rows, scores = two_stages(encoder, X, Q, 5, SHORT, FULL, 50, metric=metric)
    assert recall(found.ids, rows) >= 0.97
    same = [i for i in range(len(Q)) if found.ids[i] == rows[i]]
    assert len(same) > 15
    np.testing.assert_allclose(
        np.abs([found.scores[i] for i in same]), np.abs([scores[i] for i in same]), rtol=1e-4, atol=1e-4
    )


def test_one_length_is_all_that_is_stored(store, engine, coder, vectors):
    X, Q = vectors
    made = push(coder, X, engine(store), SHORT)
    assert recall(made.search(Q, 10).ids, two_stages(coder, X, Q, 10, SHORT, SHORT, 10)[0]) >= 0.97
    assert next(made.rows(10)).codes.shape == (10, SHORT)
    with pytest.raises(InvalidInputError, match="one length"):
        made.search(Q, 10, shortlist=50)


@pytest.mark.parametrize("ids", ["int", "text", "uuid"])
def test_rows_come_back_and_are_found_again_after_opening(store, address, engine, coder, vectors, payloads, ids):
    X, Q = vectors[0][:230], vectors[1]
    names = {
        "int": [7 * i + 2**40 for i in range(230)],
        "text": [f"doc/{i:03} ü'" for i in range(230)],
        "uuid": [str(uuid.UUID(int=i + 1)) for i in range(230)],
    }[ids]
    place = address(store)
    with push(coder, X, engine(store, place), SHORT, FULL, ids=names, payloads=payloads[:230], batch=100) as made:
        before = made.search(Q, 5, shortlist=60)
    again = PrefixStore.open(engine(store, place), coder)
    assert again.layout == made.layout
    found = again.search(Q, 5, shortlist=60)
    assert found.ids == before.ids
    batches = list(again.rows(60))
    assert sum(len(one.ids) for one in batches) == again.count() == 230
    assert max(len(one.ids) for one in batches) <= 60
    read = {key: (code, payload) for one in batches for key, code, payload in zip(*one, strict=True)}
    assert sorted(read) == sorted(names)
    wanted = codes(coder, X, FULL, "document", "cosine")
    for i, key in enumerate(names):
        np.testing.assert_allclose(read[key][0], wanted[i], atol=1e-6)
        assert read[key][1] == payloads[i]


def test_ids_with_odd_characters_come_back_or_raise(store, engine, coder, vectors):
    names = ['double "quotes"', "back\\slash", "percent %s", "a; DROP TABLE documents", "日本", "new\nline"]
    if store == "milvus":
        with pytest.raises(InvalidInputError, match="double quotes, backslashes or control"):
            push(coder, vectors[0][:2], engine(store), SHORT, FULL, ids=names[:2])
        names = names[2:5]
    X = vectors[0][: len(names)]
    made = push(coder, X, engine(store), SHORT, FULL, ids=names, payloads=[{"a 'b'": one} for one in names])
    assert [one[0] for one in made.search(X, 1).ids] == names
    assert sorted(key for one in made.rows(2) for key in one.ids) == sorted(names)
    assert made.search(X[:1], 5, filter={"a 'b'": names[-1]}).ids == [[names[-1]]]
    assert made.delete(names[1:]) == 1


def test_an_id_with_quotes_deletes_no_other_row(store, engine, coder, vectors):
    made = push(coder, vectors[0][:3], engine(store), SHORT, FULL, ids=["a", "b", "b','a"])
    assert made.delete(["b','a"]) == 2
    assert made.delete(["none','a", "') OR ('' = '"]) == 2


REFUSED = {
    "lancedb": {"a.b": "without dots and backticks"},
    "qdrant": {'a "b"': "Invalid path"},
    "chroma": {"$a": "begin with . or #", "#a": "begin with . or #"},
}


def _pushed_and_found(made, X, name):
    made.push(X, payloads=[{name: i} for i in range(len(X))])
    return made.search(X, 4, filter={name: 2})


def test_payloads_have_any_names(store, engine, coder, vectors):
    """Names come back and are filtered by, or raise; they never find nothing where there is something."""
    X, refused = vectors[0][:4], REFUSED.get(store, {})
    for name in ("_x", "two words", "it's", 'a "b"', "back\\slash", "a.b", "a[0]", "$a", "#a", "SELECT", "ü"):
        made = PrefixStore.create(engine(store), coder, SHORT, FULL)
        if name in refused:
            with pytest.raises(InvalidInputError, match=refused[name]):
                _pushed_and_found(made, X, name)
        else:
            found = _pushed_and_found(made, X, name)
            assert found.ids == [[2]] * 4, name
            assert found.payloads == [[{name: 2}]] * 4, name


def test_rows_are_replaced_and_deleted_by_id(store, engine, coder, vectors):
    X = vectors[0]
    made = push(coder, X[:50], engine(store), SHORT, FULL, ids=list(range(50)), payloads=[{"v": 1}] * 50)
    assert made.push(X[100:110], list(range(45, 55)), [{"v": np.int64(2)}] * 10) == 55
    found = made.search(X[100:110], 1, shortlist=20)
    assert [one[0] for one in found.ids] == list(range(45, 55))
    assert [one[0] for one in found.payloads] == [{"v": 2}] * 10
    assert made.delete([0, 46, 999]) == 53
    assert made.delete([]) == 53
    assert made.search(X[[0, 101]], 1, shortlist=55).ids != [[0], [46]]
    assert 46 not in set().union(*made.search(X[:20], 50, shortlist=55).ids)
    assert made.push(X[101:102], [46]) == 54
    assert made.search(X[101:102], 1).ids == [[46]]


def test_skipping_leaves_what_is_there_and_fills_the_gaps(store, engine, coder, vectors):
    X, keys = vectors[0][:90], np.arange(90)
    place = engine(store)
    push(coder, X[::3], place, SHORT, FULL, ids=keys[::3], payloads=[{"by": "first"}] * 30)
    made = push(coder, X, place, SHORT, FULL, ids=keys, payloads=[{"by": "second"}] * 90, existing="skip", batch=20)
    assert made.count() == 90
    by = {key: payload["by"] for one in made.rows() for key, payload in zip(one.ids, one.payloads, strict=True)}
    assert by == {int(key): "first" if key % 3 == 0 else "second" for key in keys}
    push(coder, X, place, SHORT, FULL, existing="skip")  # numbered rows: the same ids
    assert made.count() == 90
    with pytest.raises(InvalidInputError, match=r"holds 90 rows.*existing='skip'"):
        push(coder, X, place, SHORT, FULL)


def test_a_table_of_files_streams_in(store, engine, coder, vectors, tmp_path):
    pytest.importorskip("pyarrow", reason="the extra 'tables' is not installed")
    X = vectors[0][:70].copy()
    X[10] = np.nan
    columns = {"id": [f"d{i}" for i in range(70)], "text": [f"text {i}" for i in range(70)], "n": np.arange(70)}
    write_vectors(tmp_path / "docs.parquet", X, {name: np.array(column) for name, column in columns.items()})
    table = open_vectors(tmp_path / "docs.parquet", nan="drop")
    made = push(coder, table, engine(store), SHORT, FULL, batch=30)
    assert made.count() == 69
    found = made.search(X[[9, 11]], 1)
    assert found.ids == [["d9"], ["d11"]]
    assert found.payloads[0] == [{"text": "text 9", "n": 9}]


def test_codes_of_zeros_are_never_first(store, engine, coder, vectors):
    """A document at the mean has a code of zeros, which has no cosine."""
    X = vectors[0][:60].copy()
    X[7] = coder.encoder_.mean
    made = push(coder, X, engine(store), SHORT, FULL)
    found = made.search(X[[20, 21]], 3, shortlist=60)
    assert [one[0] for one in found.ids] == [20, 21]
    assert all(np.isfinite(score) for one in found.scores for score in one)
    assert 7 not in {key for one in found.ids for key in one}


def test_a_query_of_zeros_finds_rows_of_score_zero(store, engine, coder, vectors):
    made = push(coder, vectors[0][:60], engine(store), SHORT, FULL)
    found = made.search(coder.encoder_.query_mean[None], 5)
    assert [len(set(one)) for one in found.ids] == [5]
    assert found.scores == [[0.0] * 5]


def test_few_rows_give_few_results(store, engine, coder, vectors):
    place = engine(store)
    made = PrefixStore.create(place, coder, SHORT, FULL)
    assert made.search(vectors[1][:2], 5).ids == [[], []]
    assert list(made.rows()) == []
    made.push(vectors[0][:3])
    assert [len(one) for one in made.search(vectors[1][:2], 5).ids] == [3, 3]


def test_a_store_of_something_else_raises(store, address, engine, coder, vectors):
    X = vectors[0]
    place = engine(store)
    with pytest.raises(InvalidInputError, match="is not there"):
        PrefixStore.open(place, coder)
    made = push(coder, X[:20], place, SHORT, FULL, ids=list(range(20)))
    other = PrefixEncoder(16, objective="similarity").fit(X[:300])
    ours, theirs = (one.encoder_.fingerprint()[:12] for one in (coder, other))
    both = f"were made by encoder {ours}, and those of this encoder by encoder {theirs}"
    for wrong, message in (
        (lambda: PrefixStore.open(place, other), both),
        (lambda: PrefixStore.open(place, coder[:8]), "this encoder has 8"),
        (lambda: push(other, X[:20], place, SHORT, FULL, ids=list(range(20))), both),
        (lambda: push(coder, X[:20], place, SHORT + 1, FULL, ids=list(range(20))), "short=6, and asked for is 7"),
        (lambda: push(coder, X[:20], place, SHORT, FULL - 1, ids=list(range(20))), "full=16, and asked for is 15"),
        (lambda: push(coder, X[:20], place, SHORT, FULL, metric="l2", ids=[*range(20)]), "metric='cosine'"),
        (lambda: push(coder, X[:2], place, SHORT, FULL, ids=["a", "b"]), "ids='int', and asked for is 'text'"),
        (lambda: made.delete(["a"]), "ids of kind 'int'"),
        (lambda: PrefixStore.create(place, coder, SHORT), "already"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            wrong()
    assert made.count() == 20
    assert PrefixStore.open(place, coder[:FULL]).count() == 20  # the same code, cut where the store ends
    assert PrefixStore.create(place, coder, SHORT + 1, replace=True).count() == 0
    assert PrefixStore.open(place, coder).layout.short == SHORT + 1


BAD = {
    "a wrong width": (lambda s: s.push(np.ones((2, 5))), "24 columns. Got 5"),
    "nothing": (lambda s: s.push(np.ones((0, 24))), "at least one row"),
    "NaN": (lambda s: s.push(np.full((2, 24), np.nan)), "NaN"),
    "ids twice": (lambda s: s.push(np.ones((3, 24)), [4, 5, 4]), "unique, and 1 came before"),
    "mixed ids": (lambda s: s.push(np.ones((2, 24)), [1, "b"]), "ints or text, and not both"),
    "negative ids": (lambda s: s.push(np.ones((2, 24)), [-1, 2]), "got -1"),
    "empty ids": (lambda s: s.push(np.ones((2, 24)), ["", "a"]), "got ''"),
    "long ids": (lambda s: s.push(np.ones((1, 24)), ["a" * 600]), "512 bytes"),
    "text for numbers": (lambda s: s.push(np.ones((1, 24)), ["a"]), "ids of kind 'int'"),
    "too few ids": (lambda s: s.push(np.ones((2, 24)), [1]), "Got 1 and 2"),
    "too few payloads": (lambda s: s.push(np.ones((2, 24)), payloads=[{}]), "Got 1 and 2"),
    "a payload without a name": (lambda s: s.push(np.ones((1, 24)), payloads=[{"": 1}]), "the name ''"),
    "NaN in a payload": (lambda s: s.push(np.ones((1, 24)), payloads=[{"a": float("nan")}]), "payload of id 0 holds"),
    "a date in a payload": (
        lambda s: s.push(np.ones((1, 24)), payloads=[{"a": datetime.date(2000, 1, 1)}]),
        "what stores do not",
    ),
    "a number of 71 bits in a payload": (
        lambda s: s.push(np.ones((1, 24)), payloads=[{"a": [2**70]}]),
        "a whole number of 22 digits",
    ),
    "a surrogate in a payload": (lambda s: s.push(np.ones((1, 24)), payloads=[{"a": "\ud800"}]), "UTF-8 cannot hold"),
    "a surrogate in an id": (lambda s: s.push(np.ones((1, 24)), ["\ud800"]), "512 bytes in UTF-8"),
    "no batch": (lambda s: s.push(np.ones((2, 24)), batch=0), "'batch'"),
    "another word": (lambda s: s.push(np.ones((2, 24)), existing="keep"), "'replace', 'skip'"),
    "queries of a wrong width": (lambda s: s.search(np.ones((2, 5))), "24 columns. Got 5"),
    "no limit": (lambda s: s.search(np.ones((2, 24)), 0), "'limit'"),
    "a shortlist below the limit": (lambda s: s.search(np.ones((2, 24)), 9, shortlist=8), "at least 9"),
    "a filter of another kind": (lambda s: s.search(np.ones((2, 24)), filter=3.5), "filter"),
    "a filter by something else": (lambda s: s.search(np.ones((2, 24)), filter={"a": {"like": "b"}}), "Got 'like'"),
    "a filter with a huge number": (lambda s: s.search(np.ones((2, 24)), filter={"a": 10**400}), "of 1329 bits"),
    "a filter with a surrogate": (lambda s: s.search(np.ones((2, 24)), filter={"a": "\ud800"}), "UTF-8 cannot hold"),
    "a filter without a condition": (lambda s: s.search(np.ones((2, 24)), filter={"a": {}}), "has no condition"),
    "a filter with None": (lambda s: s.search(np.ones((2, 24)), filter={"a": None}), "Got None"),
}


def test_bad_calls_raise_and_change_nothing(store, engine, coder):
    made = PrefixStore.create(engine(store), coder, SHORT, FULL)
    for call, message in BAD.values():
        with pytest.raises(InvalidInputError, match=message):
            call(made)
    assert made.count() == 0
    for short, full in ((0, None), (17, None), (2.5, None), (6, 6), (6, 4), (6, 17)):
        with pytest.raises(InvalidInputError, match=r"\[1, 16\]|above 6"):
            PrefixStore.create(engine(store), coder, short, full)


def test_an_interrupted_push_goes_on(store, address, engine, coder, vectors):
    """Ctrl-C between two batches; the process that is killed is in test_kills."""
    X, place = vectors[0][:120], address(store)
    broken = engine(store, place)
    write, batches = type(broken).upsert, []

    def interrupted(self, rows):
        if len(batches) == 3:
            raise KeyboardInterrupt
        batches.append(len(rows))
        write(self, rows)

    type(broken).upsert = interrupted
    try:
        with pytest.raises(KeyboardInterrupt):
            push(coder, X, broken, SHORT, FULL, batch=20)
    finally:
        type(broken).upsert = write
    broken.close()
    again = engine(store, place)
    assert PrefixStore.open(again, coder).count() == 60
    made = push(coder, X, again, SHORT, FULL, existing="skip", batch=20)
    assert made.count() == 120
    assert sorted(key for one in made.rows(50) for key in one.ids) == list(range(120))
    assert [one[0] for one in made.search(X[::10], 1, shortlist=120).ids] == list(range(0, 120, 10))
