"""What every sink keeps (`ports.Sink`): what a receipt says is valid is there, once, whatever other terms wrote."""

import pytest

from joinery.machine.ports import Receipt, Stale
from joinery.model.errors import Bug
from joinery.model.ids import Term
from tests.contract.conftest import SinkDesk
from tests.contract.samples import result


def test_nothing_is_valid_without_a_receipt(desk: SinkDesk) -> None:
    sink = desk.connect()
    sink.recover(Term(1), None)
    sink.stage(1, [result(1, 2)])
    assert [] == desk.valid(None)


def test_a_receipt_names_its_sink(desk: SinkDesk) -> None:
    sink = desk.connect()
    sink.recover(Term(1), None)
    assert sink.name == sink.stage(1, [result(1)]).sink


def test_what_was_staged_is_valid_by_its_receipt(desk: SinkDesk) -> None:
    sink = desk.connect()
    sink.recover(Term(1), None)
    first = sink.stage(1, [result(1, 2), result(3)])
    second = sink.stage(2, [result(4)])
    assert ([1, 2, 3], [1, 2, 3, 4]) == (desk.valid(first), desk.valid(second))


def test_a_commit_may_hold_no_row(desk: SinkDesk) -> None:
    sink = desk.connect()
    sink.recover(Term(1), None)
    sink.stage(1, [])
    receipt = sink.stage(2, [result(1)])
    assert [1] == desk.valid(receipt)


def test_the_same_number_again_replaces_what_was_staged_for_it(desk: SinkDesk) -> None:
    sink = desk.connect()
    sink.recover(Term(1), None)
    sink.stage(1, [result(1)])
    sink.stage(2, [result(2), result(3)])
    receipt = sink.stage(2, [result(4)])
    assert [1, 4] == desk.valid(receipt)


def test_staging_twice_gives_the_same_receipt(desk: SinkDesk) -> None:
    sink = desk.connect()
    sink.recover(Term(1), None)
    assert sink.stage(1, [result(1)]) == sink.stage(1, [result(1)])


def test_a_new_collector_goes_on_after_what_was_committed(desk: SinkDesk) -> None:
    old, new = desk.connect(), desk.connect()
    old.recover(Term(1), None)
    committed = old.stage(1, [result(1)])
    old.stage(2, [result(2)])
    new.recover(Term(2), committed)
    assert [1] == desk.valid(committed)
    assert [1, 3] == desk.valid(new.stage(2, [result(3)]))


def test_a_repeated_recovery_has_no_effect(desk: SinkDesk) -> None:
    old, new = desk.connect(), desk.connect()
    old.recover(Term(1), None)
    committed = old.stage(1, [result(1)])
    for _ in range(2):
        new.recover(Term(2), committed)
    assert [1, 3] == desk.valid(new.stage(2, [result(3)]))


def test_what_a_former_collector_still_stages_never_counts(desk: SinkDesk) -> None:
    old, new = desk.connect(), desk.connect()
    old.recover(Term(1), None)
    committed = old.stage(1, [result(1)])
    new.recover(Term(2), committed)
    old.stage(2, [result(2), result(22)])
    receipt = new.stage(2, [result(3)])
    old.stage(2, [result(2), result(22), result(222)])
    assert [1, 3] == desk.valid(receipt)


def test_a_collector_that_recovers_after_its_successor_never_counts(desk: SinkDesk) -> None:
    old, new = desk.connect(), desk.connect()
    new.recover(Term(2), None)
    receipt = new.stage(1, [result(1)])
    old.recover(Term(1), None)
    old.stage(1, [result(2)])
    assert [1] == desk.valid(receipt)
    assert [1, 3] == desk.valid(new.stage(2, [result(3)]))


def test_terms_without_a_commit_leave_nothing(desk: SinkDesk) -> None:
    first, second, third = desk.connect(), desk.connect(), desk.connect()
    first.recover(Term(1), None)
    committed = first.stage(1, [result(1)])
    second.recover(Term(2), committed)
    second.stage(2, [result(2)])
    third.recover(Term(4), committed)
    assert [1, 3] == desk.valid(third.stage(2, [result(3)]))


def test_many_terms_each_add_what_they_committed(desk: SinkDesk) -> None:
    committed: Receipt | None = None
    for term in range(1, 5):
        sink = desk.connect()
        sink.recover(Term(term), committed)
        committed = sink.stage(term, [result(10 * term), result(10 * term + 1)])
        sink.stage(term + 1, [result(99)])
    assert [10, 11, 20, 21, 30, 31, 40, 41] == desk.valid(committed)


def test_a_finished_output_holds_what_is_valid(desk: SinkDesk) -> None:
    old, new = desk.connect(), desk.connect()
    old.recover(Term(1), None)
    committed = old.stage(1, [result(1)])
    old.stage(2, [result(2)])
    new.recover(Term(2), committed)
    committed = new.stage(2, [result(3)])
    assert None is desk.output()
    for _ in range(2):
        new.finish(committed)
    assert [1, 3] == desk.output()


def test_an_output_without_any_commit_is_finished_empty(desk: SinkDesk) -> None:
    sink = desk.connect()
    sink.recover(Term(1), None)
    sink.stage(1, [result(1)])
    sink.finish(None)
    assert [] == desk.output()


def test_a_former_collector_does_not_finish_the_output(desk: SinkDesk) -> None:
    old, new = desk.connect(), desk.connect()
    old.recover(Term(1), None)
    committed = old.stage(1, [result(1)])
    new.recover(Term(2), committed)
    newest = new.stage(2, [result(2)])
    with pytest.raises(Stale):
        old.finish(committed)
    new.finish(newest)
    assert [1, 2] == desk.output()


def test_a_sink_without_a_term_is_refused_loudly(desk: SinkDesk) -> None:
    with pytest.raises(Bug, match="recover"):
        desk.connect().stage(1, [result(1)])
