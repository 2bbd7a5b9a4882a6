"""A gateway that takes rows and keeps nothing: what is left of a load's time is the load's own.

It speaks the conversation of producers, says its port, counts rows while its standard input is open, and then says how
many there were: `python -m bench.null_gateway query.yaml`.
"""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

from joinery.adapters.conversations import ingesting
from joinery.adapters.links import OPTIONS
from joinery.join.plan import JoinPlan
from joinery.machine.messages import Acknowledge, Describe, Description, Message, Open, Opened, Push
from joinery.model.ids import ProducerId, RecordNo, Term
from joinery.model.spec import JoinQuery

PRODUCERS: Final = 16
"""At once."""


class NullGateway:
    """Serves until it is closed."""

    def __init__(self, plan: JoinPlan) -> None:
        talk, self._plan = ingesting(), plan
        self._lock, self.rows = threading.Lock(), 0
        self._decode = talk.decode_up
        self._server = grpc.server(ThreadPoolExecutor(PRODUCERS), options=OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(self._serve, response_serializer=talk.encode_down)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(talk.service, {talk.method: handler}),)
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def close(self) -> None:
        self._server.stop(1).wait()

    def _serve(self, told: Iterator[bytes], context: Any) -> Iterator[Message]:
        context.send_initial_metadata(())  # whoever dialled waits for it
        for one in told:
            match self._decode(one):
                case Describe():
                    yield Description(self._plan.formats, self._plan.schema, None)
                case Open(name=name):
                    yield Opened(Term(1), name or ProducerId("unnamed"), 1, 0)
                case Push(sequence=sequence, rows=rows):
                    with self._lock:
                        self.rows += rows.num_rows
                    yield Acknowledge(sequence, RecordNo(sequence))


def main() -> None:
    """Until the standard input ends."""
    gateway = NullGateway(JoinPlan.of(JoinQuery.parse_yaml(Path(sys.argv[1]).read_text()).spec))
    print(gateway.port, flush=True)
    sys.stdin.read()
    gateway.close()
    print(gateway.rows, flush=True)


if __name__ == "__main__":
    main()
