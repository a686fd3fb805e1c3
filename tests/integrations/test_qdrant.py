"""Collections in Qdrant's local mode: what goes in comes back, by one length or ranked by a second, longer one."""

import uuid

import numpy as np
import pytest

from firstk import PrefixEncoder, Similarity
from firstk.data.files import open_vectors, write_vectors
from firstk.exceptions import InvalidInputError, MissingExtraError

qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra 'search'")

from firstk.integrations.qdrant import PrefixCollection  # noqa: E402

models = qdrant_client.models


@pytest.fixture
def client():
    client = qdrant_client.QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture
def collection(client, encoder):
    return PrefixCollection.create(client, "digits", encoder, short=8, full=32)


def exact(encoder, documents, queries, k, n):
    """Row numbers of the n largest cosines of full codes, the slow way."""
    return np.argsort(-(encoder.encode_query(queries, k) @ encoder.encode_document(documents, k).T), axis=1)[:, :n]


def recall(found, truth):
    return np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, truth, strict=True)])


def test_a_shortlist_of_everything_is_the_exact_search(collection, encoder, digits):
    X, Q = digits.X_train[:400], digits.X_test[:20]
    assert collection.upload(X) == 400
    found = collection.search(Q, 10, shortlist=400)
    cosines = encoder.transform(Q, 32) @ encoder.transform(X, 32).T
    assert recall(found.ids, exact(encoder, X, Q, 32, 10)) == 1
    assert np.abs(np.array(found.scores) - np.sort(cosines, axis=1)[:, :-11:-1]).max() < 1e-5


def test_the_shortlist_is_that_of_the_short_prefix(collection, encoder, digits):
    """The slow way in two steps: nearest by 8 coordinates, then ordered by 32."""
    X, Q = digits.X_train[:400], digits.X_test[:20]
    collection.upload(X)
    found = collection.search(Q, 5, shortlist=15)
    short = exact(encoder, X, Q, 8, 15)
    cosines = encoder.transform(Q, 32) @ encoder.transform(X, 32).T
    for row, ids in enumerate(found.ids):
        wanted = sorted(short[row], key=lambda i, row=row: -cosines[row, i])[:5]
        assert ids == wanted


def test_recall_on_digits(client, encoder, digits):
    """Measured: 0.93 of the exact ten neighbors from a shortlist of 100 by 8 of 53 coordinates."""
    collection = PrefixCollection.create(client, "digits", encoder, short=8, full=encoder.n_components_)
    collection.upload(digits.X_train)
    Q = digits.X_test[:60]
    truth = exact(encoder, digits.X_train, Q, encoder.n_components_, 10)
    by_shortlist = [recall(collection.search(Q, 10, shortlist=n).ids, truth) for n in (20, 100, 400)]
    assert by_shortlist == sorted(by_shortlist)
    assert by_shortlist[1] > 0.88
    assert by_shortlist[2] > 0.98


def test_each_side_is_centred_by_its_own_mean(client):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(200, 16)) + 2
    documents = queries + 0.5 * rng.normal(size=queries.shape) - 7
    encoder = PrefixEncoder(objective="similarity").fit_pairs(queries, documents)
    collection = PrefixCollection.create(client, "pairs", encoder, short=3, full=10)
    collection.upload(documents)
    found = collection.search(queries[:20], 5, shortlist=200)
    assert recall(found.ids, exact(encoder, documents, queries[:20], 10, 5)) == 1


