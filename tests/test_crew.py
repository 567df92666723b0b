"""Tasks shared by a crew of threads."""

import threading
import time

import pytest

from kuroshio.device.cpu import Crew


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_results_come_in_the_order_of_the_items(threads, count):
    with Crew(threads) as crew:
        found = crew.run(lambda a, b: a * b, [(i, 2) for i in range(count)])
    assert found == [2 * i for i in range(count)]


def test_works_are_begun_in_their_order():
    begun = []
    with Crew(2) as crew:
        first = crew.start(lambda i: begun.append(("first", i)), [(i,) for i in range(20)])
        second = crew.start(lambda i: begun.append(("second", i)), [(i,) for i in range(20)])
        crew.finish(first, second)
    assert sorted(begun) == sorted((name, i) for name in ("first", "second") for i in range(20))
    assert begun[0][0] == "first"
    assert begun[-1][0] == "second"


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
