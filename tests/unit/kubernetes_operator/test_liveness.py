"""The operator's own health: a loop that stands still, or a step that does not end, is noticed; so the kubelet acts."""

import asyncio
import time

import pytest

from joinery.operator import handlers
from joinery.operator.handlers import Operator
from tests.unit.kubernetes_operator.queries import SETTINGS

LIMIT_S = 0.3


@pytest.fixture(name="operator")
def an_operator(monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setattr(handlers, "Signer", lambda *_: None)
    return Operator(SETTINGS, None)  # type: ignore[arg-type]


def test_a_loop_that_turns_is_well_and_one_that_is_blocked_is_not(operator: Operator) -> None:
    async def turn(blocked_s: float) -> str | None:
        beat = asyncio.create_task(handlers._beat(operator))
        await asyncio.sleep(0)
        time.sleep(blocked_s)  # what a defect would do
        found = operator.stuck(LIMIT_S)
        beat.cancel()
        return found

    assert asyncio.run(turn(0)) is None
    assert "the event loop has not turned" in str(asyncio.run(turn(2 * LIMIT_S)))


def test_a_step_that_does_not_end_is_named_by_its_query(operator: Operator) -> None:
    operator.stepping["shop", "quick"] = time.monotonic()
    assert operator.stuck(LIMIT_S) is None
    operator.stepping["shop", "orders"] = time.monotonic() - 2 * LIMIT_S
    assert "stuck at shop/orders" == operator.stuck(LIMIT_S)