@pytest.mark.parametrize("metric", ["auto", "cosine", "inner_product", "l2"])
def test_the_metric_is_cosine_unless_another_is_named(metric, client, digits):
    X, Q = digits.X_train[:200], digits.X_test[:10]
    encoder = PrefixEncoder(objective=Similarity(keep="dot_products")).fit(X)
    collection = PrefixCollection.create(client, "any", encoder, short=4, full=12, metric=metric)
    collection.upload(X)
    distance = {"auto": "Cosine", "cosine": "Cosine", "inner_product": "Dot", "l2": "Euclid"}[metric]
    assert client.get_collection("any").config.params.vectors["full"].distance.value == distance
    Z, q = encoder.transform(X, 12), encoder.transform(Q, 12)
    if distance == "Cosine":
        Z, q = Z / np.linalg.norm(Z, axis=1)[:, None], q / np.linalg.norm(q, axis=1)[:, None]
    scores = -np.linalg.norm(q[:, None] - Z, axis=2) if distance == "Euclid" else q @ Z.T
    found = collection.search(Q, 3, shortlist=200)
    assert np.abs(np.abs(found.scores) - np.abs(np.sort(scores, axis=1)[:, :-4:-1])).max() < 1e-3
    assert recall(found.ids, np.argsort(-scores, axis=1)[:, :3]) == 1


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_one_length_is_all_that_is_stored(client, encoder, digits, precision):
    X, Q = digits.X_train[:300], digits.X_test[:20]
    made = PrefixCollection.create(client, "one", encoder, 8, precision=precision)
    made.upload(X)
    vectors = client.get_collection("one").config.params.vectors
    assert {name: (one.size, one.datatype.value) for name, one in vectors.items()} == {"short": (8, precision)}
    again = PrefixCollection.open(client, "one", encoder)
    assert (again.short, again.full) == (8, None)
    assert recall(again.search(Q, 10).ids, exact(encoder, X, Q, 8, 10)) > 0.99
    with pytest.raises(InvalidInputError, match="one length"):
        again.search(Q, 10, shortlist=50)


def table_of(digits, tmp_path, n=20, **columns):
    pytest.importorskip("pyarrow", reason="the extra 'tables' is not installed")
    write_vectors(tmp_path / "docs.parquet", digits.X_train[:n], columns)
    return open_vectors(tmp_path / "docs.parquet")


def test_ids_and_text_of_a_table_travel(client, encoder, digits, tmp_path):
    made = PrefixCollection.create(client, "docs", encoder, 8)
    numbers, texts = np.arange(20) * 3 + 100, np.array([f"text {i}" for i in range(20)])
    table = table_of(digits, tmp_path, id=numbers, text=texts, weight=np.linspace(0, 1, 20))
    assert made.upload(table, batch=7) == 20
    found = made.search(digits.X_train[[3, 11]], 1)
    assert found.ids == [[109], [133]]
    assert found.payloads[0][0] == {"id": 109, "text": "text 3", "weight": pytest.approx(3 / 19)}
    assert made.upload(table, payloads=["text"]) == 20  # same ids: replaced
    assert made.search(digits.X_train[[3]], 1).payloads[0][0] == {"text": "text 3"}


def test_names_become_uuids_and_stay_in_the_payload(client, encoder, digits, tmp_path):
    made = PrefixCollection.create(client, "docs", encoder, 8)
    table = table_of(digits, tmp_path, doc=np.array([f"doc-{i}" for i in range(20)]), text=np.array(["t"] * 20))
    made.upload(table, ids="doc", payloads=["text"])
    found = made.search(digits.X_train[[5]], 1)
    assert found.ids == [[str(uuid.uuid5(uuid.NAMESPACE_OID, "doc-5"))]]
    assert found.payloads[0][0] == {"doc": "doc-5", "text": "t"}
    assert made.upload(table, ids="doc") == 20  # the same names are the same points


def test_columns_that_are_no_ids_raise(client, encoder, digits, tmp_path):
    made = PrefixCollection.create(client, "docs", encoder, 8)
    table = table_of(digits, tmp_path, doc=np.array(["a"] * 20))
    with pytest.raises(InvalidInputError, match="column 'doc' must be unique: 1 occur more than once, the first 'a'"):
        made.upload(table, ids="doc")
    with pytest.raises(InvalidInputError, match="no column 'name'"):
        made.upload(table, ids="name")
    with pytest.raises(InvalidInputError, match="no column 'name'"):
        made.upload(table, payloads=["name"])
    assert client.count("docs").count == 0


