"""Work over several threads: in order, none idle while an early item takes long, and not multiplied by itself."""

import threading

from threadpoolctl import threadpool_info, threadpool_limits

from firstk._base.concurrency import Alongside, in_worker, one_blas_thread, ordered_map


def test_a_long_item_does_not_stop_the_others():
    last = threading.Event()

    def work(item):
        if item == 0:
            return last.wait(20)  # the first is done when the last has been worked on
        if item == 9:
            last.set()
        return item

    assert list(ordered_map(work, range(10), 2, ahead=10)) == [True, *range(1, 10)]


def test_results_wait_in_order_and_no_more_than_so_many():
    begun = []
    found = ordered_map(lambda item: begun.append(item) or item, range(100), 2)
    assert next(found) == 0
    assert len(begun) <= 5  # one given on, two that wait, two at work
    assert list(found) == list(range(1, 100))


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


def test_a_map_leaves_a_core_to_the_job_beside_it():
    done = threading.Event()
    with Alongside() as thread:
        job = thread.submit(done.wait, 20)
        both = threading.Barrier(2)

        def meets_another(_):
            try:
                return both.wait(0.2) >= 0
            except threading.BrokenBarrierError:
                return False

        assert not any(ordered_map(meets_another, range(4), 2))
        assert not job.done()
        done.set()
    assert job.result()
    assert not Alongside.busy()
    both = threading.Barrier(2, timeout=20)  # passes where two are at work
    assert len(list(ordered_map(lambda _: both.wait(), range(2), 2))) == 2


def test_a_job_beside_starts_no_other_workers():
    with Alongside() as thread:
        assert thread.submit(in_worker).result()


def test_jobs_that_wait_are_given_up_with_an_error():
    began, go_on = threading.Event(), threading.Event()

    def first():
        began.set()
        return go_on.wait(20)

    thread = Alongside()
    jobs = [thread.submit(first), thread.submit(print)]
    began.wait(20)
    threading.Timer(0.05, go_on.set).start()
    thread.__exit__(KeyError, KeyError(), None)
    assert jobs[0].result()
    assert jobs[1].cancelled()
    assert not Alongside.busy()


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_limits_of_blas_that_overlap_end_with_the_last():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        one, other = one_blas_thread(), one_blas_thread()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert blas_threads() == {1}
        other.__exit__(None, None, None)
        assert blas_threads() == before == {2}
