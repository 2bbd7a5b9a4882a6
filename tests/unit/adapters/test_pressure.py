"""Who brings too much waits, goes on when there is room, and never waits for what cannot come."""

import threading
from collections.abc import Callable

from joinery.adapters.pressure import TAKEN_BYTES, UNANSWERED_BATCHES, UNANSWERED_BYTES, Gate, Unanswered


def begun(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def waits(thread: threading.Thread) -> bool:
    thread.join(0.2)
    return thread.is_alive()


def ends(thread: threading.Thread) -> bool:
    thread.join(20)
    return not thread.is_alive()


def test_a_producer_waits_while_too_much_of_it_is_unanswered() -> None:
    one = Unanswered()
    one.read(0, UNANSWERED_BYTES)
    reading = begun(lambda: one.read(1, 1))
    assert waits(reading)
    one.answered(0)
    assert ends(reading)


def test_a_producer_of_tiny_batches_waits_too() -> None:
    one = Unanswered()
    for sequence in range(UNANSWERED_BATCHES):
        one.read(sequence, 0)
    reading = begun(lambda: one.read(UNANSWERED_BATCHES, 0))
    assert waits(reading)
    one.answered(5)
    assert ends(reading)


def test_one_batch_that_is_sent_again_counts_once() -> None:
    one = Unanswered()
    for _ in range(3):
        assert ends(begun(lambda: one.read(0, UNANSWERED_BYTES)))


def test_an_answer_to_nothing_in_particular_frees_nothing() -> None:
    one = Unanswered()
    reading = begun(lambda: one.read(0, UNANSWERED_BYTES + 1))
    one.answered(None)
    assert waits(reading)
    one.close()
    assert ends(reading)


def test_results_are_taken_without_end_while_no_store_is_asked() -> None:
    gate = Gate()
    assert ends(begun(lambda: gate.take(10 * TAKEN_BYTES)))


def test_results_wait_while_a_store_does_not_answer_and_then_go_on() -> None:
    gate = Gate()
    gate.begin()
    gate.take(TAKEN_BYTES)
    reading = begun(lambda: gate.take(1))
    assert waits(reading)
    gate.end()
    assert ends(reading)
    gate.begin()
    assert ends(begun(lambda: gate.take(TAKEN_BYTES)))
