"""What real machines are charged for: the cost model, applied to what they do in a simulated world.

The machines, the join and its results are real; only time is not. With `Charges` a job of a join module lasts as long
as what it did costs, and a message as long as its bytes take.

Rule 1: a batch costs its rows (inserted, and probed where the join is by hash) and the comparisons that the nested
        loops really made; a restored group costs its rows once more. Divided by the speed of the worker's node then.
Rule 2: a process sends one message with rows at a time; such a message takes its start and its bytes. Others take
        their start.
Rule 3: stores answer after `STORE_NS`, whatever is asked for. Machines decide in no time.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final

from joinery.machine import facts, messages, orders
from joinery.machine.facts import Fact
from joinery.machine.messages import Message
from joinery.machine.orders import ModuleOrder
from joinery.model.ids import Peer
from joinery.model.spec import JoinQuerySpec
from joinery.simulate.costs import CostModel
from joinery.simulate.load_settings import SpeedChange
from joinery.simulate.process import Process

STORE_NS: Final = 500_000
"""An append or a read of a Redis on the same network."""


class Charges:
    """Counts, and says how long."""

    def __init__(self, spec: JoinQuerySpec, costs: CostModel, speeds: Sequence[SpeedChange] = ()) -> None:
        self._costs = costs
        self._is_nested = spec.join.method == "nested-loop"
        self._free_ns: Counter[Peer] = Counter()
        """When each process has sent what it is sending."""
        self._speeds = sorted((change.ordinal, change.at_ns, change.speed) for change in speeds)
        self.busy_ns: Counter[str] = Counter()
        self.cpu_ns: Counter[str] = Counter()
        self.receiving_ns: Counter[str] = Counter()
        """By instance of a worker, since it started."""

    def job_ns(self, process: Process, order: ModuleOrder, done: Sequence[Fact], now_ns: int) -> int:
        """How long a module takes for what it was ordered, and has done."""
        work = self._work(order, done)
        takes = round(work / self.speed_at(process.ordinal, now_ns))
        self.cpu_ns[process.instance] += round(work)
        if isinstance(order, orders.JoinBatch):
            self.busy_ns[process.instance] += takes
        return takes

    def _work(self, order: ModuleOrder, done: Sequence[Fact]) -> float:
        costs = self._costs
        if isinstance(order, orders.PrepareGroup | orders.RestoreGroup):
            rows = sum(len(batch) for increment in order.increments for batch in increment.rows)
            return rows * costs.insert_ns
        if not isinstance(order, orders.JoinBatch):
            return 0.0
        rows = sum(len(batch) for batch in order.exchange.batches)
        if not self._is_nested:
            return rows * (costs.insert_ns + costs.probe_ns)
        compared = sum(fact.comparisons for fact in done if isinstance(fact, facts.BatchJoined))
        return rows * costs.insert_ns + compared * costs.comparison_ns

    def speed_at(self, ordinal: int, now_ns: int) -> float:
        """How fast the node of a worker is."""
        own = [(at_ns, speed) for one, at_ns, speed in self._speeds if one == ordinal]
        place = bisect_right([at_ns for at_ns, _ in own], now_ns)
        return own[place - 1][1] if place else 1.0

    def arrives_ns(self, sender: Process, receiver: Process, message: Message, now_ns: int) -> int:
        """When a message is there that is sent now."""
        if not isinstance(message, messages.Exchange | messages.Results | messages.Push):
            return now_ns + round(self._costs.message_ns)
        nbytes = message.rows.nbytes if isinstance(message, messages.Push) else message.nbytes
        takes = round(self._costs.transfer_ns(nbytes))
        arrives = max(now_ns, self._free_ns[sender.peer]) + takes
        self._free_ns[sender.peer] = arrives
        if isinstance(message, messages.Exchange):
            self.receiving_ns[receiver.instance] += takes
        return arrives
