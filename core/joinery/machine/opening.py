"""A producer opens a session: the answer, and a word to whoever had its name before (`sessions`, rule 1)."""

from typing import Final

from joinery.machine.intake import Intake
from joinery.machine.messages import Open, Opened, Refuse
from joinery.machine.orders import Order, Send
from joinery.model.ids import Peer, Term

FENCED: Final = "this session is fenced: another one was opened under its name; stop"


def open_session(intake: Intake, peer: Peer, message: Open, term: Term, now_ns: int) -> list[Order]:
    """What to answer; nothing, if that must wait until a record is written."""
    older = intake.sessions.peer_of((message.stream, message.name)) if message.name else None
    answer = intake.sessions.open(peer, message, intake.head, term, now_ns)
    made: list[Order] = [] if answer is None else [Send(peer, answer)]
    if isinstance(answer, Opened) and older not in (None, peer):
        made.append(Send(older, Refuse(None, FENCED)))  # what it has waiting is dropped: it must know
    return made
