"""What a source has sent and the gateway has not yet recorded; where it is, and where it must go back to.

Rule 1: at most `IN_FLIGHT` pieces are under way. That is all the memory that a source needs, however slow the query is.
Rule 2: `Opened` says where to begin. Sequences are places of the input, so nothing is kept to be sent again: a refusal
        that names a sequence makes the source read again from there (`turns` counts how often).
Rule 3: what was sent behind a refused piece is refused too, each once; those refusals say nothing new.
Rule 4: a refusal without a sequence is the end of the source, with the gateway's reason.
"""

from collections import deque
from typing import Final

from joinery.machine.messages import Acknowledge, Message, Opened, Refuse
from joinery.model.errors import UserMustAct, require

IN_FLIGHT: Final = 8


class Flight:
    """One session of a source with its gateway."""

    def __init__(self) -> None:
        self.session: int | None = None
        self.position: int | None = None
        """The sequence to send next; None: a first run, begin where you like."""
        self.ended = False
        """The gateway has recorded the end."""
        self.turns = 0
        self._under_way: deque[int] = deque()
        self._ending: int | None = None
        """The sequence of the end, once it is sent."""
        self._ignored: set[int] = set()

    @property
    def room(self) -> bool:
        """Whether another piece may be sent."""
        return len(self._under_way) < IN_FLIGHT

    @property
    def under_way(self) -> int:
        """Pieces that are sent and not acknowledged."""
        return len(self._under_way)

    def depart(self, sequence: int, next_sequence: int, *, end: bool = False) -> None:
        """A piece is sent."""
        at = sequence if self.position is None else self.position
        require(sequence == at and self.room, f"a piece of {sequence} was sent, wanted {at}, room: {self.room}")
        self._under_way.append(sequence)
        self.position = next_sequence
        if end:
            self._ending = sequence

    def hear(self, message: Message) -> None:
        """An answer of the gateway."""
        match message:
            case Opened():
                self.session, self.position, self.ended = message.session, message.expected, message.ended
            case Acknowledge():
                while self._under_way and self._under_way[0] <= message.sequence:
                    self._under_way.popleft()
                self.ended = self._ending is not None and not self._under_way
            case Refuse():
                self._refused(message)

    def _refused(self, message: Refuse) -> None:
        if message.expected is None:
            raise UserMustAct(message.reason)
        if message.sequence in self._ignored:
            self._ignored.discard(message.sequence)
            return
        if self.position is not None and message.expected > self.position:
            raise UserMustAct(
                f"found the gateway at {message.expected}, wanted at most {self.position}: another producer sends "
                "under the name of this source; give it a name of its own"
            )
        behind = () if message.sequence is None else [one for one in self._under_way if one > message.sequence]
        self._ignored = set(behind)
        self._under_way = deque(one for one in self._under_way if one < message.expected)
        self.position, self._ending = message.expected, None
        self.turns += 1
