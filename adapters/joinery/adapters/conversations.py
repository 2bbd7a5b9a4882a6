"""The conversations of the service: which rpc each is, and how its messages travel (protos/joinery/v1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from joinery.adapters.codec import collect, control, exchange, ingest
from joinery.join.plan import JoinPlan


@dataclass(frozen=True, slots=True)
class Conversation:
    """One bidirectional rpc; `up` goes to the side that listens, `down` to the side that dialled."""

    service: str
    method: str
    encode_up: Callable[[Any], bytes]
    decode_up: Callable[[bytes], Any]
    encode_down: Callable[[Any], bytes]
    decode_down: Callable[[bytes], Any]
    is_for_clients: bool = False
    """Whether it is held with producers or subscribers, not between processes of the service."""


def ingesting() -> Conversation:
    """Producer and gateway."""
    return Conversation(
        "joinery.v1.Ingest", "Push", ingest.encode_to_gateway, ingest.decode_to_gateway, ingest.encode_to_producer,
        ingest.decode_to_producer, is_for_clients=True,
    )  # fmt: skip


def exchanging(plan: JoinPlan) -> Conversation:
    """Worker and gateway."""
    return Conversation(
        "joinery.v1.Exchange", "Serve", exchange.encode_to_gateway, partial(exchange.decode_to_gateway, plan=plan),
        partial(exchange.encode_to_worker, plan=plan), partial(exchange.decode_to_worker, plan=plan),
    )  # fmt: skip


def collecting(plan: JoinPlan) -> Conversation:
    """Worker and collector."""
    return Conversation(
        "joinery.v1.Collect", "Collect", partial(collect.encode_to_collector, plan=plan),
        partial(collect.decode_to_collector, plan=plan), collect.encode_to_worker,
        partial(collect.decode_to_worker, plan=plan),
    )  # fmt: skip


def subscribing(plan: JoinPlan) -> Conversation:
    """Subscriber and collector."""
    return Conversation(
        "joinery.v1.Collect", "Subscribe", collect.encode_from_subscriber, collect.decode_from_subscriber,
        partial(collect.encode_to_subscriber, plan=plan), collect.decode_to_subscriber, is_for_clients=True,
    )  # fmt: skip


def controlling(plan: JoinPlan) -> Conversation:
    """Collector or operator, and gateway."""
    return Conversation(
        "joinery.v1.Control", "Attend", control.encode_to_gateway, partial(control.decode_to_gateway, plan=plan),
        control.encode_from_gateway, partial(control.decode_from_gateway, plan=plan),
    )  # fmt: skip