def test_ids_and_payloads_come_back_and_a_filter_holds(collection, digits):
    X = digits.X_train[:60]
    ids = [str(uuid.UUID(int=i)) if i % 2 else i + 1000 for i in range(60)]
    payloads = [{"digit": int(y)} for y in digits.y_train[:60]]
    assert collection.upload(X, ids, payloads, batch=7) == 60
    found = collection.search(X, 1, shortlist=60)
    assert [one[0] for one in found.ids] == ids
    assert [one[0] for one in found.payloads] == payloads
    three = models.Filter(must=[models.FieldCondition(key="digit", match=models.MatchValue(value=3))])
    found = collection.search(X[:5], 4, query_filter=three)
    assert {payload["digit"] for one in found.payloads for payload in one} == {3}


def test_a_point_with_the_same_id_is_replaced(collection, digits):
    collection.upload(digits.X_train[:5], [1, 2, 3, 4, 5])
    assert collection.upload(digits.X_train[10:12], [5, 6]) == 6
    found = collection.search(digits.X_train[10:11], 1)
    assert found.ids == [[5]]
    assert found.scores[0][0] == pytest.approx(1, abs=1e-5)


def test_a_collection_on_disk_is_found_again(encoder, digits, tmp_path):
    client = qdrant_client.QdrantClient(path=str(tmp_path / "store"))
    before = PrefixCollection.create(client, "digits", encoder, short=8, full=32)
    before.upload(digits.X_train[:100])
    wanted = before.search(digits.X_test[:5], 5)
    client.close()
    client = qdrant_client.QdrantClient(path=str(tmp_path / "store"))
    after = PrefixCollection.open(client, "digits", encoder)
    assert (after.short, after.full, after.codes.metric) == (8, 32, "cosine")
    found = after.search(digits.X_test[:5], 5)
    client.close()
    assert found.ids == wanted.ids
    assert np.allclose(found.scores, wanted.scores, atol=1e-6)


def test_a_table_of_files_streams_in(collection, digits, tmp_path):
    X = digits.X_train[:100].astype(np.float32)
    X[10] = np.nan
    write_vectors(tmp_path / "a.npy", X)
    assert collection.upload(open_vectors(tmp_path / "a.npy", nan="drop"), batch=30) == 99
    assert collection.search(X[[9, 11]], 1).ids == [[9], [11]]


def test_few_points_give_few_results(collection, digits):
    assert collection.search(digits.X_test[:2], 5).ids == [[], []]
    collection.upload(digits.X_train[:3])
    assert [len(one) for one in collection.search(digits.X_test[:2], 5).ids] == [3, 3]


