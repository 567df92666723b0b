"""Tasks shared by a crew of threads."""

import random
import threading
import time
from concurrent.futures import CancelledError

import pytest

from kuroshio.device.cpu import Crew, Work


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_results_come_in_the_order_of_the_items(threads, count):
    with Crew(threads) as crew:
        found = crew.run(lambda a, b: a * b, [(i, 2) for i in range(count)])
    assert found == [2 * i for i in range(count)]


def held_up(crew: Crew) -> threading.Event:
    """Every thread of the crew waits for the event, so that what is started now has to queue."""
    begun, gate = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        begun.release()
        gate.wait(5)

    crew.start(hold, [()] * crew.threads)
    for _ in range(crew.threads):
        assert begun.acquire(timeout=5)
    return gate


def test_urgent_work_is_taken_first_and_the_rest_in_its_order():
    urgent = [random.random() < 0.5 for _ in range(20)]
    begun = []
    with Crew(1) as crew:
        gate = held_up(crew)
        works = [
            crew.start(lambda *item: begun.append(item), [(n, i) for i in range(3)], urgent=each)
            for n, each in enumerate(urgent)
        ]
        gate.set()
        crew.finish(*works)
    order = sorted(range(20), key=lambda n: (not urgent[n], n))
    assert begun == [(n, i) for n in order for i in range(3)]


@pytest.mark.parametrize("threads", [1, 3])
def test_urgent_work_overtakes_one_under_way(threads):
    begun, some, gate = [], threading.Semaphore(0), threading.Event()

    def slow(i: int) -> None:
        begun.append("slow")
        some.release()
        gate.wait(5)

    with Crew(threads) as crew:
        under_way = crew.start(slow, [(i,) for i in range(20)])
        for _ in range(threads):
            assert some.acquire(timeout=5)
        urgent = crew.start(
            lambda i: begun.append("urgent"), [(i,) for i in range(10)], urgent=True
        )
        gate.set()
        crew.finish(urgent)
        crew.finish(under_way)
    assert begun[:threads] == ["slow"] * threads
    # A thread may take the next slow one when all urgent ones are taken, but not yet begun.
    assert begun[threads:][: 10 - threads + 1] == ["urgent"] * (10 - threads + 1)
    assert sorted(begun) == ["slow"] * 20 + ["urgent"] * 10


def test_all_threads_take_part():
    together = threading.Barrier(3)
    with Crew(3) as crew:
        one = crew.start(together.wait, [(5,)])
        others = crew.start(together.wait, [(5,)] * 2, urgent=True)
        crew.finish(one, others)


def test_a_failure_is_raised_and_leaves_the_rest():
    done = []

    def task(i):
        if i == 3:
            raise ValueError("the fourth")
        time.sleep(0.002)
        done.append(i)

    with Crew(2) as crew, pytest.raises(ValueError, match="the fourth"):
        crew.run(task, [(i,) for i in range(1000)])
    assert len(done) < 20


def test_a_failure_is_raised_at_once():
    def fail() -> None:
        raise ValueError("early")

    gate = threading.Event()
    with Crew(2) as crew:
        lasting = crew.start(gate.wait, [(5,)])
        failing = crew.start(fail, [()])
        with pytest.raises(ValueError, match="early"):
            crew.finish(lasting, failing)
        assert not lasting.done.done()
        gate.set()


def test_a_failure_is_of_one_work():
    def fail(i: int) -> None:
        raise ValueError(i)

    with Crew(2) as crew:
        gate = held_up(crew)
        first = crew.start(lambda i: i, [(i,) for i in range(50)])
        failing = crew.start(fail, [(i,) for i in range(50)], urgent=True)
        last = crew.start(lambda i: -i, [(i,) for i in range(50)])
        gate.set()
        crew.finish(first, last)
        assert first.results == list(range(50))
        assert last.results == [-i for i in range(50)]
        with pytest.raises(ValueError, match=r"^[01]$"):  # two threads
            crew.finish(failing)


def test_the_executor_serves_others_alongside():
    with Crew(2) as crew:
        gate = held_up(crew)
        work = crew.start(lambda i: i, [(i,) for i in range(5)])
        future = crew.executor.submit(lambda: "theirs")
        gate.set()
        assert future.result(5) == "theirs"
        crew.finish(work)


def test_no_work_is_forgotten():
    """Several threads start many small works of all kinds and wait for them."""
    stop = time.monotonic() + 1
    rounds = []

    def task(n: int) -> int:
        if n < 0:
            raise ValueError(n)
        return n + 1

    def customer(crew: Crew, seed: int) -> None:
        draw = random.Random(seed)
        done = 0
        while time.monotonic() < stop:
            works = {}
            for _ in range(draw.randint(1, 4)):
                items = [(draw.randrange(100),) for _ in range(draw.randint(0, 5))]
                works[crew.start(task, items, urgent=draw.random() < 0.3)] = items
            if draw.random() < 0.1:
                with pytest.raises(ValueError, match="-7"):
                    crew.run(task, [(1,), (-7,), (1,)])
            crew.finish(*works)
            for work, items in works.items():
                assert work.results == [n + 1 for (n,) in items]
            done += 1
        rounds.append(done)

    with Crew(3) as crew:
        seeds = [random.random() for _ in range(4)]
        customers = [threading.Thread(target=customer, args=(crew, seed)) for seed in seeds]
        for each in customers:
            each.start()
        for each in customers:
            each.join(10)
        assert not any(each.is_alive() for each in customers)
    assert len(rounds) == 4
    assert min(rounds) > 10


def test_nobody_waits_for_what_was_dropped():
    errors = []

    def wait_for(crew: Crew, work: Work) -> None:
        with pytest.raises(CancelledError):
            crew.finish(work)
        errors.append(work)

    with Crew(2) as crew:
        gate = held_up(crew)
        work = crew.start(lambda i: i, [(i,) for i in range(5)])
        waiting = threading.Thread(target=wait_for, args=(crew, work))
        waiting.start()
        threading.Timer(0.05, gate.set).start()
        crew.dismiss()
        waiting.join(5)
        assert errors == [work]
        with pytest.raises(RuntimeError):
            crew.start(print, [()])


def test_leaving_early_drops_what_has_not_begun():
    begun, gate = [], threading.Event()

    def task(i):
        begun.append(i)
        gate.wait(5)

    crew = Crew(2)
    with crew:
        crew.start(task, [(i,) for i in range(100)])
        while len(begun) < 2:
            time.sleep(0.001)
        threading.Timer(0.05, gate.set).start()
    assert len(begun) == 2
    assert not any(t.name.startswith("kuroshio") for t in threading.enumerate())
