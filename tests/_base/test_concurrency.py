"""Work over several threads keeps its order, and does not multiply by itself."""

import threading

from firstk._base.concurrency import in_worker, ordered_map


def test_a_map_within_a_worker_stays_in_its_thread():
    """Every worker of a map that started workers of its own would ask for more threads than there are cores."""

    def inner(number):
        return number, threading.get_ident()

    def outer(number):
        assert in_worker()
        found = list(ordered_map(inner, range(number), 4))
        assert [item for item, _ in found] == list(range(number))
        return {thread for _, thread in found} <= {threading.get_ident()}

    assert list(ordered_map(outer, range(6), 3)) == [True] * 6
    assert not in_worker()
