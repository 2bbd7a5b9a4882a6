"""A preload's answer that comes when the group was assigned and released meanwhile: KeyError in the worker."""

from joinery.machine import messages
from joinery.model.ids import GATEWAY, Term
from tests.unit.machine.result_parts import vector
from tests.unit.machine.test_worker import Driver


def test_a_preload_that_is_answered_after_its_group_came_and_went_does_no_harm():
    owner = Driver().connect()
    owner.assign(0)
    owner.batch(-1, 0)
    owner.checkpoint(0)
    worker = Driver(store=owner.store, instance="j").connect()
    worker.do(GATEWAY, messages.Preload(Term(1), vector(0)))
    (read,) = worker.say(GATEWAY, messages.Preload(Term(1), vector(0)))  # the store is slow: leaves out tag 0
    worker.say(GATEWAY, worker.assignment(0, version=2, silent=0))  # the owner was lost
    worker.say(GATEWAY, messages.Release(Term(1), vector(0)))  # ... and the group moved on
    worker.tell(worker.answers(read)[0])  # KeyError: 0