BAD = {
    "a wrong width": (lambda c: c.upload(np.ones((2, 5))), "64 columns. Got 5"),
    "nothing": (lambda c: c.upload(np.ones((0, 64))), "at least one row"),
    "ids twice": (lambda c: c.upload(np.ones((3, 64)), [4, 5, 4]), "1 occur more than once, the first 4"),
    "one UUID spelled twice": (
        lambda c: c.upload(np.ones((2, 64)), [str(uuid.UUID(int=7)), str(uuid.UUID(int=7)).replace("-", "")]),
        "more than once",
    ),
    "ids that are names": (lambda c: c.upload(np.ones((2, 64)), ["a", "b"]), "uuid5"),
    "negative ids": (lambda c: c.upload(np.ones((2, 64)), [-1, 2]), "got -1"),
    "too few ids": (lambda c: c.upload(np.ones((2, 64)), [1]), "Got 1 and 2"),
    "one id": (lambda c: c.upload(np.ones((2, 64)), "ab"), "a sequence of ints or UUIDs"),
    "too few payloads": (lambda c: c.upload(np.ones((2, 64)), payloads=[{}]), "Got 1 and 2"),
    "payloads that are none": (lambda c: c.upload(np.ones((2, 64)), payloads=["a", "b"]), "list of dicts"),
    "no batch": (lambda c: c.upload(np.ones((2, 64)), batch=0), "'batch'"),
    "queries of a wrong width": (lambda c: c.search(np.ones((2, 5))), "64 columns. Got 5"),
    "no limit": (lambda c: c.search(np.ones((2, 64)), 0), "'limit'"),
    "a shortlist below the limit": (lambda c: c.search(np.ones((2, 64)), 9, shortlist=8), "at least 9"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calls_raise_and_change_nothing(case, collection):
    call, message = BAD[case]
    with pytest.raises(InvalidInputError, match=message):
        call(collection)
    assert collection.client.count("digits").count == 0


def test_row_numbers_are_for_empty_collections(collection, digits):
    collection.upload(digits.X_train[:3])
    with pytest.raises(InvalidInputError, match=r"holds 3 points.*Pass ids"):
        collection.upload(digits.X_train[3:6])


def test_collections_that_do_not_fit_raise(client, collection, encoder, digits):
    with pytest.raises(InvalidInputError, match=r"already.*replace=True"):
        PrefixCollection.create(client, "digits", encoder, short=8)
    assert PrefixCollection.create(client, "digits", encoder, short=9, replace=True).short == 9
    with pytest.raises(InvalidInputError, match="no collection 'other'"):
        PrefixCollection.open(client, "other", encoder)
    client.create_collection("foreign", vectors_config=models.VectorParams(size=4, distance=models.Distance.DOT))
    with pytest.raises(InvalidInputError, match="firstk did not make it"):
        PrefixCollection.open(client, "foreign", encoder)
    PrefixCollection.create(client, "digits", encoder, short=9, full=32, replace=True)
    with pytest.raises(InvalidInputError, match="this encoder has 20"):
        PrefixCollection.open(client, "digits", encoder[:20])
    for short in (0, 54, 2.5):
        with pytest.raises(InvalidInputError, match=r"\[1, 53\]"):
            PrefixCollection.create(client, "new", encoder, short=short, full=32)
    for full in (8, 4):
        with pytest.raises(InvalidInputError, match="above 8"):
            PrefixCollection.create(client, "new", encoder, short=8, full=full)
    with pytest.raises(InvalidInputError, match="'float16', 'float32'"):
        PrefixCollection.create(client, "new", encoder, short=8, precision="int8")


def test_collections_of_the_store_open_and_those_of_others_do_not(client, collection, encoder, digits):
    from firstk.integrations.stores import PrefixStore, Qdrant, push

    X = digits.X_train[:50]
    store = push(encoder, X, Qdrant(client, "rows"), 4, 16)
    opened = PrefixCollection.open(client, "rows", encoder)
    assert (opened.short, opened.full) == (4, 16)
    assert opened.search(X[:5], 3).ids == store.search(X[:5], 3).ids
    other = PrefixEncoder(20, objective="similarity").fit(X)
    with pytest.raises(InvalidInputError, match="The codes of collection 'rows' were made by encoder"):
        PrefixCollection.open(client, "rows", other)
    with pytest.raises(InvalidInputError, match="did not make it"):
        PrefixStore.open(Qdrant(client, collection.name), encoder)


def test_a_server_that_is_not_there_raises(encoder):
    client = qdrant_client.QdrantClient("http://127.0.0.1:9", check_compatibility=False, timeout=2)
    with pytest.raises(InvalidInputError, match="Qdrant failed on collection"):
        PrefixCollection.open(client, "digits", encoder)


def test_a_missing_extra_is_named(client, encoder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "qdrant_client.models", None)
    with pytest.raises(MissingExtraError, match=r"firstk\[search\]"):
        PrefixCollection.create(client, "digits", encoder, short=8)
